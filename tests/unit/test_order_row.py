"""Orders of the past: a row is the order that JSON would be, and the same row is known again."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.account import Account, Accounts
from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.importing.order_row import OrderRow, of_record
from clickclock.attribution.orders import amendment
from clickclock.attribution.orders.amendment import Amendment, Item, Kind, Rejection, known_to
from clickclock.attribution.orders.order_fields import Fault, Reason

NOW = 1_800_000_000_000
ROW = {
    "client_id": "acme",
    "order_id": "A-7",
    "cli_ubid": "u-1",
    "event_time": str(NOW - 1000),
    "amount": "12.30",
    "currency": "EUR",
}
TOO_EARLY = "This is before 9 September 2001 or after 2286; give milliseconds since 1970 (13 digits)."


def row(**changes: object) -> OrderRow:
    return of_record({name: value for name, value in {**ROW, **changes}.items() if value is not None})


def line(**changes: object) -> bytes:
    return json.dumps({name: value for name, value in {**ROW, **changes}.items() if value is not None}).encode()


def accepted(found: OrderRow) -> Amendment:
    judged = found.judge(found.came_ms(NOW))
    assert isinstance(judged, Amendment), judged
    return judged


def faults(found: OrderRow) -> list[tuple[str, str]]:
    judged = found.judge(NOW)
    assert isinstance(judged, Rejection)
    return [(fault.field, fault.message) for fault in judged.faults]


def test_a_row_is_the_order_that_its_json_would_be() -> None:
    found = row(status="partially_refunded", refunded_amount="2.30", seller_id="s", device_id="")
    judged = amendment.judge(found.raw, found.came_ms(NOW))
    assert accepted(found) == judged
    assert (accepted(found).amount_minor, accepted(found).refunded_minor) == (1230, 230)


def test_a_time_may_be_written_with_its_zone() -> None:
    for said in ("2027-01-15T08:59:59+01:00", "2027-01-15 07:59:59Z"):
        assert accepted(row(event_time=said)).event_time_ms == NOW - 1000
        assert row(event_time=said).id == row().id
    assert accepted(of_record(line(event_time="2027-01-15T07:59:59Z"))).event_time_ms == NOW - 1000


def test_a_time_without_a_zone_is_refused() -> None:
    naive = datetime(2027, 1, 15, 8, 59, 59)  # noqa: DTZ001 (tables of Parquet have such)
    sentence = "`2027-01-15T08:59:59` has no time zone; give milliseconds since 1970 (13 digits), or in a table "
    for said in ("2027-01-15T08:59:59", naive):
        assert faults(row(event_time=said)) == [("event_time", f"{sentence}2026-11-20T10:00:00+01:00.")]
    assert "has no time zone" in faults(row(event_time=date(2026, 1, 1)))[0][1]
    sentence = "Give milliseconds since 1970 (13 digits); a table may also say 2026-11-20T10:00:00+01:00."
    assert faults(row(event_time="15.01.2027 08:59")) == [("event_time", sentence)]


def test_a_line_of_ndjson_stays_as_it_is() -> None:
    written = b'  {"client_id" : "acme", "order_id":"A-7"} \n'
    assert of_record(written).raw == written.strip()


@pytest.mark.parametrize(
    "changes",
    [
        {"sku_id": "a|b", "product_prices": "10.00||", "product_quantities": "|2"},
        {"items": '[{"sku_id":"a","price":"10.00"},{"sku_id":"b","quantity":2}]'},
        {"items": [{"sku_id": "a", "price": "10.00", "quantity": None}, {"sku_id": "b", "quantity": 2}]},
        {"items": [{"sku_id": "a", "price": Decimal("10.00")}, {"sku_id": "b", "quantity": 2.0}]},
    ],
    ids=["pipes", "json", "lists", "typed lists"],
)
def test_items_come_in_columns_of_lists_of_json_or_with_pipes(changes: dict[str, object]) -> None:
    judged = accepted(row(**changes))
    assert judged.items == (Item("a", None, 1000), Item("b", None, None, 2))
    assert isinstance(amendment.judge(row(**changes).raw, NOW), Amendment)


def test_columns_of_a_table_may_have_types() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    judged = accepted(row(order_id=7, event_time=at, amount=Decimal("12.30"), seller_id=9))
    assert (judged.order_id, judged.seller_id, judged.amount_minor) == ("7", "9", 1230)
    assert judged.event_time_ms == int(at.timestamp() * 1000)
    assert accepted(row(event_time=float(NOW - 5))).event_time_ms == NOW - 5


@pytest.mark.parametrize("name", ["client_id", "order_id", "cli_ubid", "device_id", "seller_id"])
@pytest.mark.parametrize(
    "rounded", ["5.12346E+12", "5,12346E+12", " 1.23457e+11 ", "5E+12", "5.12346E12", "12345.0", 5123460000000.0, 7.0]
)
def test_an_id_that_was_taken_for_a_number_is_refused_with_the_way_out(name: str, rounded: object) -> None:
    (found,) = [said for field, said in faults(row(**{name: rounded})) if field == name]
    assert found.startswith(f"`{rounded}` is an id that a program took for a number")
    assert "export the column as text" in found


def test_an_id_that_only_looks_like_a_number_is_an_id() -> None:
    for legal in ("1e5", "12E4", "12e-5", "1E12", "5123456789012", "2026.117", "A-1.0", "1.2.0", "0E"):
        assert accepted(row(order_id=legal)).order_id == legal
    assert accepted(row(sku_id="12.00")).items[0].sku_id == "12.00"
    assert "items[0].sku_id" in dict(faults(row(sku_id="1.2E+07")))


def test_an_order_that_was_acknowledged_before_stays_one() -> None:
    raw = row(order_id="5.12346E+12").raw
    assert isinstance(amendment.judge(raw, NOW), amendment.Rejection)
    assert isinstance(amendment.judge(raw, NOW, is_kept=True), Amendment)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"amount": "1,234.50"}, ("amount", "`1,234.50` is no amount; give digits, with at most one point: `123.00`.")),
        ({"amount": "NaN"}, ("amount", "This is required, and `NaN` is as good as nothing; give it.")),
        ({"amount": Decimal("NaN")}, ("amount", "This is required; give it.")),
        (
            {"amount": 12.3},
            ("amount", 'Give the amount as text, such as "12.30": in a number, programs lose digits.'),
        ),
        ({"currency": "EUX"}, ("currency", "`EUX` is no currency of ISO 4217; give its three letters.")),
        ({"cli_ubid": ""}, ("cli_ubid", "None of cli_ubid, device_id and customer_id is there; give at least one.")),
        ({"event_time": "0"}, ("event_time", TOO_EARLY)),
        ({"event_time": "1970-01-01T00:00:00Z"}, ("event_time", TOO_EARLY)),
        ({"event_time": "1790000000"}, ("event_time", "These are seconds; give milliseconds since 1970 (13 digits).")),
        ({"amuont": "1"}, ("amuont", "There is no such field; did you mean `amount`?")),
        ({"items": "[1,"}, ("items", "This is not JSON: Expecting value at line 1, column 4.")),
        ({"items": "{}"}, ("items", "Give an array of objects.")),
        (
            {"sku_id": "a|b", "product_prices": "1"},
            ("product_prices", "This lists 1, and sku_id 2; give one for each, with `|` between."),
        ),
        (
            {"seller_id": "\udcff"},
            (
                "seller_id",
                "This has a NUL character, or is no UTF-8 (half of a surrogate pair, say); write it as UTF-8 text.",
            ),
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_row_says_what_to_give(changes: dict[str, object], fault: tuple[str, str]) -> None:
    assert faults(row(**changes)) == [fault]
    assert isinstance(row(**changes).raw.decode(), str)


def test_every_fault_of_a_row_is_told() -> None:
    assert [field for field, _ in faults(row(amount="x", cli_ubid="", currency="eur", items="{"))] == [
        *("cli_ubid", "currency", "amount", "items"),
    ]


@pytest.mark.parametrize("record", [b"", b"[1]", b'{"client_id": "ac', b'{"a":1,"a":2}', b"{}", {}, {"order_id": ""}])
def test_what_is_no_row_at_all_says_so(record: Any) -> None:
    with pytest.raises(Unusable):
        of_record(record)


def test_it_came_when_somebody_wrote_down_or_when_it_happened_or_now() -> None:
    assert row(received_at="2026-01-01T00:00:00Z").came_ms(NOW) == 1_767_225_600_000
    assert "received_at" not in row(received_at="2026-01-01T00:00:00Z").given
    assert of_record(line(received_at=NOW - 5)).came_ms(NOW) == NOW - 5
    assert row().came_ms(NOW) == NOW - 1000
    assert row(event_time="soon").came_ms(NOW) == NOW
    assert row(event_time="4070908800000").came_ms(NOW) == NOW
    with pytest.raises(Unusable, match="in the future"):
        row(received_at=NOW + 600_000).came_ms(NOW)
    with pytest.raises(Unusable, match="received_at is"):
        row(received_at="soon")


def test_a_time_of_2099_is_kept_and_flagged_and_not_believed() -> None:
    judged = accepted(row(event_time="4070908800000"))
    assert (judged.is_ahead, judged.effective_ms) == (True, NOW)


def test_the_same_row_has_one_id_in_every_format_and_another_row_has_another() -> None:
    typed = row(event_time=NOW - 1000, device_id=None)
    assert row().id == typed.id == of_record(line()).id == of_record(line(event_time=NOW - 1000, seller_id="")).id
    assert row(received_at=NOW - 5).id == row().id
    assert row(amount="12.31").id != row().id
    assert (len(row().id), row().id[12]) == (32, "8")
    assert row(event_time=str(NOW - 2000)).id < row().id


@given(st.dictionaries(st.sampled_from([*ROW, "device_id", "status"]), st.text(min_size=1), min_size=1))
def test_the_order_of_columns_changes_nothing(cells: dict[str, str]) -> None:
    backwards = dict(reversed(cells.items()))
    assert of_record(cells).id == of_record(backwards).id
    assert isinstance(of_record(cells).judge(NOW), Amendment | Rejection)


def test_an_unknown_account_is_refused_and_a_known_one_needs_no_token() -> None:
    admit = known_to(Accounts([Account(client_id="acme", orders_token_sha256="0" * 64)]))
    assert isinstance(row().judge(NOW, admit), Amendment)
    judged = row(client_id="other", amount="x", items="{").judge(NOW, admit)
    assert isinstance(judged, Rejection)
    assert judged.kind is Kind.UNKNOWN_CLIENT
    assert [fault.field for fault in judged.faults] == ["client_id", "amount", "items"]
    assert isinstance(judged.faults[0], Fault)
    assert judged.faults[0].code is Reason.UNKNOWN_CLIENT

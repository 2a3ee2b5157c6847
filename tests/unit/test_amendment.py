"""What one message says of an order: read exactly, or refused with every fault at once."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickclock.attribution.clicks.click import AHEAD_MAX_MS
from clickclock.attribution.orders import amendment
from clickclock.attribution.orders.amendment import (
    FIELDS,
    ITEMS_MAX,
    ORDER_BYTES_MAX,
    Amendment,
    Item,
    Kind,
    Rejection,
    Status,
    everyone,
    is_plain,
    judge_fields,
)
from clickclock.attribution.orders.order_fields import FAULTS_MAX, Fault, Reason

NOW = 1_800_000_000_000
ORDER: dict[str, Any] = {
    "client_id": "acme",
    "order_id": "A-7",
    "cli_ubid": "u",
    "event_time": NOW,
    "amount": "12.30",
    "currency": "EUR",
}


def raw(**changes: Any) -> bytes:
    return json.dumps({**ORDER, **changes}).encode()


def accepted(order: bytes) -> Amendment:
    judged = amendment.judge(order, NOW)
    assert isinstance(judged, Amendment), judged
    return judged


def refused(order: bytes) -> Rejection:
    judged = amendment.judge(order, NOW)
    assert isinstance(judged, Rejection), judged
    return judged


def only_fault(order: bytes) -> Fault:
    (fault,) = refused(order).faults
    return fault


def test_the_least_that_is_an_order() -> None:
    assert accepted(raw()) == Amendment(
        client_id="acme",
        order_id="A-7",
        event_time_ms=NOW,
        amount_minor=1230,
        currency="EUR",
        status=Status.COMPLETED,
        refunded_minor=0,
        cli_ubid="u",
        device_id=None,
        seller_id=None,
        items=(),
        received_ms=NOW,
    )


def test_all_that_an_order_may_say() -> None:
    items = [
        {"sku_id": "a", "seller_id": "s1", "price": "5", "quantity": 2},
        {"sku_id": "b", "price": None, "quantity": None},
    ]
    order = accepted(raw(device_id="d", seller_id="s", items=items, status="partially_refunded", refunded_amount="0.3"))
    assert (order.cli_ubid, order.device_id, order.seller_id) == ("u", "d", "s")
    assert order.items == (Item("a", "s1", 500, 2), Item("b", None, None, 1))
    assert (order.status, order.refunded_minor) == (Status.PARTIALLY_REFUNDED, 30)


@pytest.mark.parametrize("nothing", [None, "", "null", "undefined"])
def test_a_placeholder_is_as_good_as_nothing_in_every_field(nothing: str | None) -> None:
    assert accepted(raw(items=nothing, device_id=nothing, refunded_amount=nothing, status=nothing)).items == ()
    assert accepted(raw(items=[{"sku_id": "a", "quantity": nothing, "price": nothing}])).items == (Item("a"),)


def test_a_lead_needs_no_amount_and_a_purchase_does() -> None:
    lead = accepted(raw(kind="lead", amount=None))
    assert (lead.kind, lead.amount_minor) == ("lead", 0)
    assert accepted(raw(kind="lead", amount="5.00")).amount_minor == 500
    for purchase in ({}, {"kind": "purchase"}, {"kind": ""}):
        (fault,) = refused(raw(**purchase, amount=None)).faults
        assert fault.field == "amount"
    (fault,) = refused(raw(kind="lead", amount="much")).faults
    assert fault.field == "amount"


@pytest.mark.parametrize(
    ("said", "kind"), [(" Lead", "lead"), ("Sign-up", "sign_up"), ("generate lead", "generate_lead"), ("null", None)]
)
def test_a_kind_is_a_word_however_it_is_written(said: str, kind: str | None) -> None:
    assert accepted(raw(kind=said)).kind == kind


@pytest.mark.parametrize("said", ["7", "lead!", "län", "l" * 33, "_lead", 5])
def test_a_kind_that_is_no_word_is_refused(said: object) -> None:
    (fault,) = refused(raw(kind=said, amount=None)).faults
    assert fault.field == "kind"


def test_the_items_need_not_sum_up_to_the_amount() -> None:
    assert accepted(raw(items=[{"sku_id": "a", "price": "99.00"}])).amount_minor == 1230


def test_every_fault_is_told_at_once() -> None:
    order = {
        "order_id": "undefined",
        "event_time": 1_800_000_000,
        "amount": 12.3,
        "currency": "eur",
        "status": "paid",
        "refund_amount": "1",
        "items": [{"sku": "a", "price": "x", "quantity": 0}, 5],
    }
    found = {(fault.field, fault.code) for fault in refused(json.dumps(order).encode()).faults}
    assert found == {
        ("client_id", Reason.MISSING),
        ("order_id", Reason.MISSING),
        ("cli_ubid", Reason.MISSING),
        ("event_time", Reason.BAD_EVENT_TIME),
        ("amount", Reason.BAD_AMOUNT),
        ("currency", Reason.BAD_CURRENCY),
        ("status", Reason.BAD_STATUS),
        ("refund_amount", Reason.UNKNOWN_FIELD),
        ("items[0].sku_id", Reason.MISSING),
        ("items[0].price", Reason.BAD_AMOUNT),
        ("items[0].quantity", Reason.BAD_ITEMS),
        ("items[0].sku", Reason.UNKNOWN_FIELD),
        ("items[1]", Reason.BAD_ITEMS),
    }


def test_an_unknown_name_is_taken_for_one_that_is_missing_rather_than_for_one_that_is_given() -> None:
    found = amendment.judge(b'{"client_id": "c", "order_id": "7", "device_id": "d", "order_time": 1}', 0)
    assert isinstance(found, Rejection)
    assert "order_time: There is no such field; did you mean `event_time`?" in found.lines


@pytest.mark.parametrize(("status", "refunded"), [("partially_refunded", "0"), ("completed", "1.00")])
def test_a_refund_that_fits_no_amount_is_told_beside_an_amount_that_cannot_be_read(status: str, refunded: str) -> None:
    found = refused(raw(amount=".5", status=status, refunded_amount=refunded))
    assert [fault.field for fault in found.faults] == ["amount", "refunded_amount"]


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"refund_amount": "1"}, "refund_amount", "did you mean `refunded_amount`?"),
        ({"zzz": 1}, "zzz", "leave it out"),
        ({"order_id": 7}, "order_id", "in quotes"),
        ({"order_id": "x" * 257}, "order_id", "257 characters; give at most 256"),
        ({"order_id": "a\0"}, "order_id", "NUL"),
        ({"order_id": "\ud800"}, "order_id", "surrogate"),
        ({"currency": "euro"}, "currency", "three letters"),
        ({"currency": "usd"}, "currency", "in capitals: `USD`"),
        ({"currency": "XAU"}, "currency", "no currency"),
        ({"amount": 12}, "amount", 'as text, such as "12.30"'),
        ({"amount": True}, "amount", "as text"),
        ({"amount": "12.345"}, "amount", "finer than EUR"),
        ({"amount": ["1"]}, "amount", "in quotes"),
        ({"event_time": 1_800_000_000}, "event_time", "These are seconds; give milliseconds"),
        ({"event_time": "1.8e12"}, "event_time", "13 digits"),
        ({"event_time": float(NOW)}, "event_time", "13 digits"),
        ({"event_time": True}, "event_time", "13 digits"),
        ({"event_time": 10**13}, "event_time", "13 digits"),
        ({"event_time": "NaN"}, "event_time", "required"),
        ({"status": "Completed"}, "status", "completed, partially_refunded, refunded, cancelled"),
        ({"refunded_amount": "1.00"}, "refunded_amount", "A completed order has no refund"),
        ({"status": "partially_refunded"}, "refunded_amount", "required"),
        ({"status": "partially_refunded", "refunded_amount": "0"}, "refunded_amount", "more than zero"),
        ({"status": "partially_refunded", "refunded_amount": "12.31"}, "refunded_amount", "not more than the amount"),
        ({"status": "refunded", "refunded_amount": "12.29"}, "refunded_amount", "partially_refunded"),
        ({"status": "cancelled", "refunded_amount": "12.29"}, "refunded_amount", "leave this out"),
        ({"items": {}}, "items", "array"),
        ({"items": [{"sku_id": "a"}] * (ITEMS_MAX + 1)}, "items", "1,001 items; give at most 1,000"),
        ({"items": [{"sku_id": "a", "quantity": 1.5}]}, "items[0].quantity", "whole number from 1 to 1,000,000"),
        ({"items": [{"sku_id": "a", "prise": "1"}]}, "items[0].prise", "did you mean `price`?"),
    ],
)
def test_a_fault_says_what_to_give(changes: dict[str, Any], field: str, says: str) -> None:
    fault = only_fault(raw(**changes))
    assert fault.field == field
    assert says in fault.message


@pytest.mark.parametrize(
    ("status", "refunded", "minor"),
    [
        ("completed", None, 0),
        ("completed", "0.00", 0),
        ("partially_refunded", "12.30", 1230),
        ("refunded", None, 1230),
        ("refunded", "12.3", 1230),
        ("cancelled", None, 1230),
        ("cancelled", "0", 1230),
    ],
)
def test_the_refund_follows_from_the_status(status: str, refunded: str | None, minor: int) -> None:
    assert accepted(raw(status=status, refunded_amount=refunded)).refunded_minor == minor


@pytest.mark.parametrize("placeholder", ["", "null", "undefined", "None", "NaN", pytest.param(None, id="JSON's null")])
def test_a_placeholder_is_as_good_as_nothing(placeholder: str | None) -> None:
    assert accepted(raw(device_id=placeholder, seller_id=placeholder)).device_id is None
    assert only_fault(raw(cli_ubid=placeholder)).field == "cli_ubid"


def test_an_identifier_that_is_faulty_is_not_missing_as_well() -> None:
    assert only_fault(raw(cli_ubid=5)).code is Reason.BAD_TEXT


def test_a_time_may_be_text_of_digits() -> None:
    assert accepted(raw(event_time=str(NOW))).event_time_ms == NOW


@pytest.mark.parametrize("off", [7_200_000, -7_200_000])
def test_a_clock_that_is_off_is_put_right_by_when_it_said_that_it_sent(off: int) -> None:
    happened = NOW - 600_000
    for sent_at in (NOW + off, str(NOW + off)):
        assert accepted(raw(event_time=happened + off, sent_at=sent_at)).event_time_ms == happened
    useless: list[Any] = [None, "", "soon", True, [], NOW + 59_999, 10**40]
    for nonsense in useless:
        assert accepted(raw(event_time=happened, sent_at=nonsense)).event_time_ms == happened


def test_a_time_ahead_is_kept_and_counts_as_the_receipt() -> None:
    near = accepted(raw(event_time=NOW + AHEAD_MAX_MS))
    assert (near.is_ahead, near.event_time_ms, near.effective_ms) == (False, NOW + AHEAD_MAX_MS, NOW)
    ahead = accepted(raw(event_time=NOW + AHEAD_MAX_MS + 1))
    assert ahead.is_ahead
    assert (ahead.event_time_ms, ahead.effective_ms) == (NOW + AHEAD_MAX_MS + 1, NOW)


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (b"", "not JSON"),
        (b'{"client_id": ', "line 1, column 15"),
        (b"[]", "one JSON object"),
        (b"null", "one JSON object"),
        (b'{"a": "\xff"}', "byte 8 cannot be read"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "number that is too long"),
        (b'{"a": NaN}', "NaN"),
        (raw()[:-1] + b', "amount": "99.00"}', "'amount' twice"),
        (b'{"a": "' + b"x" * ORDER_BYTES_MAX + b'"}', "1,048,585 bytes; give at most 1,048,576"),
    ],
)
def test_what_is_no_json_object_is_told_why(order: bytes, says: str) -> None:
    assert says in only_fault(order).message


@pytest.mark.parametrize(
    "changes", [{"items": [{}] * ITEMS_MAX}, {"items": [5] * ITEMS_MAX}, {f"x{n}": n for n in range(1000)}]
)
def test_a_thousand_faults_are_not_all_told(changes: dict[str, Any]) -> None:
    faults = refused(raw(**changes)).faults
    assert len(faults) == FAULTS_MAX + 1
    assert faults[-1].message == "There are more faults; fix these first."


def test_who_is_not_admitted_hears_of_the_other_faults_too() -> None:
    def nobody(client_id: str) -> Fault:
        return Fault("client_id", f"not {client_id}", Reason.UNKNOWN_CLIENT)

    judged = amendment.judge(raw(amount="x"), NOW, nobody)
    assert isinstance(judged, Rejection)
    assert judged.kind is Kind.UNKNOWN_CLIENT
    assert [fault.field for fault in judged.faults] == ["client_id", "amount"]
    assert (judged.client_id, judged.order_id) == ("acme", "A-7")


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["1.00", "EUR", NOW, "refunded"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9) | st.sampled_from(FIELDS), inner),
    max_leaves=8,
)


@example({"cli_ubid": None, "customer_id": "1"})
@given(st.dictionaries(st.sampled_from((*FIELDS, "amuont")), anything))
def test_any_object_is_an_amendment_or_has_faults(changes: dict[str, Any]) -> None:
    judged = amendment.judge(raw(**changes), NOW)
    if isinstance(judged, Rejection):
        assert judged.faults
        assert all(fault.message.endswith((".", "?", "`.")) for fault in judged.faults)
    else:
        assert 0 <= judged.refunded_minor <= judged.amount_minor
        assert {judged.cli_ubid, judged.device_id, judged.customer_id} != {None}


@given(st.binary(max_size=60))
def test_any_bytes_are_judged(some: bytes) -> None:
    assert isinstance(amendment.judge(some, NOW), Rejection)


def test_an_identifier_that_a_spreadsheet_could_not_find_is_absent() -> None:
    order = accepted(raw(cli_ubid="#N/A", device_id="d-1"))
    assert (order.cli_ubid, order.device_id) == (None, "d-1")


def test_what_was_acknowledged_stays_an_order_whatever_is_absent_since() -> None:
    kept = amendment.judge(raw(order_id="N/A", cli_ubid="guest"), NOW, is_kept=True)
    assert isinstance(kept, Amendment)
    assert (kept.order_id, kept.cli_ubid, kept.amount_minor) == ("N/A", None, 1230)
    assert [fault.field for fault in refused(raw(order_id="N/A", cli_ubid="guest")).faults] == ["order_id", "cli_ubid"]


_TEXTS = st.sampled_from(
    [
        *("#1001", "A-7", "1E5", "5.1E+12", "nobody", "null", "ff", "x-x", "", "#N/A", "0001", "unknown", "ab_c", "ä"),
        *("1795132800000", "1795132800", "9.90", "9", "9.905", "-1", "EUR", "JPY", "eur", "completed", "refunded"),
    ]
)
_ITEMS = st.lists(st.dictionaries(st.sampled_from(["sku_id", "price", "quantity", "colour"]), _TEXTS), max_size=2)


@given(
    st.fixed_dictionaries(
        {"client_id": _TEXTS, "order_id": _TEXTS, "event_time": _TEXTS, "amount": _TEXTS, "currency": _TEXTS},
        optional={
            **dict.fromkeys(("cli_ubid", "device_id", "customer_id", "status", "seller_id", "refunded_amount"), _TEXTS),
            "items": _ITEMS,
        },
    )
)
def test_what_is_plain_is_what_the_judge_accepts(fields: dict[str, Any]) -> None:
    if is_plain(fields, 1_795_132_800_001, everyone):
        judged = judge_fields(fields, 1_795_132_800_001)
        assert isinstance(judged, Amendment)
        assert not judged.is_ahead


def test_a_usual_order_is_plain() -> None:
    usual = {"client_id": "shop-1", "order_id": "#1001", "amount": "9.90", "currency": "EUR", "customer_id": "c7"}
    usual["event_time"] = "1795132800000"
    bought = {**usual, "items": [{"sku_id": "P-1", "price": "9.90", "quantity": "1"}], "status": "completed"}
    assert is_plain(usual, 1_795_132_800_000, everyone)
    assert is_plain(bought, 1_795_132_800_000, everyone)
    assert not is_plain(usual, 1_795_132_799_999, everyone), "it is ahead of our clock"

"""A purchase as AppsFlyer sends it is the order that JSON of our own would be."""

import json
import time
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.orders.amendment import Kind, Rejection
from clickclock.attribution.orders.appsflyer import Sale, is_sale, judge, query_of
from clickclock.attribution.orders.order_fields import NotJson
from clickclock.attribution.orders.push_message import FIELDS, PURCHASE

NOW = 1_800_000_000_000
DEVICE = "38400000-8cf0-11bd-b23e-10b96e40000d"
ZEROS = "00000000-0000-0000-0000-000000000000"
VALUE = {"af_order_id": "A-1", "af_content_id": "P-7", "af_price": 9.9, "af_quantity": 1}
MESSAGE: dict[str, Any] = {
    "event_name": PURCHASE,
    "advertising_id": DEVICE,
    "customer_user_id": "c-7",
    "event_time": "2026-11-01 09:00:00.120",
    "event_revenue": "9.90",
    "event_revenue_currency": "EUR",
    "event_value": json.dumps(VALUE),
    "ip": "198.51.100.7",
    "city": "Hamburg",
}


def message(value: object = VALUE, **changes: object) -> bytes:
    said = {**MESSAGE, "event_value": json.dumps(value), **changes}
    return json.dumps({name: each for name, each in said.items() if each is not None}).encode()


def judged(body: bytes) -> Any:
    return judge(b"client_id=shop-1&" + query_of(body), NOW)


def order(body: bytes) -> Any:
    found = judged(body)
    assert isinstance(found, Sale), found
    return found.amendment


def faults(body: bytes) -> list[tuple[str, str]]:
    found = judged(body)
    assert isinstance(found, Rejection), found
    return [(each.field, each.code.value) for each in found.faults]


def test_by_get_it_is_the_same_order() -> None:
    query = urlencode({"client_id": "shop-1", **MESSAGE}).encode()
    assert is_sale(query)
    sale = judge(query, NOW)
    assert isinstance(sale, Sale)
    assert sale.amendment == order(message())


def test_a_time_is_in_utc_wherever_the_collector_is(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Asia/Tokyo")
            time.tzset()
            assert order(message()).event_time_ms == 1_793_523_600_120
    finally:
        time.tzset()


def test_nothing_but_an_order_is_kept() -> None:
    assert b"Hamburg" not in query_of(message())
    assert b"198.51" not in query_of(message())


@pytest.mark.parametrize(
    ("changes", "device_id"),
    [
        ({}, DEVICE),
        ({"advertising_id": None, "idfa": "i"}, "i"),
        ({"advertising_id": ZEROS, "idfa": ZEROS, "idfv": "v"}, "v"),
        ({"advertising_id": ZEROS}, None),
        ({"advertising_id": "", "oaid": "o", "idfv": "v"}, "o"),
    ],
)
def test_the_device_is_the_first_that_is_somebodys(changes: dict[str, object], device_id: str | None) -> None:
    assert order(message(**changes)).device_id == device_id


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ({}, []),
        ({"af_price": "9.90"}, []),
        ({"af_content_id": "P-7"}, [("P-7", None, 1)]),
        ({"af_content_id": 7, "af_price": 9.9, "af_quantity": "2"}, [("7", 990, 2)]),
        ({"af_content_id": ["a|b", "c"], "af_price": ["1", 2]}, [("a|b", 100, 1), ("c", 200, 1)]),
        ({"af_content_id": ["a", "c"], "af_price": ["1", ""]}, [("a", 100, 1), ("c", None, 1)]),
    ],
)
def test_articles_are_values_or_lists(value: dict[str, object], items: list[tuple[str, int | None, int]]) -> None:
    found = order(message({"af_order_id": "A-1", **value})).items
    assert [(each.sku_id, each.price_minor, each.quantity) for each in found] == items


def test_a_receipt_names_the_order_and_the_event_its_revenue() -> None:
    value = {"af_receipt_id": 77, "af_revenue": 12.5, "af_currency": "usd"}
    found = order(message(value, event_revenue=None, event_revenue_currency=None))
    assert (found.order_id, found.amount_minor, found.currency) == ("77", 1250, "USD")


@pytest.mark.parametrize("value", ["1990", 1990, "1990.0", 1990.0], ids=repr)
def test_a_currency_without_cents(value: object) -> None:
    found = order(message({"af_order_id": "A"}, event_revenue=value, event_revenue_currency="JPY"))
    assert found.amount_minor == 1990


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (message({}), [("event_value.af_order_id", "missing")]),
        (message(event_revenue="much"), [("event_revenue", "badAmount")]),
        (message(event_time="yesterday"), [("event_time", "badEventTime")]),
        (message(advertising_id=None, customer_user_id=None), [("advertising_id", "missing")]),
        (message(event_value="{af_order_id: 7}"), [("event_value", "notJson")]),
        (message(["A-1"]), [("event_value", "notJson")]),
        (
            message({"af_order_id": "A", "af_content_id": ["a", "b"], "af_price": [1]}),
            [("event_value.af_price", "badItems")],
        ),
        (
            message({"af_order_id": "A", "af_content_id": "a", "af_price": "x", "af_quantity": 0}),
            [("event_value.af_price", "badAmount"), ("event_value.af_quantity", "badItems")],
        ),
    ],
)
def test_a_fault_has_the_name_that_the_message_has(body: bytes, found: list[tuple[str, str]]) -> None:
    assert faults(body) == found


def test_a_sale_of_the_other_form_may_be_json_too() -> None:
    said = {"event_name": "funnel_salecomplete", "client_id": "shop-1", "device_id": "d", "item_identifier": 7}
    said |= {"sales": 9.9, "currency": "EUR", "event_time": NOW, "name": "Ann"}
    sale = judge(query_of(json.dumps(said).encode()), NOW)
    assert isinstance(sale, Sale)
    assert (sale.amendment.order_id, sale.amendment.amount_minor) == ("7", 990)


def test_the_account_is_in_the_address() -> None:
    found = judge(query_of(message()), NOW)
    assert isinstance(found, Rejection)
    assert [(each.field, each.code) for each in found.faults] == [("client_id", "missing")]


def test_an_install_is_no_order() -> None:
    found = judged(message(event_name="install"))
    assert isinstance(found, Rejection)
    assert found.kind is Kind.INVALID
    assert [each.field for each in found.faults] == ["event_name"]
    assert PURCHASE in found.faults[0].message


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b'{"a": 1, "a": 2}', b"{", b"\xff"])
def test_a_body_that_is_no_message_says_why(body: bytes) -> None:
    with pytest.raises(NotJson):
        query_of(body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(sorted(FIELDS)), _JSON),
    st.dictionaries(st.sampled_from(["af_order_id", "af_content_id", "af_price", "af_quantity", "af_revenue"]), _JSON),
)
def test_whatever_is_in_it_is_an_order_or_says_why(fields: dict[str, Any], value: dict[str, Any]) -> None:
    found = judged(message(**{"event_value": json.dumps(value), **fields}))
    assert isinstance(found, Sale) or found.faults


def test_a_half_of_a_character_is_named() -> None:
    assert ("customer_user_id", "notUtf8") in faults(b'{"event_name": "af_purchase", "customer_user_id": "\\ud800"}')

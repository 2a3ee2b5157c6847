"""The call of existing integrations: a sale in it is the order that JSON would be."""

from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.orders import amendment
from clickclock.attribution.orders.amendment import Item, Kind, Rejection
from clickclock.attribution.orders.appsflyer import OTHER_EVENTS, OtherEvent, Sale, judge
from clickclock.attribution.orders.order_fields import Fault, Reason

NOW = 1_800_000_000_000
SALE = {
    "event_name": "funnel_salecomplete",
    "client_id": "acme",
    "device_id": "d",
    "item_identifier": "A-7",
    "sales": "30.00",
    "currency": "EUR",
    "sku_id": "a|b",
    "product_prices": "10.00|20",
    "event_time": str(NOW),
}


def call(**changes: str | None) -> bytes:
    return urlencode({name: value for name, value in {**SALE, **changes}.items() if value is not None}).encode()


def sale(**changes: str | None) -> Sale:
    judged = judge(call(**changes), NOW)
    assert isinstance(judged, Sale), judged
    return judged


def refused(query: bytes) -> Rejection:
    judged = judge(query, NOW)
    assert isinstance(judged, Rejection), judged
    return judged


def test_a_sale_is_an_order() -> None:
    order = sale().amendment
    assert (order.client_id, order.order_id, order.device_id) == ("acme", "A-7", "d")
    assert (order.amount_minor, order.currency, order.event_time_ms) == (3000, "EUR", NOW)
    assert order.items == (Item("a", None, 1000), Item("b", None, 2000))


def test_other_parameters_ride_along() -> None:
    assert sale(af_channel="x", gaid="g").amendment == sale().amendment


@pytest.mark.parametrize(
    ("changes", "items"),
    [
        ({"product_prices": None}, (Item("a"), Item("b"))),
        ({"product_prices": "|20"}, (Item("a"), Item("b", None, 2000))),
        ({"product_quantities": "1|3"}, (Item("a", None, 1000, 1), Item("b", None, 2000, 3))),
        ({"sku_id": "a|b|", "product_prices": "10|20|"}, (Item("a", None, 1000), Item("b", None, 2000))),
        ({"sku_id": None, "product_prices": None}, ()),
    ],
)
def test_the_lists_are_read_place_by_place(changes: dict[str, str | None], items: tuple[Item, ...]) -> None:
    assert sale(**changes).amendment.items == items


@given(st.dictionaries(st.sampled_from(sorted(SALE)), st.text(max_size=12)))
def test_a_sale_is_judged_as_its_json_is(changes: dict[str, str]) -> None:
    judged = judge(call(**{**changes, "event_name": SALE["event_name"]}), NOW)
    if isinstance(judged, Sale):
        assert amendment.judge(judged.json, NOW) == judged.amendment


@given(st.binary(max_size=80))
def test_any_query_is_judged(query: bytes) -> None:
    assert isinstance(judge(query, NOW), Rejection)
    assert isinstance(judge(call() + b"&" + query, NOW), Sale | Rejection)


def test_faults_name_what_the_call_sent() -> None:
    changes: dict[str, Any] = {"item_identifier": None, "sales": "1,5", "product_prices": "x|2", "sku_id": "a|"}
    faults = refused(call(**{**changes, "sku_id": "a||"})).faults
    assert [fault.field for fault in faults] == ["item_identifier", "sales", "product_prices", "sku_id"]


def test_lists_of_different_lengths_are_refused() -> None:
    (fault,) = refused(call(product_prices="10")).faults
    assert (fault.field, fault.message) == (
        "product_prices",
        "This lists 1, and sku_id 2; give one for each, with `|` between.",
    )
    assert {fault.field for fault in refused(call(sku_id=None)).faults} == {"product_prices"}


@pytest.mark.parametrize("name", OTHER_EVENTS)
def test_other_events_are_kept(name: str) -> None:
    assert judge(b"event_name=%b&client_id=c" % name.encode(), NOW) == OtherEvent(name)


def test_an_unknown_event_is_told_the_known_ones() -> None:
    (fault,) = refused(b"event_name=purchase&client_id=c").faults
    assert fault.code is Reason.UNKNOWN_EVENT
    names = "funnel_salecomplete, af_purchase, viewproduct, viewrestaurant, funnel_add2cart"
    assert fault.message == f"Give one of {names}."
    assert [fault.field for fault in refused(b"").faults] == ["client_id", "event_name"]


def test_a_value_that_no_order_is_made_of_costs_no_sale() -> None:
    judged = judge(call() + b"&device_brand=50%&utm_x=%E9", NOW)
    assert isinstance(judged, Sale)
    assert judged.amendment == sale().amendment


def test_what_cannot_be_read_is_not_missing_as_well() -> None:
    faults = refused(call(sales=None) + b"&sales=%zz").faults
    assert [fault.field for fault in faults] == ["sales"]


def test_a_token_is_asked_for_sales_alone() -> None:
    def no_token(_client_id: str) -> Fault:
        return Fault("client_id", "no", Reason.UNAUTHORIZED)

    def unknown(_client_id: str) -> Fault:
        return Fault("client_id", "no", Reason.UNKNOWN_CLIENT)

    other = b"event_name=viewproduct&client_id=c"
    assert judge(other, NOW, no_token) == OtherEvent("viewproduct")
    for query, admit, kind in (
        (call(), no_token, Kind.UNAUTHORIZED),
        (call(), unknown, Kind.UNKNOWN_CLIENT),
        (other, unknown, Kind.UNKNOWN_CLIENT),
    ):
        judged = judge(query, NOW, admit)
        assert isinstance(judged, Rejection)
        assert judged.kind is kind

"""Orders in the words of shops: what becomes of each, and what says nothing."""

import copy
from typing import Any

import pytest

from clickclock.attribution.orders import amendment
from clickclock.attribution.orders.amendment import Amendment, Status
from clickclock.attribution.orders.shop_order import RUDDERSTACK, SEGMENT, SHOPIFY, SHOPS, WOOCOMMERCE, Shop

NOW_MS = 1795700000000
CREATED_MS = 1793523600000
SHOPIFY_ORDER: dict[str, Any] = {
    "id": 820982911946154508,
    "name": "#1001",
    "email": "jon@example.com",
    "created_at": "2026-11-01T10:00:00+01:00",
    "cancelled_at": None,
    "financial_status": "paid",
    "currency": "EUR",
    "total_price": "24.90",
    "current_total_price": "24.90",
    "test": False,
    "customer": {"id": 77, "email": "jon@example.com", "first_name": "Jon"},
    "note_attributes": [{"name": "cli_ubid", "value": "v-1"}],
    "line_items": [{"id": 1, "sku": "P-7", "variant_id": 8, "quantity": 2, "price": "10.00", "title": "Pizza"}],
    "refunds": [],
    "shipping_address": {"address1": "1 Main Street"},
}
REFUND = {
    "created_at": "2026-11-02T10:00:00+01:00",
    "transactions": [
        {"kind": "refund", "status": "success", "amount": "4.90"},
        {"kind": "refund", "status": "failure", "amount": "9.00"},
    ],
}
WOOCOMMERCE_ORDER: dict[str, Any] = {
    "id": 727,
    "number": "727",
    "status": "processing",
    "currency": "EUR",
    "date_created_gmt": "2026-11-01T09:00:00",
    "date_modified_gmt": "2026-11-02T09:00:00",
    "date_paid_gmt": "2026-11-01T09:00:05",
    "total": "24.90",
    "customer_id": 26,
    "billing": {"first_name": "Jon", "email": "jon@example.com"},
    "line_items": [{"id": 1, "sku": "", "product_id": 93, "quantity": 2, "price": 10.123456, "name": "Pizza"}],
    "refunds": [],
    "meta_data": [{"id": 1, "key": "_clickclock_visitor", "value": "v-1"}],
}
EVENT: dict[str, Any] = {
    "type": "track",
    "event": "Order Completed",
    "messageId": "ajs-1",
    "anonymousId": "v-1",
    "userId": "77",
    "timestamp": "2026-11-01T09:00:00.000Z",
    "sentAt": "2026-11-01T09:00:01.000Z",
    "context": {"ip": "192.0.2.1", "traits": {"email": "jon@example.com"}, "page": {"path": "/done"}},
    "properties": {
        "order_id": "50314b8e",
        "email": "jon@example.com",
        "total": 24.9,
        "revenue": 20,
        "currency": "EUR",
        "products": [{"product_id": "93", "sku": "P-7", "name": "Pizza", "price": 10, "quantity": 2}],
    },
    "integrations": {},
}
ORDERS = {"shopify": SHOPIFY_ORDER, "woocommerce": WOOCOMMERCE_ORDER, "segment": EVENT, "rudderstack": EVENT}


def amendments(shop: Shop, body: Any) -> list[Amendment]:
    found = [amendment.judge_fields(said, NOW_MS) for said in shop.read(body, "shop-1")]
    assert all(isinstance(each, Amendment) for each in found), found
    return [each for each in found if isinstance(each, Amendment)]


@pytest.mark.parametrize(
    ("shop", "order_id", "customer_id", "item"),
    [
        (SHOPIFY, "#1001", "77", ("P-7", 1000, 2)),
        (WOOCOMMERCE, "727", "26", ("93", 1012, 2)),
        (SEGMENT, "50314b8e", "77", ("P-7", 1000, 2)),
        (RUDDERSTACK, "50314b8e", "77", ("P-7", 1000, 2)),
    ],
    ids=lambda each: each.name if isinstance(each, Shop) else None,
)
def test_a_paid_order_is_one_amendment(shop: Shop, order_id: str, customer_id: str, item: tuple[str, int, int]) -> None:
    (said,) = amendments(shop, ORDERS[shop.name])
    assert (said.client_id, said.order_id, said.event_time_ms) == ("shop-1", order_id, CREATED_MS)
    assert (said.amount_minor, said.currency, said.status) == (2490, "EUR", Status.COMPLETED)
    assert (said.cli_ubid, said.customer_id) == ("v-1", customer_id)
    assert [(each.sku_id, each.price_minor, each.quantity) for each in said.items] == [item]


@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.name)
def test_nothing_of_a_person_is_read(shop: Shop) -> None:
    told = str(shop.read(ORDERS[shop.name], "shop-1"))
    assert [word for word in ("jon", "Jon", "Main Street") if word in told] == []


CHANGES: list[tuple[Shop, dict[str, Any], Status, int]] = [
    (SHOPIFY, {"financial_status": "partially_refunded", "refunds": [REFUND]}, Status.PARTIALLY_REFUNDED, 490),
    (SHOPIFY, {"refunds": [REFUND, REFUND]}, Status.PARTIALLY_REFUNDED, 980),
    (SHOPIFY, {"refunds": [REFUND], "total_price": "4.90"}, Status.REFUNDED, 490),
    (SHOPIFY, {"cancelled_at": "2026-11-02T10:00:00+01:00", "refunds": [REFUND]}, Status.CANCELLED, 2490),
    (WOOCOMMERCE, {"refunds": [{"id": 1, "total": "-4.90"}]}, Status.PARTIALLY_REFUNDED, 490),
    (WOOCOMMERCE, {"status": "refunded", "refunds": [{"id": 1, "total": "-24.90"}]}, Status.REFUNDED, 2490),
    (WOOCOMMERCE, {"status": "cancelled"}, Status.CANCELLED, 2490),
    (WOOCOMMERCE, {"status": "failed"}, Status.CANCELLED, 2490),
    (WOOCOMMERCE, {"status": "trash"}, Status.CANCELLED, 2490),
    (WOOCOMMERCE, {"status": "shipped", "refunds": [{"id": 1, "total": "-4.90"}]}, Status.PARTIALLY_REFUNDED, 490),
]
IN_CANADA = {
    "presentment_currency": "CAD",
    "total_price_set": {
        "shop_money": {"amount": "24.90", "currency_code": "EUR"},
        "presentment_money": {"amount": "39.84", "currency_code": "CAD"},
    },
}


@pytest.mark.parametrize(
    ("given_back", "status", "refunded"),
    [
        ({"amount": "39.84", "currency": "CAD"}, Status.REFUNDED, 2490),
        ({"amount": "10.00", "currency": "CAD"}, Status.PARTIALLY_REFUNDED, 625),
        ({"amount": "10.00", "currency": "EUR"}, Status.PARTIALLY_REFUNDED, 1000),
    ],
)
def test_a_refund_in_the_customers_currency_is_one_in_the_orders(
    given_back: dict[str, Any], status: Status, refunded: int
) -> None:
    refund = {**REFUND, "transactions": [{"kind": "refund", "status": "success", **given_back}]}
    _, then = amendments(SHOPIFY, {**SHOPIFY_ORDER, **IN_CANADA, "refunds": [refund]})
    assert (then.status, then.refunded_minor, then.currency) == (status, refunded, "EUR")


@pytest.mark.parametrize("status", ["shipped", "on-hold", "wc-picking"])
def test_an_order_in_a_state_of_the_shop_s_own_counts_once_it_is_paid(status: str) -> None:
    (said,) = amendments(WOOCOMMERCE, {**WOOCOMMERCE_ORDER, "status": status})
    assert (said.status, said.amount_minor) == (Status.COMPLETED, 2490)


def test_a_sale_is_of_the_time_at_which_it_was_made_and_not_at_which_it_was_copied() -> None:
    (said,) = amendments(SHOPIFY, {**SHOPIFY_ORDER, "processed_at": "2026-10-31T10:00:00+01:00"})
    assert said.event_time_ms == CREATED_MS - 86_400_000


def test_an_attribute_that_the_checkout_hides_is_read_too() -> None:
    hidden = {"note_attributes": [{"name": "_cli_ubid", "value": "v-2"}]}
    (said,) = amendments(SHOPIFY, {**SHOPIFY_ORDER, **hidden})
    assert said.cli_ubid == "v-2"


@pytest.mark.parametrize(("shop", "changed", "status", "refunded"), CHANGES)
def test_a_change_comes_after_the_order_it_changes(
    shop: Shop, changed: dict[str, Any], status: Status, refunded: int
) -> None:
    placed, then = amendments(shop, {**ORDERS[shop.name], **changed})
    assert (placed.status, placed.event_time_ms) == (Status.COMPLETED, CREATED_MS)
    assert (then.status, then.refunded_minor, then.event_time_ms) == (status, refunded, CREATED_MS + 86_400_000)


def _event(**properties: Any) -> dict[str, Any]:
    return {**EVENT, "properties": {**EVENT["properties"], **properties}}


@pytest.mark.parametrize(
    ("event", "properties", "status", "refunded"),
    [
        ("Completed Order", {}, Status.COMPLETED, 0),
        ("order updated ", {}, Status.COMPLETED, 0),
        ("Order Cancelled", {}, Status.CANCELLED, 2490),
        ("Order Refunded", {}, Status.REFUNDED, 2490),
        ("Order Refunded", {"refunded_amount": 4.9}, Status.PARTIALLY_REFUNDED, 490),
        ("Order Refunded", {"refunded_amount": "24.90"}, Status.REFUNDED, 2490),
    ],
)
def test_an_event_says_what_became_of_the_order(
    event: str, properties: dict[str, Any], status: Status, refunded: int
) -> None:
    (said,) = amendments(SEGMENT, {**_event(**properties), "event": event})
    assert (said.order_id, said.status, said.amount_minor) == ("50314b8e", status, 2490)
    assert (said.refunded_minor, said.event_time_ms) == (refunded, CREATED_MS)


def test_an_event_names_the_visitor_by_what_the_site_says_before_what_segment_says() -> None:
    device = {"context": {"device": {"id": "7AFE-1", "advertisingId": "38400000-8cf0-11bd-b23e-10b96e40000d"}}}
    (said,) = amendments(SEGMENT, {**_event(cli_ubid="mine"), **device, "userId": "jon@example.com"})
    assert (said.cli_ubid, said.customer_id) == ("mine", None)
    assert said.device_id == "38400000-8cf0-11bd-b23e-10b96e40000d"
    (said,) = amendments(SEGMENT, {**EVENT, "context": {"device": {"id": "7AFE-1"}}, "userId": 77})
    assert (said.cli_ubid, said.device_id, said.customer_id) == ("v-1", "7AFE-1", "77")


@pytest.mark.parametrize(
    ("total", "minor"), [(0.1 + 0.2, 30), (24.9, 2490), (24, 2400), ("24.90", 2490), (1e12, 10**14)]
)
def test_a_number_that_a_page_computed_is_the_money_that_it_means(total: Any, minor: int) -> None:
    (said,) = amendments(SEGMENT, _event(total=total))
    assert said.amount_minor == minor


@pytest.mark.parametrize("total", [9.995, 1e300, -24.9, float("inf"), True, [24.9], "24,90"])
def test_an_amount_that_is_no_money_is_refused_as_it_is(total: Any) -> None:
    (said,) = SEGMENT.read(_event(total=total), "shop-1")
    judged = amendment.judge_fields(said, NOW_MS)
    assert isinstance(judged, amendment.Rejection)
    assert [SEGMENT.as_sent(each).field for each in judged.faults] == ["properties.total"]


@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.name)
def test_a_price_that_no_currency_has_is_no_weight(shop: Shop) -> None:
    lines = [{"sku": "P-7", "price": price, "quantity": 1} for price in ("1e300", "-1e300", "1e-300", "nan", 1e300)]
    body = _event(products=lines) if shop.orders is SEGMENT.orders else {**ORDERS[shop.name], "line_items": lines}
    (said,) = amendments(shop, body)
    assert [each.price_minor for each in said.items] == [0] * 5


def test_of_an_event_the_total_counts_and_not_the_revenue_without_it() -> None:
    (said,) = amendments(SEGMENT, _event(total=None))
    assert said.amount_minor == 2000


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "page"},
        {"type": "identify"},
        {"event": "Product Added"},
        {"event": None},
        {"properties": None},
    ],
)
def test_another_event_says_nothing_of_an_order(changed: dict[str, Any]) -> None:
    assert SEGMENT.read({**EVENT, **changed}, "shop-1") == []


@pytest.mark.parametrize(
    ("shop", "changed"),
    [
        *((SHOPIFY, {"financial_status": status}) for status in ("pending", "authorized", "voided", "expired", None)),
        (SHOPIFY, {"test": True}),
        (SHOPIFY, {"line_items": None}),
        *(
            (WOOCOMMERCE, {"status": status, "date_paid_gmt": None})
            for status in ("pending", "on-hold", "checkout-draft", "trash", "cancelled", "failed", "shipped", None)
        ),
        (WOOCOMMERCE, {"status": "active", "billing_period": "month"}),
    ],
)
def test_what_was_never_paid_says_nothing(shop: Shop, changed: dict[str, Any]) -> None:
    assert shop.read({**ORDERS[shop.name], **changed}, "shop-1") == []


@pytest.mark.parametrize("body", [None, [], "x", 7, {}, {"line_items": []}, {"refund_line_items": [], "order_id": 7}])
@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.name)
def test_another_body_says_nothing_of_an_order(shop: Shop, body: Any) -> None:
    assert shop.read(body, "shop-1") == []


@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.name)
def test_fields_of_other_kinds_are_left_to_the_judge(shop: Shop) -> None:
    for name in ORDERS[shop.name]:
        values: tuple[Any, ...] = (None, 7, "x", [], {}, [None], True)
        for value in values:
            for said in shop.read({**ORDERS[shop.name], name: value}, "shop-1"):
                amendment.judge_fields(said, NOW_MS)


def test_a_guest_without_a_browser_is_a_fault_in_the_judge_s_words() -> None:
    (said,) = SHOPIFY.read({**SHOPIFY_ORDER, "customer": None, "note_attributes": []}, "shop-1")
    judged = amendment.judge_fields(said, NOW_MS)
    assert isinstance(judged, amendment.Rejection)
    assert [SHOPIFY.as_sent(each).field for each in judged.faults] == ["cli_ubid"]
    (said,) = SHOPIFY.read({**SHOPIFY_ORDER, "total_price": "x"}, "shop-1")
    judged = amendment.judge_fields(said, NOW_MS)
    assert isinstance(judged, amendment.Rejection)
    assert [SHOPIFY.as_sent(each).field for each in judged.faults] == ["total_price"]


def test_faults_of_an_event_are_said_in_its_own_names() -> None:
    (said,) = SEGMENT.read(_event(order_id=None, total=-1, currency="euros"), "shop-1")
    judged = amendment.judge_fields(said, NOW_MS)
    assert isinstance(judged, amendment.Rejection)
    told = [SEGMENT.as_sent(each).field for each in judged.faults]
    assert told == ["properties.order_id", "properties.currency", "properties.total"]


ODD = [None, [], {}, [1], {"a": 1}, 7, 1.5, True, "x", ""]
WHOLE = {
    "event": "Order Completed",
    "anonymousId": "a",
    "userId": "u",
    "timestamp": "2026-11-20T10:00:00Z",
    "context": {},
    "traits": {},
    "properties": {"url": "https://shop.example/?gclid=x"},
}
PLACES = [
    *(("type",), ("event",), ("anonymousId",), ("previousId",), ("userId",), ("timestamp",), ("context",), ("traits",)),
    *(("properties",), ("context", "device"), ("context", "page"), ("context", "campaign"), ("context", "consent")),
    *(("traits", "cli_ubid"), ("properties", "url"), ("properties", "products")),
]


@pytest.mark.parametrize("kind", ["identify", "alias", "page", "track"])
@pytest.mark.parametrize("place", PLACES, ids=".".join)
def test_an_event_with_any_value_in_any_place_is_read_or_says_nothing(kind: str, place: tuple[str, ...]) -> None:
    for value in ODD:
        event: dict[str, Any] = {**copy.deepcopy(WHOLE), "type": kind}
        inner = event
        for name in place[:-1]:
            inner = inner[name]
        inner[place[-1]] = value
        for read in (SEGMENT.read, SEGMENT.click, SEGMENT.identification):
            read(event, "shop-1")

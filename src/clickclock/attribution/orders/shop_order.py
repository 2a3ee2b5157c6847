"""What a webhook says, in our own fields: orders of Shopify and WooCommerce, and events of Segment and RudderStack.

Never does I/O, and never judges: `amendment.judge_fields` does. Reads no name, no address and no e-mail address, so
none of them is kept. Invariants: the same body says the same for ever, so a delivery that comes twice changes nothing;
an order that was never paid says nothing; a refund or a cancellation comes after the order that it changes.

>>> paid = {"name": "#7", "created_at": "2026-11-01T10:00:00+01:00", "financial_status": "paid", "total_price": "9.90"}
>>> [said] = SHOPIFY.read({**paid, "currency": "EUR", "line_items": [], "customer": {"id": 77}}, "shop-1")
>>> said["order_id"], said["event_time"], said["customer_id"]
('#7', 1793523600000, '77')
"""

import hmac
import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks.page_event import PageClick, consent_of, page_click
from clickclock.attribution.orders import amendment, money
from clickclock.attribution.orders.order_fields import Fault
from clickclock.foundation.instant import ms_of

Said = dict[str, Any]
"""An order in our own fields."""
_PAID_AT_SHOPIFY: Final = frozenset({"paid", "partially_paid", "partially_refunded", "refunded"})
_PAID_AT_WOOCOMMERCE: Final = frozenset({"processing", "completed", "refunded"})
"""Without a date of payment, too. Shops add states of their own: an order in one counts if it has such a date."""
_ENDED_AT_WOOCOMMERCE: Final = frozenset({"cancelled", "failed", "trash"})
_CENTS: Final = 2
_DIGITS_MAX: Final = 18
"""Before the point."""
_TOTALS: Final = ("total", "revenue", "value")
_DUST: Final = Decimal("0.000001")
"""More than what binary fractions add to a sum, and less than any money."""
_STATUS_OF_EVENTS: Final[Mapping[str, str | None]] = {
    "order completed": None,
    "completed order": None,  # as the first edition of Segment's events called it
    "order updated": None,
    "order cancelled": "cancelled",
    "order refunded": "refunded",
}


class Shop(msgspec.Struct, frozen=True):
    """A kind of shop, or what passes on a shop's events: what it is called, and how its webhooks are read."""

    name: str
    title: str
    signature: bytes
    """The field of the request that proves who sent the body, in small letters."""
    proof: Callable[[bytes, bytes], bytes]
    """What that field must hold, of the secret and the body."""
    proof_is: str
    """The same in a few words, for the documents."""
    names: Mapping[str, str]
    """Our fields, and what the shop calls them."""
    orders: Callable[[Mapping[str, Any], str], Iterator[Said]]
    click: Callable[[Any, str], PageClick | None] = lambda _event, _client_id: None
    """The click that a body says."""
    identification: Callable[[Any, str], Said | None] = lambda _event, _client_id: None
    """The identification that a body says, in our own fields."""

    def read(self, body: Any, client_id: str) -> list[Said]:
        """What a webhook's body says of an order of this client, oldest first; nothing if it is of something else."""
        return list(self.orders(body, client_id)) if isinstance(body, dict) else []

    def as_sent(self, fault: Fault) -> Fault:
        """A fault, with the shop's own name of the field."""
        return Fault(self.names.get(fault.field, fault.field), fault.message, fault.code)


class Secrets:
    """What webhooks are signed with, by client and kind of shop."""

    def __init__(self, secrets: Mapping[tuple[str, str], bytes]) -> None:
        self._secrets = secrets

    def __repr__(self) -> str:
        return f"Secrets(of {len(self._secrets)})"

    def knows(self, shop: Shop, client_id: str) -> bool:
        """Whether webhooks of such a shop are taken for a client."""
        return (client_id, shop.name) in self._secrets

    def are_right(self, shop: Shop, client_id: str, body: bytes, signature: bytes) -> bool:
        """Whether this is the signature of this body."""
        return hmac.compare_digest(shop.proof(self._secrets[client_id, shop.name], body), signature)


def _of_shopify(body: Mapping[str, Any], client_id: str) -> Iterator[Said]:
    if not isinstance(body.get("line_items"), list):
        return
    if str(body.get("financial_status")) not in _PAID_AT_SHOPIFY or body.get("test") is True:
        return
    attributes = _by_name(body.get("note_attributes"), "name")
    customer = body.get("customer")
    order = _present(
        client_id=client_id,
        order_id=_text(body.get("name") or body.get("id")),
        cli_ubid=_text(attributes.get("cli_ubid") or attributes.get("_cli_ubid")),
        device_id=_text(attributes.get("device_id") or attributes.get("_device_id")),
        customer_id=_text(customer.get("id")) if isinstance(customer, dict) else None,
        event_time=_time_ms(body.get("processed_at") or body.get("created_at")),
        amount=_text(body.get("total_price")),
        currency=body.get("currency"),
        items=_items(body["line_items"], body.get("currency"), ("sku", "variant_id", "product_id", "title")),
    )
    yield order
    refunds = _objects(body.get("refunds"))
    given_back = sum(
        (_given_back(part, body) for each in refunds for part in _objects(each.get("transactions"))), Decimal()
    )
    if body.get("cancelled_at"):
        yield {**order, "status": "cancelled", "event_time": _time_ms(body["cancelled_at"])}
    elif given_back:
        last = max((str(each.get("created_at") or "") for each in refunds), key=_sortable)
        yield _refunded(order, given_back, _time_ms(last))


def _given_back(transaction: Mapping[str, Any], order: Mapping[str, Any]) -> Decimal:
    """What a transaction gave back, in the order's currency; the transaction may have that of the customer."""
    if transaction.get("kind") != "refund" or transaction.get("status") != "success":
        return Decimal()
    amount, currency = _decimal(transaction.get("amount")), order.get("currency")
    if transaction.get("currency") in (None, currency):
        return amount
    totals = order.get("total_price_set")
    of_shop, of_customer = (_amount_in(totals, name) for name in ("shop_money", "presentment_money"))
    return _rounded(amount * of_shop / of_customer, currency) if of_customer else Decimal()


def _amount_in(totals: Any, name: str) -> Decimal:
    """One of the two amounts of a price that Shopify gives in the shop's currency and the customer's."""
    found = totals.get(name) if isinstance(totals, dict) else None
    return _decimal(found.get("amount")) if isinstance(found, dict) else Decimal()


def _of_woocommerce(body: Mapping[str, Any], client_id: str) -> Iterator[Said]:
    if not isinstance(body.get("line_items"), list):
        return
    status = str(body.get("status"))
    was_paid = bool(body.get("date_paid_gmt") or body.get("date_paid"))
    is_subscription = "billing_period" in body
    if is_subscription or not (was_paid or status in _PAID_AT_WOOCOMMERCE):
        return
    meta = _by_name(body.get("meta_data"), "key")
    order = _present(
        client_id=client_id,
        order_id=_text(body.get("number") or body.get("id")),
        cli_ubid=_text(meta.get("cli_ubid") or meta.get("_cli_ubid") or meta.get("_clickclock_visitor")),
        device_id=_text(meta.get("device_id") or meta.get("_device_id")),
        customer_id=_text(body.get("customer_id") or None),
        event_time=_time_ms(body.get("date_created_gmt"), is_utc=True),
        amount=_text(body.get("total")),
        currency=body.get("currency"),
        items=_items(body["line_items"], body.get("currency"), ("sku", "variation_id", "product_id", "name")),
    )
    yield order
    changed = _time_ms(body.get("date_modified_gmt"), is_utc=True)
    given_back = sum((abs(_decimal(each.get("total"))) for each in _objects(body.get("refunds"))), Decimal())
    if status in _ENDED_AT_WOOCOMMERCE:
        yield {**order, "status": "cancelled", "event_time": changed}
    elif given_back or status == "refunded":
        whole = _decimal(body.get("total"))
        yield _refunded(order, given_back if status != "refunded" else whole, changed)


def _of_event(body: Mapping[str, Any], client_id: str) -> Iterator[Said]:
    """An event of the e-commerce specification that Segment and RudderStack share."""
    event, said = str(body.get("event")).strip().lower(), body.get("properties")
    if body.get("type") != "track" or event not in _STATUS_OF_EVENTS or not isinstance(said, dict):
        return
    user_id = _text(body.get("userId"))
    device = _object(_object(body.get("context")).get("device"))
    order = _present(
        client_id=client_id,
        order_id=_text(said.get("order_id")),
        cli_ubid=_text(said.get("cli_ubid") or body.get("anonymousId")),
        device_id=_text(said.get("device_id") or device.get("advertisingId") or device.get("id")),
        customer_id=None if "@" in str(user_id) else user_id,
        event_time=_time_ms(body.get("timestamp") or body.get("originalTimestamp")),
        amount=_computed(next((said[name] for name in _TOTALS if said.get(name) is not None), None), said),
        currency=said.get("currency"),
        items=_items(said.get("products"), said.get("currency"), ("sku", "product_id", "variant", "name")),
    )
    status = _STATUS_OF_EVENTS[event]
    if status == "refunded" and said.get("refunded_amount") is not None:
        yield _refunded(order, _decimal(_computed(said["refunded_amount"], said)), order.get("event_time"))
    else:
        yield order if status is None else {**order, "status": status}


def _identified(event: Any, client_id: str) -> Said | None:
    """The customer of a visitor, by an event of the kind `identify` or `alias`.

    None if it ties nobody to a customer, if the customer is a mail address, or if the visitor does not allow ads.
    """
    if not isinstance(event, dict) or (visitor := _IDENTIFYING.get(str(event.get("type")))) is None:
        return None
    context, traits = _object(event.get("context")), _object(event.get("traits"))
    device = _object(context.get("device"))
    customer = _text(event.get("userId"))
    said = _present(
        client_id=client_id,
        customer_id=customer,
        cli_ubid=_text(traits.get("cli_ubid") or event.get(visitor)),
        device_id=_text(device.get("advertisingId") or device.get("id")),
        event_time=_time_ms(event.get("timestamp") or event.get("originalTimestamp")),
    )
    is_known = (
        customer is not None and "@" not in str(customer) and not said.keys().isdisjoint(("cli_ubid", "device_id"))
    )
    return said if is_known and consent_of(context) != "denied" else None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _refunded(order: Said, given_back: Decimal, event_time: Any) -> Said:
    if given_back >= _decimal(order.get("amount")):
        return {**order, "status": "refunded", "event_time": event_time}
    return {**order, "status": "partially_refunded", "refunded_amount": f"{given_back:f}", "event_time": event_time}


def _items(lines: Any, currency: Any, names: Sequence[str]) -> list[Said] | None:
    """The articles; those with neither a number nor a name are left out. Prices are weights, and are rounded."""
    items = []
    for each in _objects(lines)[: amendment.ITEMS_MAX]:
        sku_id = next((text for name in names if (text := _text(each.get(name)))), None)
        if sku_id is not None and each.get("quantity") not in (0, "0"):
            price = _rounded(max(_decimal(each.get("price")), Decimal()), currency)
            items.append({"sku_id": sku_id, "price": f"{price:f}", "quantity": each.get("quantity", 1)})
    return items or None


def _rounded(amount: Decimal, currency: Any) -> Decimal:
    """To the smallest amount of the currency. What no currency has so much of is nothing."""
    digits = money.DIGITS.get(str(currency), _CENTS)
    return amount.quantize(Decimal(1).scaleb(-digits)) if amount.adjusted() < _DIGITS_MAX else Decimal()


def _computed(amount: Any, said: Mapping[str, Any]) -> Any:
    """An amount that a page computed: as text, without what binary fractions added. All else is left to the judge."""
    if not (isinstance(amount, float) and math.isfinite(amount)):
        return _text(amount)
    exact = _decimal(amount)
    rounded = _rounded(exact, said.get("currency"))
    return f"{rounded if abs(exact - rounded) < _DUST else exact:f}"


def _present(**fields: Any) -> Said:
    return {name: value for name, value in fields.items() if value is not None}


def _text(value: Any) -> Any:
    """Numbers as text, as our fields want them. Anything else is left to the judge."""
    return str(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


def _decimal(value: Any) -> Decimal:
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return Decimal()
    return found if found.is_finite() else Decimal()


def _time_ms(value: Any, *, is_utc: bool = False) -> Any:
    """Milliseconds since 1970 of a time in ISO 8601; what is none is left to the judge."""
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
    if at.tzinfo is None:
        if not is_utc:
            return value
        at = at.replace(tzinfo=UTC)
    return ms_of(at)


def _sortable(value: str) -> int:
    found = _time_ms(value)
    return found if isinstance(found, int) else 0


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _by_name(value: Any, name: str) -> dict[str, Any]:
    """The values of a list of objects with a name and a value."""
    return {str(each.get(name)): each.get("value") for each in _objects(value)}


def _of_shops(secret: bytes, body: bytes) -> bytes:
    return b64encode(hmac.digest(secret, body, "sha256"))


def _of_segment(secret: bytes, body: bytes) -> bytes:
    return hmac.digest(secret, body, "sha1").hex().encode()


def _secret_itself(secret: bytes, _body: bytes) -> bytes:
    return secret


_BY_SHOPS: Final = "The base64 of the body's HMAC-SHA256, by the secret that the shop shares with us."
_IDENTIFYING: Final = {"identify": "anonymousId", "alias": "previousId"}
"""The kinds of events that tie a visitor to a customer, and the visitor's field in each."""
_EVENT_NAMES: Final = {
    "order_id": "properties.order_id",
    "amount": "properties.total",
    "currency": "properties.currency",
    "refunded_amount": "properties.refunded_amount",
    "items": "properties.products",
    "event_time": "timestamp",
    "cli_ubid": "anonymousId",
    "device_id": "context.device.id",
    "customer_id": "userId",
}

SHOPIFY: Final = Shop(
    "shopify",
    "Shopify",
    b"x-shopify-hmac-sha256",
    _of_shops,
    _BY_SHOPS,
    {"order_id": "name", "amount": "total_price", "event_time": "processed_at", "refunded_amount": "refunds"},
    _of_shopify,
)
WOOCOMMERCE: Final = Shop(
    "woocommerce",
    "WooCommerce",
    b"x-wc-webhook-signature",
    _of_shops,
    _BY_SHOPS,
    {"order_id": "number", "amount": "total", "event_time": "date_created_gmt", "refunded_amount": "refunds"},
    _of_woocommerce,
)
SEGMENT: Final = Shop(
    "segment",
    "Segment",
    b"x-signature",
    _of_segment,
    "The hexadecimal digits of the body's HMAC-SHA1, by the secret that Segment shares with us.",
    _EVENT_NAMES,
    _of_event,
    page_click,
    _identified,
)
RUDDERSTACK: Final = Shop(
    "rudderstack",
    "RudderStack",
    b"x-signing-key",
    _secret_itself,
    "The secret that RudderStack shares with us, for it signs nothing.",
    _EVENT_NAMES,
    _of_event,
    page_click,
    _identified,
)
SHOPS: Final = (SHOPIFY, WOOCOMMERCE, SEGMENT, RUDDERSTACK)

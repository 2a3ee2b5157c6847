"""The server call that existing integrations send already, named as they name it: a sale in it is an order.

A purchase of AppsFlyer's own Push API is one, too.

Never does I/O, and never reads more out of a call than it says: of everything but a sale only the name is understood.
Invariants: a sale is judged as the same order in JSON would be; its faults name the call's own parameters.

>>> judge(b"event_name=viewproduct&client_id=c&sku_id=7", 0)
OtherEvent(name='viewproduct')
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks import query
from clickclock.attribution.orders import push_message
from clickclock.attribution.orders.amendment import Admit, Amendment, Kind, Rejection, everyone, judge_fields
from clickclock.attribution.orders.order_fields import Fault, Fields, NotJson, Reason, read_json
from clickclock.attribution.orders.push_message import PURCHASE

SALE: Final = "funnel_salecomplete"
OTHER_EVENTS: Final = ("viewproduct", "viewrestaurant", "funnel_add2cart")
"""Kept as they came, and acknowledged: no model needs them yet, and nobody can send them again."""


class Sale(msgspec.Struct, frozen=True):
    """A call that is an order."""

    amendment: Amendment
    json: bytes
    """The order as `POST /orders` would have brought it."""


class OtherEvent(msgspec.Struct, frozen=True):
    """A call that is kept, and no order."""

    name: str


def judge(raw: bytes, received_ms: int, admit: Admit = everyone) -> Sale | OtherEvent | Rejection:
    """What a query, or a form, says; or every reason why it says nothing.

    Whether the caller may write orders (`Reason.UNAUTHORIZED`) is asked of sales alone: what else may be sent comes
    from browsers and telephones, where no token is secret.
    """
    unreadable: list[Fault] = []
    try:
        parameters = query.split(raw)
    except query.Unreadable as problem:
        parameters = problem.parameters
        unreadable = [Fault(each.field, each.message, each.code) for each in problem.found]
        if not parameters:
            return Rejection(Kind.INVALID, tuple(unreadable))
        # A value that nobody looks at costs no sale.
        unreadable = [each for each in unreadable if each.field in _READ]
    name = parameters.get("event_name", "")
    judged: Sale | OtherEvent | Rejection
    as_sent = push_message.named if name == PURCHASE else _as_sent
    if name in _SALES:
        judged = _judge_sale(parameters, received_ms, admit, unreadable)
    else:
        judged = _judge_other(name, parameters, admit, unreadable)
    if isinstance(judged, Rejection):
        named = tuple(Fault(as_sent(each.field), each.message, each.code) for each in judged.faults)
        broken = {each.field for each in (*unreadable, *named) if each.code is not Reason.MISSING}
        # What could not be read is not missing as well, nor is a part of it.
        others = [
            each for each in named if not (each.code is Reason.MISSING and {each.field, _whole(each.field)} & broken)
        ]
        return Rejection(judged.kind, (*unreadable, *others), judged.client_id, judged.order_id)
    return judged


def query_of(body: bytes) -> bytes:
    """A call in JSON, as it would be in a query; of its many fields those that are understood. Raises `NotJson`.

    >>> query_of(b'{"event_name": "af_purchase", "event_revenue": 9.9, "ip": "198.51.100.7"}')
    b'event_name=af_purchase&event_revenue=9.9'
    """
    said = read_json(body)
    if not isinstance(said, dict):
        raise NotJson("The body is no JSON object; send one event in each request.")
    known = [(name, push_message.as_text(value)) for name, value in said.items() if name in _READ and value is not None]
    # A half of a character stays one: the judge names its field.
    return b"&".join(
        b"%b=%b" % (name.encode(), query.escaped(text.encode("utf-8", "surrogatepass"))) for name, text in known
    )


def is_sale(raw: bytes) -> bool:
    """Whether a call says that it is a sale, readable or not."""
    try:
        parameters = query.split(raw)
    except query.Unreadable as problem:
        parameters = problem.parameters
    return parameters.get("event_name") in _SALES


def _judge_sale(
    parameters: Mapping[str, str], received_ms: int, admit: Admit, unreadable: list[Fault]
) -> Sale | Rejection:
    faults: list[Fault] = []
    is_message = parameters["event_name"] == PURCHASE
    order = push_message.order_of(parameters, faults) if is_message else _order_of(parameters, faults)
    if _is_small_code(order.get("currency", "")):  # partners that measure apps write it so
        order["currency"] = order["currency"].upper()
    judged = judge_fields(order, received_ms, admit)
    if isinstance(judged, Rejection):
        return Rejection(judged.kind, (*judged.faults, *faults), judged.client_id, judged.order_id)
    if faults or unreadable:
        return Rejection(Kind.INVALID, tuple(faults), judged.client_id, judged.order_id)
    return Sale(judged, json.dumps(order, ensure_ascii=False, separators=(",", ":")).encode())


def _order_of(parameters: Mapping[str, str], faults: list[Fault]) -> dict[str, Any]:
    """The order that a sale says, in our own fields; what is wrong with its lists is added to `faults`."""
    order: dict[str, Any] = {
        name: parameters[sent] for name, sent in _PARAMETERS.items() if parameters.get(sent, "") != ""
    }
    items = items_of(parameters, faults)
    return {**order, "items": items} if items else order


def _judge_other(
    name: str, parameters: Mapping[str, str], admit: Admit, unreadable: list[Fault]
) -> OtherEvent | Rejection:
    fields = Fields(parameters, tuple(parameters))
    client_id = fields.id("client_id", required=True)
    refusal = None if client_id is None else admit(client_id)
    kind = Kind.INVALID
    if refusal is not None and refusal.code is Reason.UNKNOWN_CLIENT:
        fields.faults.append(refusal)
        kind = Kind.UNKNOWN_CLIENT
    if name not in OTHER_EVENTS:
        sentence = f"Give one of {', '.join((SALE, PURCHASE, *OTHER_EVENTS))}."
        fields.fault("event_name", sentence, Reason.UNKNOWN_EVENT if name else Reason.MISSING)
    if fields.faults or unreadable:
        return Rejection(kind, tuple(fields.faults), client_id)
    return OtherEvent(name)


_is_small_code: Final = re.compile("[a-z]{3}").fullmatch
_PARAMETERS: Final = {
    "client_id": "client_id",
    "order_id": "item_identifier",
    "cli_ubid": "cli_ubid",
    "device_id": "device_id",
    "customer_id": "customer_id",
    "event_time": "event_time",
    "amount": "sales",
    "currency": "currency",
    "seller_id": "seller_id",
}
"""An order's field → the call's parameter."""
ITEM_PARAMETERS: Final = {"sku_id": "sku_id", "price": "product_prices", "quantity": "product_quantities"}
SALE_PARAMETERS: Final = (*_PARAMETERS.values(), *ITEM_PARAMETERS.values())
"""All that is understood of a sale."""
_READ: Final = frozenset({"event_name", *SALE_PARAMETERS, *push_message.FIELDS})
_SALES: Final = frozenset({SALE, PURCHASE})


def items_of(parameters: Mapping[str, str], faults: list[Fault]) -> list[dict[str, str]]:
    """The items, one from each place of the lists; what is wrong with them is added to `faults`.

    An empty place is no value; one more pipe at the end is no place.
    """
    lists = {
        name: parameters[sent].removesuffix("|").split("|")
        for name, sent in ITEM_PARAMETERS.items()
        if parameters.get(sent, "") != ""
    }
    skus = lists.get("sku_id", [])
    for name, values in lists.items():
        if len(values) != len(skus):
            sent = ITEM_PARAMETERS[name]
            sentence = f"This lists {len(values)}, and sku_id {len(skus)}; give one for each, with `|` between."
            faults.append(Fault(sent, sentence, Reason.BAD_ITEMS))
    return [
        {name: values[place] for name, values in lists.items() if place < len(values) and values[place] != ""}
        for place in range(len(skus))
    ]


def _whole(field: str) -> str:
    """What a field is a part of."""
    return field.partition(".")[0]


def _as_sent(field: str) -> str:
    """The call's name for an order's field."""
    item, dot, part = field.partition("].")
    if dot and item.startswith("items["):
        return ITEM_PARAMETERS.get(part, part)
    return "sku_id" if field == "items" else _PARAMETERS.get(field, field)

"""A purchase as AppsFlyer's Push API sends it → an order in our own fields.

Never does I/O, and never judges: `amendment.judge_fields` does. Source: AppsFlyer's lists of the fields of raw
data and of the parameters of in-app events.

>>> said = {"event_value": '{"af_order_id": "7"}', "event_revenue": "9.90", "event_revenue_currency": "EUR"}
>>> order_of({**said, "event_time": "2026-11-01 09:00:00.120", "idfa": "i"}, [])["event_time"]
1793523600120
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from clickclock.attribution.clicks.absent import is_absent
from clickclock.attribution.orders.order_fields import Fault, NotJson, Reason, read_json
from clickclock.foundation.instant import ms_of

PURCHASE: Final = "af_purchase"
"""The event's name, as AppsFlyer's own libraries have it."""
DEVICE: Final = ("advertising_id", "idfa", "oaid", "amazon_aid", "idfv")
"""The first that the message has names the device. A telephone that allows no advertising sends zeros, or none."""
_VALUE: Final = "event_value"
_ITEMS: Final = {"sku_id": "af_content_id", "price": "af_price", "quantity": "af_quantity"}
"""An item's field → the parameter of the event."""
NAMES: Final = {
    "client_id": "client_id",
    "order_id": f"{_VALUE}.af_order_id",
    "device_id": DEVICE[0],
    "cli_ubid": DEVICE[0],
    "customer_id": "customer_user_id",
    "event_time": "event_time",
    "amount": "event_revenue",
    "currency": "event_revenue_currency",
    "items": f"{_VALUE}.af_content_id",
}
"""An order's field → the message's."""
FIELDS: Final = frozenset(
    ("client_id", *DEVICE, "customer_user_id", "event_time", "event_revenue", "event_revenue_currency", _VALUE)
)
"""All that is understood of a message, besides the event's name: no address, no place, no model of a telephone."""


def order_of(message: Mapping[str, str], faults: list[Fault]) -> dict[str, Any]:
    """An order in our own fields, for the judge; what keeps it from being read at all is added to `faults`."""
    value = _value_of(message, faults)
    devices = (message[name] for name in DEVICE if not is_absent("device_id", message.get(name, "")))
    order = {
        "client_id": message.get("client_id"),
        "order_id": _first(value, ("af_order_id", "af_receipt_id")),
        "device_id": next(devices, None),
        "customer_id": message.get("customer_user_id"),
        "event_time": _time_ms(message.get("event_time", "")),
        "amount": message.get("event_revenue") or _first(value, ("af_revenue",)),
        "currency": message.get("event_revenue_currency") or _first(value, ("af_currency",)),
        "items": _items_of(value, faults),
    }
    return {name: each for name, each in order.items() if each not in (None, "", [])}


def named(field: str) -> str:
    """The message's name for an order's field."""
    item, dot, part = field.partition("].")
    if dot and item.startswith("items["):
        return f"{_VALUE}.{_ITEMS.get(part, part)}"
    return NAMES.get(field, field)


def _value_of(message: Mapping[str, str], faults: list[Fault]) -> dict[str, Any]:
    """The parameters of the event, which are JSON within the message."""
    if not (text := message.get(_VALUE, "")):
        return {}
    try:
        found = read_json(text.encode())
    except NotJson as problem:
        faults.append(Fault(_VALUE, str(problem), Reason.NOT_JSON))
        return {}
    if not isinstance(found, dict):
        faults.append(Fault(_VALUE, "Give the parameters of the event as one JSON object.", Reason.NOT_JSON))
        return {}
    return found


def _items_of(value: Mapping[str, Any], faults: list[Fault]) -> list[dict[str, str]]:
    """The articles: of one each parameter is a value, of several a list."""
    lists = {
        name: [as_text(each) for each in (given if isinstance(given, list) else [given])]
        for name, sent in _ITEMS.items()
        if (given := value.get(sent)) not in (None, "", [])
    }
    skus = lists.get("sku_id", [])
    if not skus:
        return []  # a price without an article: AppsFlyer's own examples have some
    for name, values in lists.items():
        if len(values) != len(skus):
            sentence = f"This lists {len(values)}, and {_ITEMS['sku_id']} {len(skus)}; give one for each."
            faults.append(Fault(f"{_VALUE}.{_ITEMS[name]}", sentence, Reason.BAD_ITEMS))
            return []
    return [{name: values[place] for name, values in lists.items() if values[place]} for place in range(len(skus))]


def _first(value: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((as_text(value[name]) for name in names if value.get(name) not in (None, "")), None)


def as_text(value: object) -> str:
    """A value of JSON as a query has it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _time_ms(text: str) -> int | str:
    """Milliseconds since 1970: a message has UTC, and names no zone. The judge refuses a text that is no time."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return text
    return ms_of(at if at.tzinfo else at.replace(tzinfo=UTC))

"""A row of a table, or a line of NDJSON, as the fields that JSON would have.

Never does I/O, never repairs, and never makes an amount of a number: digits may have been lost on its way. Invariants:
what is empty is not there; text stays as it is; a line of NDJSON is read as a request's JSON would be.

>>> fields({"order_id": 7, "quantity": 2.0, "amount": "9.90", "cli_ubid": "", "day": date(2026, 11, 20)})
{'order_id': '7', 'quantity': '2', 'amount': '9.90', 'day': '2026-11-20'}
>>> fields(b'{"order_id": "7", "amount": 9.9}')
{'order_id': '7', 'amount': 9.9}
"""

import json
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import msgspec

from clickclock.attribution.importing.historical import Unusable, is_empty, text_of
from clickclock.attribution.orders.order_fields import NotJson, read_json

AMOUNTS: Final = frozenset({"amount", "refunded_amount", "price"})
"""Numbers in these columns stay numbers, so that whoever judges them refuses them."""
IDS: Final = frozenset(
    {"client_id", "order_id", "cli_ubid", "device_id", "customer_id", "seller_id", "sku_id", "campaign", "ad_set", "ad"}
)
"""Floats in these columns stay floats, so that whoever judges them refuses them."""
DAYS: Final = frozenset({"day", "date"})
"""Times in these columns are days, if they are midnight."""


def fields(record: Mapping[str, object] | bytes) -> dict[str, Any]:
    """The fields by name. Raises `Unusable` for a line that is no JSON object, and for what cannot be a field."""
    if isinstance(record, bytes):
        found = _object(record)
    else:
        found = {name: _field(name, value) for name, value in record.items() if not is_empty(value)}
    if not found:
        raise Unusable("the row is empty")
    return found


def as_json(value: Any, *, is_sorted: bool = False) -> bytes:
    """Fields as JSON, without needless spaces; in the order of their names if `is_sorted`."""
    try:
        return _encode_sorted(value) if is_sorted else _encode(value)
    except UnicodeEncodeError:
        # What UTF-8 cannot hold is written as JSON's own escape.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=is_sorted)
        return text.encode("utf-8", "backslashreplace")


_encode: Final = msgspec.json.Encoder().encode
_encode_sorted: Final = msgspec.json.Encoder(order="deterministic").encode


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = read_json(line.rstrip())
    except NotJson as error:
        raise Unusable(str(error).rstrip(".")) from error
    if not isinstance(value, dict):
        raise Unusable("it is no JSON object")
    return value


def _field(name: str, value: object) -> Any:
    match value:
        case dict():
            return {inner: _field(inner, each) for inner, each in value.items() if not is_empty(each)}
        case list():
            return [_field(name, each) for each in value]
        case int() | float() if name in AMOUNTS:
            return value
        case float() if name in IDS:
            return value
        case Decimal() if not value.is_finite():
            return str(value)
        case datetime() if name in DAYS:
            return (value.date() if value.time() == time() else value).isoformat()
        case date() if name in DAYS:
            return value.isoformat()
    return text_of(name, value)

"""A query's shape: the query without its values, so that the two together give it back byte for byte.

Never guesses: `cut` returns None for a query that would not come back exactly, and then the query itself must be kept.
A shape is the query's parts in their order, joined by `&`; each is a name, `=`, and how the value stood there: nothing
(as it is), `%` (as `encodeURIComponent` writes it), `+` (as a form writes it), `s` (an `event_time` in seconds), or
`=` and the text itself, where the value is only a placeholder.
Invariant: `rebuild(cut(query), value) == query`, whenever `cut` gives a shape.

>>> cut(b"client_id=c&utm_campaign=a%20b&gclid=null")
'client_id=&utm_campaign=%&gclid==null'
>>> rebuild('client_id=&utm_campaign=%&gclid==null', {"client_id": "c", "utm_campaign": "a b"}.__getitem__)
b'client_id=c&utm_campaign=a%20b&gclid=null'
"""

from collections.abc import Callable
from typing import Final

from clickclock.attribution.clicks.absent import is_absent
from clickclock.attribution.clicks.query import Unreadable, split

AS_IS: Final = ""
PERCENT: Final = "%"
FORM: Final = "+"
SECONDS: Final = "s"
LITERAL: Final = "="

_LETTERS_AND_DIGITS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
UNESCAPED: Final = {
    PERCENT: frozenset(_LETTERS_AND_DIGITS + b"-_.!~*'()"),
    FORM: frozenset(_LETTERS_AND_DIGITS + b"*-._"),
}
"""The bytes that each way of writing leaves as they are: the browsers' two, which others follow."""
_WRITTEN: Final = {
    way: {byte: chr(byte) if byte in plain else f"%{byte:02X}" for byte in range(256)}
    for way, plain in UNESCAPED.items()
}
_WRITTEN[FORM][ord(" ")] = "+"

EVENT_TIME: Final = "event_time"
_MS_DIGITS: Final = 13
_S_DIGITS: Final = 10


def write(value: str, way: str) -> str:
    """A value as `PERCENT` or `FORM` writes it."""
    table = _WRITTEN[way]
    return "".join([table[byte] for byte in value.encode()])


def way_of(raw: str, value: str) -> str | None:
    """How `raw` is written, which decodes to `value`: `AS_IS`, `PERCENT` or `FORM`; None if in none of these ways."""
    if raw == value and "%" not in raw and "+" not in raw:
        return AS_IS
    return next((way for way in (PERCENT, FORM) if write(value, way) == raw), None)


def cut(query: bytes) -> str | None:
    """The shape of a query; None if it cannot be rebuilt from one."""
    try:
        text = query.decode()
        values = split(query)
    except (UnicodeDecodeError, Unreadable):
        return None
    parts = [part.partition("=") for part in text.split("&")]
    if [name for name, _, _ in parts] != list(values):
        return None  # a name that is escaped or comes twice, or an empty part
    shape = []
    for name, equals, raw in parts:
        code = _code(name, raw, values[name]) if equals else None
        if code is None:
            return None
        shape.append(f"{name}={code}")
    return "&".join(shape)


def _code(name: str, raw: str, value: str) -> str | None:
    if is_absent(name, value):
        return f"{LITERAL}{raw}"
    if name != EVENT_TIME:
        return way_of(raw, value)
    if not (raw.isascii() and raw.isdecimal()) or raw.startswith("0"):
        return None
    return {_MS_DIGITS: AS_IS, _S_DIGITS: SECONDS}.get(len(raw))


def rebuild(shape: str, value: Callable[[str], str]) -> bytes:
    """The query of a shape; `value` gives a parameter's value by name, that of `event_time` in milliseconds."""
    parts = []
    for part in shape.split("&"):
        name, _, code = part.partition("=")
        if code.startswith(LITERAL):
            raw = code.removeprefix(LITERAL)
        elif code == AS_IS:
            raw = value(name)
        elif code == SECONDS:
            raw = value(name).removesuffix("000")
        else:
            raw = write(value(name), code)
        parts.append(f"{name}={raw}")
    return "&".join(parts).encode()

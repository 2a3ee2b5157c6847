"""Clicks of the past: a row of a table as the query that the collector would have got; lines of logs: `log_line.py`.

Never judges and never reads a file. Invariants: a row's values reach the query unchanged, and one that lost digits
before it came here is refused; the same row of the same file always gets the same id, whenever it is imported and with
whatever other files, so that what was imported once is known again.

>>> of_row({"client_id": "c", "received_at": "2026-11-20T10:00:00Z"}).query
b'client_id=c'
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Final

import msgspec

from clickclock.attribution.clicks.absent import IDENTIFIERS, is_absent
from clickclock.attribution.clicks.query import Unreadable, split, split_plain
from clickclock.attribution.clicks.shape import EVENT_TIME
from clickclock.attribution.orders.lost_digits import reason
from clickclock.attribution.orders.order_fields import EVENT_TIME_MS_MAX, EVENT_TIME_MS_MIN
from clickclock.foundation.instant import is_local, ms_of

QUERY: Final = "query"
"""A column with the raw query, which then is the click; of the others, only those named here count."""
AGENT: Final = "user_agent"
REFERER: Final = "referer"
"""Beside `QUERY`, as an export has them."""
RECEIVED_AT: Final = "received_at"
"""A column with the time of receipt: milliseconds since 1970, or ISO 8601 with a zone."""
WITHOUT_ZONE: Final = "which has no time zone; give one, such as 2026-11-20T10:00:00+01:00, or milliseconds since 1970"
QUERY_BYTES_MAX: Final = 64 * 1024
"""As long as a form may be that the collector takes."""
AHEAD_MAX_MS: Final = 5 * 60_000
"""How far a clock that wrote down receipts may be ahead of ours."""
_WHOLE_FLOAT_MAX: Final = 2**53
_IDS: Final = ("_id", "ubid", "clid", "ccid", "braid", "gaid", "idfa", "idfv")
"""How parameters that are ids end."""
_NAMES: Final = frozenset({"asvt", "atag", "utm_campaign", "utm_content", "utm_term"})
"""Parameters that are ids in some accounts, and names in others."""
_PLAIN: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~|{}:,/@"
_WRITTEN: Final = [b"%c" % byte if byte in _PLAIN else b"%%%02X" % byte for byte in range(256)]


class Historical(msgspec.Struct, frozen=True):
    """A click or a view of the past. `received_ms` is None where nobody wrote down when it came."""

    query: bytes
    received_ms: int | None
    agent: bytes = b""
    referer: bytes = b""
    peer: str = ""
    """The address that a server wrote down, of which only a pseudonym is kept."""
    forwarded: bytes = b""
    """The header `X-Forwarded-For` that came with it."""
    is_view: bool = False


class Unusable(ValueError):
    """A row or line that cannot be read as what it should be."""


def of_row(row: Mapping[str, object]) -> Historical:
    """The click of a row, whose columns are parameters. Raises `Unusable`, saying why."""
    told = row.get(RECEIVED_AT)
    received_ms = None if is_empty(told) else receipt_of(told)
    raw = row.get(QUERY)
    if not is_empty(raw):
        query = (raw if isinstance(raw, bytes) else bytes_of(str(raw))).removeprefix(b"?")
        agent, referer = (
            bytes_of(text) if isinstance(text := row.get(name), str) else b"" for name in (AGENT, REFERER)
        )
        return historical(query, received_ms, agent, referer)
    parts = []
    for name, value in row.items():
        if name not in (QUERY, RECEIVED_AT) and not is_empty(value):
            _refuse_lost_digits(name, value)
            if name == EVENT_TIME:
                value = _event_time(value)  # noqa: PLW2901 (the same time)
            parts.append(encoded(name) + b"=" + encoded(value if type(value) is str else text_of(name, value)))
    if not parts:
        raise Unusable("the row is empty")
    return historical(b"&".join(parts), received_ms)


def _refuse_lost_digits(name: str, value: object) -> None:
    """Raises `Unusable` for an id that was taken for a number."""
    is_name = name in _NAMES
    is_nothing = isinstance(value, str) and name in IDENTIFIERS and is_absent(name, value)
    if isinstance(value, str | float) and not is_nothing and (is_name or name.lower().endswith(_IDS)):
        why = reason(value, is_name=is_name)
        if why is not None:
            raise Unusable(f"{name}: {why}")


def time_of(click: Historical, now_ms: int) -> int:
    """When it came: what was written down, else the time that the click itself says, else 0.

    It never depends on `now_ms`, which only says what is in the future. Raises `Unusable` for a receipt that is.
    """
    if click.received_ms is not None:
        return believed(click.received_ms, now_ms)
    parameters = split_plain(click.query)
    if parameters is None:
        try:
            parameters = split(click.query)
        except Unreadable as problem:
            parameters = problem.parameters
    said = parameters.get(EVENT_TIME, "")
    if not (said.isascii() and said.isdigit()) or len(said) > len(str(EVENT_TIME_MS_MAX)):
        return 0
    return next((ms for ms in (int(said), int(said) * 1000) if EVENT_TIME_MS_MIN <= ms <= EVENT_TIME_MS_MAX), 0)


def believed(received_ms: int, now_ms: int) -> int:
    """A time of receipt that somebody wrote down. Raises `Unusable` if it is in the future."""
    if received_ms > now_ms + AHEAD_MAX_MS:
        raise Unusable(f"{RECEIVED_AT} is in the future; look at its unit and its zone")
    return received_ms


def id_of(time_ms: int, query: bytes, nth: int) -> str:
    """The id of the `nth` click (from 0) with this query and `time_of`: a UUID of version 8, 32 hex digits, by time."""
    digest = int.from_bytes(blake2b(b"%d %d " % (time_ms, nth) + query, digest_size=10).digest())
    time_bits = (time_ms & (1 << 48) - 1) << 80
    version_8, variant = 0x8 << 76, 0b10 << 62
    return f"{time_bits | version_8 | variant | digest & ~(0xF << 76) & ~(0b11 << 62):032x}"


def historical(
    query: bytes,
    received_ms: int | None,
    agent: bytes = b"",
    referer: bytes = b"",
    peer: str = "",
    forwarded: bytes = b"",
) -> Historical:
    """A click of the past. Raises `Unusable` for a query that is empty or longer than any."""
    if not query:
        raise Unusable("the query is empty")
    if len(query) > QUERY_BYTES_MAX:
        raise Unusable(f"the query has {len(query):,} bytes; at most {QUERY_BYTES_MAX:,} are taken")
    return Historical(query, received_ms, agent, referer, peer, forwarded)


def is_empty(value: object) -> bool:
    """Whether a cell of a table has nothing in it."""
    return value is None or value in ("", b"") or value != value  # noqa: PLR0124 (only NaN differs from itself)


def text_of(name: str, value: object) -> str:
    """The text of a cell in the column `name`. Raises `Unusable` for what is no text or number."""
    match value:
        case bool():
            return str(value).lower()
        case int() | str():
            return str(value)
        case float() if not value.is_integer():
            return repr(value)
        case float() if abs(value) <= _WHOLE_FLOAT_MAX:
            # Readers of tables make a column of whole numbers with gaps into one of floats.
            return str(int(value))
        case float():
            raise Unusable(f"{name} is a number in which digits were lost; write the column as text")
        case Decimal():
            return f"{value:f}"
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case datetime() if value.tzinfo is not None:
            return str(ms_of(value))
        case date():
            return value.isoformat()  # in which zone, nobody knows; who asks for an instant refuses it
    raise Unusable(f"{name} is a {type(value).__name__}; give text or a number")


def receipt_of(value: object) -> int:
    """What `RECEIVED_AT` says, in milliseconds since 1970. Raises `Unusable`."""
    ms: int | None = None
    try:
        match value:
            case bool():
                pass
            case datetime() if value.tzinfo is not None:
                ms = ms_of(value)
            case str() if not (value.isascii() and value.isdigit()):
                ms = iso_ms(value)
            case int() | str() | float() | Decimal():
                ms = int(value)
    except (ValueError, OverflowError):
        pass
    if ms is None or not EVENT_TIME_MS_MIN <= ms <= EVENT_TIME_MS_MAX:
        shown = str(value)[:40]
        if ms is None and isinstance(value, str | date) and is_local(str(value)):
            raise Unusable(f"{RECEIVED_AT} is {shown}, {WITHOUT_ZONE}")
        raise Unusable(f"{RECEIVED_AT} is {shown}; give milliseconds since 1970 (13 digits), or ISO 8601 with a zone")
    return ms


def iso_ms(text: str) -> int | None:
    """Milliseconds since 1970 of an instant in ISO 8601 with a zone; None if it is none.

    >>> iso_ms("2026-11-20T10:00:00+01:00")
    1795165200000
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if at.tzinfo is None else ms_of(at)


def _event_time(value: object) -> object:
    """Milliseconds of a time in ISO 8601 with a zone, as tables may write it. Raises `Unusable` for one without."""
    text = value.isoformat() if isinstance(value, date) else value
    if not isinstance(text, str) or text.isdigit():
        return value
    if is_local(text):
        raise Unusable(f"{EVENT_TIME} is {text[:40]}, {WITHOUT_ZONE}")
    ms = iso_ms(text)
    return value if ms is None else str(ms)


def bytes_of(text: str) -> bytes:
    """The bytes of a text, those that were no UTF-8 as they came. Raises `Unusable`."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise Unusable("there is half of a surrogate pair in it") from error


def encoded(text: str) -> bytes:
    """Percent-encoded where it must be."""
    raw = bytes_of(text)
    if not raw.translate(None, _PLAIN):
        return raw
    return b"".join([_WRITTEN[byte] for byte in raw])

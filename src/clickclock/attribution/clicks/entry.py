"""An entry: what the journal keeps of one request, one line of bytes.

Never judges, never loses a byte: what is decoded is what was encoded. Invariants: a line ends in its only LF and has
eight columns, set apart by tabs; the raw column of a plain click is its query as it came, without escapes.

>>> decode(encode_plain("0" * 32, 5, connection("ab", b"curl", b""), Profile.STRICT, b"a=b")).raw
b'a=b'
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from clickclock.attribution.clicks.absent import REVISION
from clickclock.attribution.clicks.account import Profile


class EntryKind(StrEnum):
    """What an entry is, as the letter that begins its line."""

    PLAIN_CLICK = "c"
    CLICK = "C"
    VIEW = "v"
    REJECTION = "r"
    ORDER = "o"
    OTHER = "e"


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One request, as it is kept."""

    kind: EntryKind
    id: str
    """UUID version 7, 32 hexadecimal digits."""
    received_ms: int
    address: str
    """The pseudonym of the client's address (`address.py`), or empty."""
    agent: bytes
    referer: bytes
    detail: bytes
    """For a click or a view, the profile that accepted it, and whether it is a prefetch. For a rejection, JSON of its
    kind, its faults and what it was."""
    raw: bytes
    """The request: the query of a click or a view, the JSON of an order."""


_COLUMNS: Final = 8
JUDGED: Final = f"/{REVISION}"
"""Stands behind the profile of a plain click or view: under which revision of `absent` it was found to be plain."""
TOGETHER_MAX: Final = 256
_LAST_DIGITS: Final = tuple(b"%02x" % number for number in range(TOGETHER_MAX))
_ESCAPES: Final = {b"\\": b"\\\\", b"\t": b"\\t", b"\n": b"\\n", b"\r": b"\\r", b"\0": b"\\0"}
_NUL, _TAB, _LF, _CR, _BACKSLASH = b"\0\t\n\r\\"
_ESCAPED: Final = {escape[1:]: raw for raw, escape in _ESCAPES.items()}


_JUDGED: Final = JUDGED.encode()


def connection(address: str, agent: bytes, referer: bytes) -> bytes:
    """The columns that stay the same for a connection: to be made once."""
    return b"%b\t%b\t%b\t" % (address.encode(), _escape(agent), _escape(referer))


def encode_plain(
    id: str,  # noqa: A002 (the column's name)
    received_ms: int,
    connection: bytes,
    profile: Profile,
    query: bytes,
    *,
    is_view: bool = False,
) -> bytes:
    """The line of a plain click or view, whose query needs no escape."""
    kind = "v" if is_view else "c"
    return b"".join((f"{kind}\t{id}\t{received_ms}\t".encode(), columns_of_plain(connection, profile), query, b"\n"))


def columns_of_plain(connection: bytes, profile: Profile) -> bytes:
    """What stands between the time and the query of a plain click: the same for all of a connection and profile."""
    return b"%b%b%b\t" % (connection, profile.encode(), _JUDGED)


def encode_plains(first_id: str, received_ms: int, columns: Sequence[bytes], queries: Sequence[bytes]) -> bytes:
    """The lines of plain clicks that were received together, `TOGETHER_MAX` at most; `columns` as `columns_of_plain`.

    Their ids are `first_id` but for the last two digits, which count: nothing is drawn and written out for each.
    """
    start, middle = f"c\t{first_id[:-2]}".encode(), b"\t%d\t" % received_ms
    # Filled in column by column: half of what a loop over the lines costs.
    parts = [start, b"", middle, b"", b"", b"\n"] * len(queries)
    parts[1::6], parts[3::6], parts[4::6] = _LAST_DIGITS[: len(queries)], columns, queries
    return b"".join(parts)


def encode(kind: EntryKind, id: str, received_ms: int, connection: bytes, detail: bytes, raw: bytes) -> bytes:  # noqa: A002 (the column's name)
    """The line of any entry."""
    head = f"\t{id}\t{received_ms}\t".encode()
    return b"".join((kind.encode(), head, connection, _escape(detail), b"\t", _escape(raw), b"\n"))


def decode(line: bytes) -> Entry:
    """The entry of a line. Raises `ValueError` if it is none."""
    columns = line.removesuffix(b"\n").split(b"\t")
    if len(columns) != _COLUMNS:
        raise ValueError(f"an entry has {_COLUMNS} columns, and this one {len(columns)}")
    kind, entry_id, received_ms, address, agent, referer, detail, raw = columns
    return Entry(
        EntryKind(kind.decode()),
        entry_id.decode(),
        int(received_ms),
        address.decode(),
        unescape(agent),
        unescape(referer),
        unescape(detail),
        unescape(raw),
    )


def _escape(field: bytes) -> bytes:
    # Written out, for in most fields nothing is found. Numbers: looking for one takes a third of looking for bytes.
    if _TAB in field or _LF in field or _CR in field or _BACKSLASH in field or _NUL in field:
        for raw, escape in _ESCAPES.items():
            field = field.replace(raw, escape)
    return field


def unescape(field: bytes) -> bytes:
    """A column of a line, or a part of one, as it was before it was written."""
    if b"\\" not in field:
        return field
    first, *others = field.split(b"\\\\")
    return b"\\".join([_unescape_controls(first), *map(_unescape_controls, others)])


def _unescape_controls(field: bytes) -> bytes:
    for letter, raw in _ESCAPED.items():
        field = field.replace(b"\\" + letter, raw)
    return field

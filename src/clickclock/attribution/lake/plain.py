r"""Plain clicks and views as columns: thousands of lines at once, by arithmetic on their bytes.

Never decides what they mean: plain ones have no flags, and a line that is unusual in any way, or was judged by an
earlier revision of `absent`, is handed back for `rows.py`.
Invariants: each becomes the same row here as in `rows.py`; every line is in one of the results.

>>> line = b"c\t01\t1800000000000\t\t\t\tstrict/3\tclient_id=c&event_time=1800000000000\n"
>>> batches, others = plain_rows(line, "j", 7)
>>> batches["clicks"]["shape"].to_pylist(), others
(['client_id=&event_time='], [])
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.clicks.absent import REVISION
from clickclock.attribution.clicks.entry import JUDGED, decode
from clickclock.attribution.lake.queries import instants, integers, parse
from clickclock.attribution.lake.rows import text_of
from clickclock.attribution.lake.slices import Integers, Truths, columns_of, pieces, where_any
from clickclock.attribution.lake.tables import CLICKS, VIEWS

_FIELDS: Final = ("kind", "id", "received_ms", "address", "user_agent", "referer", "profile", "raw")
_TEXTS: Final = ("id", "profile", "received_ms")
_HEADERS: Final = ("address", "user_agent", "referer")
_CLICK, _VIEW, _TAB, _LF = np.frombuffer(b"cv\t\n", np.uint8)
_BEHIND: Final = np.frombuffer(b"\t\t\t\t\t\t\t\n", np.uint8)
"""What stands behind each field."""
_JUDGED: Final = np.frombuffer(JUDGED.encode(), np.uint8)
_NO_FLAG: Final = pa.array([], pa.string())


def plain_rows(lines: bytes, journal: str, segment: int) -> tuple[dict[str, pa.RecordBatch], list[bytes]]:
    """Rows of plain clicks and views among whole lines of the journal, by their table; and the lines of all others."""
    entries = _split(lines)
    if entries is None:
        return {}, lines.split(b"\n")[:-1]
    parsed = parse(entries.fields("raw"))
    columns = parsed.columns | _head(entries, has_escapes=b"\\" in lines) | _tail(len(entries.rows), journal, segment)
    if parsed.columns:
        columns |= _times(columns["event_time"], columns["received_at"])
    batch = pa.RecordBatch.from_arrays(list(_whole(columns, len(entries.rows))), schema=CLICKS.schema)
    if parsed.is_good.all() and len(entries.rows) == entries.count:
        return _by_table(batch, entries.is_view), []
    is_left = np.ones(entries.count, np.bool_)
    is_left[entries.rows[parsed.is_good]] = False
    every = lines.split(b"\n")
    good = _by_table(batch.filter(pa.array(parsed.is_good)), entries.is_view[parsed.is_good])
    return good, [every[place] for place in np.flatnonzero(is_left)]


def _by_table(batch: pa.RecordBatch, is_view: Truths) -> dict[str, pa.RecordBatch]:
    if not is_view.any():
        return {CLICKS.name: batch}
    return {CLICKS.name: batch.filter(pa.array(~is_view)), VIEWS.name: batch.filter(pa.array(is_view))}


@dataclass(frozen=True)
class _Entries:
    """All lines, cut into pieces: a field, what stands behind it, the next field, and so on."""

    pieces: pa.BinaryArray
    count: int
    rows: Integers
    """Those of the lines that may be plain clicks or views."""
    is_view: Truths
    """Of each of the rows."""

    def fields(self, *names: str) -> pa.BinaryArray:
        """These fields of the rows as they stand, all of the first name, then all of the next; `raw` ends in LF."""
        places = np.add.outer([2 * _FIELDS.index(name) for name in names], 2 * len(_FIELDS) * self.rows)
        return self.pieces.take(pa.array(places.ravel()))


def _split(lines: bytes) -> _Entries | None:
    """The entries, or None if one has not all fields."""
    content = np.frombuffer(lines, np.uint8)
    marks = where_any(content, _TAB, _LF)
    if len(marks) % len(_FIELDS) or (content[marks].reshape(-1, len(_FIELDS)) != _BEHIND).any():
        return None
    offsets = np.zeros(2 * len(marks) + 1, np.int32)
    offsets[1::2] = marks
    offsets[2::2] = marks + 1
    starts, ends = offsets[: -1 : 2 * len(_FIELDS)], offsets[1 :: 2 * len(_FIELDS)]
    kinds = content[starts]
    is_view = kinds == _VIEW
    is_plain = ((kinds == _CLICK) | is_view) & (ends - starts == 1)
    profile_ends = offsets[2 * _FIELDS.index("profile") + 1 :: 2 * len(_FIELDS)]
    for back, mark in enumerate(_JUDGED[::-1], 1):
        is_plain &= content[profile_ends - back] == mark
    rows = np.flatnonzero(is_plain)
    profile_ends[rows] -= len(_JUDGED)  # that mark stands behind the field, and is not in it
    offsets[2 * len(_FIELDS) - 1 :: 2 * len(_FIELDS)] += 1
    return _Entries(pieces(pa.py_buffer(lines), offsets, pa.binary()), len(starts), rows, is_view[rows])


def _head(entries: _Entries, *, has_escapes: bool) -> dict[str, pa.Array]:
    """The columns that follow from the fields before the query."""
    found = entries.fields(*_TEXTS, *_HEADERS)
    headers = len(_TEXTS) * len(entries.rows)
    texts = found[:headers].cast(pa.string())
    columns = columns_of(_TEXTS, texts) | columns_of(_HEADERS, _header_texts(found[headers:], has_escapes=has_escapes))
    return columns | {"received_at": instants(integers(columns.pop("received_ms")))}


def _times(said: pa.TimestampArray, received: pa.TimestampArray) -> dict[str, pa.Array]:
    """The time that counts, which is never later than the receipt; and what was said, where that is another."""
    is_ahead = pc.greater(said, received)
    if not is_ahead.true_count:
        return {}
    sent = pc.if_else(is_ahead, said, pa.scalar(None, said.type))
    return {"event_time": pc.if_else(is_ahead, received, said), "event_time_sent": sent}


def _tail(rows: int, journal: str, segment: int) -> dict[str, pa.Array]:
    """The columns that are the same in every row."""
    no_flags = pa.repeat(pa.scalar(0, pa.int32()), rows + 1)
    return {
        "revision": pa.repeat(pa.scalar(REVISION, pa.int8()), rows),
        "journal": pa.repeat(pa.scalar(journal), rows),
        "segment": pa.repeat(pa.scalar(segment, pa.int64()), rows),
        "flags": pa.ListArray.from_arrays(no_flags, _NO_FLAG, CLICKS.schema.field("flags").type),
    }


def _whole(columns: dict[str, pa.Array], rows: int) -> Iterator[pa.Array]:
    """All columns of the table."""
    for field in CLICKS.schema:
        yield columns[field.name] if field.name in columns else pa.nulls(rows, field.type)


def _header_texts(raw: pa.BinaryArray, *, has_escapes: bool) -> pa.StringArray:
    """Headers as `text_of` gives them."""
    try:
        texts = raw.cast(pa.string())
    except pa.ArrowInvalid:
        texts = None
    if texts is None or has_escapes:
        return _unusual_texts(raw)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    is_empty = offsets[1:] == offsets[:-1]
    return pc.if_else(pa.array(is_empty), pa.scalar(None, pa.string()), texts) if is_empty.any() else texts


def _unusual_texts(raw: pa.BinaryArray) -> pa.StringArray:
    encoded = raw.dictionary_encode()
    # Escapes are undone where an entry is read.
    entries = [decode(b"c\t\t0\t\t%b\t\t\t\n" % field) for field in encoded.dictionary.to_pylist()]
    return pa.array([text_of(entry.agent) for entry in entries], pa.string()).take(encoded.indices)

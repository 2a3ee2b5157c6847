r"""Plain clicks as columns: thousands of lines at once, by arithmetic on their bytes.

Never decides what a click means: plain ones have no flags, and a line that is unusual in any way is handed back for
`rows.py`.
Invariants: a click becomes the same row here as in `rows.py`; every line is in one of the two results.

>>> batch, others = plain_clicks(b"c\t01\t1800000000000\t\t\t\tstrict\tclient_id=c&event_time=1800000000000\n", "j", 7)
>>> batch["shape"].to_pylist(), others
(['client_id=&event_time='], [])
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.entry import decode
from clickclock.attribution.lake.queries import parse
from clickclock.attribution.lake.rows import text_of
from clickclock.attribution.lake.slices import pieces, where_either
from clickclock.attribution.lake.tables import CLICKS, INSTANT

_COLUMNS: Final = ("kind", "id", "received_ms", "address", "user_agent", "referer", "profile", "raw")
_TAB, _LF = np.frombuffer(b"\t\n", np.uint8)
_BEHIND: Final = np.frombuffer(b"\t\t\t\t\t\t\t\n", np.uint8)
"""What stands behind each column."""


def plain_clicks(lines: bytes, journal: str, segment: int) -> tuple[pa.RecordBatch, list[bytes]]:
    """The plain clicks among whole lines of the journal, in the form of `CLICKS`, and the lines of all others."""
    entries = _split(lines)
    if entries is None:
        return CLICKS.batch([]), _each(lines)
    is_plain = np.asarray(pc.equal(entries["kind"], b"c"))
    found = entries if is_plain.all() else entries.filter(pa.array(is_plain))
    parsed = parse(found["raw"])
    columns = _Columns(found, parsed.columns, journal, segment, has_escapes=b"\\" in lines)
    batch = pa.RecordBatch.from_arrays([columns.of(field) for field in CLICKS.schema], schema=CLICKS.schema)
    if parsed.is_good.all() and is_plain.all():
        return batch, []
    is_taken = is_plain.copy()
    is_taken[is_plain] = parsed.is_good
    every = _each(lines)
    return batch.filter(pa.array(parsed.is_good)), [every[place] for place in np.flatnonzero(~is_taken)]


def _each(lines: bytes) -> list[bytes]:
    return lines.split(b"\n")[:-1]


def _split(lines: bytes) -> pa.RecordBatch | None:
    """The entries' columns as they stand, or None if a line has not all of them."""
    content = np.frombuffer(lines, np.uint8)
    marks = where_either(content, _TAB, _LF)
    if len(marks) % len(_COLUMNS) or (content[marks].reshape(-1, len(_COLUMNS)) != _BEHIND).any():
        return None
    # A field, what stands behind it, the next field …
    fields = pieces(pa.py_buffer(lines), np.append(0, np.column_stack((marks, marks + 1))), pa.binary())
    starts = range(0, 2 * len(_COLUMNS), 2)
    columns = [fields.take(pa.array(np.arange(at, len(fields), 2 * len(_COLUMNS)))) for at in starts]
    return pa.RecordBatch.from_arrays(columns, names=_COLUMNS)


class _Columns:
    """The columns of `CLICKS` for entries and their parsed queries."""

    def __init__(
        self, entries: pa.RecordBatch, parsed: dict[str, pa.Array], journal: str, segment: int, *, has_escapes: bool
    ) -> None:
        self._entries = entries
        self._parsed = parsed
        self._journal = journal
        self._segment = segment
        self._has_escapes = has_escapes

    def of(self, field: pa.Field) -> pa.Array:
        """One column."""
        rows = self._entries.num_rows
        match field.name:
            case "id" | "profile":
                return self._entries[field.name].cast(pa.string())
            case "received_at":
                return pc.multiply(self._entries["received_ms"].cast(pa.string()).cast(pa.int64()), 1000).cast(INSTANT)
            case "address" | "user_agent" | "referer":
                return _header_texts(self._entries[field.name], has_escapes=self._has_escapes)
            case "journal":
                return pa.repeat(pa.scalar(self._journal), rows)
            case "segment":
                return pa.repeat(pa.scalar(self._segment, pa.int64()), rows)
            case "flags":
                return pa.ListArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows + 1), _NO_FLAG, field.type)
            case _:
                return self._parsed[field.name] if field.name in self._parsed else pa.nulls(rows, field.type)


_NO_FLAG: Final = pa.array([], pa.string())


def _header_texts(raw: pa.BinaryArray, *, has_escapes: bool) -> pa.StringArray:
    """Headers as `text_of` gives them."""
    try:
        texts = raw.cast(pa.string())
    except pa.ArrowInvalid:
        texts = None
    if texts is None or has_escapes:
        return _unusual_texts(raw)
    is_empty = pc.equal(pc.binary_length(texts), 0)
    return pc.if_else(is_empty, pa.scalar(None, pa.string()), texts) if pc.any(is_empty).as_py() else texts


def _unusual_texts(raw: pa.BinaryArray) -> pa.StringArray:
    encoded = raw.dictionary_encode()
    # Escapes are undone where an entry is read.
    entries = [decode(b"c\t\t0\t\t%b\t\t\t\n" % field) for field in encoded.dictionary.to_pylist()]
    return pa.array([text_of(entry.agent) for entry in entries], pa.string()).take(encoded.indices)

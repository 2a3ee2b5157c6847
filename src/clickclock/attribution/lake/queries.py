r"""Many plain queries at once: cut at `&` and `=`, grouped by their names, their values as columns.

Never guesses: a row that is unusual in any way is not `is_good`, and nothing in its columns counts. Queries with the
same names in the same order, written the same ways, are one group and have one shape.
Invariant: of a good row, shape and columns are what `shape.cut` and `query.split` give.

>>> parsed = parse(pa.array([b"client_id=c&event_time=1800000000000&x=1\n"], pa.binary()))
>>> parsed.columns["client_id"].to_pylist(), parsed.columns["other"].to_pylist()
(['c'], [[('x', '1')]])
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.clicks.shape import AS_IS, EVENT_TIME, FORM, PERCENT
from clickclock.attribution.lake.slices import BEGINNING_BYTES, Integers, Offsets, Runs, Truths, columns_of, where_any
from clickclock.attribution.lake.tables import CLICK_PARAMETERS, INSTANT, PARAMETERS
from clickclock.attribution.orders.order_fields import EVENT_TIME_MS_MIN

NAME_BYTES_MAX: Final = 2 * BEGINNING_BYTES
_EVENT_TIME_DIGITS: Final = 13
"""A number with a leading zero would not be written again in the same way."""
_WAYS: Final = (AS_IS, PERCENT, FORM)
_NO_WAY: Final = len(_WAYS)
_AND, _EQUALS, _LF, _PERCENT, _PLUS, _DELETE = np.frombuffer(b"&=\n%+\x7f", np.uint8)
_OWN: Final = frozenset(CLICK_PARAMETERS)
_SUM_BITS: Final = 20
"""Two sums become one number; where two collide, rows are compared a little later."""
_US_PER_MS: Final = 1000


@dataclass(frozen=True)
class Parsed:
    """Columns by name, and of each row whether it was understood."""

    columns: dict[str, pa.Array]
    is_good: Truths


@dataclass(frozen=True)
class Group:
    """Rows whose queries have these names, written these ways; `parts` has a line for each row."""

    rows: Integers
    parts: Integers
    names: list[str]
    ways: list[int]


def parse(queries: pa.BinaryArray) -> Parsed:
    """The columns of plain queries, each with the line feed behind it."""
    rows = len(queries)
    if not rows:
        return Parsed({}, np.ones(0, np.bool_))
    offsets = np.frombuffer(queries.buffers()[1], np.int32)[queries.offset : queries.offset + rows + 1]
    parts = Parts.of(Runs(np.frombuffer(queries.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]))
    if parts is None:
        return Parsed({}, np.zeros(rows, np.bool_))
    columns = _Columns(parts)
    for group in parts.groups():
        columns.add(group)
    return columns.parsed(queries)


def integers(texts: pa.StringArray) -> Integers:
    """The numbers that texts are; anything where one is null. Raises `ArrowInvalid`."""
    numbers = texts.cast(pa.int64())
    return np.frombuffer(numbers.buffers()[1], np.int64)[numbers.offset :][: len(numbers)]


def instants(epoch_ms: Integers) -> pa.TimestampArray:
    """Times as the table has them."""
    return pa.Array.from_buffers(INSTANT, len(epoch_ms), [None, pa.py_buffer(epoch_ms * _US_PER_MS)])


class Parts:
    """All parts of all queries: a name, and a value that stands between `starts` and `ends`."""

    def __init__(self, runs: Runs, marks: Integers, escapes: Integers, firsts: Integers) -> None:
        """`marks` is where the `=` of each part stands, and where the part ends; `escapes` are each `%` and `+`."""
        self.runs = runs
        self.firsts = firsts
        """Of each row, its first part; and behind them the number of all."""
        equals, self.ends = marks[0::2], marks[1::2]
        self.starts = equals + 1
        self.is_good: Truths = np.ones(len(firsts) - 1, np.bool_)
        self._counts = np.diff(firsts)
        self._names = np.append(0, self.ends[:-1] + 1)
        self._lengths = equals - self._names
        self._spoil(np.flatnonzero(self._lengths > NAME_BYTES_MAX))
        self._ways = np.zeros(len(equals), np.int8)
        self._places = np.arange(0, len(marks), 2)
        """Of each part, where its value is among the pieces."""
        offsets = marks.astype(np.int32)
        offsets[0::2] += 1
        self._pieces = runs.pieces(np.append(offsets, self._decode(escapes)))
        self._forms = self._lengths * (_NO_WAY + 1) + self._ways

    @classmethod
    def of(cls, runs: Runs) -> "Parts | None":
        """Cut the queries; None if there is a part that has not exactly one `=`."""
        marks = where_any(runs.content, _AND, _EQUALS, _LF, _PERCENT, _PLUS)
        kinds = runs.content[marks]
        is_escape = (kinds == _PERCENT) | (kinds == _PLUS)
        escapes = marks[is_escape]
        if len(escapes):
            marks, kinds = marks[~is_escape], kinds[~is_escape]
        if len(marks) % 2 or (kinds[0::2] != _EQUALS).any() or (kinds[1::2] == _EQUALS).any():
            return None
        if runs.content.max() > _DELETE:
            return None
        return cls(runs, marks, escapes, np.append(0, np.flatnonzero(kinds[1::2] == _LF) + 1))

    def _spoil(self, parts: Integers) -> None:
        """Rows with these parts are not good."""
        self.is_good[np.searchsorted(self.firsts, parts, side="right") - 1] = False

    def values(self, parts: Integers) -> pa.StringArray:
        """The values of these parts, decoded if they were encoded; null where there is -1 for a part."""
        is_absent = parts < 0
        return self._pieces.take(pa.array(self._places[parts], mask=is_absent if is_absent.any() else None))

    def _decode(self, escapes: Integers) -> Offsets:
        """Decode what is encoded: the offsets of what came of it."""
        if not len(escapes):
            return np.empty(0, np.int32)
        parts = np.searchsorted(self.ends, escapes, side="right")
        is_wrong = (escapes < self.starts[parts]) | ~self.runs.are_escapes(escapes, self.ends[parts])
        self._spoil(parts[is_wrong])
        is_escaped = np.zeros(len(self._names), np.bool_)
        is_escaped[parts] = True
        is_escaped[parts[is_wrong]] = False
        escaped = np.flatnonzero(is_escaped)
        starts, ends = self.starts[escaped], self.ends[escaped]
        is_percent, is_form = self.runs.ways(starts, ends)
        self._ways[escaped] = np.select([is_percent, is_form], [1, 2], _NO_WAY)
        self._places[escaped] = 2 * len(self._names) + np.arange(len(escaped))
        return self.runs.decoded(starts, ends)

    def groups(self) -> Iterator[Group]:
        """The good rows in groups."""
        sums = self._sums()
        is_left = self.is_good.copy()
        while len(rows := np.flatnonzero(is_left)):
            group = self._like_first(rows[sums[rows] == sums[rows[0]]])
            is_left[group.rows] = False
            if len(set(group.names)) == len(group.names):
                yield group
            else:
                self.is_good[group.rows] = False

    def _sums(self) -> Integers:
        """Of each row what tells most others from it, though not all."""
        firsts = self.firsts[:-1]
        sums = np.add.reduceat(self._forms, firsts)
        weighted = np.add.reduceat(self._forms * np.arange(len(self._forms)), firsts) - firsts * sums
        together: Integers = weighted << _SUM_BITS | sums
        return together

    def _like_first(self, rows: Integers) -> Group:
        """Those rows that have the same names as the first of them, written the same ways."""
        begin, end = self.firsts[rows[0]], self.firsts[rows[0] + 1]
        rows = rows[self._counts[rows] == end - begin]
        parts = self.firsts[rows, None] + np.arange(end - begin)
        is_alike = (self._forms[parts] == self._forms[begin:end]).all(axis=1)
        if not is_alike.all():
            rows, parts = rows[is_alike], parts[is_alike]
        # Row by row and not name by name, so that what is compared is read in the order in which it lies in memory.
        starts, lengths = self._names[parts], self._lengths[begin:end]
        is_alike = self.runs.are_like_first(starts, lengths)
        long = np.flatnonzero(lengths > BEGINNING_BYTES)
        if len(long):
            rests = starts.take(long, axis=1) + BEGINNING_BYTES
            is_alike &= self.runs.are_like_first(rests, lengths[long] - BEGINNING_BYTES)
        content = self.runs.content
        spans = zip(starts[0].tolist(), lengths.tolist(), strict=True)
        names = [content[start : start + length].tobytes().decode() for start, length in spans]
        if not is_alike.all():
            rows, parts = rows[is_alike], parts[is_alike]
        return Group(rows, parts, names, self._ways[begin:end].tolist())


class _Columns:
    """Columns that groups are added to."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rows = len(parts.is_good)
        self._values: dict[str, Integers] = {}
        self._others: list[tuple[str, Integers, Integers]] = []
        self._shapes: list[str | None] = []
        self._shape_of = np.zeros(self._rows, np.int32)

    def add(self, group: Group) -> None:
        """Take in the rows of a group."""
        if EVENT_TIME not in group.names:
            self._parts.is_good[group.rows] = False
            return
        for name, way, parts in zip(group.names, group.ways, group.parts.T, strict=True):
            if name == EVENT_TIME:
                lengths = self._parts.ends[parts] - self._parts.starts[parts]
                self._parts.is_good[group.rows] &= (lengths == _EVENT_TIME_DIGITS) & (way == 0)
            if name in _OWN or name == EVENT_TIME:
                if name not in self._values:
                    self._values[name] = np.full(self._rows, -1)
                self._values[name][group.rows] = parts
            else:
                self._others.append((name, group.rows, parts))
        self._shape_of[group.rows] = len(self._shapes)
        pieces = zip(group.names, group.ways, strict=True)
        shape = None if _NO_WAY in group.ways else "&".join(f"{name}={_WAYS[way]}" for name, way in pieces)
        self._shapes.append(shape)

    def parsed(self, queries: pa.BinaryArray) -> Parsed:
        """The rows that were taken in."""
        is_good = self._parts.is_good
        if EVENT_TIME not in self._values:
            return Parsed({}, np.zeros(self._rows, np.bool_))
        self._values[EVENT_TIME][~is_good] = -1
        columns = columns_of(self._values, self._parts.values(np.concatenate(list(self._values.values()))))
        try:
            event_time = integers(columns[EVENT_TIME])
        except pa.ArrowInvalid:
            return Parsed({}, np.zeros(self._rows, np.bool_))
        is_good &= event_time >= EVENT_TIME_MS_MIN  # it has none in a row that is not good
        columns[EVENT_TIME] = instants(event_time)
        columns["shape"] = pa.array(self._shapes, pa.string()).take(pa.array(self._shape_of))
        if None in self._shapes:
            whole = pc.binary_slice(queries, 0, -1)
            columns["query"] = pc.if_else(columns["shape"].is_null(), whole, pa.scalar(None, pa.binary()))
        if self._others:
            columns["other"] = self._other()
        return Parsed(columns, is_good)

    def _other(self) -> pa.MapArray:
        names = [name for name, _, _ in self._others]
        rows = np.concatenate([rows for _, rows, _ in self._others])
        parts = np.concatenate([parts for _, _, parts in self._others])
        of_name = np.repeat(np.arange(len(names)), [len(rows) for _, rows, _ in self._others])
        order = np.argsort(parts)
        rows, parts = rows[order], parts[order]
        keys = pa.array(names, pa.string()).take(pa.array(of_name[order]))
        values = self._parts.values(parts)
        offsets = np.searchsorted(rows, np.arange(self._rows + 1)).astype(np.int32)
        is_empty = np.diff(offsets) == 0
        return pa.MapArray.from_arrays(pa.array(offsets), keys, values, type=PARAMETERS, mask=pa.array(is_empty))

"""Many plain queries at once: cut at `&` and `=`, grouped by their names, their values as columns.

Never guesses: a row that is unusual in any way is not `is_good`, and nothing in its columns counts. Queries with the
same names in the same order, written the same ways, are one group and have one shape.
Invariant: of a good row, shape and columns are what `shape.cut` and `query.split` give.

>>> parsed = parse(pa.array([b"client_id=c&event_time=1800000000000&x=1"], pa.binary()))
>>> parsed.columns["client_id"].to_pylist(), parsed.columns["other"].to_pylist()
(['c'], [[('x', '1')]])
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.lake.slices import WORD_BYTES, Integers, Runs, Truths, Words, where_either
from clickclock.attribution.lake.tables import CLICK_PARAMETERS, INSTANT, PARAMETERS
from clickclock.attribution.order_fields import EVENT_TIME_MS_MIN
from clickclock.attribution.shape import AS_IS, EVENT_TIME, FORM, PERCENT

GROUPS_MAX: Final = 256
"""A group costs as much as some rows do; what a client that shuffles its parameters sends goes row by row."""
NAME_BYTES_MAX: Final = 4 * WORD_BYTES
_EVENT_TIME_DIGITS: Final = 13
"""What has a zero in front would not be written again in the same way."""
_WAYS: Final = (AS_IS, PERCENT, FORM)
_NO_WAY: Final = len(_WAYS)
_AND, _EQUALS, _PERCENT, _PLUS, _DELETE = np.frombuffer(b"&=%+\x7f", np.uint8)
_ODD: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], np.uint64)
_OWN: Final = frozenset(CLICK_PARAMETERS)


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
    """The columns of plain queries."""
    rows = len(queries)
    if not rows:
        return Parsed({}, np.ones(0, np.bool_))
    offsets = np.frombuffer(queries.buffers()[1], np.int32)[queries.offset : queries.offset + rows + 1].astype(np.int64)
    runs = Runs(np.frombuffer(queries.buffers()[2], np.uint8)[offsets[0] : offsets[-1]])
    parts = Parts.of(runs, offsets - offsets[0])
    if parts is None:
        return Parsed({}, np.zeros(rows, np.bool_))
    columns = _Columns(parts)
    for group in parts.groups():
        columns.add(group)
    return columns.parsed(queries)


class Parts:
    """All parts of all queries: a name, and a value that stands between `starts` and `ends`."""

    def __init__(self, runs: Runs, names: Integers, equals: Integers, ends: Integers, firsts: Integers) -> None:
        self.runs = runs
        self.starts, self.ends = equals + 1, ends
        self.firsts = firsts
        """Of each row, its first part; and behind them the number of all."""
        self.is_good: Truths = np.ones(len(firsts) - 1, np.bool_)
        self._counts = np.diff(firsts)
        self._ways = np.zeros(len(names), np.int8)
        self._names = names
        self._lengths = equals - names
        self._spoil(np.flatnonzero(self._lengths > NAME_BYTES_MAX))
        self._words = [runs.word(names, self._lengths), runs.word(names + WORD_BYTES, self._lengths - WORD_BYTES)]
        self._places = np.arange(0, 2 * len(names), 2)
        """Of each part, where its value is among the pieces."""
        offsets = np.column_stack((self.starts, ends)).ravel()
        self._pieces = runs.pieces(np.append(offsets, self._decode()))
        self._forms = self._lengths * (_NO_WAY + 1) + self._ways

    @classmethod
    def of(cls, runs: Runs, offsets: Integers) -> "Parts | None":
        """Cut the queries between these offsets; None if there is a part that has not exactly one `=`."""
        ands, equals = np.flatnonzero(runs.content == _AND), np.flatnonzero(runs.content == _EQUALS)
        at = np.searchsorted(ands, offsets)
        firsts = at + np.arange(len(offsets))
        if firsts[-1] != len(equals) or runs.content.max() > _DELETE:
            return None
        names, ends = np.insert(ands + 1, at[:-1], offsets[:-1]), np.insert(ands, at[1:], offsets[1:])
        if (equals < names).any() or (equals >= ends).any():
            return None
        return cls(runs, names, equals, ends, firsts)

    def _spoil(self, parts: Integers) -> None:
        """Rows with these parts are not good."""
        self.is_good[np.searchsorted(self.firsts, parts, side="right") - 1] = False

    def values(self, parts: Integers) -> pa.StringArray:
        """The values of these parts, decoded if they were encoded; null where there is -1 for a part."""
        return self._pieces.take(pa.array(self._places[parts], mask=parts < 0))

    def _decode(self) -> Integers:
        """Decode what is encoded: the offsets of what came of it."""
        content = self.runs.content
        escapes = where_either(content, _PERCENT, _PLUS)
        if not len(escapes):
            return escapes
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
        """The good rows in groups. Those of the smallest groups, if there are too many, become not good."""
        by_hash = pa.array(self._hashes()).dictionary_encode().indices.to_numpy()
        order = np.argsort(by_hash, kind="stable")
        order = order[self.is_good[order]]
        sizes = np.bincount(by_hash[order])
        members = np.split(order, np.cumsum(sizes)[:-1])
        members.sort(key=len, reverse=True)
        for rows in members[GROUPS_MAX:]:
            self.is_good[rows] = False
        for rows in members[:GROUPS_MAX]:
            if len(rows):
                yield from self._group(rows)

    def _group(self, rows: Integers) -> Iterator[Group]:
        first = rows[0]
        alike = rows[self._counts[rows] == self._counts[first]]
        parts = self.firsts[alike][:, None] + np.arange(self._counts[first])
        is_alike = np.ones(len(alike), np.bool_)
        for facts in (self._forms, *self._words):
            found = facts[parts]
            is_alike &= (found == found[0]).all(axis=1)
        self.is_good[rows] = False
        self.is_good[alike[is_alike]] = True
        content, places = self.runs.content, parts[0]
        spans = zip(self._names[places].tolist(), self._lengths[places].tolist(), strict=True)
        names = [content[start : start + length].tobytes().decode() for start, length in spans]
        if len(set(names)) == len(names):
            yield Group(alike[is_alike], parts[is_alike], names, self._ways[places].tolist())
        else:
            self.is_good[rows] = False

    def _hashes(self) -> Words:
        """Of each row, one number of its names and ways: different, if they are, nearly always."""
        lengths = self._lengths
        mixed = self._forms.view(np.uint64) * _ODD[2]
        for odd, word in zip(_ODD, self._words, strict=False):
            mixed ^= word * odd
        long = np.flatnonzero(lengths > 2 * WORD_BYTES)
        if len(long):
            for odd, at in zip(_ODD, (2 * WORD_BYTES, 3 * WORD_BYTES), strict=False):
                word = np.zeros(len(lengths), np.uint64)
                word[long] = self.runs.word(self._names[long] + at, lengths[long] - at)
                self._words.append(word)
                mixed ^= (word + odd) * odd
        places = np.arange(len(lengths)) - np.repeat(self.firsts[:-1], self._counts)
        mixed *= (places.astype(np.uint64) * np.uint64(2) + np.uint64(1)) * _ODD[-1]
        hashes: Words = np.add.reduceat(mixed, self.firsts[:-1])
        return hashes


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
                self._values.setdefault(name, np.full(self._rows, -1))[group.rows] = parts
            else:
                self._others.append((name, group.rows, parts))
        self._shape_of[group.rows] = len(self._shapes)
        pieces = zip(group.names, group.ways, strict=True)
        shape = None if _NO_WAY in group.ways else "&".join(f"{name}={_WAYS[way]}" for name, way in pieces)
        self._shapes.append(shape)

    def parsed(self, queries: pa.BinaryArray) -> Parsed:
        """What was taken in."""
        is_good = self._parts.is_good
        if EVENT_TIME not in self._values:
            return Parsed({}, np.zeros(self._rows, np.bool_))
        self._values[EVENT_TIME][~is_good] = -1
        columns = {name: self._parts.values(parts) for name, parts in self._values.items()}
        try:
            event_time = columns[EVENT_TIME].cast(pa.int64())
        except pa.ArrowInvalid:
            return Parsed({}, np.zeros(self._rows, np.bool_))
        is_good &= np.asarray(pc.fill_null(pc.greater_equal(event_time, EVENT_TIME_MS_MIN), False))
        columns[EVENT_TIME] = pc.multiply(event_time, 1000).cast(INSTANT)
        columns["shape"] = pa.array(self._shapes, pa.string()).take(pa.array(self._shape_of))
        if None in self._shapes:
            columns["query"] = pc.if_else(columns["shape"].is_null(), queries, pa.scalar(None, pa.binary()))
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

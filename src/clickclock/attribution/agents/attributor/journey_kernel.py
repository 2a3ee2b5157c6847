"""The kernel of a run: rows of whole persons → their orders' journeys and the paths of months without an order.

Never decides what a click is worth: `walk` does. What it adds is that a person may be looked at in part: if only the
paths of late months are wanted, a quiet time before them is looked for, in which nothing of that person happened:
whatever came before cannot make anything after it a repeat, a flood or a retry. Invariant: what is said of a person is
what would be said if all its rows were there; where that is not certain, nothing is said but that.

>>> [field.name for field in FOUND][:3]
['number', 'person', 'place']
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.crediting.columns.journey_columns import Columns, JourneyRows, UnconvertedRows, walk
from clickclock.attribution.crediting.columns.rolling import changes
from clickclock.attribution.crediting.columns.terms import Orders, Terms
from clickclock.attribution.crediting.columns.unconverted import PATH_SEPARATOR

FOUND: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("person", pa.int64()),
        ("place", pa.int32()),
        ("touches", pa.int32()),
        ("id", pa.string()),
        ("ad", pa.int64()),
        ("time_ms", pa.int64()),
        ("reason", pa.int8()),
        ("client", pa.int32()),
        ("month", pa.int32()),
        ("path", pa.string()),
    ]
)
"""A row of an order's journey, with the order's number; or a path that no order followed; or a person who has to be
looked at in full. Of the columns from `place` to `reason` the last two have none, of those behind it the others."""
PATH: Final = -1
"""Stands for the number of an order where there is none, but a path."""
UNCERTAIN: Final = -2
"""Stands for the number of an order where a person has to be looked at in full."""
EVER_MS: Final = -(10**15)
"""Before any click."""
EVERY_MONTH: Final = int(np.iinfo(np.int32).min)
"""Before any month."""
QUIET_MS: Final = 65 * 60_000
"""A repeat comes within an hour, a flood within ten minutes, a retry within seconds of what it repeats."""
SEARCHED_MS: Final = 12 * 3_600_000
"""How far back a quiet time is looked for."""
CLEAR_MS: Final = QUIET_MS + 10 * 60_000
"""Where nobody's click was for so long before a new one, there is a quiet time, whenever that one was received."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Since:
    """Persons who could have changed, and since when; nobody else is looked at."""

    person: Numbers
    """Sorted."""
    after_ms: Numbers
    """Orders placed later than this are wanted."""
    month: Numbers
    """Paths of this month and later ones are wanted."""
    needed_ms: Numbers
    """Clicks from this time on count for what is wanted; `EVER_MS` if all do, as they do for every order."""
    goes_on: NDArray[np.bool_]
    """Whether there are only new clicks from `needed_ms` on, and none for long before: the path of `month` goes on with
    what is found."""

    @property
    def searched_ms(self) -> Numbers:
        """From when on a quiet time is looked for."""
        return np.maximum(self.needed_ms - np.where(self.goes_on, CLEAR_MS, SEARCHED_MS), EVER_MS)

    @property
    def wanted(self) -> pa.Table:
        """What an engine is to look up: from when on, for each person."""
        return pa.table({"person": self.person, "since_ms": self.searched_ms})

    def about(self, persons: Numbers) -> "Since":
        """Those from the first to the last of sorted persons: to find these among fewer takes a part of the time."""
        bounds = slice(*np.searchsorted(self.person, [persons[0], persons[-1] + 1])) if len(persons) else slice(0)
        return Since(*(column[bounds] for column in self._columns))

    def only(self, is_wanted: NDArray[np.bool_]) -> "Since":
        """Some of them."""
        return Since(*(column[is_wanted] for column in self._columns))

    @property
    def in_full(self) -> "Since":
        """The same persons and the same of them, for which all clicks are looked at."""
        return replace(self, needed_ms=np.full(len(self.person), EVER_MS)).afresh(self.person)

    def afresh(self, persons: Numbers) -> "Since":
        """The same, but paths of these persons do not go on: they are found anew."""
        return replace(self, goes_on=self.goes_on & ~np.isin(self.person, persons))

    def find(self, persons: Numbers) -> NDArray[np.intp]:
        """The place of each person, who has to be there."""
        return np.searchsorted(self.person, persons)

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        return (self.person, self.after_ms, self.month, self.needed_ms, self.goes_on)


@dataclass(frozen=True, eq=False)
class Walker:
    """Walks along everybody in full, or along those alone whom `since` names."""

    orders: Orders
    terms: Terms
    since: Since | None = None
    schema = FOUND

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns, uncertain, since = _columns(rows), np.empty(0, np.int64), self.since
        if since is not None:
            since = since.about(columns.person)
            kept, uncertain = _seen_in_part(columns, since)
            rows = rows.filter(pa.array(kept))
            columns = _columns(rows)
        walked = walk(columns, self.orders, self.terms)
        journeys, paths = walked.journeys, walked.unconverted
        # The rows of an order are together, and in the order of the orders.
        order = np.flatnonzero(columns.is_order)[np.cumsum(journeys.place <= 1) - 1]
        is_wanted, is_wanted_path = np.ones(len(order), np.bool_), np.ones(len(paths.person), np.bool_)
        if since is not None:
            at = since.find(columns.person[order])
            is_wanted = columns.time_ms[order] > since.after_ms[at]
            is_wanted_path = paths.month >= since.month[since.find(paths.person)]
        found = [
            _journeys(rows, journeys, columns.person[order], is_wanted),
            _paths(paths, self.terms.ads.channels, is_wanted_path),
            _batch(len(uncertain), number=np.full(len(uncertain), UNCERTAIN), person=uncertain),
        ]
        return pa.concat_batches(found)


def _seen_in_part(columns: Columns, since: Since) -> tuple[NDArray[np.bool_], Numbers]:
    """Which rows are to be walked, and the persons of whom this cannot be said."""
    is_first = changes(columns.person)
    who = np.cumsum(is_first) - 1
    person = columns.person[is_first]
    at = since.find(person)
    needed_ms, searched_ms = since.needed_ms[at], since.searched_ms[at]
    is_partial = needed_ms > EVER_MS
    received_ms = columns.received_us // 1000
    # All moments of the time before what is needed in which something happened; and its bounds.
    moments = [(np.flatnonzero(is_partial), bound_ms[is_partial]) for bound_ms in (searched_ms, needed_ms)]
    for at_ms in (columns.time_ms, received_ms):
        is_in = ~columns.is_order & is_partial[who]
        is_in &= (at_ms < needed_ms[who]) & (at_ms >= searched_ms[who])
        moments.append((who[is_in], at_ms[is_in]))
    whose, at_ms = (np.concatenate(column) for column in zip(*moments, strict=True))
    by_time = np.lexsort((at_ms, whose))
    whose, at_ms = whose[by_time], at_ms[by_time]
    quiet = np.flatnonzero((whose[1:] == whose[:-1]) & (np.diff(at_ms) >= QUIET_MS)) + 1
    from_ms = np.full(len(person), EVER_MS)
    np.maximum.at(from_ms, whose[quiet], at_ms[quiet])
    is_uncertain = is_partial & (from_ms == EVER_MS)
    kept = np.where(
        columns.is_order,
        columns.time_ms >= needed_ms[who],
        (columns.time_ms >= from_ms[who]) | (received_ms >= from_ms[who]),
    )
    return kept & ~is_uncertain[who], person[is_uncertain]


def _columns(rows: pa.RecordBatch) -> Columns:
    def numbers(name: str) -> Numbers:
        # Where there is none, there may be any: so nobody has to look which are there.
        column = rows[name]
        result: Numbers = pa.Array.from_buffers(
            column.type, len(column), [None, column.buffers()[1]], offset=column.offset
        ).to_numpy()
        return result

    def marks(name: str) -> NDArray[np.bool_]:
        return np.asarray(rows[name].cast(pa.int8())).view(np.bool_)

    return Columns(
        person=numbers("person"),
        time_ms=numbers("time_ms"),
        is_order=marks("is_order"),
        received_us=numbers("received_us"),
        number=numbers("number"),
        ad=numbers("ad"),
        ad_key=numbers("ad_key"),
        parameters=numbers("parameters"),
        is_spent=marks("is_spent"),
        is_bot=marks("is_bot"),
        is_flood=marks("is_flood"),
        ids=lambda places: rows["id"].take(pa.array(places)).to_pylist(),
    )


def _journeys(
    rows: pa.RecordBatch, journeys: JourneyRows, person: Numbers, is_wanted: NDArray[np.bool_]
) -> pa.RecordBatch:
    row = journeys.row[is_wanted]
    click = pa.array(row, mask=row < 0)
    return _batch(
        len(row),
        number=journeys.number[is_wanted],
        person=person[is_wanted],
        place=journeys.place[is_wanted],
        touches=journeys.touches[is_wanted],
        reason=pa.array(journeys.reason[is_wanted], mask=row >= 0),
        **{name: rows[name].take(click) for name in ("id", "ad", "time_ms")},
    )


def _paths(paths: UnconvertedRows, channels: Sequence[str], is_wanted: NDArray[np.bool_]) -> pa.RecordBatch:
    steps = pa.array(channels, pa.string()).take(pa.array(paths.steps))
    texts = pc.binary_join(pa.ListArray.from_arrays(pa.array(paths.offsets, pa.int32()), steps), PATH_SEPARATOR)
    count = int(np.count_nonzero(is_wanted))
    return _batch(
        count,
        number=np.full(count, PATH),
        person=paths.person[is_wanted],
        client=paths.client[is_wanted],
        month=paths.month[is_wanted],
        path=texts.take(pa.array(paths.path[is_wanted])),
    )


def _batch(count: int, **columns: pa.Array | NDArray[np.generic]) -> pa.RecordBatch:
    """Rows of `FOUND`; a column that is not given is null."""
    arrays = [
        pa.array(columns[field.name]).cast(field.type) if field.name in columns else pa.nulls(count, field.type)
        for field in FOUND
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=FOUND)

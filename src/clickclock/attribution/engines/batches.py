"""Rows on their way between an engine and a kernel: numbered, of the types that were agreed, cut between persons.

Never sorts by person: whoever streams the rows has. Invariant: all rows of a person are in one batch.

>>> rows = pa.record_batch({"person": [1, 1, 2, 2, 3]})
>>> [batch["person"].to_pylist() for batch in whole_persons([rows.slice(0, 3), rows.slice(3)])]
[[1, 1], [2, 2], [3]]
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.engines import IDENTIFIED, ORDERS, WALK, Kernel
from clickclock.foundation.ordered_map import in_turn

_PLACE: Final = pa.field("number", pa.int64())
NUMBERED_ORDERS: Final = ORDERS.append(_PLACE)
NUMBERED_TEXTS: Final = IDENTIFIED.append(_PLACE)
WALK_ORDER: Final = ("person", "time_ms", "is_order", "strength", "received_us", "id", "number")
"""By which the rows of a kernel are sorted; no two of them are equal."""
SORTED_BY: Final = WALK_ORDER[:2]
"""What an engine sorts by."""


def numbered(orders: pa.Table) -> pa.Table:
    """Orders with the numbers of their rows."""
    return orders.append_column("number", pa.array(np.arange(orders.num_rows)))


def as_agreed(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same columns with the types of `schema`: engines have their own ideas of how wide a small number is."""
    for batch in batches:
        columns = [batch[field.name].cast(field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def walked(batches: Iterable[pa.RecordBatch], kernel: Kernel, threads: int = 1) -> Iterator[pa.RecordBatch]:
    """What a kernel makes of rows of `WALK` that are sorted by `SORTED_BY`; several threads have one each."""
    return in_turn(lambda rows: kernel(in_order(rows)), whole_persons(as_agreed(batches, WALK)), threads)


def in_order(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `WALK` that are sorted by person and time, sorted by all that they are to be sorted by.

    Few are of one person and time; to have those sorted by an engine makes it carry five more keys for all others.

    >>> rows = {name: pa.nulls(3, WALK.field(name).type) for name in WALK.names} | {"person": [1, 1, 1]}
    >>> rows |= {"time_ms": [5, 7, 7], "is_order": [True, True, False]}
    >>> in_order(pa.record_batch(rows, WALK))["is_order"].to_pylist()
    [True, False, True]
    """
    person, time_ms = rows["person"].to_numpy(), rows["time_ms"].to_numpy()
    is_tied = np.zeros(len(person), np.bool_)
    is_tied[1:] = (person[1:] == person[:-1]) & (time_ms[1:] == time_ms[:-1])
    is_tied[:-1] |= is_tied[1:]
    places = np.flatnonzero(is_tied)
    tied = rows.select(list(WALK_ORDER)).take(pa.array(places))
    by_rank = pc.sort_indices(tied, [(name, "ascending") for name in WALK_ORDER]).to_numpy()
    if np.array_equal(by_rank, np.arange(len(places))):
        return rows
    order = np.arange(len(person))
    order[places] = places[by_rank]
    return rows.take(pa.array(order))


def whole_persons(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sorted rows, cut where a person ends. The last person's rows wait, for there may be more of them."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        person = batch["person"].to_numpy()
        is_other = bool(waiting) and waiting[-1]["person"][0].as_py() != person[0]
        last = int(np.searchsorted(person, person[-1]))
        if last or is_other:
            yield pa.concat_batches([*waiting, batch.slice(0, last)])
            waiting = []
        waiting.append(batch.slice(last))
    if waiting:
        yield pa.concat_batches(waiting)

"""Rows on their way between an engine and a kernel: numbered, of the types that were agreed, cut between persons.

Never sorts: whoever streams the rows has. Invariant: all rows of a person are in one batch.

>>> rows = pa.record_batch({"person": [1, 1, 2, 2, 3]})
>>> [batch["person"].to_pylist() for batch in whole_persons([rows.slice(0, 3), rows.slice(3)])]
[[1, 1], [2, 2], [3]]
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from clickclock.attribution.engines import WALK, Kernel


def numbered(orders: pa.Table) -> pa.Table:
    """Orders with the numbers of their rows."""
    return orders.append_column("number", pa.array(np.arange(orders.num_rows)))


def as_agreed(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same columns with the types of `schema`: engines have their own ideas of how wide a small number is."""
    for batch in batches:
        columns = [batch[field.name].cast(field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def walked(batches: Iterable[pa.RecordBatch], kernel: Kernel) -> Iterator[pa.RecordBatch]:
    """What a kernel makes of sorted rows of `WALK`."""
    for rows in whole_persons(as_agreed(batches, WALK)):
        yield kernel(rows)


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

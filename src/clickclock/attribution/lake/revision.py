"""Revisions: what a later run says of a few keys, beside what earlier runs said of them and of all others.

Never writes. A run that credits some orders anew writes their rows, and retracts those that they had: a month of
orders is not written again for the sake of a few. Invariant: of a key, and in a partition, rows of a run count as long
as no later run has retracted them.

>>> rows = pa.table({"key": [7, 7, 8], "run": [1, 2, 1], "is_retraction": [False, True, False]})
>>> [batch["key"].to_pylist() for batch in standing(ds.dataset(rows), ("key",), None, ["key"])]
[[8]]
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from clickclock.attribution.lake.sums import Words, mixed_rows
from clickclock.attribution.lake.tables import OF_REVISIONS, RETRACTION, RUN

_IS_RETRACTION: Final = pc.equal(pc.field(RETRACTION), pc.scalar(value=True))
_READ: Final[dict[str, Any]] = {"batch_size": 2**16, "batch_readahead": 2, "fragment_readahead": 1}
"""Some megabytes at once. What a batch costs beside its rows is felt where there are four times as many."""


def standing(
    dataset: ds.Dataset, key: Sequence[str], where: pc.Expression | None, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """The rows that count, of those that fit; of a dataset without revisions, all that fit."""
    there = dataset.schema.names
    wanted = [name for name in there if name not in OF_REVISIONS.names] if columns is None else list(columns)
    if RETRACTION not in there:
        yield from dataset.scanner(columns=wanted, filter=where, **_READ).to_batches()
        return
    retracted = _Retracted(dataset.to_table([*key, RUN], filter=_IS_RETRACTION), key)
    # No filter by what is a row: Arrow would look at each, and copy all of them.
    read = list(dict.fromkeys([*wanted, RETRACTION, *((*key, RUN) if retracted else ())]))
    for batch in dataset.scanner(columns=read, filter=where, **_READ).to_batches():
        rows = batch.filter(pc.invert(batch[RETRACTION])) if pc.any(batch[RETRACTION]).as_py() else batch
        yield (retracted.without(rows) if retracted else rows).select(wanted)


class _Retracted:
    """Keys, and the latest run that retracted each."""

    def __init__(self, rows: pa.Table, key: Sequence[str]) -> None:
        self._key = tuple(key)
        self._values = pc.unique(rows[key[-1]])
        words, runs = mixed_rows(rows, self._key), rows[RUN].to_numpy()
        by_key = np.lexsort((runs, words))
        is_last = np.append(words[by_key[1:]] != words[by_key[:-1]], True)[: len(words)]
        self._words: Words = words[by_key[is_last]]
        self._runs = runs[by_key[is_last]]

    def __bool__(self) -> bool:
        return bool(len(self._words))

    def without(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that no later run has retracted."""
        # Most rows are out by one column alone, without a word being made of all.
        maybe = np.flatnonzero(pc.is_in(rows[self._key[-1]], self._values).to_numpy(zero_copy_only=False))
        if not len(maybe):
            return rows
        some = pa.Table.from_batches([rows.take(pa.array(maybe))])
        words = mixed_rows(some, self._key)
        at = np.minimum(np.searchsorted(self._words, words), len(self._words) - 1)
        is_out = (self._words[at] == words) & (some[RUN].to_numpy() < self._runs[at])
        is_kept = np.ones(rows.num_rows, np.bool_)
        is_kept[maybe[is_out]] = False
        return rows.filter(pa.array(is_kept))

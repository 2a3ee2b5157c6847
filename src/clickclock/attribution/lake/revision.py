"""Revisions: what a later run says of a few keys, beside what earlier runs said of them and of all others.

Never writes. A run that credits some orders anew writes their rows, and retracts those that they had: a month of
orders is not written again for the sake of a few. Invariant: of a key, and in a partition, rows of a run count as long
as no later run has retracted them.

>>> rows = pa.table({"key": [7, 7, 8], "run": [1, 2, 1], "is_retraction": [False, True, False]})
>>> [batch["key"].to_pylist() for batch in standing(ds.dataset(rows), ("key",), None, ["key"])]
[[8]]
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from clickclock.attribution.lake.sums import Words, mixed_rows
from clickclock.attribution.lake.tables import OF_REVISIONS, RETRACTION, RUN

_IS_RETRACTION: Final = pc.equal(pc.field(RETRACTION), pc.scalar(value=True))
_READ: Final[dict[str, Any]] = {"batch_size": 2**16, "batch_readahead": 2, "fragment_readahead": 1}
"""Some megabytes at once. What a batch costs beside its rows is felt where there are four times as many."""


Find: TypeAlias = Callable[[list[str], pa.Array], pa.Table]
"""What finds the rows of files, retractions among them, whose keys end with one of some values."""


class Standing(NamedTuple):
    """A partition, as far as it was asked for."""

    partition: str
    rows: pa.Table
    """Those that count, of the keys that were asked for."""
    every: int
    """How many rows count in all."""


def standing(
    dataset: ds.Dataset, key: Sequence[str], where: pc.Expression | None, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """The rows that count, of those that fit; of a dataset without revisions, all that fit."""
    there = dataset.schema.names
    wanted = [name for name in there if name not in OF_REVISIONS.names] if columns is None else list(columns)
    if RETRACTION not in there:
        yield from dataset.scanner(columns=wanted, filter=where, **_READ).to_batches()
        return
    retracted = Retracted.of(dataset, key)
    # No filter by what is a row: Arrow would look at each, and copy all of them.
    read = list(dict.fromkeys([*wanted, RETRACTION, *((*key, RUN) if retracted else ())]))
    for batch in dataset.scanner(columns=read, filter=where, **_READ).to_batches():
        yield retracted.standing(batch).select(wanted)


class Retracted:
    """Keys, and the latest run that retracted each."""

    @classmethod
    def of(cls, dataset: ds.Dataset, key: Sequence[str], where: pc.Expression | None = None) -> "Retracted":
        """Those of a dataset, in the part of it that fits."""
        is_wanted = _IS_RETRACTION if where is None else _IS_RETRACTION & where
        return cls(dataset.to_table([*key, RUN], filter=is_wanted), key)

    def __init__(self, rows: pa.Table, key: Sequence[str]) -> None:
        self._key = tuple(key)
        self.values: pa.Array = pc.unique(rows[key[-1]])
        """The last columns of the keys."""
        words, runs = mixed_rows(rows, self._key), rows[RUN].to_numpy()
        by_key = np.lexsort((runs, words))
        is_last = np.append(words[by_key[1:]] != words[by_key[:-1]], True)[: len(words)]
        self._words: Words = words[by_key[is_last]]
        self._runs = runs[by_key[is_last]]

    def __bool__(self) -> bool:
        return bool(len(self._words))

    def standing(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that count: those that are no retraction, and that no later run has retracted."""
        rows = rows.filter(pc.invert(rows[RETRACTION])) if pc.any(rows[RETRACTION]).as_py() else rows
        return self._without(rows) if self else rows

    def found(self, files: list[str], values: pa.Array, find: Find) -> tuple[pa.Table, int]:
        """The rows that count of keys that end with these values; and how many rows of the files do not count."""
        every = find(files, pc.unique(pa.concat_arrays([values, self.values])) if self else values)
        rows = pa.Table.from_batches(map(self.standing, every.to_batches()), every.schema)
        asked = rows.filter(pc.is_in(rows[self._key[-1]], values)) if self else rows
        return asked, every.num_rows - rows.num_rows

    def _without(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        # Most rows are out by one column alone, without a word being made of all.
        maybe = np.flatnonzero(pc.is_in(rows[self._key[-1]], self.values).to_numpy(zero_copy_only=False))
        if not len(maybe):
            return rows
        some = pa.Table.from_batches([rows.take(pa.array(maybe))])
        words = mixed_rows(some, self._key)
        at = np.minimum(np.searchsorted(self._words, words), len(self._words) - 1)
        is_out = (self._words[at] == words) & (some[RUN].to_numpy() < self._runs[at])
        is_kept = np.ones(rows.num_rows, np.bool_)
        is_kept[maybe[is_out]] = False
        return rows.filter(pa.array(is_kept))

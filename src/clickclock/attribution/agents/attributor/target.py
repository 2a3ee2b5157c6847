"""Where a run writes: each table by one commit, for one result version.

Never publishes. Invariant: what a run wrote that died, of which no result tells, is undone before anything is added.

>>> Target(lake, now_ms, 2).replace(IDENTITIES, rows)   # doctest: +SKIP
7
"""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.lake import Lake, Stored, Table

NOTE: Final = "result"
"""Notes in the tables for which result version they were written: of two runs at once, one is refused."""
RETRACTED_MIN: Final = 2**16
"""So few rows that do not count any more are no burden to anybody."""
RETRACTED_SHARE: Final = 1 / 8
"""Share of a partition's rows that may be retracted; beyond it the partition is written anew."""


def crowded(files: Iterable[Stored], standing: Mapping[str, int], gone: Mapping[str, int]) -> frozenset[str]:
    """The partitions of which too many rows would not count any more, if of those that stand some are gone."""
    stored: Counter[str] = Counter()
    for file in files:
        stored[file.partition or ""] += file.rows
    return frozenset(
        each
        for each, rows in gone.items()
        if rows + stored[each] - standing[each] > max(RETRACTED_MIN, stored[each] * RETRACTED_SHARE)
    )


def rows_of_each(partition: pa.ChunkedArray) -> Counter[str]:
    """How many rows each partition has, of which these are the names."""
    return Counter({each["values"]: each["counts"] for each in partition.value_counts().to_pylist()})


def but(rows: pa.Table, column: str, values: Iterable[str]) -> pa.Table:
    """The rows that have none of these values."""
    return rows.filter(pc.invert(pc.is_in(rows[column], pa.array(sorted(values), pa.string()))))


@dataclass(frozen=True)
class Target:
    """The lake, and who writes."""

    lake: Lake
    now_ms: int
    number: int
    """The number of the new result version."""

    def replace(self, table: Table, rows: pa.Table) -> int:
        """Write these rows instead of all that the table has. Returns its version, as `revise` does."""
        return self._write(table, [rows], [], None)

    def revise(
        self,
        table: Table,
        base: int | None,
        rows: Iterable[pa.Table],
        retracted: Iterable[pa.Table] = (),
        instead_of: Collection[str] = (),
    ) -> int:
        """Add rows to what the table had in the version `base`, but to some partitions, which have these rows alone.

        The keys of rows that are `retracted` are those that do not count any more, as earlier runs wrote them.
        """
        return self._write(table, rows, retracted, instead_of, base)

    def _write(
        self,
        table: Table,
        rows: Iterable[pa.Table],
        retracted: Iterable[pa.Table],
        instead_of: Collection[str] | None,
        base: int | None = None,
    ) -> int:
        ledger = self.lake.ledger(table)
        if base is not None:
            ledger.restore(base)
        parts = ledger.parts(f"part-{uuid.uuid4().hex}", self.now_ms, self.number)
        for some in rows:
            parts.write(some)
        for some in retracted:
            parts.retract(some)
        return ledger.commit(parts.close(), self.now_ms, instead_of=instead_of, notes={NOTE: self.number})

"""Whether what a note promises is there: a segment that is noted goes unread, and its entries with it.

Never writes. Invariant: of two segments with one number of one journal, which only copies of a data folder can have,
the one whose entries are not in the lake is told apart: segments only grow, so the last entry is enough to know.

>>> absent(lambda name, where, columns: iter(()), [])
set()
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.clicks.entry import decode
from clickclock.attribution.lake.rows import row_of
from clickclock.attribution.lake.tables import DAY

Scan: TypeAlias = Callable[[str, pc.Expression, list[str]], Iterator[pa.RecordBatch]]
"""Rows of a table that fit, with some columns."""


def absent(scan: Scan, lines: Sequence[bytes]) -> set[bytes]:
    """Those entries of which no table has the row. Raises `ValueError` for what is no entry."""
    wanted: dict[str, dict[str, bytes]] = defaultdict(dict)
    days: dict[str, set[date]] = defaultdict(set)
    for line in lines:
        entry = decode(line)
        table, row = row_of(entry, "", 0)
        wanted[table.name][entry.id] = line
        days[table.name].add(row["received_at"].date())
    for name, by_id in wanted.items():
        where = pc.field(DAY).isin(pa.array(sorted(days[name]), pa.date32())) & pc.field("id").isin(sorted(by_id))
        for batch in scan(name, where, ["id"]):
            for there in batch["id"].to_pylist():
                by_id.pop(there, None)
    return {line for by_id in wanted.values() for line in by_id.values()}

"""News: which clicks came since a version, and which are gone.

Never looks at what stayed. Invariant: rows of then + rows that came - rows that went = rows of now; what was only
written again, with others or without, is no news.

>>> news_since(lake, None).gone.num_rows   # doctest: +SKIP
0
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.engines import SEEN, SENT
from clickclock.attribution.lake import TOUCHES, Changes, Lake, Table
from clickclock.attribution.reporting.result import Result

TOLD: Final = pa.schema([*SEEN, *SENT, TOUCHES.schema.field("click_id")])
"""Columns that are read of new and lost touches. To read the others would take as long again."""


@dataclass(frozen=True, eq=False)
class News:
    """Rows of `TOLD`."""

    touches: pa.Table
    """That came."""
    gone: pa.Table
    files: frozenset[str] = frozenset()
    """Files that have such touches as came and no others, if they are known."""

    def __bool__(self) -> bool:
        return bool(self.touches.num_rows or self.gone.num_rows)


def news_since(lake: Lake, before: Result | None) -> News:
    """What came since a version; nothing, if there is none. Raises `VersionGone`."""
    if before is None:
        return News(TOLD.empty_table(), TOLD.empty_table())
    changes = lake.changes(TOUCHES.name, before.touches_version)
    came, went = net(lake, TOUCHES, changes, TOLD.names)
    return News(came, went, frozenset() if changes.removed else frozenset(file.path for file in changes.added))


def net(lake: Lake, table: Table, changes: Changes, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """New rows and lost rows. A row that was only written again is in neither."""
    read = dict.fromkeys([*columns, "id"] if changes.removed else columns)
    schema = pa.schema([table.schema.field(name) for name in read])
    added, removed = (lake.rows(table.name, files, schema) for files in (changes.added, changes.removed))
    if not removed.num_rows:
        return added.select(columns), removed.select(columns)
    ids = pa.chunked_array([*added["id"].chunks, *removed["id"].chunks], pa.string())
    signs = np.concatenate([np.ones(added.num_rows, np.int64), np.full(removed.num_rows, -1)])
    sums = pa.table({"id": ids, "sign": signs}).group_by("id").aggregate([("sign", "sum")])
    found = []
    for rows, is_wanted in ((added, pc.greater(sums["sign_sum"], 0)), (removed, pc.less(sums["sign_sum"], 0))):
        mine = rows.filter(pc.is_in(rows["id"], sums["id"].filter(is_wanted).combine_chunks()))
        found.append(mine.take(pa.array(np.unique(mine["id"].to_numpy(), return_index=True)[1])).select(columns))
    return found[0], found[1]

"""News: which clicks came since a version, and which are gone.

Never looks at what stayed. Invariant: rows of then + rows that came - rows that went = rows of now; what was only
written again, with others or without, is no news.

>>> news_since(lake, None).gone.num_rows   # doctest: +SKIP
0
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.lake import TOUCHES, Changes, Lake, Table
from clickclock.attribution.result import Result


@dataclass(frozen=True, eq=False)
class News:
    """Touches, with all their columns."""

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
        return News(TOUCHES.schema.empty_table(), TOUCHES.schema.empty_table())
    changes = lake.changes(TOUCHES.name, before.touches_version)
    came, went = net(lake, TOUCHES, changes, TOUCHES.schema.names)
    return News(came, went, frozenset() if changes.removed else frozenset(file.path for file in changes.added))


def net(lake: Lake, table: Table, changes: Changes, columns: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Rows that came and rows that went. What was only written again, with others or without, is in neither."""
    schema = pa.schema([table.schema.field(name) for name in columns])
    added, removed = (lake.rows(table.name, files, schema) for files in (changes.added, changes.removed))
    if not removed.num_rows:
        return added, removed
    ids = pa.chunked_array([*added["id"].chunks, *removed["id"].chunks], pa.string())
    signs = np.concatenate([np.ones(added.num_rows, np.int64), np.full(removed.num_rows, -1)])
    sums = pa.table({"id": ids, "sign": signs}).group_by("id").aggregate([("sign", "sum")])
    found = []
    for rows, is_wanted in ((added, pc.greater(sums["sign_sum"], 0)), (removed, pc.less(sums["sign_sum"], 0))):
        mine = rows.filter(pc.is_in(rows["id"], sums["id"].filter(is_wanted).combine_chunks()))
        found.append(mine.take(pa.array(np.unique(mine["id"].to_numpy(), return_index=True)[1])))
    return found[0], found[1]

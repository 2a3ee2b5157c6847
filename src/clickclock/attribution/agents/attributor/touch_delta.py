"""News: which clicks came since a version, and which are gone.

Never looks at what stayed. Invariant: rows of then + rows that came - rows that went = rows of now; what was only
written again, with others or without, is no news, and what says something else now has gone and come.

>>> news_since(lake, None).gone.num_rows   # doctest: +SKIP
0
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from clickclock.attribution.engines import SEEN, SENT
from clickclock.attribution.lake import TOUCHES, Changes, Lake, Table, mixed_rows
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
    came, went = net(lake, TOUCHES, changes, TOLD.names, tuple(TOUCHES.schema.names))
    return News(came, went, frozenset() if changes.removed else frozenset(file.path for file in changes.added))


def net(
    lake: Lake, table: Table, changes: Changes, columns: Sequence[str], known_by: tuple[str, ...] = ("id",)
) -> tuple[pa.Table, pa.Table]:
    """New rows and lost rows. A row that was only written again is in neither.

    Two rows are the same if they have the same in the columns of `known_by`.
    """
    read = dict.fromkeys([*columns, *known_by] if changes.removed else columns)
    schema = pa.schema([table.schema.field(name) for name in read])
    added, removed = (lake.rows(table.name, files, schema) for files in (changes.added, changes.removed))
    if not removed.num_rows:
        return added.select(columns), removed.select(columns)
    words = mixed_rows(added, known_by), mixed_rows(removed, known_by)
    every, place = np.unique(np.concatenate(words), return_inverse=True)
    signs = np.concatenate([np.ones(added.num_rows, np.int64), np.full(removed.num_rows, -1)])
    sums = np.bincount(place, signs, len(every))
    found = []
    for rows, own, is_wanted in ((added, words[0], sums > 0), (removed, words[1], sums < 0)):
        mine = np.flatnonzero(is_wanted[np.searchsorted(every, own)])
        first = np.unique(own[mine], return_index=True)[1]
        found.append(rows.take(pa.array(mine[first])).select(columns))
    return found[0], found[1]

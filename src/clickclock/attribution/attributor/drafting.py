"""Drafts: the rows of credits and of unconverted paths that a run has found, on their way into the lake.

Never commits. Invariant: a row that is kept from the version before changes only where a model that learns has learnt
something else.

>>> batch = pa.record_batch({"place": [1, 2, 1, 0]})
>>> [rows["place"].to_pylist() for rows in whole_orders([batch, batch], rows_min=3)]
[[1, 2, 1], [0, 1, 2, 1], [0]]
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from clickclock.attribution import months
from clickclock.attribution.attributor.crediting import LEARNT_FROM, Crediting, Group
from clickclock.attribution.attributor.walker import PATH
from clickclock.attribution.attributor.world import World
from clickclock.attribution.lake import UNCONVERTED

ROWS_AT_ONCE: Final = 2**18

Nulls = dict[Group, Counter[str]]
Rows = Callable[[Sequence[str] | None], Iterable[pa.Table]]
"""Rows of whole orders: those columns alone, or all. Asked twice, they are the same."""


def credited(
    crediting: Crediting, fresh: Rows, kept: Rows, nulls: Mapping[Group, Counter[str]]
) -> Iterator[tuple[pa.Table, pa.Table | None]]:
    """All rows with their credits; of those that are kept also the row as it was."""
    if crediting.learners:
        for rows in (fresh, kept):
            for some in rows(LEARNT_FROM):
                crediting.learn(some)
        crediting.fit(nulls)
    for some in fresh(None):
        yield crediting.credit(some), None
    for some in kept(None):
        yield crediting.credit(some, crediting.learners), some


def split_found(found: pa.RecordBatch, world: World) -> tuple[pa.RecordBatch, pa.Table]:
    """The journeys that a walk has found, and the paths without an order as rows of the lake."""
    number = found["number"].to_numpy()
    paths = found.filter(pa.array(number == PATH))
    client = pa.array(world.facts.ads.clients, pa.string())
    month, place = np.unique(paths["month"].to_numpy(), return_inverse=True)
    named = pa.array([months.name(each) for each in month.tolist()], pa.string())
    columns = [client.take(paths["client"]), paths["person"], paths["path"], named.take(pa.array(place))]
    return found.filter(pa.array(number >= 0)), pa.table(columns, schema=UNCONVERTED.whole)


def count_paths(paths: pa.Table, nulls: Nulls) -> None:
    """Count how often each path was followed by no order."""
    by = ["client_id", "month", "path"]
    for row in paths.group_by(by).aggregate([([], "count_all")]).to_pylist():
        nulls[row["client_id"], row["month"]][row["path"]] += row["count_all"]


def no_nulls() -> Nulls:
    """Nothing counted yet."""
    return defaultdict(Counter)


def whole_orders(batches: Iterable[pa.RecordBatch], rows_min: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """Rows of a table of credits, in which an order's are together, cut where an order begins."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) < rows_min:
            continue
        rows = pa.Table.from_batches(waiting)
        last = int(np.flatnonzero(rows["place"].to_numpy() <= 1)[-1])
        yield rows.slice(0, last)
        waiting = rows.slice(last).combine_chunks().to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting)

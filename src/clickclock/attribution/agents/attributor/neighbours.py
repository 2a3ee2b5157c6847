"""Neighbours: clicks whose fate depends on one that is new, or gone; and those that came shortly before new ones.

Never decides what becomes of them. Invariant: whoever is left out is not concerned: a click is concerned by another one
that has become the first with its click id, by one with its parameters that was received before it, and by a flood on
its ad from its network that was none before, or is none any more.

>>> neighbours(lake, engine, world, nobody).num_rows   # doctest: +SKIP
0
"""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.agents.attributor.click_links import files_since
from clickclock.attribution.agents.attributor.journey_kernel import CLEAR_MS
from clickclock.attribution.agents.attributor.run_inputs import World
from clickclock.attribution.engines import SEEN, SENT, Engine
from clickclock.attribution.lake import Lake

EARLY_MS: Final = 10 * 60_000
"""So long before the first of the new clicks was received, those that were made are looked at as any other."""
LOOKED_BACK_MS: Final = 36 * 3_600_000
"""From the last of them: what was received earlier is not what came since the run of yesterday, but an import."""


@dataclass(frozen=True, eq=False)
class Before:
    """What came shortly before the new clicks."""

    from_ms: int
    """Of who made a new click at this time or later, it is known."""
    clicks: pa.Table
    """`LAST`."""


def neighbours(lake: Lake, engine: Engine, world: World, touched: pa.Table) -> pa.Table:
    """The touches that those in `touched` concern, perhaps themselves among them: rows of `SEEN`.

    Nearly all touches that came concern themselves alone. So the files that have no others are not looked at.
    """
    if not touched.num_rows:
        return SEEN.empty_table()
    earliest_ms = min(pc.min(touched["time_ms"]).as_py(), pc.min(touched["received_us"]).as_py() // 1000)
    return engine.concerned(
        files_since(lake, world.taken.version, earliest_ms, but=world.news.files),
        pc.unique(_differing(world.ties_then.uses, world.ties.uses)["used"]),
        touched.select(SENT.names),
        _differing(world.ties_then.floods, world.ties.floods),
    )


def clicks_before(lake: Lake, engine: Engine, world: World) -> Before | None:
    """The clicks that are not new, from `CLEAR_MS` before new ones on; None if nothing is new."""
    received_us = world.news.touches["received_us"]
    if not len(received_us):
        return None
    first_ms, last_ms = (each(received_us).as_py() // 1000 for each in (pc.min, pc.max))
    from_ms = max(first_ms - EARLY_MS, last_ms - LOOKED_BACK_MS)
    files = files_since(lake, world.taken.version, from_ms - CLEAR_MS, but=world.news.files)
    return Before(from_ms, engine.last(files, from_ms - CLEAR_MS))


def _differing(then: pa.Table, now: pa.Table) -> pa.Table:
    """The rows, of which none is there twice, that are in one of the two only."""
    rows = pa.concat_tables([then, now.cast(then.schema)])
    counted = rows.group_by(rows.column_names).aggregate([([], "count_all")])
    return counted.filter(pc.equal(counted["count_all"], 1)).select(rows.column_names)

"""Neighbours: clicks of others, whose fate depends on a click that is new, or gone.

Never decides what becomes of them. Invariant: whoever it leaves out is not concerned: a click is concerned by another
one that has become the first with its click id, by one with its parameters that was received before it, and by a flood
on its ad from its network that was none before, or is none any more.

>>> neighbours(lake, engine, world, nobody).num_rows   # doctest: +SKIP
0
"""

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.attributor.ties import files_since
from clickclock.attribution.attributor.world import World
from clickclock.attribution.engines import SEEN, SENT, Engine
from clickclock.attribution.lake import Lake


def neighbours(lake: Lake, engine: Engine, world: World, touched: pa.Table) -> pa.Table:
    """Who is concerned by the touches in `touched`, those themselves among them perhaps: rows of `SEEN`.

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


def _differing(then: pa.Table, now: pa.Table) -> pa.Table:
    """The rows, of which none is there twice, that are in one of the two only."""
    rows = pa.concat_tables([then, now.cast(then.schema)])
    counted = rows.group_by(rows.column_names).aggregate([([], "count_all")])
    return counted.filter(pc.equal(counted["count_all"], 1)).select(rows.column_names)

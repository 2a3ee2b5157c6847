"""Neighbours: clicks of others, whose fate depends on a click that is new, or gone.

Never decides what becomes of them. Invariant: whoever it leaves out is not concerned: a click is concerned by another
one that has become the first with its click id, by one with its parameters that was received before it, and by a flood
on its ad from its network that was none before, or is none any more.

>>> neighbours(lake, engine, world, nobody).num_rows   # doctest: +SKIP
0
"""

from typing import Final

import ibis
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.attributor.people import KINDS
from clickclock.attribution.attributor.ties import files_since
from clickclock.attribution.attributor.world import World
from clickclock.attribution.engines import FLOODS, Engine, unbound
from clickclock.attribution.lake import TOUCHES, Lake

SEEN: Final = (*KINDS, "ad", "time_ms")
"""What is told of a neighbour."""

_NUMBER: Final = pa.int64()
_IDS: Final = pa.schema([("used", _NUMBER)])
_SENT: Final = pa.schema([("parameters", _NUMBER), ("received_us", _NUMBER)])


def neighbours(lake: Lake, engine: Engine, world: World, touched: pa.Table) -> pa.Table:
    """Who is concerned by the touches in `touched`, those themselves among them perhaps: rows of `SEEN`.

    Nearly all touches that came concern themselves alone. So the files that have no others are not looked at.
    """
    schema = pa.schema([TOUCHES.schema.field(name) for name in SEEN])
    if not touched.num_rows:
        return schema.empty_table()
    earliest_us = pc.min(touched["received_us"]).as_py()
    earliest_ms = min(pc.min(touched["time_ms"]).as_py(), earliest_us // 1000)
    batches = engine.query(
        _concerned(earliest_us),
        {
            "touches": files_since(lake, world.taken.version, earliest_ms, but=world.news.files),
            "ids": _differing(world.ties_then.uses, world.ties.uses).group_by("used").aggregate([]),
            "sent": touched.select(_SENT.names),
            "floods": _differing(world.ties_then.floods, world.ties.floods),
        },
    )
    return pa.Table.from_batches((batch.cast(schema) for batch in batches), schema)


def _concerned(earliest_us: int) -> ibis.Table:
    """Touches that are concerned, if of those that came or went none was received before `earliest_us`."""
    touches = unbound(TOUCHES.schema, "touches")
    ids, sent, floods = unbound(_IDS, "ids"), unbound(_SENT, "sent"), unbound(FLOODS, "floods")
    spent = touches.join(ids, touches.click_id == ids.used)
    sent = sent.group_by("parameters").agg(first_us=sent.received_us.min())
    late = touches.filter(touches.received_us >= earliest_us)
    repeated = late.join(sent, late.parameters == sent.parameters)
    flooded = touches.join(
        floods,
        (touches.network == floods.flooding) & (touches.ad == floods.flooded) & (touches.time_ms == floods.at_ms),
    )
    return ibis.union(
        spent.select(*SEEN),
        repeated.filter(repeated.received_us >= repeated.first_us).select(*SEEN),
        flooded.select(*SEEN),
    )


def _differing(then: pa.Table, now: pa.Table) -> pa.Table:
    """The rows, of which none is there twice, that are in one of the two only."""
    rows = pa.concat_tables([then, now.cast(then.schema)])
    counted = rows.group_by(rows.column_names).aggregate([([], "count_all")])
    return counted.filter(pc.equal(counted["count_all"], 1)).select(rows.column_names)

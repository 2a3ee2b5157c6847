"""Neighbours: clicks of others, whose fate depends on a click that is new, or gone.

Never decides what becomes of them. Invariant: whoever it leaves out is not concerned: a click is concerned by another
one with its click id that is earlier, by one with its parameters that was received before it, and by a flood of clicks
on its ad from its network.

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
from clickclock.attribution.engines import Engine, unbound
from clickclock.attribution.lake import TOUCHES, Lake
from clickclock.attribution.policy import Policies
from clickclock.attribution.traffic import FLOOD_MS

SEEN: Final = (*KINDS, "ad", "time_ms")
"""What is told of a neighbour."""

_NUMBER: Final = pa.int64()
_IDS: Final = pa.schema([("click_id", _NUMBER), ("first_ms", _NUMBER)])
_SENT: Final = pa.schema([("parameters", _NUMBER), ("first_us", _NUMBER)])
_NETWORKS: Final = pa.schema([(name, _NUMBER) for name in ("network", "ad", "from_ms", "until_ms")])


def neighbours(lake: Lake, engine: Engine, world: World, touched: pa.Table) -> pa.Table:
    """Who is concerned by the touches in `touched`, those themselves among them perhaps: rows of `SEEN`.

    Nearly all touches that came concern themselves alone. So the files that have no others are not looked at; these
    touches only help to make a flood.
    """
    schema = pa.schema([TOUCHES.schema.field(name) for name in SEEN])
    if not touched.num_rows:
        return schema.empty_table()
    earliest_ms = min(pc.min(touched["time_ms"]).as_py(), pc.min(touched["received_us"]).as_py() // 1000)
    batches = engine.query(
        _concerned(world.policies),
        {
            "touches": files_since(lake, world.taken.version, earliest_ms, but=world.news.files),
            "new": world.news.touches,
            "ids": _firsts(touched, "click_id", "time_ms", _IDS),
            "sent": _firsts(touched, "parameters", "received_us", _SENT),
            "networks": _networks(touched),
        },
    )
    return pa.Table.from_batches((batch.cast(schema) for batch in batches), schema)


def _concerned(policies: Policies) -> ibis.Table:
    touches = unbound(TOUCHES.schema, "touches")
    ids, sent, networks = unbound(_IDS, "ids"), unbound(_SENT, "sent"), unbound(_NETWORKS, "networks")
    spent = touches.join(ids, touches.click_id == ids.click_id)
    repeated = touches.join(sent, touches.parameters == sent.parameters)
    seen = touches.select("network", *SEEN).union(unbound(TOUCHES.schema, "new").select("network", *SEEN))
    near = seen.join(networks, (seen.network == networks.network) & (seen.ad == networks.ad))
    near = near.filter((near.time_ms >= near.from_ms - FLOOD_MS) & (near.time_ms <= near.until_ms + FLOOD_MS))
    # Whatever lies within the time of a flood lies in two neighbouring buckets of that length.
    limit = min(each.clicks_per_network_and_ad_max for each in (policies.default, *policies.by_client.values()))
    buckets = near.mutate(bucket=near.time_ms - near.time_ms % FLOOD_MS)
    buckets = buckets.group_by(["network", "ad", "bucket"]).agg(clicks=buckets.count())
    full = buckets.filter(buckets.clicks > limit // 2).select(on_network="network", on_ad="ad").distinct()
    flooded = near.join(full, (near.network == full.on_network) & (near.ad == full.on_ad))
    return ibis.union(
        spent.filter(spent.time_ms >= spent.first_ms).select(*SEEN),
        repeated.filter(repeated.received_us >= repeated.first_us).select(*SEEN),
        flooded.filter(flooded.time_ms >= flooded.from_ms).select(*SEEN),
    )


def _firsts(touched: pa.Table, key: str, when: str, schema: pa.Schema) -> pa.Table:
    """The earliest time of each key."""
    rows = touched.select([key, when]).filter(pc.is_valid(touched[key]))
    return rows.group_by(key).aggregate([(when, "min")]).select([key, f"{when}_min"]).rename_columns(schema.names)


def _networks(touched: pa.Table) -> pa.Table:
    rows = touched.select(["network", "ad", "time_ms"]).filter(pc.is_valid(touched["network"]))
    grouped = rows.group_by(["network", "ad"]).aggregate([("time_ms", "min"), ("time_ms", "max")])
    return grouped.select(["network", "ad", "time_ms_min", "time_ms_max"]).rename_columns(_NETWORKS.names)

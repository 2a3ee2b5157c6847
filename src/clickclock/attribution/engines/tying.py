"""What touches have to do with each other, as expressions: links of identifiers, uses of click ids, floods.

Never decides what becomes of a click: a kernel does. Invariant: whichever engine computes it, a click id was first used
by the same click, and a flood is at the same times.

>>> links().columns
('one', 'other', 'is_visit', 'first_ms', 'last_ms', 'ad')
"""

from itertools import combinations
from typing import Final

import ibis
import pyarrow as pa

from clickclock.attribution.clicks.identifier import DEVICE, NAMESPACES
from clickclock.attribution.clicks.traffic import FLOOD_MS
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.crediting.touchpoint import RETRY_MS, RETRY_US
from clickclock.attribution.engines import CLICKED, FLOODS, LAST, LINKS, RECEIVED, SEEN, SENT, USES
from clickclock.attribution.engines.columns import unbound
from clickclock.attribution.engines.expressions import by_client
from clickclock.attribution.engines.sql import IDS
from clickclock.attribution.engines.sql_text import INSTANT
from clickclock.attribution.lake import ADS, TOUCHES

_SLOTS: Final = 2**17
"""Among so many, clicks are counted before any is looked at closely: a flood fills its slot, whatever else is in it."""
_NUMBER: Final = "int64"


def links() -> ibis.Table:
    """`LINKS` of `touches`."""
    kinds = list(NAMESPACES)
    seen = unbound(TOUCHES.schema, "touches")
    count = sum((seen[kind].notnull().cast(_NUMBER) for kind in kinds), start=ibis.literal(0, _NUMBER))
    seen = seen.filter(count > 1).select(*kinds, "ad", first_ms="time_ms", last_ms="time_ms")
    together = seen.group_by(kinds).agg(**_together(seen))
    pairs = [_pair(together, *two) for two in combinations(kinds, 2)]
    every = ibis.union(*pairs)
    return every.group_by(["one", "other", "is_visit"]).agg(**_together(every)).select(*LINKS.names)


def _pair(together: ibis.Table, first: str, second: str) -> ibis.Table:
    """Those of two kinds; a visitor stands behind the device, whichever code is the smaller one."""
    rows = together.filter(together[first] != together[second])
    is_visit = NAMESPACES[first] != DEVICE
    one = rows[second] if is_visit else ibis.least(rows[first], rows[second])
    other = rows[first] if is_visit else ibis.greatest(rows[first], rows[second])
    return rows.select("first_ms", "last_ms", "ad", one=one, other=other, is_visit=ibis.literal(is_visit))


def _together(rows: ibis.Table) -> dict[str, ibis.Value]:
    """Aggregates over all rows that two codes were seen on."""
    return {"first_ms": rows.first_ms.min(), "last_ms": rows.last_ms.max(), "ad": rows.ad.min()}


def uses() -> ibis.Table:
    """Of each click id that was used twice or more in `touches`, the click that used it first.

    A click that was sent again uses nothing, though the copy may name an earlier time: it is left out as a retry, and
    the id would count for neither. Nearly all are used once. So they are counted, and only those of the rest ranked.
    """
    clicks = unbound(TOUCHES.schema, "touches")
    counted = clicks.group_by("click_id").agg(uses=clicks.count())
    several = counted.filter((counted.uses > 1) & counted.click_id.notnull()).select(used="click_id")
    again = clicks.join(several, clicks.click_id == several.used)
    # Copies came soon after each other, and their times are near: those of one stretch of times, in order of receipt.
    alike = {"group_by": [again.used, again.parameters], "order_by": [again.time_ms, again.received_us, again.id]}
    is_far = (again.time_ms - again.time_ms.lag().over(**alike) > RETRY_MS).fill_null(False)
    again = again.mutate(is_far=is_far.cast(_NUMBER))
    alike = {"group_by": [again.used, again.parameters], "order_by": [again.time_ms, again.received_us, again.id]}
    again = again.mutate(stretch=again.is_far.sum().over(ibis.window(preceding=None, following=0, **alike)))
    sent_us = again.received_us.lag().over(
        group_by=[again.used, again.parameters, again.stretch], order_by=[again.received_us, again.id]
    )
    again = again.mutate(is_copy=(again.received_us - sent_us <= RETRY_US).fill_null(False))
    order = [again.is_copy, again.time_ms, again.received_us, again.id]
    ranked = again.select("used", first_id="id", rank=ibis.row_number().over(group_by=again.used, order_by=order))
    return ranked.filter(ranked.rank == 0).select(*USES.names)


def floods(rules: Policies) -> ibis.Table:
    """The networks, ads and times in `touches` of which there are too many clicks within `FLOOD_MS` up to that time.

    Whatever lies within `FLOOD_MS` lies in two neighbouring buckets of that length, so one of them has more than half
    of it. Buckets are counted in slots, several in each; then, of the few that are left, each by itself; then only
    networks and ads with such a bucket are looked at time by time.
    """
    clicks = unbound(TOUCHES.schema, "touches")
    limits = {policy.clicks_per_network_and_ad_max for policy in (rules.default, *rules.by_client.values())}
    half = min(limits) // 2
    rows = _in_slots(clicks)
    slots = rows.group_by("slot").agg(clicks=rows.count())
    slots = slots.filter(slots.clicks > half).select(full="slot")
    # To read them anew costs less than to keep them all.
    rows = _in_slots(clicks.view())
    rows = rows.join(slots, rows.slot == slots.full)
    buckets = rows.group_by(["network", "ad", "bucket"]).agg(clicks=rows.count())
    keys = buckets.filter(buckets.clicks > half).select(from_network="network", on_ad="ad").distinct()
    near = clicks.join(keys, (clicks.network == keys.from_network) & (clicks.ad == keys.on_ad))
    near = near.select("network", "ad", "time_ms")
    window = ibis.range_window(preceding=FLOOD_MS, following=0, group_by=["network", "ad"], order_by="time_ms")
    counted = near.mutate(clicks=near.count().over(window))
    return _beyond(counted, rules, limits).select(flooding="network", flooded="ad", at_ms="time_ms").distinct()


def received() -> ibis.Table:
    """`RECEIVED` of those of `touches` that have one of the click ids `ids`."""
    return _having(TOUCHES.whole).select(*RECEIVED.names)


def clicked() -> ibis.Table:
    """`CLICKED` of those of `touches` that have one of the click ids `ids`."""
    return _having().select(*CLICKED.names)


def concerned() -> ibis.Table:
    """`SEEN` of those of `touches` that have one of the click ids `ids`, repeat one of `sent`, or are in `floods`.

    None of `sent` was received before `INSTANT`.
    """
    touches, sent, floods = unbound(TOUCHES.schema, "touches"), unbound(SENT, "sent"), unbound(FLOODS, "floods")
    sent = sent.group_by("parameters").agg(first_us=sent.received_us.min())
    late = touches.filter(touches.received_us >= ibis.literal(INSTANT, _NUMBER))
    repeated = late.join(sent, late.parameters == sent.parameters)
    flooded = touches.join(
        floods,
        (touches.network == floods.flooding) & (touches.ad == floods.flooded) & (touches.time_ms == floods.at_ms),
    )
    return ibis.union(
        _having().select(*SEEN.names),
        repeated.filter(repeated.received_us >= repeated.first_us).select(*SEEN.names),
        flooded.select(*SEEN.names),
    )


def last() -> ibis.Table:
    """`LAST` of those of `touches` that were made or received at `INSTANT`, in ms, or later."""
    touches, since_ms = unbound(TOUCHES.schema, "touches"), ibis.literal(INSTANT, _NUMBER)
    is_late = (touches.time_ms >= since_ms) | (touches.received_us >= since_ms * 1000)
    return touches.filter(is_late).select(*LAST.names)


def _having(columns: pa.Schema = TOUCHES.schema) -> ibis.Table:
    """Those of `touches` that have one of the click ids `ids`."""
    touches, ids = unbound(columns, "touches"), unbound(IDS, "ids")
    return touches.join(ids, touches.click_id == ids.used)


def _in_slots(clicks: ibis.Table) -> ibis.Table:
    """Clicks from known networks, their buckets and slots."""
    rows = clicks.filter(clicks.network.notnull()).select("network", "ad", "time_ms")
    rows = rows.mutate(bucket=rows.time_ms - rows.time_ms % FLOOD_MS)
    return rows.mutate(slot=(rows.network ^ rows.ad ^ rows.bucket) & (_SLOTS - 1))


def _beyond(counted: ibis.Table, rules: Policies, limits: set[int]) -> ibis.Table:
    """Rows whose number of clicks is more than their client's policy lets pass."""
    if len(limits) == 1:
        return counted.filter(counted.clicks > min(limits))
    clients = unbound(ADS.schema, "ads").select(of="ad", client_id="client_id").distinct()
    rows = counted.left_join(clients, counted.ad == clients.of)
    limit = by_client(rows.client_id, rules, lambda policy: ibis.literal(policy.clicks_per_network_and_ad_max))
    return rows.filter(rows.clicks > limit)

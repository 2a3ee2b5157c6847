"""The facts around one queued trigger: the things in its way.

Never judges (`waiting.reasons` does) and never writes. Invariant: only live and queued rows are read, and no more of
them than are reported.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.jobs.slots import reserve
from clickclock.scheduler.jobs.trigger import UNFINISHED
from clickclock.scheduler.jobs.waiting import AHEAD_MAX, NAMED_MAX, Facts, Place
from clickclock.scheduler.store.conditions import OF_ITS_JOB
from clickclock.scheduler.store.schema import (
    ANY_CLUSTER,
    LIVE_ROWS,
    QUEUED_ROWS,
    UNFINISHED_ROWS,
    UNLED_GROUP,
    job,
    job_group,
    job_trigger,
    replica,
)

LIVE_MAX = 10_000
UNSEEN = "It waits for its upstream jobs, which nobody has looked at yet."
_t = job_trigger.c
_QUEUED = (
    sa.select(
        job_trigger,
        sa.func.coalesce(job.c.enabled, sa.true()).label("enabled"),
        job.c.max_concurrent,
        job.c.node.label("job_node"),
        sa.func.coalesce(job_group.c.paused, sa.false()).label("group_paused"),
        job_group.c.max_concurrent.label("group_cap"),
    )
    .select_from(
        job_trigger.outerjoin(job, OF_ITS_JOB).outerjoin(job_group, job.c.group_name == job_group.c.group_name)
    )
    .where(_t.trigger_id == sa.bindparam("trigger_id"), QUEUED_ROWS)
)


def facts_of(connection: sa.Connection, trigger_id: str, now: datetime, default_cluster: str) -> Facts | None:
    """The facts around a trigger; None if it is not queued."""
    row = connection.execute(_QUEUED, {"trigger_id": trigger_id}).one_or_none()
    if row is None:
        return None
    cluster = row.cluster or default_cluster
    places = _places(connection, cluster, row.job_node, now)
    is_full = any(each.taken >= each.slots - reserve(each.slots) for each in places)
    upstream = row.upstream or ()
    return Facts(
        now=now,
        ready_at=row.ready_at,
        cluster=cluster,
        places=places,
        node=row.job_node,
        attempt=row.attempt,
        awaited=(row.message or UNSEEN) if row.waits else None,
        upstream_live=[each["triggerId"] for each in upstream if each.get("state") in UNFINISHED and each["triggerId"]],
        enabled=row.enabled,
        group_name=row.group_name,
        group_paused=row.group_paused,
        job_cap=row.max_concurrent,
        job_live=_live(connection, row.max_concurrent, _t.application == row.application, _t.job_name == row.job_name),
        group_cap=row.group_cap,
        group_live=_live(connection, row.group_cap, row.group_name == UNLED_GROUP),
        schedule_live=_before_in_schedule(connection, row),
        is_backfill=row.backfill_id is not None,
        ahead=_ahead(connection, row, default_cluster, now) if is_full else 0,
    )


def _live(connection: sa.Connection, cap: int | None, *condition: sa.ColumnElement[bool]) -> Sequence[str]:
    """Live triggers, where there is a cap on how many there may be."""
    if cap is None:
        return ()
    query = sa.select(_t.trigger_id).where(LIVE_ROWS, *condition).order_by(_t.trigger_id).limit(LIVE_MAX)
    return connection.execute(query).scalars().all()


def _before_in_schedule(connection: sa.Connection, row: Any) -> Sequence[str]:
    """The triggers that have to end before one that waits for its schedule's others."""
    if not row.serial:
        return ()
    is_tried = sa.and_(QUEUED_ROWS, _t.attempt > 0, _t.kind == row.kind, _t.nominal_time < row.nominal_time)
    before = sa.or_(sa.and_(LIVE_ROWS, _t.backfill_id.is_(None)), is_tried)
    query = sa.select(_t.trigger_id).where(
        UNFINISHED_ROWS, _t.schedule_id == row.schedule_id, before, _t.trigger_id != row.trigger_id
    )
    return connection.execute(query.order_by(_t.trigger_id).limit(NAMED_MAX)).scalars().all()


def _places(connection: sa.Connection, cluster: str, node: str | None, now: datetime) -> list[Place]:
    held = (
        sa.select(_t.lease_id, sa.func.count().label("held"))
        .where(LIVE_ROWS, _t.cluster == cluster)
        .group_by(_t.lease_id)
        .subquery()
    )
    here = sa.true() if node is None else replica.c.node == node
    living = (
        sa.select(replica.c.node, replica.c.clusters, sa.func.coalesce(held.c.held, 0).label("held"))
        .select_from(replica.outerjoin(held, held.c.lease_id == replica.c.replica_id))
        .where(replica.c.lease_until > now, here)
        .order_by(replica.c.started_at)
    )
    return [
        Place(
            row.node, each["total"], row.held, None if each["reachable"] else each["message"] or "It does not answer."
        )
        for row in connection.execute(living)
        for each in row.clusters
        if each["cluster"] == cluster
    ]


def _ahead(connection: sa.Connection, row: Any, default_cluster: str, now: datetime) -> int:
    """How many ready triggers of its cluster come before it, `AHEAD_MAX` at most."""
    named = [row.cluster, ANY_CLUSTER] if row.cluster == default_cluster else [row.cluster]
    if row.cluster == ANY_CLUSTER:
        named = [ANY_CLUSTER, default_cluster]
    earlier = sa.tuple_(_t.ready_at, _t.trigger_id) < sa.tuple_(
        sa.literal(row.ready_at, _t.ready_at.type), sa.literal(row.trigger_id)
    )
    before = (
        sa.select(sa.literal_column("1"))
        .where(
            QUEUED_ROWS,
            _t.ready_at <= now,
            _t.cluster.in_(named),
            _t.waits.is_(None),
            sa.or_(_t.priority > row.priority, sa.and_(_t.priority == row.priority, earlier)),
        )
        .limit(AHEAD_MAX)
        .subquery()
    )
    return connection.execute(sa.select(sa.func.count()).select_from(before)).scalar_one()

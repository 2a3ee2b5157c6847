"""Running attempts make room for waiting triggers of higher priority, in one transaction.

Never chooses (`preemption.choose_victims` does) and never stops a process: it writes the wish, and the watcher of
whoever holds the attempt carries it on. Invariants: two replicas never find two victims for one trigger (its row is
locked, and who has a victim that is stopping, or has just stopped, gets no other); a victim is live, preemptible by its
job as it is now, and was not preempted too often.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.jobs.preemption import Room, Running, Waiting, choose_victims
from clickclock.scheduler.jobs.trigger import StopReason
from clickclock.scheduler.store.claiming import READY, with_jobs
from clickclock.scheduler.store.conditions import NOT_BEHIND_A_FULL_JOB
from clickclock.scheduler.store.prepared import Prepared
from clickclock.scheduler.store.rows import effective_job
from clickclock.scheduler.store.schema import LIVE_ROWS, PREEMPTIBLE_ROWS, QUEUED_ROWS, job_trigger

WAITING_MAX = 100
"""Waiting triggers looked at in one step, highest priority first."""
RUNNING_MAX = 1000
"""Running attempts looked at in one step, lowest priority first."""
SETTLED_AFTER = timedelta(seconds=5)
"""So long the room that a victim left is kept in mind: it is for the one that evicted it, whoever looks meanwhile."""
_t = job_trigger.c
_LOWEST = Prepared(sa.select(sa.func.min(_t.priority)).where(PREEMPTIBLE_ROWS, _t.stop_reason.is_(None)))
_HIGHEST = Prepared(
    sa.select(_t.priority)
    .where(
        QUEUED_ROWS,
        _t.waits.is_(None),
        _t.ready_at <= sa.bindparam("now"),
        _t.cluster.in_([sa.bindparam("cluster"), sa.bindparam("or_cluster")]),
    )
    .order_by(_t.priority.desc())
    .limit(1)
)
"""In the order of the queue's index: where thousands wait, the first row is looked at, and not each."""
_WAITING = READY.where(*NOT_BEHIND_A_FULL_JOB).add_columns(_t.priority)
"""Locked, and passing over what others have locked: who is being claimed or served elsewhere needs nothing from us."""
_VICTIMS = (
    with_jobs()
    .add_columns(_t.priority, _t.started_at)
    .where(PREEMPTIBLE_ROWS, _t.stop_reason.is_(None), _t.preemption_count < sa.bindparam("most"))
    .order_by(_t.priority, _t.trigger_id.desc())
    .limit(RUNNING_MAX)
)
_PREEMPT = (
    sa.update(job_trigger)
    .where(
        LIVE_ROWS,
        _t.trigger_id == sa.bindparam("b_victim"),
        _t.attempt == sa.bindparam("b_attempt"),
        _t.lease_id == sa.bindparam("b_lease"),
        _t.stop_reason.is_(None),
    )
    .values(stop_reason=StopReason.PREEMPTED, preempted_by=sa.bindparam("b_by"))
)


def is_wanted(connection: sa.Connection, now: datetime, named: Sequence[str]) -> bool:
    """Whether anybody waits here whose priority is higher than that of an attempt that may be preempted."""
    lowest = _LOWEST.scalar(connection)
    if lowest is None:
        return False
    first = _HIGHEST.rows(connection, now=now, cluster=named[0], or_cluster=named[-1])
    return bool(first) and first[0].priority > lowest


def preempt(
    connection: sa.Connection,
    now: datetime,
    named: Sequence[str],
    holder: Mapping[str, str],
    slots: int,
    preemptions_max: int,
) -> int:
    """Ask victims to stop; how many. See `Queue.preempt`."""
    asked = {"cluster": named[0], "or_cluster": named[-1], "node": holder["b_node"], "now": now, "most": WAITING_MAX}
    ours = (holder["b_cluster"], holder["b_lease"])
    waiting = connection.execute(_WAITING, asked).all()
    if not waiting:
        return 0
    found = connection.execute(_VICTIMS, {"most": preemptions_max}).all()
    victims = {row.trigger_id: row for row in found if effective_job(row.definition, row.grouped).preemption}
    served = _served(connection, now)
    pairs = choose_victims(
        [
            Waiting(
                row.trigger_id,
                row.priority,
                (row.application, row.job_name),
                row.group_name if row.group_cap is not None else None,
                row.schedule_id if row.serial else None,
                is_served=row.trigger_id in served,
            )
            for row in waiting
        ],
        [
            Running(
                row.trigger_id,
                row.priority,
                (row.started_at or now).timestamp(),
                (row.cluster, row.lease_id) == ours,
                row.group_name,
            )
            for row in victims.values()
        ],
        _room(connection, waiting, ours, slots),
    )
    if pairs:
        rows = [
            {
                "b_victim": victim,
                "b_attempt": victims[victim].attempt,
                "b_lease": victims[victim].lease_id,
                "b_by": by,
            }
            for by, victim in sorted(pairs, key=lambda pair: pair[1])
        ]
        connection.execute(_PREEMPT, rows)
    return len(pairs)


def _served(connection: sa.Connection, now: datetime) -> set[str]:
    """Triggers for which room is being made, or was made a moment ago."""
    stopping = sa.and_(LIVE_ROWS, _t.stop_reason == StopReason.PREEMPTED)
    stopped = sa.and_(QUEUED_ROWS, _t.ready_at > now - SETTLED_AFTER, _t.preempted_by.is_not(None))
    served: set[str] = set()
    for condition in (stopping, stopped):
        served.update(connection.execute(sa.select(_t.preempted_by).where(condition)).scalars())
    return served


def _room(connection: sa.Connection, waiting: Sequence[Any], ours: tuple[str, str], slots: int) -> Room:
    """Free slots; those of ours and of groups include what is being freed."""
    columns = (_t.application, _t.job_name, _t.group_name, _t.schedule_id, _t.cluster, _t.lease_id, _t.stop_reason)
    live = connection.execute(sa.select(*columns).where(LIVE_ROWS)).all()
    staying = [row for row in live if row.stop_reason is None]
    jobs, groups = Counter((row.application, row.job_name) for row in live), Counter(r.group_name for r in staying)
    schedules = Counter(row.schedule_id for row in live)
    return Room(
        slots - sum((row.cluster, row.lease_id) == ours for row in staying),
        {
            row.group_name: row.group_cap - groups[row.group_name]
            for row in waiting
            if row.group_name is not None and row.group_cap is not None
        },
        {
            (row.application, row.job_name): row.max_concurrent - jobs[row.application, row.job_name]
            for row in waiting
            if row.max_concurrent is not None
        },
        {row.schedule_id: 1 - schedules[row.schedule_id] for row in waiting if row.serial},
    )

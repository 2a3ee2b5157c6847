"""Queued triggers become attempts that are ours to start.

Never chooses: `slots.choose` does. Invariants: a claim is a batch that passes over what others hold; caps are counted
over live attempts in the same transaction; an attempt's number grows with each claim.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.foundation import trace_context
from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.launch import Launch, launch_of
from clickclock.scheduler.jobs.slots import Candidate, Counts, choose, reserve
from clickclock.scheduler.jobs.template_values import NO_SCHEDULE, Cadence, Values
from clickclock.scheduler.jobs.trigger import State, attempt_name
from clickclock.scheduler.store.cadences import cadences
from clickclock.scheduler.store.changes import note_triggers
from clickclock.scheduler.store.conditions import HELD, HERE, IN_TURN, NOT_BEHIND_A_FULL_JOB, OF_ITS_JOB
from clickclock.scheduler.store.jobs import keyed
from clickclock.scheduler.store.prepared import Prepared
from clickclock.scheduler.store.rows import effective_job, stored_mapping
from clickclock.scheduler.store.schema import (
    LIVE_ROWS,
    QUEUED_ROWS,
    UNLED_GROUP,
    image_mapping,
    job,
    job_group,
    job_trigger,
    schedule,
)

BLOCKED_ROUNDS = 8
"""How often a claim looks behind triggers whose job or group it has just filled, before the next step goes on."""
_t = job_trigger.c
_COLUMNS = (
    "trigger_id", "application", "job_name", "schedule_id", "group_name", "serial", "attempt", "due_time", "ready_at",
    "nominal_time", "parameters", "state", "cluster", "node", "stop_reason", "lease_id", "backfill_id", "traceparent",
    "tracestate",
)  # fmt: skip


class Claimed(msgspec.Struct, frozen=True):
    """Attempts that are now ours to start, those that cannot be started, and when the next one is ready."""

    launches: tuple[Launch, ...]
    unstartable: tuple[tuple[str, str], ...]
    next_ready: datetime | None
    blocked: bool


def with_jobs(*, of_deleted_jobs: bool = False) -> sa.Select[Any]:
    """Triggers with the definitions of their jobs and groups; those of deleted jobs only if wanted."""
    return sa.select(
        *(_t[name] for name in _COLUMNS),
        job.c.definition,
        job.c.max_concurrent,
        job_group.c.definition.label("grouped"),
        job_group.c.max_concurrent.label("group_cap"),
    ).select_from(
        job_trigger.join(job, OF_ITS_JOB, isouter=of_deleted_jobs).outerjoin(
            job_group, job.c.group_name == job_group.c.group_name
        )
    )


_RUNNING = Prepared(sa.select(sa.func.count()).where(HELD))
READY = (
    with_jobs()
    .where(
        QUEUED_ROWS,
        _t.ready_at <= sa.bindparam("now"),
        HERE,
        sa.or_(job.c.node.is_(None), job.c.node == sa.bindparam("node")),
        IN_TURN,
        _t.waits.is_(None),
        job.c.enabled,
        sa.not_(sa.func.coalesce(job_group.c.paused, sa.false())),
    )
    .order_by(_t.priority.desc(), _t.ready_at, _t.trigger_id)
    .limit(sa.bindparam("most"))
    .with_for_update(of=job_trigger, skip_locked=True)
)
_FIRST_READY = Prepared(READY)
_NOT_BEHIND_A_FULL_ONE = (
    *NOT_BEHIND_A_FULL_JOB,
    UNLED_GROUP.not_in(
        sa.select(job_group.c.group_name)
        .select_from(job_trigger.join(job_group, job_group.c.group_name == UNLED_GROUP))
        .where(LIVE_ROWS, job_group.c.max_concurrent.is_not(None))
        .group_by(job_group.c.group_name)
        .having(sa.func.count() >= job_group.c.max_concurrent)
        .correlate(None)
    ),
)
"""Past whatever is full already: only asked once something was, since it counts all live attempts."""
_NEXT_READY = Prepared(
    sa.select(sa.func.min(_t.ready_at)).where(QUEUED_ROWS, _t.ready_at > sa.bindparam("now"), HERE, _t.waits.is_(None))
)
_START = Prepared(
    sa.update(job_trigger)
    .where(_t.trigger_id == sa.bindparam("b_id"))
    .values(
        cluster=sa.bindparam("b_cluster"),
        node=sa.bindparam("b_node"),
        lease_id=sa.bindparam("b_lease"),
        state=State.STARTING,
        attempt=_t.attempt + 1,
        started_at=None,
        stop_reason=None,
        preemptible=sa.bindparam("b_preemptible"),
        image=sa.bindparam("b_image"),
        resolved_command=sa.bindparam("b_command", type_=_t.resolved_command.type),
    )
)


def claim(
    connection: sa.Connection,
    now: datetime,
    named: Sequence[str],
    holder: Mapping[str, str],
    slots: int,
    limit: int,
    wants_image: bool,
) -> Claimed:
    """Choose and take queued triggers that name one of these clusters; see `Queue.claim`."""
    here = {"cluster": named[0], "or_cluster": named[-1]}
    running = _RUNNING.scalar(connection, cluster=holder["b_cluster"], lease_id=holder["b_lease"])
    free = min(limit, slots - running)
    for_backfills = slots - running - reserve(slots)
    chosen: list[Any] = []
    blocked = False
    excluded: list[sa.ColumnElement[bool]] = []
    for _ in range(BLOCKED_ROUNDS):
        wanted = free - len(chosen)
        if wanted <= 0:
            break
        seen = [_t.trigger_id.not_in([row.trigger_id for row in chosen])] if chosen else []
        asked = {**here, "now": now, "most": wanted, "node": holder["b_node"]}
        if excluded or seen:
            rows = connection.execute(READY.where(*excluded, *seen), asked).all()
        else:
            rows = _FIRST_READY.rows(connection, **asked)
        candidates = [_as_candidate(row) for row in rows]
        outcome = choose(candidates, _counts(connection, candidates, chosen), wanted, for_backfills - len(chosen))
        starting = set(outcome.starting)
        chosen += [row for row in rows if row.trigger_id in starting]
        someone_waits = len(starting) < len(rows)
        if someone_waits and not blocked:
            excluded += _NOT_BEHIND_A_FULL_ONE
        blocked = blocked or someone_waits
        if len(rows) < wanted:
            break  # that was everybody
        excluded += [sa.not_(condition) for condition in keyed(sorted(outcome.blocked_jobs), job_trigger)]
        if outcome.blocked_backfills:
            excluded.append(_t.backfill_id.is_(None))
        if outcome.blocked_groups:
            excluded.append(sa.or_(_t.group_name.is_(None), _t.group_name.not_in(sorted(outcome.blocked_groups))))
        if outcome.blocked_schedules:
            excluded.append(sa.not_(sa.and_(_t.serial, _t.schedule_id.in_(sorted(outcome.blocked_schedules)))))
    # Fewer slots than wanted, and all taken: there may be more that wait for one. And behind a retry there may be more
    # of its schedule, whose turn has not come.
    blocked = blocked or len(chosen) >= free < limit or any(row.serial and row.attempt for row in chosen)
    mappings = mappings_of(connection) if wants_image and chosen else None
    launches, unstartable = _start(connection, chosen, holder, mappings)
    note_triggers(connection, [row.trigger_id for row in chosen], now)
    next_ready = None
    if len(chosen) < limit:
        next_ready = _NEXT_READY.scalar(connection, now=now, **here)
    return Claimed(launches, unstartable, next_ready, blocked)


def _start(
    connection: sa.Connection,
    chosen: Sequence[Any],
    holder: Mapping[str, str],
    mappings: Sequence[ImageMapping] | None,
) -> tuple[tuple[Launch, ...], tuple[tuple[str, str], ...]]:
    launches: list[Launch] = []
    unstartable: list[tuple[str, str]] = []
    updates: list[dict[str, Any]] = []
    jobs = [effective_job(row.definition, row.grouped) for row in chosen]
    asked = cadences(connection, list(zip(chosen, jobs, strict=True)))
    for row, its_job in zip(chosen, jobs, strict=True):
        update = {
            **holder,
            "b_id": row.trigger_id,
            "b_image": None,
            "b_command": None,
            "b_preemptible": its_job.preemption or None,
        }
        match launch_or_reason(row, its_job, row.attempt + 1, mappings, asked):
            case Launch() as launch:
                update |= {"b_image": launch.image, "b_command": list(launch.argv)}
                launches.append(launch)
            case reason:
                unstartable.append((attempt_name(row.trigger_id, row.attempt + 1), reason))
        updates.append(update)
    if updates:
        _START.run(connection, updates)
    return tuple(launches), tuple(unstartable)


def _as_candidate(row: Any) -> Candidate:
    serial = row.schedule_id if row.serial else None
    return Candidate(
        row.trigger_id,
        (row.application, row.job_name),
        row.group_name,
        serial,
        row.max_concurrent,
        row.group_cap,
        is_backfill=row.backfill_id is not None,
    )


def mappings_of(connection: sa.Connection) -> list[ImageMapping]:
    """The images that commands get."""
    return [stored_mapping(row) for row in connection.execute(sa.select(image_mapping)).all()]


def launch_or_reason(
    row: Any,
    its_job: Job,
    number: int,
    mappings: Sequence[ImageMapping] | None,
    asked: Mapping[str, Cadence],
) -> Launch | str:
    """The launch of a row of `with_jobs` as attempt `number`; or why it has none: its job changed under it.

    `asked` are the schedules that commands ask about, by trigger id.
    """
    nominal_time = row.nominal_time or row.due_time
    cadence = asked.get(row.trigger_id, NO_SCHEDULE)
    try:
        return launch_of(
            its_job,
            Values(row.trigger_id, number, nominal_time, row.parameters, cadence),
            not_before=row.ready_at,
            mappings=mappings,
            trace=trace_context.read(row.traceparent, row.tracestate),
        )
    except Invalid as invalid:
        return " ".join(fault.message for fault in invalid.faults) or str(invalid)


def _counts(connection: sa.Connection, candidates: Sequence[Candidate], chosen: Sequence[Any]) -> Counts:
    """Live attempts of the capped jobs, groups and schedules among `candidates`, with those chosen just now.

    On PostgreSQL their rows are locked first, so that two replicas cannot both take the last slot. A schedule that
    somebody holds is not waited for and counts as busy: a plan of it may be about to replace the trigger held here.
    """
    capped = [each for each in candidates if each.is_capped]
    if not capped:
        return Counts()
    jobs = sorted({each.job for each in capped if each.job_cap is not None})
    groups = sorted({each.group for each in capped if each.group is not None and each.group_cap is not None})
    serial = sorted({each.serial_schedule for each in capped if each.serial_schedule is not None})

    def count(columns: list[sa.ColumnElement[Any]], lock: sa.Select[Any], condition: sa.ColumnElement[bool]) -> Any:
        connection.execute(lock.with_for_update(key_share=True)).all()
        return live(columns, condition)

    def live(columns: list[sa.ColumnElement[Any]], condition: sa.ColumnElement[bool]) -> Any:
        query = sa.select(*columns, sa.func.count().label("live")).where(LIVE_ROWS, condition).group_by(*columns)
        return connection.execute(query)

    of_jobs: dict[tuple[str, str], int] = {}
    for condition, lock in zip(keyed(jobs, job_trigger), keyed(jobs), strict=True):
        locked = sa.select(job.c.job_name).where(lock).order_by(job.c.application, job.c.job_name)
        for row in count([_t.application, _t.job_name], locked, condition):
            of_jobs[row.application, row.job_name] = row.live
    of_groups: dict[str, int] = {}
    if groups:
        locked = sa.select(job_group.c.group_name).where(job_group.c.group_name.in_(groups)).order_by(sa.text("1"))
        of_groups = {row.group_name: row.live for row in count([_t.group_name], locked, UNLED_GROUP.in_(groups))}
    of_schedules: dict[str, int] = {}
    if serial:
        known = sa.select(schedule.c.schedule_id).where(schedule.c.schedule_id.in_(serial))
        free = connection.execute(known.with_for_update(key_share=True, skip_locked=True)).scalars().all()
        in_lane = sa.and_(_t.schedule_id.in_(serial), _t.backfill_id.is_(None))
        of_schedules = {row.schedule_id: row.live for row in live([_t.schedule_id], in_lane)}
        if len(free) < len(serial):  # the others are held, or deleted
            of_schedules |= dict.fromkeys(
                connection.execute(known.where(schedule.c.schedule_id.not_in(free))).scalars(), 1
            )
        # A trigger that was live when the candidates were read, and waits for its next attempt by now, still comes
        # first.
        seen = [each.trigger_id for each in candidates]
        back_off = sa.and_(QUEUED_ROWS, _t.serial, _t.attempt > 0, _t.trigger_id.not_in(seen))
        waiting = sa.select(_t.schedule_id).where(back_off, _t.schedule_id.in_(serial))
        for schedule_id in connection.execute(waiting).scalars():
            of_schedules[schedule_id] = of_schedules.get(schedule_id, 0) + 1
    for row in chosen:
        of_jobs[row.application, row.job_name] = of_jobs.get((row.application, row.job_name), 0) + 1
        if row.group_name is not None:
            of_groups[row.group_name] = of_groups.get(row.group_name, 0) + 1
        if row.schedule_id is not None and row.backfill_id is None:
            of_schedules[row.schedule_id] = of_schedules.get(row.schedule_id, 0) + 1
    return Counts(of_jobs, of_groups, of_schedules)

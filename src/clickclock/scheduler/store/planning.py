"""Due schedules become triggers, in one transaction.

Never decides: `decide` does, and is given everything. Invariants: inserting a schedule's triggers and advancing its
high-water mark is one transaction; one row per (schedule, nominal time); a broken schedule holds up no other.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.ids import new_id
from clickclock.scheduler.business_days import Days
from clickclock.scheduler.launch import Launch
from clickclock.scheduler.schedule import Circumstances, Decision, OverlapPolicy, Schedule, Skip
from clickclock.scheduler.store.changes import note_triggers
from clickclock.scheduler.store.dependencies import has_dependents
from clickclock.scheduler.store.prepared import Among, Inserting, Prepared
from clickclock.scheduler.store.rows import effective_job, planned_days, planned_schedule
from clickclock.scheduler.store.schema import (
    ANY_CLUSTER,
    UNFINISHED_ROWS,
    calendar,
    job,
    job_group,
    job_trigger,
    schedule,
)
from clickclock.scheduler.store.taking import Taker, Taking
from clickclock.scheduler.store.triggers import cancel_rows
from clickclock.scheduler.trigger import Kind, State, StopReason

_t = job_trigger.c


@dataclass(frozen=True, slots=True)
class Due:
    """A claimed schedule, with all that the decision about it needs."""

    schedule_id: str
    schedule: Schedule
    days: Days | None
    anchor: datetime
    high_water: datetime
    facts: Circumstances


@dataclass(frozen=True, slots=True)
class Planned:
    """What one planning transaction did; `faults` are schedules that failed.

    `next_due` is when to look again, unless as many were `claimed` as were asked for: then there may be more now.

    `launches` are of those fires that its taker holds now, and `queued` is how many others there are.
    `chained`: some wait for upstream jobs, or others depend on some that were skipped.
    """

    claimed: int
    fires: int
    queued: int
    skips: int
    replaced: bool
    chained: bool
    next_due: datetime | None
    faults: tuple[tuple[str, Exception], ...]
    launches: Sequence[Launch]


_later = schedule.alias("later")
_NEXT = sa.select(sa.func.min(_later.c.next_due)).where(_later.c.next_due > sa.bindparam("now"))
"""What is due and was not claimed is in the hands of another replica, or left over because there was so much."""
_NEXT_DUE = Prepared(_NEXT)
_DUE = Prepared(
    sa.select(
        schedule.c.schedule_id,
        schedule.c.definition,
        schedule.c.created_at,
        schedule.c.high_water,
        job.c.enabled,
        job.c.enabled_since,
        job.c.group_name,
        job.c.max_concurrent,
        job.c.node,
        job.c.definition.label("job_definition"),
        job_group.c.definition.label("grouped"),
        job_group.c.max_concurrent.label("group_cap"),
        job_group.c.paused,
        job_group.c.resumed_at,
        calendar.c.definition.label("calendar"),
        has_dependents(schedule.c.application, schedule.c.job_name).label("is_awaited"),
        _NEXT.scalar_subquery().label("following"),
    )
    .select_from(schedule.join(job).outerjoin(job_group).outerjoin(calendar))
    .where(schedule.c.next_due <= sa.bindparam("now"))
    .order_by(schedule.c.next_due)
    .limit(sa.bindparam("most"))
    .with_for_update(of=schedule, skip_locked=True)
)
_LIVE_LANE = _t.backfill_id.is_(None)
"""A backfill's triggers are no earlier triggers of the schedule: they hold up nothing, and nothing replaces them."""
_UNFINISHED = Among(
    _t.schedule_id,
    lambda these: (
        sa.select(_t.schedule_id, sa.func.count().label("unfinished"))
        .where(UNFINISHED_ROWS, these, _LIVE_LANE)
        .group_by(_t.schedule_id)
    ),
)
_ADVANCE = Prepared(
    sa.update(schedule)
    .where(schedule.c.schedule_id == sa.bindparam("b_id"))
    .values(
        high_water=sa.bindparam("b_water"),
        next_due=sa.bindparam("b_due"),
        last_fire=sa.func.coalesce(sa.bindparam("b_fire", type_=schedule.c.last_fire.type), schedule.c.last_fire),
    )
)


_ZERO: sa.ColumnElement[int] = sa.literal_column("0")


def _insert(state: State, same: Mapping[str, Any]) -> Inserting:
    """An insert of triggers in `state`; what is the same for all of them is in the statement, once."""
    constants = {
        "kind": sa.literal_column(f"'{Kind.SCHEDULE}'"),
        "state": sa.literal_column(f"'{state}'"),
        "attempt": _ZERO,
        "preemption_count": _ZERO,
        **same,
    }
    return Inserting(job_trigger, constants)


_FIRE = _insert(State.QUEUED, {})
_SKIP = _insert(
    State.SKIPPED,
    {
        "cluster": sa.literal_column(f"'{ANY_CLUSTER}'"),
        "serial": sa.false(),
        "priority": _ZERO,
        "max_attempts": _ZERO,
        "parameters": sa.literal_column("'{}'"),
    },
)


@dataclass(slots=True)
class _Batch:
    """What one transaction is going to write."""

    taking: Taking
    fires: list[dict[str, Any]] = field(default_factory=list)
    skips: list[dict[str, Any]] = field(default_factory=list)
    advances: list[dict[str, Any]] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    faults: list[tuple[str, Exception]] = field(default_factory=list)

    def add(self, row: Any, planned: Schedule, decision: Decision, now: datetime) -> None:
        """All of a decision, or, if its job no longer takes the schedule's parameters, nothing."""
        its_job = effective_job(row.job_definition, row.grouped)
        parameters = its_job.fill_parameters(planned.parameters) if its_job.parameters or planned.parameters else {}
        skips = deque(decision.skips)
        for fire in decision.fires:
            # Newer times have newer ids, so that a list of the newest is in their order.
            while skips and skips[0].nominal < fire.nominal:
                self.skips.append(_skipped(row, planned, skips.popleft(), now))
            trigger = _row(row, planned, fire.nominal, fire.due, now) | {
                "cluster": its_job.cluster or ANY_CLUSTER,
                "priority": its_job.priority,
                "max_attempts": 1 + its_job.max_retries,
                "parameters": parameters,
            }
            if not self.taking.take(row, its_job, fire, trigger):
                self.fires.append(trigger | {"serial": fire.serial, "waits": True if its_job.depends_on else None})
        self.skips += [_skipped(row, planned, skip, now) for skip in skips]
        if decision.replace:
            self.replaced.append(row.schedule_id)
        self.advances.append(
            {
                "b_id": row.schedule_id,
                "b_water": decision.high_water,
                "b_due": decision.upcoming and decision.upcoming.due,
                "b_fire": decision.fires[-1].nominal if decision.fires else None,
            }
        )

    def postpone(self, row: Any, until: datetime, error: Exception) -> None:
        """Leave a schedule that cannot be planned for later; nothing of it is settled."""
        self.faults.append((row.schedule_id, error))
        self.advances.append({"b_id": row.schedule_id, "b_water": row.high_water, "b_due": until, "b_fire": None})

    def next_due(self, now: datetime, following: datetime | None) -> datetime | None:
        """The first of what comes next; now, if a schedule has more due times than are decided at once."""
        upcoming = [each["b_due"] for each in self.advances] + [following]
        first = min((due for due in upcoming if due is not None), default=None)
        return first and max(first, now)

    def write(self, connection: sa.Connection, now: datetime) -> Sequence[Launch]:
        """In this order: what is replaced must be out of the way before its successor is there."""
        if self.replaced:
            replaced = sa.and_(_t.schedule_id.in_(self.replaced), _LIVE_LANE)
            cancel_rows(connection, replaced, now, "Replaced by the schedule's next time.", StopReason.REPLACED)
        # The unique index decides: whoever came first for a nominal time has it, and nobody has it twice.
        if self.fires:
            _FIRE.run(connection, self.fires)
        if self.skips:
            _SKIP.run(connection, self.skips)
        note_triggers(connection, [row["trigger_id"] for row in (*self.fires, *self.skips)], now)
        launches = self.taking.write()
        if self.advances:
            _ADVANCE.run(connection, self.advances)
        return launches


def write_skips(connection: sa.Connection, row: Any, planned: Schedule, skips: Sequence[Skip], now: datetime) -> None:
    """Rows of times that never come, of the schedule of `row` (`schedule_id`, `group_name`, `is_awaited`)."""
    if skips:
        rows = [_skipped(row, planned, skip, now) for skip in skips]
        _SKIP.run(connection, rows)
        note_triggers(connection, [each["trigger_id"] for each in rows], now)


def plan(
    connection: sa.Connection,
    now: datetime,
    limit: int,
    decide: Callable[[Due], Decision],
    postpone_to: datetime,
    taker: Taker | None,
) -> Planned:
    """Claim, decide, insert, advance; see `Queue.plan`."""
    rows = _DUE.rows(connection, now=now, most=limit)
    unfinished = _unfinished_by_schedule(connection, rows)
    batch = _Batch(Taking(connection, now, taker))
    for row in rows:
        try:
            planned = planned_schedule(row.definition)
            facts = Circumstances(
                now,
                unfinished.get(row.schedule_id, 0),
                row.enabled,
                row.enabled_since,
                bool(row.paused),
                row.resumed_at,
            )
            days = planned_days(row.calendar, planned.calendar_rule)
            decision = decide(Due(row.schedule_id, planned, days, row.created_at, row.high_water, facts))
            batch.add(row, planned, decision, now)
        except Exception as error:  # noqa: BLE001 - one broken schedule must not hold up all the others
            batch.postpone(row, postpone_to, error)
    launches = batch.write(connection, now)
    return Planned(
        claimed=len(rows),
        fires=len(batch.fires) + len(launches),
        queued=len(batch.fires),
        skips=sum(skip["skipped_count"] or 1 for skip in batch.skips),
        replaced=bool(batch.replaced),
        chained=bool(batch.replaced)
        or any(each["waits"] for each in batch.fires)
        or any(each["unfollowed"] for each in batch.skips),
        next_due=batch.next_due(now, rows[0].following if rows else _NEXT_DUE.scalar(connection, now=now)),
        faults=tuple(batch.faults),
        launches=launches,
    )


def _unfinished_by_schedule(connection: sa.Connection, rows: Sequence[Any]) -> dict[str, int]:
    """Only for schedules that ask: those that allow overlap do not care."""
    asking = [row.schedule_id for row in rows if planned_schedule(row.definition).overlap_policy != OverlapPolicy.ALLOW]
    if not asking:
        return {}
    return {row.schedule_id: row.unfinished for row in _UNFINISHED.rows(connection, asking)}


def _skipped(row: Any, planned: Schedule, skip: Skip, now: datetime) -> dict[str, Any]:
    return _row(row, planned, skip.nominal, skip.nominal, now) | {
        "skip_reason": skip.reason,
        "skipped_count": skip.count if skip.count > 1 else None,
        "skipped_through": skip.through,
        "finished_at": now,
        "message": skip.message,
        "unfollowed": True if row.is_awaited else None,
    }


def _row(row: Any, planned: Schedule, nominal: datetime, due: datetime, now: datetime) -> dict[str, Any]:
    return {
        "trigger_id": new_id(),
        "application": planned.application,
        "job_name": planned.job_name,
        "schedule_id": row.schedule_id,
        "group_name": row.group_name,
        "nominal_time": nominal,
        "due_time": due,
        "ready_at": due,
        "queued_at": now,
    }

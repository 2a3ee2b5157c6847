"""Due schedules become triggers, in one transaction.

Never decides: `decide` does, and is given everything. Invariants: inserting a schedule's triggers and advancing its
high-water mark is one transaction; one row per (schedule, nominal time); a broken schedule holds up no other; a time
that is planned ahead is taken, or left as it is.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.foundation.ids import new_id
from clickclock.foundation.instant import MILLISECOND
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.trigger import Kind, State, StopReason
from clickclock.scheduler.store.changes import note_triggers
from clickclock.scheduler.store.conditions import has_dependents
from clickclock.scheduler.store.inline_claim import Taker, Taking
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
from clickclock.scheduler.store.triggers import cancel_rows
from clickclock.scheduler.times.business_days import Days
from clickclock.scheduler.times.lookahead import is_certain, is_open
from clickclock.scheduler.times.schedule import Circumstances, Decision, Fire, OverlapPolicy, Schedule, Skip

_t = job_trigger.c


class Due(msgspec.Struct, frozen=True):
    """A claimed schedule, with all that the decision about it needs."""

    schedule_id: str
    schedule: Schedule
    days: Days | None
    anchor: datetime
    high_water: datetime
    facts: Circumstances


class Span(msgspec.Struct, frozen=True):
    """The span to plan ahead: after `after`, because all before was looked at already, and until `until`.

    Without `until` nothing is, and it is only asked what comes after.
    """

    after: datetime
    until: datetime | None = None


class Planned(msgspec.Struct, frozen=True):
    """What one planning transaction did; `faults` are schedules that failed.

    `next_due` is when to look again, unless as many were `claimed` as were asked for: then there may be more now.
    Ahead, all until `looked` has been looked at, and `beyond` is the first time after that.

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
    looked: datetime
    beyond: datetime | None
    faults: tuple[tuple[str, Exception], ...]
    launches: Sequence[Launch]


def _first_after(moment: str) -> sa.ScalarSelect[Any]:
    return (
        sa.select(sa.func.min(schedule.c.next_due)).where(schedule.c.next_due > sa.bindparam(moment)).scalar_subquery()
    )


_FOLLOWING = Prepared(sa.select(_first_after("now").label("next_due"), _first_after("looked").label("beyond")))
"""Due schedules that were not claimed are in the hands of another replica, or left over from a large batch."""
_AHEAD_LOCK = 0x636C6B66
"""The lock of PostgreSQL that those who plan ahead have in common until they commit."""
_OPEN_AHEAD = Prepared(sa.select(sa.func.pg_try_advisory_xact_lock_shared(_AHEAD_LOCK)))
_NOBODY_PLANS_AHEAD = Prepared(sa.select(sa.func.pg_try_advisory_xact_lock(_AHEAD_LOCK)))
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_DUE = Prepared(
    sa.select(
        schedule.c.schedule_id,
        schedule.c.definition,
        schedule.c.created_at,
        schedule.c.high_water,
        schedule.c.next_due,
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
    )
    .select_from(schedule.join(job).outerjoin(job_group).outerjoin(calendar))
    .where(schedule.c.next_due > sa.bindparam("after"), schedule.c.next_due <= sa.bindparam("until"))
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
        its_job, parameters = _job_of(row, planned)
        skips = deque(decision.skips)
        for fire in decision.fires:
            # Newer times have newer ids, so that a list of the newest is in their order.
            while skips and skips[0].nominal < fire.nominal:
                self.skips.append(_skipped(row, planned, skips.popleft(), now))
            trigger = _fired(row, planned, its_job, parameters, fire, now)
            if not self.taking.take(row, its_job, fire, trigger):
                self.fires.append(trigger | {"serial": fire.serial, "waits": True if its_job.depends_on else None})
        self.skips += [_skipped(row, planned, skip, now) for skip in skips]
        if decision.replace:
            self.replaced.append(row.schedule_id)
        self._advance(row, decision)

    def add_ahead(self, row: Any, planned: Schedule, decision: Decision) -> None:
        """A time that has not come is taken now; or nothing of it is settled, and it comes as any other."""
        its_job, parameters = _job_of(row, planned)
        (fire,) = decision.fires
        if self.taking.take(row, its_job, fire, _fired(row, planned, its_job, parameters, fire, fire.due)):
            self._advance(row, decision)

    def _advance(self, row: Any, decision: Decision) -> None:
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

    def has_more(self, now: datetime) -> bool:
        """Whether a schedule has more due times than are decided at once."""
        return any(each["b_due"] is not None and each["b_due"] <= now for each in self.advances)

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
    span: Span,
) -> Planned:
    """Claim, decide, insert, advance; see `Queue.plan`."""
    ahead_until = span.until
    batch = _Batch(Taking(connection, now, taker, is_ahead=ahead_until is not None))
    if ahead_until is None:
        rows = _DUE.rows(connection, after=_LONG_AGO, until=now, most=limit)
        _decide_due(batch, connection, rows, decide, now, postpone_to)
    else:
        is_shut = connection.dialect.name == "postgresql" and not _OPEN_AHEAD.scalar(connection)
        rows = [] if is_shut else _DUE.rows(connection, after=span.after, until=ahead_until, most=limit)
        _decide_ahead(batch, connection, rows, decide)
    launches = batch.write(connection, now)
    looked = span.after if ahead_until is None else _looked(rows, limit, ahead_until, len(batch.advances))
    (following,) = _FOLLOWING.rows(connection, now=now, looked=looked)
    return Planned(
        claimed=len(rows),
        fires=len(batch.fires) + len(launches),
        queued=len(batch.fires),
        skips=sum(skip["skipped_count"] or 1 for skip in batch.skips),
        replaced=bool(batch.replaced),
        chained=bool(batch.replaced)
        or any(each["waits"] for each in batch.fires)
        or any(each["unfollowed"] for each in batch.skips),
        next_due=now if batch.has_more(now) else following.next_due,
        looked=looked,
        beyond=following.beyond,
        faults=tuple(batch.faults),
        launches=launches,
    )


def nobody_plans_ahead(connection: sa.Connection) -> bool:
    """Whether no plan is open that may have read what was there before an edit. SQLite has one writer: none is."""
    return connection.dialect.name == "sqlite" or bool(_NOBODY_PLANS_AHEAD.scalar(connection))


def _decide_due(
    batch: _Batch,
    connection: sa.Connection,
    rows: Sequence[Any],
    decide: Callable[[Due], Decision],
    now: datetime,
    postpone_to: datetime,
) -> None:
    unfinished = _unfinished_by_schedule(connection, rows)
    for row in rows:
        try:
            planned = planned_schedule(row.definition)
            batch.add(row, planned, decide(_due(row, planned, unfinished, now)), now)
        except Exception as error:  # noqa: BLE001 - one broken schedule must not hold up all the others
            batch.postpone(row, postpone_to, error)


def _decide_ahead(
    batch: _Batch, connection: sa.Connection, rows: Sequence[Any], decide: Callable[[Due], Decision]
) -> None:
    """As it will be decided at its time, where that is known."""
    unfinished = _unfinished_by_schedule(connection, rows)
    for row in rows:
        with contextlib.suppress(Exception):  # its fault is reported when it is due
            planned = planned_schedule(row.definition)
            due = _due(row, planned, unfinished, row.next_due)
            if is_open(planned, due.facts) and is_certain(decision := decide(due)):
                batch.add_ahead(row, planned, decision)


def _looked(rows: Sequence[Any], limit: int, until: datetime, decided: int) -> datetime:
    """Until when all was looked at. Of several that are due together, those that are left would be met again."""
    if len(rows) < limit:
        return until
    last: datetime = rows[-1].next_due
    return last if 2 * decided < limit else last - MILLISECOND


def _due(row: Any, planned: Schedule, unfinished: Mapping[str, int], now: datetime) -> Due:
    facts = Circumstances(
        now,
        unfinished.get(row.schedule_id, 0),
        row.enabled,
        row.enabled_since,
        bool(row.paused),
        row.resumed_at,
    )
    days = planned_days(row.calendar, planned.calendar_rule)
    return Due(row.schedule_id, planned, days, row.created_at, row.high_water, facts)


def _unfinished_by_schedule(connection: sa.Connection, rows: Sequence[Any]) -> dict[str, int]:
    """Only for schedules that ask: those that allow overlap do not care."""
    asking = [row.schedule_id for row in rows if planned_schedule(row.definition).overlap_policy != OverlapPolicy.ALLOW]
    if not asking:
        return {}
    return {row.schedule_id: row.unfinished for row in _UNFINISHED.rows(connection, asking)}


def _skipped(row: Any, planned: Schedule, skip: Skip, now: datetime) -> dict[str, Any]:
    due = min(now, skip.nominal + timedelta(seconds=planned.jitter_seconds))
    return _row(row, planned, skip.nominal, due, now) | {
        "skip_reason": skip.reason,
        "skipped_count": skip.count if skip.count > 1 else None,
        "skipped_through": skip.through,
        "finished_at": now,
        "message": skip.message,
        "unfollowed": True if row.is_awaited else None,
    }


def _job_of(row: Any, planned: Schedule) -> tuple[Job, dict[str, str]]:
    """The job of a schedule, and what the schedule gives it. Raises `Invalid` if it no longer takes that."""
    its_job = effective_job(row.job_definition, row.grouped)
    return its_job, its_job.fill_parameters(planned.parameters) if its_job.parameters or planned.parameters else {}


def _fired(
    row: Any, planned: Schedule, its_job: Job, parameters: dict[str, str], fire: Fire, queued_at: datetime
) -> dict[str, Any]:
    return _row(row, planned, fire.nominal, fire.due, queued_at) | {
        "cluster": its_job.cluster or ANY_CLUSTER,
        "priority": its_job.priority,
        "max_attempts": 1 + its_job.max_retries,
        "parameters": parameters,
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

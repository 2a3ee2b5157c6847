"""Backfills in the store: made, read, paused, cancelled, and led one step further.

Never decides which times there are (`calendar.py` does) or how many may run (`backfill.room` does). Invariants: the
triggers of a step and how far it went are one transaction, so that whatever dies, no time is lost and none is doubled;
a time that has a trigger, of whatever kind, keeps it: only the record that it was skipped gives way to a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.errors import Invalid
from clickclock.foundation.ids import new_id
from clickclock.scheduler.backfill import (
    BACKFILL_PRIORITY,
    OVER,
    Backfill,
    BackfillState,
    Counted,
    Pace,
    StoredBackfill,
    progress,
    room,
    times_in,
)
from clickclock.scheduler.calendar import Occurrence, Timetable
from clickclock.scheduler.errors import BackfillIsOver, BackfillNotFound, ScheduleNotFound, StaleVersion
from clickclock.scheduler.store.changes import note_triggers
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import (
    asked_backfill,
    definition_of,
    effective_job,
    insert_of,
    page,
    planned_days,
    planned_schedule,
    stored_backfill,
)
from clickclock.scheduler.store.schema import (
    ANY_CLUSTER,
    backfill,
    calendar,
    job,
    job_group,
    job_trigger,
    schedule,
)
from clickclock.scheduler.store.triggers import cancel_rows
from clickclock.scheduler.trigger import Kind, State

LED_MAX = 10
"""Backfills led further in one transaction: live triggers wait for its end."""
LOOKED_AT_MAX = 200
"""Times of one backfill that one step looks at, where most have a trigger already."""
_t = job_trigger.c
_b = backfill.c


@dataclass(frozen=True, slots=True)
class Led:
    """What one step did, and what there is left to do.

    `settled` times were looked at, and `triggers` made of them. `running` backfills are not over: `blocked` ones wait
    for their triggers to end, or their job or group to go on; the next of the others may go on at `next_at`.
    """

    settled: int
    triggers: int
    running: int
    blocked: int
    next_at: datetime | None


class Backfills:
    """Create, read, change, cancel, lead further."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def already_triggered(self, schedule_id: str, since: datetime, until: datetime) -> int:
        """How many of a schedule's nominal times in the range have a trigger."""
        query = sa.select(sa.func.count()).where(
            _t.schedule_id == schedule_id,
            _t.nominal_time >= since,
            _t.nominal_time <= until,
            _t.state != State.SKIPPED,
        )
        return await self._database.read(lambda c: c.execute(query).scalar_one())

    async def create(self, new: Backfill, counted: Counted, now: datetime) -> StoredBackfill:
        """Keep it, with its schedule and calendar as they are. Raises `ScheduleNotFound`."""

        def work(connection: sa.Connection) -> StoredBackfill:
            query = sa.select(schedule, calendar.c.definition.label("calendar_definition"))
            query = query.select_from(schedule.outerjoin(calendar)).where(schedule.c.schedule_id == new.schedule_id)
            of = connection.execute(query).one_or_none()
            if of is None:
                raise ScheduleNotFound
            row = {
                "backfill_id": new_id(),
                "application": of.application,
                "job_name": of.job_name,
                "schedule_id": new.schedule_id,
                "state": BackfillState.RUNNING,
                "definition": definition_of(new),
                "schedule_definition": of.definition,
                "calendar_definition": of.calendar_definition,
                "anchor": of.created_at,
                "settled_through": new.since - timedelta(milliseconds=1),
                "next_at": now,
                "max_concurrent": new.max_concurrent_triggers,
                "per_second": new.max_triggers_per_second,
                "total": counted.total,
                "excluded": counted.excluded,
                "triggered": 0,
                "skipped": 0,
                "version": 1,
                "created_at": now,
                "updated_at": now,
            }
            connection.execute(sa.insert(backfill).values(row))
            return _shown(connection, _b.backfill_id == row["backfill_id"])[0]

        return await self._database.write(work)

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> list[StoredBackfill]:
        """Backfills whose columns equal `filters` (backfill_id, application, …, state), newest first."""
        conditions = [_b[name] == value for name, value in filters.items()]
        query = page(sa.select(_b.backfill_id).where(*conditions), [_b.backfill_id], after, limit, newest_first=True)
        return await self._database.read(lambda c: _shown(c, _b.backfill_id.in_(c.execute(query).scalars().all())))

    async def change(
        self, backfill_id: str, now: datetime, *, paused: bool | None, pace: Mapping[str, Any],
        if_version: int | None = None,
    ) -> StoredBackfill:  # fmt: skip
        """Pause or resume it, or change its pace. Raises `BackfillNotFound`, `BackfillIsOver`, `StaleVersion`."""
        values: dict[str, Any] = dict(pace)
        if paused is not None:
            values |= {"state": BackfillState.PAUSED if paused else BackfillState.RUNNING, "message": None}
        return await self._database.write(
            lambda c: _changed(c, backfill_id, {**values, "next_at": now}, now, if_version)
        )

    async def cancel(self, backfill_id: str, now: datetime, if_version: int | None = None) -> StoredBackfill:
        """End it with its unfinished triggers. Raises `BackfillNotFound`, `BackfillIsOver`, `StaleVersion`."""

        def work(connection: sa.Connection) -> StoredBackfill:
            values = {"state": BackfillState.CANCELLED, "ended_at": now}
            stored = _changed(connection, backfill_id, values, now, if_version)
            cancel_rows(connection, _t.backfill_id == backfill_id, now, "Its backfill was cancelled.")
            return _shown(connection, _b.backfill_id == stored.backfill_id)[0]

        return await self._database.write(work)

    async def lead(self, now: datetime) -> Led:
        """Lead the backfills that may go on one step further."""
        return await self._database.write(lambda c: _lead(c, now))


def _shown(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[StoredBackfill]:
    rows = connection.execute(sa.select(backfill).where(condition).order_by(_b.backfill_id.desc())).all()
    counted = [row.backfill_id for row in rows if row.outcome is None]
    by_state = _states(connection, counted)
    return [stored_backfill(row, row.outcome or progress(by_state.get(row.backfill_id, {}))) for row in rows]


def _states(connection: sa.Connection, ids: Sequence[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    query = sa.select(_t.backfill_id, _t.state, sa.func.count().label("number")).where(_t.backfill_id.in_(ids))
    for row in connection.execute(query.group_by(_t.backfill_id, _t.state)):
        found.setdefault(row.backfill_id, {})[row.state] = row.number
    return found


def _changed(
    connection: sa.Connection, backfill_id: str, values: Mapping[str, Any], now: datetime, if_version: int | None
) -> StoredBackfill:
    mine = _b.backfill_id == backfill_id
    old = connection.execute(sa.select(backfill).where(mine).with_for_update()).one_or_none()
    if old is None:
        raise BackfillNotFound
    if if_version is not None and old.version != if_version:
        raise StaleVersion
    if BackfillState(old.state) in OVER:
        raise BackfillIsOver(f"The backfill is {old.state} already; create another with POST backfill.")
    connection.execute(sa.update(backfill).where(mine).values(**values, version=old.version + 1, updated_at=now))
    return _shown(connection, mine)[0]


_MAY_GO_ON = (
    sa.select(
        backfill,
        schedule.c.schedule_id.label("its_schedule"),
        job.c.definition.label("job_definition"),
        job.c.enabled,
        job.c.group_name,
        job_group.c.definition.label("grouped"),
        job_group.c.paused,
    )
    .select_from(
        backfill.outerjoin(schedule, _b.schedule_id == schedule.c.schedule_id)
        .outerjoin(job, sa.and_(_b.application == job.c.application, _b.job_name == job.c.job_name))
        .outerjoin(job_group, job.c.group_name == job_group.c.group_name)
    )
    .order_by(_b.next_at)
    .limit(LED_MAX)
    .with_for_update(of=backfill, skip_locked=True)
)
_RUNNING = sa.text("backfill.state = 'running'")  # in the words of the index


def _lead(connection: sa.Connection, now: datetime) -> Led:
    made = settled = 0
    for row in connection.execute(_MAY_GO_ON.where(_RUNNING, _b.next_at <= now)).all():
        step = _Step(connection, row, now)
        step.take()
        made += step.made
        settled += step.settled
    is_blocked = _b.next_at <= now
    rest = connection.execute(
        sa.select(
            sa.func.count().label("running"),
            sa.func.count(sa.case((is_blocked, 1))).label("blocked"),
            sa.func.min(sa.case((sa.not_(is_blocked), _b.next_at))).label("next_at"),
        ).where(_RUNNING)
    ).one()
    return Led(settled, made, rest.running, rest.blocked, rest.next_at)


class _Step:
    """One step of one backfill, in the transaction of `connection`."""

    def __init__(self, connection: sa.Connection, row: Any, now: datetime) -> None:
        self._connection = connection
        self._row = row
        self._now = now
        self._trigger_ids: list[str] = []
        self.settled = 0

    @property
    def made(self) -> int:
        """How many triggers."""
        return len(self._trigger_ids)

    def take(self) -> None:
        """Make the triggers that there is room for, or end the backfill."""
        row = self._row
        if row.its_schedule is None or row.job_definition is None:
            self._write(state=BackfillState.CANCELLED, ended_at=self._now, message="Its schedule was deleted.")
            return
        states = _states(self._connection, [row.backfill_id]).get(row.backfill_id, {})
        counts = progress(states)
        free = room(
            Pace(max_concurrent_triggers=row.max_concurrent, max_triggers_per_second=row.per_second),
            counts["queued"] + counts["running"],
        )
        if not free or not row.enabled or row.paused:
            self._write(next_at=self._now)
            return
        its_schedule = planned_schedule(row.schedule_definition)
        rule = its_schedule.calendar_rule
        times = its_schedule.timetable(row.anchor, planned_days(row.calendar_definition, rule))
        its_job = effective_job(row.job_definition, row.grouped)
        try:
            parameters = its_job.fill_parameters(its_schedule.parameters)
        except Invalid as invalid:
            sentence = " ".join(fault.message for fault in invalid.faults) or str(invalid)
            self._write(state=BackfillState.PAUSED, message=f"Its schedule no longer fits the job: {sentence}")
            return
        same = {
            "kind": Kind.BACKFILL,
            "application": row.application,
            "job_name": row.job_name,
            "schedule_id": row.schedule_id,
            "backfill_id": row.backfill_id,
            "group_name": row.group_name,
            "cluster": its_job.cluster or ANY_CLUSTER,
            "state": State.QUEUED,
            "due_time": self._now,
            "ready_at": self._now,
            "queued_at": self._now,
            "serial": False,
            "priority": BACKFILL_PRIORITY,
            "attempt": 0,
            "preemption_count": 0,
            "max_attempts": 1 + its_job.max_retries,
            "parameters": parameters,
            "reason": asked_backfill(row).reason,
        }
        self._settle(times, same, free, counts)

    def _settle(self, times: Timetable, same: Mapping[str, Any], free: int, counts: Mapping[str, int]) -> None:
        row = self._row
        until = asked_backfill(row).until
        skipped = 0
        through = row.settled_through
        for each in times_in(times, through, until):
            if self.made == free or self.settled == LOOKED_AT_MAX:
                break
            self.settled += 1
            through = each.at
            if each.skip_reason is None:
                skipped += not self._trigger(times, each, same)
        note_triggers(self._connection, self._trigger_ids, self._now)
        if not self.settled and not counts["queued"] and not counts["running"]:
            self._write(state=BackfillState.DONE, ended_at=self._now, outcome=dict(counts))
        self._write(
            settled_through=through,
            next_at=self._now + timedelta(seconds=self.made / row.per_second),
            triggered=row.triggered + self.made,
            skipped=row.skipped + skipped,
        )

    def _trigger(self, times: Timetable, time: Occurrence, same: Mapping[str, Any]) -> bool:
        """One trigger; False if the time has one already. A record that it was skipped makes room for it."""
        at_that_time = sa.and_(_t.schedule_id == self._row.schedule_id, _t.nominal_time == time.at)
        old = self._connection.execute(sa.select(job_trigger).where(at_that_time).with_for_update()).one_or_none()
        if old is not None:
            if old.state != State.SKIPPED:
                return False
            self._give_way(times, old)
        values = {**same, "trigger_id": new_id(), "nominal_time": time.at}
        insert = insert_of(self._connection.dialect.name, job_trigger).values(values).on_conflict_do_nothing()
        made = self._connection.execute(insert.returning(_t.trigger_id)).scalars().all()
        self._trigger_ids += made
        return bool(made)

    def _give_way(self, times: Timetable, old: Any) -> None:
        """Remove the record of a skipped time; one that stands for many goes on to stand for the others."""
        mine = _t.trigger_id == old.trigger_id
        left = (old.skipped_count or 1) - 1
        following = times.after(old.nominal_time) if left else None
        if (
            following is None
            or following.at > (old.skipped_through or old.nominal_time)
            or self._is_taken(following.at)
        ):
            self._connection.execute(sa.delete(job_trigger).where(mine))
            return
        several = left > 1
        self._connection.execute(
            sa.update(job_trigger)
            .where(mine)
            .values(
                nominal_time=following.at,
                skipped_count=left if several else None,
                skipped_through=old.skipped_through if several else None,
            )
        )

    def _is_taken(self, nominal: datetime) -> bool:
        query = sa.select(_t.trigger_id).where(_t.schedule_id == self._row.schedule_id, _t.nominal_time == nominal)
        return self._connection.execute(query).one_or_none() is not None

    def _write(self, **values: Any) -> None:
        mine = _b.backfill_id == self._row.backfill_id
        self._connection.execute(sa.update(backfill).where(mine).values(**values, updated_at=self._now))

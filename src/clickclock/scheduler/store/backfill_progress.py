"""Backfills are led one step further: the next of their times become queued triggers.

Never decides which times there are (`calendar.py` does) or how many may run (`backfill.room` does). Invariants: the
triggers of a step and how far it went are one transaction, so that whatever dies, no time is lost and none is doubled;
a time that has a trigger, of whatever kind, keeps it: only the record that it was skipped gives way to a run; a step
costs the same, however long its backfill is, for live triggers wait for its end.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.foundation.errors import Invalid
from clickclock.foundation.ids import new_id
from clickclock.scheduler.insight.statistics import Ending
from clickclock.scheduler.jobs.trigger import Kind, State
from clickclock.scheduler.store.changes import note_backfill, note_triggers
from clickclock.scheduler.store.conditions import has_dependents
from clickclock.scheduler.store.prepared import Prepared
from clickclock.scheduler.store.rollups import hold_counts, uncount
from clickclock.scheduler.store.rows import (
    asked_backfill,
    effective_job,
    insert_of,
    planned_days,
    planned_schedule,
)
from clickclock.scheduler.store.schema import (
    ANY_CLUSTER,
    UNFINISHED_ROWS,
    backfill,
    job,
    job_group,
    job_trigger,
    schedule,
)
from clickclock.scheduler.times.backfill import BACKFILL_PRIORITY, BackfillState, Pace, progress, room, times_in
from clickclock.scheduler.times.calendar import Occurrence, Timetable

LED_MAX = 10
"""Backfills led further in one transaction."""
LOOKED_AT_MAX = 200
"""Times of one backfill that one step looks at, where most have a trigger already."""
_t = job_trigger.c
_b = backfill.c


class Led(msgspec.Struct, frozen=True):
    """What one step did, and what there is left to do.

    `settled` times were looked at, and `triggers` made of them. `running` backfills are not over: `blocked` ones wait
    for their triggers to end, or their job or group to go on; the next of the others may go on at `next_at`.
    """

    settled: int
    triggers: int
    running: int
    blocked: int
    next_at: datetime | None


_RUNNING = sa.text("backfill.state = 'running'")  # in the words of the index
_NOW = sa.bindparam("now", type_=_b.next_at.type)
_MAY_GO_ON = Prepared(
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
    .where(_RUNNING, _b.next_at <= _NOW)
    .order_by(_b.next_at)
    .limit(sa.bindparam("most"))
    .with_for_update(of=backfill, skip_locked=True)
)
_IS_BLOCKED = _b.next_at <= _NOW
_SUMS: Sequence[sa.ColumnElement[Any]] = (
    sa.func.count().label("running"),
    sa.func.count(sa.case((_IS_BLOCKED, 1))).label("blocked"),
    sa.func.min(sa.case((sa.not_(_IS_BLOCKED), _b.next_at))).label("next_at"),
)
_REST = Prepared(sa.select(*_SUMS).where(_RUNNING))
_UNFINISHED = Prepared(sa.select(sa.func.count()).where(_t.backfill_id == sa.bindparam("backfill_id"), UNFINISHED_ROWS))
_BY_STATE = Prepared(
    sa.select(_t.state, sa.func.count().label("number"))
    .where(_t.backfill_id == sa.bindparam("backfill_id"))
    .group_by(_t.state)
)
_TAKEN = Prepared(
    sa.select(
        *(_t.trigger_id, _t.nominal_time, _t.state, _t.skipped_count, _t.skipped_through),
        *(_t.group_name, _t.finished_at, _t.counted),
    )
    .where(
        _t.schedule_id == sa.bindparam("schedule_id"),
        _t.nominal_time >= sa.bindparam("first", type_=_t.nominal_time.type),
        _t.nominal_time <= sa.bindparam("last", type_=_t.nominal_time.type),
    )
    .with_for_update()
)
_OF_ALL: Mapping[str, Any] = {
    "kind": Kind.BACKFILL,
    "state": State.QUEUED,
    "serial": False,
    "priority": BACKFILL_PRIORITY,
    "attempt": 0,
    "preemption_count": 0,
}
_OF_ONE = (
    *("trigger_id", "application", "job_name", "schedule_id", "backfill_id", "group_name", "cluster", "nominal_time"),
    *("due_time", "ready_at", "queued_at", "max_attempts", "parameters", "reason"),
)
_MAKE = Prepared(
    lambda dialect: (
        insert_of(dialect, job_trigger)
        .values({**_OF_ALL, **{name: sa.bindparam(f"b_{name}", type_=_t[name].type) for name in _OF_ONE}})
        .on_conflict_do_nothing()
        .returning(_t.trigger_id)
    )
)
_SET_ASIDE = (
    sa.update(job_trigger)
    .where(sa.or_(_t.run_id.is_not(None), has_dependents()))
    .values(schedule_id=None, message="Skipped at first; a backfill runs this time.")
)
_HOW_FAR = ("settled_through", "next_at", "triggered", "skipped", "updated_at")
_GO_ON = Prepared(
    sa.update(backfill)
    .where(_b.backfill_id == sa.bindparam("b_id"))
    .values({name: sa.bindparam(f"b_{name}", type_=_b[name].type) for name in _HOW_FAR})
)


def lead(connection: sa.Connection, now: datetime) -> Led:
    """Lead the backfills that may go on; see `Backfills.lead`."""
    made = settled = 0
    for row in _MAY_GO_ON.rows(connection, now=now, most=LED_MAX):
        step = _Step(connection, row, now)
        step.take()
        made += step.made
        settled += step.settled
    rest = _REST.rows(connection, now=now)[0]
    return Led(settled, made, rest.running, rest.blocked, rest.next_at)


class _Step:
    """One step of one backfill, in the transaction of `connection`."""

    def __init__(self, connection: sa.Connection, row: Any, now: datetime) -> None:
        self._connection = connection
        self._row = row
        self._now = now
        self._trigger_ids: list[str] = []
        self._taken: dict[datetime, Any] = {}
        self._undone: list[Ending] = []
        self.settled = 0

    @property
    def made(self) -> int:
        """How many triggers."""
        return len(self._trigger_ids)

    def take(self) -> None:
        """Make the triggers that there is room for, or end the backfill."""
        row = self._row
        if row.its_schedule is None or row.job_definition is None:
            self._end(BackfillState.CANCELLED, message="Its schedule was deleted.")
            return
        unfinished = _UNFINISHED.scalar(self._connection, backfill_id=row.backfill_id)
        pace = Pace(max_concurrent_triggers=row.max_concurrent, max_triggers_per_second=row.per_second)
        free = room(pace, unfinished)
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
            message = f"Its schedule no longer fits the job: {sentence}"
            self._write(state=BackfillState.PAUSED, message=message)
            note_backfill(self._connection, BackfillState.PAUSED, row, self._now, message)
            return
        asked = asked_backfill(row)
        same = {
            "b_application": row.application,
            "b_job_name": row.job_name,
            "b_schedule_id": row.schedule_id,
            "b_backfill_id": row.backfill_id,
            "b_group_name": row.group_name,
            "b_cluster": its_job.cluster or ANY_CLUSTER,
            "b_due_time": self._now,
            "b_ready_at": self._now,
            "b_queued_at": self._now,
            "b_max_attempts": 1 + its_job.max_retries,
            "b_parameters": parameters,
            "b_reason": asked.reason,
        }
        self._settle(times, asked.until, same, free)
        if not self.settled and not unfinished:
            ended = _BY_STATE.rows(self._connection, backfill_id=row.backfill_id)
            outcome = progress({each.state: each.number for each in ended})
            self._end(BackfillState.DONE, outcome=outcome)

    def _settle(self, times: Timetable, until: datetime, same: Mapping[str, Any], free: int) -> None:
        row = self._row
        hold_counts(self._connection, waits=True)  # before the rows that give way: who counts takes them in this order
        skipped = 0
        through = row.settled_through
        for each in self._look_at(times, until, free):
            self.settled += 1
            through = each.at
            if each.skip_reason is None:
                skipped += not self._trigger(times, each, same)
            if self.made == free or self.settled == LOOKED_AT_MAX:
                break
        uncount(self._connection, self._undone)
        note_triggers(self._connection, self._trigger_ids, self._now)
        further = {
            "b_id": row.backfill_id,
            "b_settled_through": through,
            "b_next_at": self._now + timedelta(seconds=self.made / row.per_second),
            "b_triggered": row.triggered + self.made,
            "b_skipped": row.skipped + skipped,
            "b_updated_at": self._now,
        }
        _GO_ON.run(self._connection, [further])

    def _look_at(self, times: Timetable, until: datetime, free: int) -> Iterator[Occurrence]:
        """The times that come next; what they have already is read for several at once."""
        upcoming = times_in(times, self._row.settled_through, until)
        while several := list(islice(upcoming, max(free, self.settled))):
            span = {"schedule_id": self._row.schedule_id, "first": several[0].at, "last": several[-1].at}
            self._taken = {each.nominal_time: each for each in _TAKEN.rows(self._connection, **span)}
            yield from several

    def _trigger(self, times: Timetable, time: Occurrence, same: Mapping[str, Any]) -> bool:
        """One trigger; False if the time has one already. A record that it was skipped makes room for it."""
        old = self._taken.get(time.at)
        if old is not None:
            if old.state != State.SKIPPED:
                return False
            self._give_way(times, old)
        made = _MAKE.rows(self._connection, b_trigger_id=new_id(), b_nominal_time=time.at, **same)
        self._trigger_ids += [each.trigger_id for each in made]
        return bool(made)

    def _give_way(self, times: Timetable, old: Any) -> None:
        """Remove the record of a skipped time, and its count; one that stands for many goes on to stand for the others.

        What dependents may have been told of stays, without its place in the schedule: they name it.
        """
        mine = _t.trigger_id == old.trigger_id
        left = (old.skipped_count or 1) - 1
        following = times.after(old.nominal_time) if left else None
        if (
            following is None
            or following.at > (old.skipped_through or old.nominal_time)
            or self._is_taken(following.at)
        ):
            if not self._connection.execute(_SET_ASIDE.where(mine)).rowcount:
                self._connection.execute(sa.delete(job_trigger).where(mine))
                self._undo(old, old.skipped_count or 1)
            return
        several = left > 1
        moved = {
            "nominal_time": following.at,
            "skipped_count": left if several else None,
            "skipped_through": old.skipped_through if several else None,
        }
        self._connection.execute(sa.update(job_trigger).where(mine).values(moved))
        self._taken[following.at] = old._replace(**moved)
        self._undo(old, 1)

    def _undo(self, old: Any, times: int) -> None:
        """So many times of a record were not skipped after all: they are counted when they have run."""
        if old.counted:
            whose = (self._row.application, self._row.job_name, State.SKIPPED, old.finished_at, old.group_name)
            self._undone.append(Ending(*whose, count=times))

    def _is_taken(self, nominal: datetime) -> bool:
        query = sa.select(_t.trigger_id).where(_t.schedule_id == self._row.schedule_id, _t.nominal_time == nominal)
        return self._connection.execute(query).one_or_none() is not None

    def _end(self, state: BackfillState, **values: Any) -> None:
        self._write(state=state, ended_at=self._now, **values)
        note_backfill(self._connection, state, self._row, self._now, values.get("message"))

    def _write(self, **values: Any) -> None:
        mine = _b.backfill_id == self._row.backfill_id
        self._connection.execute(sa.update(backfill).where(mine).values(**values, updated_at=self._now))

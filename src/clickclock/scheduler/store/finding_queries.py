"""What should not be, as it is in the rows now: one look for the scanner.

Never judges and never writes. Invariant: each question is answered from an index of live rows, of open alarms or of
what is due, and never from history; where the answer could be long, it is cut off. What reads all schedules is asked
only when there is a sign of trouble.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.scheduler.insight.alarm import AlarmKind
from clickclock.scheduler.insight.finding import PAUSED_AFTER
from clickclock.scheduler.jobs.notification import Delivery
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store.alarm_evaluation import rules_of
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.schema import LIVE_ROWS, QUEUED_ROWS, job, job_trigger, replica, schedule
from clickclock.scheduler.store.schema_alarms import OPEN_ALARMS, alarm, change, notification

FIRST = 5
"""Ids that are shown of each."""
OLDEST = 1000
"""Queued triggers that are looked at: those that have waited longest."""
STARTING_MAX = 10_000
_t, _a = job_trigger.c, alarm.c


class Some(msgspec.Struct, frozen=True):
    """How many, and the ids of the first few."""

    count: int = 0
    ids: tuple[str, ...] = ()


class Queued(msgspec.Struct, frozen=True):
    """A trigger that waits, for which cluster (empty: whichever is the default) and which node, if it must be one."""

    trigger_id: str
    cluster: str
    node: str | None


class Survey(msgspec.Struct, frozen=True):
    """The result of one look."""

    overdue: Some
    stuck: Some
    idle: Some
    dead_notifications: Some
    unheard: Some
    queued: tuple[Queued, ...]
    starting: tuple[str, ...]
    changed_at: datetime | None
    """When the newest change was written, by the clock of then."""
    planned_through: datetime | None = None
    """Until when a schedule is planned, if that was looked for."""
    failing: Some = Some()
    """Schedules that were paused because their triggers failed."""


class Surveys:
    """The one look."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(
        self,
        now: datetime,
        *,
        overdue_before: datetime,
        queued_before: datetime,
        failures: int,
        looks_ahead: bool = False,
        within: Collection[str] | None = None,
    ) -> Survey:
        """Look, `within` some applications or everywhere. `failures` is how often a job must have failed to be told of.

        `looks_ahead` reads all schedules for the one that is planned furthest: for when the clock may have been set
        back, which whatever changes afterwards would hide.
        """

        def work(connection: sa.Connection) -> Survey:
            living = sa.select(replica.c.replica_id).where(replica.c.lease_until > now)
            idle = schedule.c.next_due.is_(None), schedule.c.last_fire.is_(None), _NOT_PAUSED
            dead = notification.c.state == Delivery.DEAD
            of_schedules, of_triggers = _within(schedule, within), _within(job_trigger, within)
            is_all = within is None
            return Survey(
                overdue=_some(connection, schedule.c.schedule_id, schedule.c.next_due < overdue_before, *of_schedules),
                stuck=_some(connection, _t.trigger_id, LIVE_ROWS, _t.lease_id.not_in(living), *of_triggers),
                idle=_some(connection, schedule.c.schedule_id, *idle, *of_schedules),
                dead_notifications=_some(connection, notification.c.notification_id, dead) if is_all else Some(),
                unheard=_unheard(connection, failures, _within(alarm, within)),
                queued=_queued(connection, queued_before, of_triggers),
                starting=_starting(connection, of_triggers),
                changed_at=connection.execute(_NEWEST_CHANGE).scalar(),
                failing=_some(connection, schedule.c.schedule_id, *_PAUSED_BY_FAILURES, *of_schedules),
                planned_through=connection.execute(_PLANNED_THROUGH).scalar() if looks_ahead else None,
            )

        return await self._database.read(work)


_PAUSED_BY_FAILURES = (
    schedule.c.pause_after.is_not(None),
    schedule.c.definition.contains('"paused":true', autoescape=True),
    schedule.c.definition.contains(f'"pauseReason":"{PAUSED_AFTER}', autoescape=True),
)
_NOT_PAUSED = sa.not_(schedule.c.definition.contains('"paused":true', autoescape=True))
_NEWEST_CHANGE = sa.select(change.c.at).order_by(change.c.position.desc()).limit(1)
_PLANNED_THROUGH = sa.select(sa.func.max(schedule.c.high_water))


def _within(table: sa.Table, within: Collection[str] | None) -> list[sa.ColumnElement[bool]]:
    """Rows of some applications; no index of theirs is to be taken for it."""
    return [] if within is None else [table.c.application.concat("").in_(sorted(within))]


def _some(connection: sa.Connection, of: sa.Column[Any], *conditions: sa.ColumnElement[bool]) -> Some:
    first = connection.execute(sa.select(of).where(*conditions).limit(FIRST)).scalars().all()
    if len(first) < FIRST:
        return Some(len(first), tuple(first))
    count = connection.execute(sa.select(sa.func.count()).select_from(of.table).where(*conditions)).scalar_one()
    return Some(count, tuple(first))


def _queued(connection: sa.Connection, before: datetime, seen: Sequence[sa.ColumnElement[bool]]) -> tuple[Queued, ...]:
    query = (
        sa.select(_t.trigger_id, _t.cluster, job.c.node)
        .select_from(
            job_trigger.outerjoin(job, sa.and_(_t.application == job.c.application, _t.job_name == job.c.job_name))
        )
        .where(QUEUED_ROWS, _t.ready_at < before, _t.waits.is_(None), *seen)
        .order_by(_t.ready_at)
        .limit(OLDEST)
    )
    return tuple(Queued(*row) for row in connection.execute(query))


def _starting(connection: sa.Connection, seen: Sequence[sa.ColumnElement[bool]]) -> tuple[str, ...]:
    query = sa.select(_t.trigger_id, _t.attempt).where(LIVE_ROWS, _t.state == State.STARTING, *seen)
    query = query.limit(STARTING_MAX)
    return tuple(f"{row.trigger_id}-{row.attempt}" for row in connection.execute(query))


def _unheard(connection: sa.Connection, failures: int, seen: Sequence[sa.ColumnElement[bool]]) -> Some:
    """Jobs with an open alarm of so many failures, and no target."""
    often = sa.select(_a.application, _a.job_name).where(
        OPEN_ALARMS, _a.kind == AlarmKind.FAILURE, _a.count >= failures, *seen
    )
    jobs: Sequence[tuple[str, str]] = [
        (row.application, row.job_name) for row in connection.execute(often.order_by(*often.selected_columns))
    ]
    rules = rules_of(connection, jobs)
    names = [f"{key[0]}/{key[1]}" for key in jobs if key in rules and not rules[key].targets]
    return Some(len(names), tuple(names[:FIRST]))

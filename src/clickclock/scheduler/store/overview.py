"""Many things at one look: what comes, what became of each time, where jobs stand, what has a name.

Never writes. Invariant: each question is answered from an index, in a bounded number of rows, however long history is.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.scheduler.jobs.trigger import LIVE, SkipReason, State
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import equal, page, planned_days, planned_schedule
from clickclock.scheduler.store.schema import (
    UNFINISHED_ROWS,
    calendar,
    job,
    job_group,
    job_pulse,
    job_trigger,
    schedule,
)
from clickclock.scheduler.times.forecast import Coming

_t = job_trigger.c
_s = schedule.c
_ITS_JOB = sa.and_(_s.application == job.c.application, _s.job_name == job.c.job_name)
_ITS_GROUP = job.c.group_name == job_group.c.group_name
_SHOWN = (
    _t.trigger_id, _t.kind, _t.application, _t.job_name, _t.state, _t.skip_reason, _t.skipped_count, _t.skipped_through,
    _t.nominal_time, _t.due_time, _t.started_at, _t.finished_at, _t.lag_ms, _t.attempt, _t.message,
)  # fmt: skip


class Standing(msgspec.Struct, frozen=True):
    """Where a job stands: columns of its row, its pulse, and its newest triggers, newest first."""

    job: Any
    queued: int
    running: int
    recent: Sequence[Any]

    @property
    def key(self) -> tuple[str, str]:
        """Its application and name."""
        return self.job.application, self.job.job_name


class NameKind(StrEnum):
    """What a name is of."""

    APPLICATION = "application"
    JOB = "job"
    SCHEDULE = "schedule"
    GROUP = "group"
    CALENDAR = "calendar"
    TRIGGER = "trigger"


class Overview:
    """Reads for those who look at many things at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def coming(self, filters: Mapping[str, Any], until: datetime, limit: int) -> list[Coming]:
        """Schedules that are due before `until`, the next first; `filters` are columns of them, and `group_name`."""
        its_group = filters.get("group_name")
        own = {name: value for name, value in filters.items() if name != "group_name"}
        query = (
            sa.select(
                *(_s[name] for name in ("schedule_id", "schedule_name", "definition", "created_at")),
                *(_s[name] for name in ("high_water", "next_due")),
                calendar.c.definition.label("calendar"),
                job.c.enabled,
                sa.func.coalesce(job_group.c.paused, sa.false()).label("group_paused"),
            )
            .select_from(schedule.join(job, _ITS_JOB).outerjoin(job_group, _ITS_GROUP).outerjoin(calendar))
            .where(_s.next_due < until, *equal(schedule, own))
            .order_by(_s.next_due, _s.schedule_id)
            .limit(limit)
        )
        if its_group is not None:
            query = query.where(job.c.group_name == its_group)
        return [_coming(row) for row in await self._database.read(lambda c: c.execute(query).all())]

    async def times_of(
        self,
        schedule_ids: Sequence[str],
        since: datetime | None,
        until: datetime | None,
        limit: int,
        within: Collection[str] | None = None,
    ) -> list[tuple[Sequence[Any], bool]]:
        """What became of each schedule's nominal times in [since, until), newest first, and whether there are more.

        All are of one moment.

        A row that stands for several skipped times is one of them while its last is. A schedule of an application that
        is not `within` has none.
        """
        mine = sa.and_(_t.schedule_id == sa.bindparam("its"), *_within(_t.application.concat(""), within))
        bounds = [] if until is None else [_t.nominal_time < until]
        newest = sa.select(*_SHOWN).where(mine, *bounds).order_by(_t.nominal_time.desc()).limit(limit + 1)
        if since is not None:
            newest = newest.where(_t.nominal_time >= since)
        earlier = sa.true() if since is None else _t.nominal_time < since
        before = sa.select(*_SHOWN).where(mine, earlier).order_by(_t.nominal_time.desc()).limit(1)

        def work(connection: sa.Connection) -> list[tuple[Sequence[Any], bool]]:
            found: list[tuple[Sequence[Any], bool]] = []
            for schedule_id in schedule_ids:
                rows = list(connection.execute(newest, {"its": schedule_id}))
                last = None if since is None else connection.execute(before, {"its": schedule_id}).one_or_none()
                if last is not None and last.skipped_through is not None and last.skipped_through >= since:
                    rows.append(last)
                found.append((rows[:limit], len(rows) > limit))
            return found

        return await self._database.read(work)

    async def standings(
        self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int, recent: int
    ) -> list[Standing]:
        """Jobs whose columns equal `filters`, by name, each with its `recent` newest triggers."""
        names = [job.c.application, job.c.job_name]
        here = page(sa.select(*names).where(*equal(job, filters)), names, after, limit).subquery("here")
        not_paused = sa.not_(_s.definition.contains('"paused":true', autoescape=True))
        next_due = (
            sa.select(sa.func.min(_s.next_due))
            .where(_s.application == here.c.application, _s.job_name == here.c.job_name, not_paused)
            .scalar_subquery()
        )
        pulse = job_pulse.c
        its_own = sa.and_(job.c.application == here.c.application, job.c.job_name == here.c.job_name)
        its_pulse = sa.and_(pulse.application == here.c.application, pulse.job_name == here.c.job_name)
        jobs = (
            sa.select(*names, job.c.group_name, job.c.enabled, next_due.label("next_due"))
            .add_columns(pulse.streak, pulse.last_success_at, pulse.last_failure_at)
            .select_from(here.join(job, its_own).outerjoin(job_pulse, its_pulse))
            .order_by(*names)
        )
        of_job = sa.and_(_t.application == here.c.application, _t.job_name == here.c.job_name)
        counts = (
            sa.select(_t.application, _t.job_name, _t.state, sa.func.count().label("here"))
            .select_from(here.join(job_trigger, of_job))
            .where(UNFINISHED_ROWS)
            .group_by(_t.application, _t.job_name, _t.state)
        )
        others = job_trigger.alias("others").c
        oldest = (
            sa.select(others.trigger_id)
            .where(others.application == here.c.application, others.job_name == here.c.job_name)
            .order_by(others.trigger_id.desc())
            .limit(1)
            .offset(recent - 1)
            .scalar_subquery()
        )
        newest = (
            sa.select(*_SHOWN)
            .select_from(here.join(job_trigger, sa.and_(of_job, _t.trigger_id >= sa.func.coalesce(oldest, ""))))
            .order_by(_t.application, _t.job_name, _t.trigger_id.desc())
        )

        def work(connection: sa.Connection) -> list[Standing]:
            rows = connection.execute(jobs).all()
            of: dict[tuple[str, str], list[Any]] = {}
            for each in connection.execute(newest):
                of.setdefault((each.application, each.job_name), []).append(each)
            queued: Counter[tuple[str, str]] = Counter()
            running: Counter[tuple[str, str]] = Counter()
            for each in connection.execute(counts):
                (running if State(each.state) in LIVE else queued)[each.application, each.job_name] += each.here
            keys = [(row.application, row.job_name) for row in rows]
            return [
                Standing(row, queued[key], running[key], of.get(key, ())) for row, key in zip(rows, keys, strict=True)
            ]

        return await self._database.read(work)

    async def named(self, text: str, limit: int, within: Collection[str] | None = None) -> list[tuple[NameKind, Any]]:
        """Things with `text` in their name, best match first, in any case; and the trigger with that id.

        `within` some applications; groups and calendars belong to none.
        """
        by_id = sa.select(_t.trigger_id.label("name"), _t.application, _t.job_name).where(
            _t.trigger_id == text.lower(), *_within(_t.application.concat(""), within)
        )

        def work(connection: sa.Connection) -> list[tuple[NameKind, Any]]:
            found: list[tuple[NameKind, Any]] = [(NameKind.TRIGGER, row) for row in connection.execute(by_id)]
            for kind, (name, *others) in _NAMES.items():
                begins_with = sa.case((name.istartswith(text, autoescape=True), 0), else_=1)
                query = (
                    sa.select(name.label("name"), *others)
                    .where(name.icontains(text, autoescape=True), *_of_kind(kind, within))
                    .group_by(name, *others)
                    .order_by(begins_with, name, *others)
                    .limit(limit)
                )
                found += [(kind, row) for row in connection.execute(query)]
            return found

        return await self._database.read(work)


_NAMES: Mapping[NameKind, Sequence[sa.ColumnElement[str]]] = {
    NameKind.APPLICATION: (job.c.application,),
    NameKind.GROUP: (job_group.c.group_name,),
    NameKind.JOB: (job.c.job_name, job.c.application),
    NameKind.SCHEDULE: (_s.schedule_name, _s.application, _s.job_name, _s.schedule_id),
    NameKind.CALENDAR: (calendar.c.calendar_name,),
}
_APPLICATIONS: Mapping[NameKind, sa.ColumnElement[str]] = {
    NameKind.APPLICATION: job.c.application,
    NameKind.JOB: job.c.application,
    NameKind.SCHEDULE: _s.application,
}


def _of_kind(kind: NameKind, within: Collection[str] | None) -> list[sa.ColumnElement[bool]]:
    column = _APPLICATIONS.get(kind)
    return [] if column is None else _within(column, within)


def _within(column: sa.ColumnElement[str], within: Collection[str] | None) -> list[sa.ColumnElement[bool]]:
    return [] if within is None else [column.in_(sorted(within))]


def _coming(row: Any) -> Coming:
    planned = planned_schedule(row.definition)
    reason = None
    if planned.paused:
        reason = SkipReason.PAUSED
    elif not row.enabled:
        reason = SkipReason.JOB_DISABLED
    elif row.group_paused:
        reason = SkipReason.GROUP_PAUSED
    days = planned_days(row.calendar, planned.calendar_rule)
    its_own = (row.created_at, row.high_water, row.next_due)
    return Coming(row.schedule_id, row.schedule_name, planned, days, *its_own, reason)

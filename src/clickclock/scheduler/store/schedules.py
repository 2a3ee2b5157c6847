"""Schedules in the store.

Never fires anything (`queue.py`). Invariants: a schedule has its job; its name is unique in the job; no change moves
the high-water mark behind the present, so nothing that is past can fire.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.errors import ScheduleExists, ScheduleNotFound, no_calendar, no_job
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.template_values import Cadence
from clickclock.scheduler.store.auditing import audited_schedule, principal
from clickclock.scheduler.store.cadences import cadence_of_rows, rows_of_job
from clickclock.scheduler.store.changes import note_schedules
from clickclock.scheduler.store.conditions import has_dependents
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.jobs import keyed
from clickclock.scheduler.store.planning import write_skips
from clickclock.scheduler.store.rows import (
    definition_of,
    effective_job,
    equal,
    page,
    planned_schedule,
    refuse_stale,
    stored_schedule,
)
from clickclock.scheduler.store.schema import calendar, job, job_group, schedule
from clickclock.scheduler.times.schedule import Schedule, StoredSchedule, Upcoming, amend

ROWS_PER_INSERT = 1000
"""So that ten thousand schedules in one request do not stand in memory as rows, too."""


class NewSchedule(msgspec.Struct, frozen=True):
    """A schedule that is to be written, with its id and, of a new one, the first time it waits for."""

    schedule: Schedule
    schedule_id: str
    upcoming: Upcoming | None = None


class Schedules:
    """Create, read, replace, delete."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: Sequence[NewSchedule], now: datetime) -> list[StoredSchedule]:
        """All of them or none. Raises `ScheduleExists` or `Invalid`, naming each fault by its place in `new`."""

        def work(connection: sa.Connection) -> list[StoredSchedule]:
            made = {"high_water": now, "version": 1, "created_at": now, "updated_at": now}
            refuse_misfits(connection, [each.schedule for each in new])
            stored: list[StoredSchedule] = []
            try:
                with connection.begin_nested():
                    for start in range(0, len(new), ROWS_PER_INSERT):
                        chunk = new[start : start + ROWS_PER_INSERT]
                        rows = [schedule_row(each) | made for each in chunk]
                        connection.execute(sa.insert(schedule), rows)
                        note_schedules(connection, "created", [each.schedule_id for each in chunk], now)
                        stored += [_as_created(each, row) for each, row in zip(chunk, rows, strict=True)]
                        for row in rows:
                            audited_schedule(None, row)
            except IntegrityError as error:
                raise ScheduleExists(faults=_existing(connection, [schedule_row(each) for each in new])) from error
            return stored

        return await self._database.write(work)

    async def put(self, new: NewSchedule, now: datetime, if_version: int | None = None) -> StoredSchedule:
        """Replace the schedule of that id. Raises `ScheduleNotFound`, `StaleVersion`, `ScheduleExists`, `Invalid`."""

        def work(connection: sa.Connection) -> StoredSchedule:
            mine = schedule.c.schedule_id == new.schedule_id
            old = connection.execute(sa.select(schedule).where(mine).with_for_update()).one_or_none()
            if old is None:
                raise ScheduleNotFound
            refuse_stale(old.version, if_version)
            refuse_misfits(connection, [new.schedule])
            row = {**schedule_row(new), "version": old.version + 1, "updated_at": now} | amended(
                connection, old, new.schedule, now
            )
            try:
                with connection.begin_nested():
                    connection.execute(sa.update(schedule).where(mine).values(row))
            except IntegrityError as error:
                raise ScheduleExists(faults=[_name_taken("scheduleName", row["schedule_name"])]) from error
            note_schedules(connection, "changed", [new.schedule_id], now)
            audited_schedule(old, row)
            return stored_schedule(connection.execute(sa.select(schedule).where(mine)).one())

        return await self._database.write(work)

    async def get(self, schedule_id: str) -> StoredSchedule:
        """One schedule. Raises `ScheduleNotFound`."""
        query = sa.select(schedule).where(schedule.c.schedule_id == schedule_id)
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        if row is None:
            raise ScheduleNotFound
        return stored_schedule(row)

    async def cadence(self, application: str, job_name: str, schedule_id: str | None) -> Cadence:
        """What a run of a job may ask of its schedule; without an id as a run that no schedule asked for.

        Raises `ScheduleNotFound` if the job has no such schedule.
        """

        def work(connection: sa.Connection) -> Cadence:
            rows = rows_of_job(connection, application, job_name)
            if schedule_id is not None:
                rows = [row for row in rows if row.schedule_id == schedule_id]
                if not rows:
                    raise ScheduleNotFound
            return cadence_of_rows(rows)

        return await self._database.read(work)

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> list[StoredSchedule]:
        """Schedules whose columns equal `filters` (schedule_id, application, job_name, schedule_name), by id."""
        query = page(sa.select(schedule).where(*equal(schedule, filters)), [schedule.c.schedule_id], after, limit)
        return [stored_schedule(row) for row in await self._database.read(lambda c: c.execute(query).all())]

    async def delete(self, schedule_id: str, now: datetime, if_version: int | None = None) -> None:
        """Delete; what it triggered already goes on. Raises `ScheduleNotFound`, `StaleVersion`."""

        def work(connection: sa.Connection) -> None:
            mine = schedule.c.schedule_id == schedule_id
            old = connection.execute(sa.select(schedule).where(mine).with_for_update()).one_or_none()
            if old is None:
                raise ScheduleNotFound
            refuse_stale(old.version, if_version)
            note_schedules(connection, "deleted", [schedule_id], now)
            connection.execute(sa.delete(schedule).where(mine))
            audited_schedule(old, None)

        await self._database.write(work)


def schedule_row(new: NewSchedule) -> dict[str, Any]:
    """A schedule's columns, without its versions and its high-water mark."""
    return {
        "schedule_id": new.schedule_id,
        "application": new.schedule.application,
        "job_name": new.schedule.job_name,
        "schedule_name": new.schedule.schedule_name or new.schedule_id,
        "definition": definition_of(new.schedule),
        "next_due": new.upcoming and new.upcoming.due,
        "calendar_name": new.schedule.calendar_name,
        "pause_after": new.schedule.pause_after_failures,
        "updated_by": principal(),
    }


def amended(connection: sa.Connection, old: Any, new: Schedule, now: datetime) -> dict[str, Any]:
    """The columns that say where a schedule goes on that is changed; what the change passes over gets its rows."""
    planned = planned_schedule(old.definition)
    amendment = amend(old.schedule_id, planned, new, old.created_at, old.high_water, now)
    if amendment.skips:
        its_job = sa.and_(*keyed([(old.application, old.job_name)]))
        awaited = has_dependents(job.c.application, job.c.job_name).label("is_awaited")
        of = sa.select(sa.literal(old.schedule_id).label("schedule_id"), job.c.group_name, awaited).where(its_job)
        write_skips(connection, connection.execute(of).one(), planned, amendment.skips, now)
    return {"high_water": amendment.high_water, "next_due": amendment.upcoming and amendment.upcoming.due}


def _as_created(new: NewSchedule, row: Mapping[str, Any]) -> StoredSchedule:
    own = {
        name: row[name]
        for name in ("schedule_id", "schedule_name", "version", "created_at", "updated_at", "updated_by")
    }
    return StoredSchedule.trusted(**vars(new.schedule) | own, next_fire_at=row["next_due"], last_fire_at=None)


def refuse_misfits(connection: sa.Connection, schedules: Sequence[Schedule], beside: Iterable[Job] = ()) -> None:
    """Every schedule has its job, gives it just the parameters that it takes, and goes by a calendar that there is.

    Raises `Invalid`. Jobs `beside` are about to be written.
    """
    jobs = {each.key: each for each in beside}
    for condition in keyed(sorted({(each.application, each.job_name) for each in schedules} - jobs.keys())):
        rows = connection.execute(
            sa.select(job.c.application, job.c.job_name, job.c.definition, job_group.c.definition.label("grouped"))
            .select_from(job.outerjoin(job_group))
            .where(condition)
            .with_for_update(of=job, read=True)
        )
        jobs.update({(row.application, row.job_name): effective_job(row.definition, row.grouped) for row in rows})
    faults: list[Fault] = []
    named = sorted({each.calendar_name for each in schedules if each.calendar_name is not None})
    known = sa.select(calendar.c.calendar_name).where(calendar.c.calendar_name.in_(named)).with_for_update(read=True)
    calendars = set(connection.execute(known).scalars()) if named else set()
    for place, each in enumerate(schedules):
        prefix = f"[{place}]." if len(schedules) > 1 else ""
        if each.calendar_name is not None and each.calendar_name not in calendars:
            faults.append(Fault(f"{prefix}calendarName", no_calendar(each.calendar_name)))
        of_job = jobs.get((each.application, each.job_name))
        if of_job is None:
            faults.append(Fault(f"{prefix}jobName", no_job((each.application, each.job_name))))
            continue
        if not of_job.parameters and not each.parameters:
            continue
        try:
            of_job.fill_parameters(each.parameters)
        except Invalid as invalid:
            faults.extend(Fault(prefix + fault.field, fault.message) for fault in invalid.faults)
    if faults:
        raise Invalid("A schedule does not fit its job.", faults)


def _existing(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> list[Fault]:
    """Which ids and names were taken, in the store or twice in the request."""
    faults: list[Fault] = []
    ids: set[str] = set()
    names: set[tuple[str, str, str]] = set()
    taken_ids: set[str] = set()
    taken_names: set[tuple[str, str, str]] = set()
    for start in range(0, len(rows), 400):
        chunk = rows[start : start + 400]
        taken_ids.update(
            connection.execute(
                sa.select(schedule.c.schedule_id).where(
                    schedule.c.schedule_id.in_([row["schedule_id"] for row in chunk])
                )
            ).scalars()
        )
        name = sa.tuple_(schedule.c.application, schedule.c.job_name, schedule.c.schedule_name)
        found = connection.execute(
            sa.select(schedule.c.application, schedule.c.job_name, schedule.c.schedule_name).where(
                name.in_([(row["application"], row["job_name"], row["schedule_name"]) for row in chunk])
            )
        )
        taken_names.update((row.application, row.job_name, row.schedule_name) for row in found)
    for place, row in enumerate(rows):
        prefix = f"[{place}]." if len(rows) > 1 else ""
        key = (row["application"], row["job_name"], row["schedule_name"])
        if row["schedule_id"] in taken_ids or row["schedule_id"] in ids:
            faults.append(Fault(f"{prefix}scheduleId", f"The id {row['schedule_id']!r} is taken."))
        if key in taken_names or key in names:
            faults.append(_name_taken(f"{prefix}scheduleName", row["schedule_name"]))
        ids.add(row["schedule_id"])
        names.add(key)
    return faults


def _name_taken(field: str, name: str) -> Fault:
    return Fault(field, f"The job has a schedule named {name!r} already.")

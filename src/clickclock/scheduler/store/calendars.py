"""Calendars in the store.

Never decides what day is one (`business_days.py` does). Invariants: a calendar that schedules go by cannot go; a change
moves no schedule's high-water mark, so that each time is judged once, by the calendar as it is when the time comes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.errors import Fault
from clickclock.scheduler.access.audit import Resource
from clickclock.scheduler.errors import CalendarExists, CalendarInUse, CalendarNotFound
from clickclock.scheduler.store.auditing import audited
from clickclock.scheduler.store.changes import note
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import definition_of, equal, page, put_row, refuse_stale, stored_calendar
from clickclock.scheduler.store.schema import calendar, schedule
from clickclock.scheduler.times.business_days import Calendar, StoredCalendar


class Calendars:
    """Create, read, replace, delete."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: Calendar, now: datetime) -> StoredCalendar:
        """Raises `CalendarExists`."""
        stored, created = await self._put(new, now, None, replace=False)
        if not created:
            sentence = f"There is a calendar {new.calendar_name!r} already."
            raise CalendarExists(faults=[Fault("calendarName", sentence)])
        return stored

    async def put(self, new: Calendar, now: datetime, if_version: int | None = None) -> tuple[StoredCalendar, bool]:
        """Create or replace; the second value says whether it was created. Raises `StaleVersion`."""
        return await self._put(new, now, if_version, replace=True)

    async def _put(
        self, new: Calendar, now: datetime, if_version: int | None, *, replace: bool
    ) -> tuple[StoredCalendar, bool]:
        def work(connection: sa.Connection) -> tuple[StoredCalendar, bool]:
            mine = calendar.c.calendar_name == new.calendar_name
            row = calendar_row(new, now)
            old = put_row(connection, calendar, mine, lambda _: row, now, if_version, replace=replace)
            if old is None or replace:
                told = "created" if old is None else "changed"
                note(connection, "calendar", told, now, [{"subject": new.calendar_name}])
                audited(Resource.CALENDAR, new.calendar_name, old and old.definition, row["definition"])
            return _with_counts(connection, connection.execute(sa.select(calendar).where(mine)).all())[0], old is None

        return await self._database.write(work)

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> list[StoredCalendar]:
        """Calendars whose columns equal `filters` (calendar_name), by name."""
        query = page(sa.select(calendar).where(*equal(calendar, filters)), [calendar.c.calendar_name], after, limit)
        return await self._database.read(lambda c: _with_counts(c, c.execute(query).all()))

    async def named(self, names: Iterable[str]) -> dict[str, StoredCalendar]:
        """Those of these calendars that there are, by name."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        query = sa.select(calendar).where(calendar.c.calendar_name.in_(wanted))
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {row.calendar_name: stored_calendar(row, 0) for row in rows}

    async def delete(self, calendar_name: str, now: datetime, if_version: int | None = None) -> None:
        """Raises `CalendarNotFound`, `StaleVersion`, `CalendarInUse`, which names the first ten schedules."""

        def work(connection: sa.Connection) -> None:
            mine = calendar.c.calendar_name == calendar_name
            old = connection.execute(sa.select(calendar).where(mine).with_for_update()).one_or_none()
            if old is None:
                raise CalendarNotFound
            refuse_stale(old.version, if_version)
            users = sa.select(schedule.c.schedule_id, schedule.c.application, schedule.c.job_name)
            users = users.where(schedule.c.calendar_name == calendar_name).order_by(schedule.c.schedule_id).limit(10)
            if used := connection.execute(users).all():
                sentences = [f"The schedule {each.schedule_id} of {each.application}/{each.job_name} goes by it."
                             for each in used]  # fmt: skip
                raise CalendarInUse(faults=[Fault("calendarName", each) for each in sentences])
            connection.execute(sa.delete(calendar).where(mine))
            note(connection, "calendar", "deleted", now, [{"subject": calendar_name}])
            audited(Resource.CALENDAR, calendar_name, old.definition, None)

        await self._database.write(work)


def calendar_row(new: Calendar, now: datetime) -> dict[str, Any]:
    """A calendar's columns."""
    return {"calendar_name": new.calendar_name, "definition": definition_of(new), "updated_at": now}


def _with_counts(connection: sa.Connection, rows: Sequence[Any]) -> list[StoredCalendar]:
    names = [row.calendar_name for row in rows]
    query = sa.select(schedule.c.calendar_name, sa.func.count()).where(schedule.c.calendar_name.in_(names))
    users: dict[Any, int] = dict(connection.execute(query.group_by(schedule.c.calendar_name)).all())
    return [stored_calendar(row, users.get(row.calendar_name, 0)) for row in rows]

"""`/schedulerService/calendar`: create, list, create or replace, delete; and the calendars that a call names.

Parse, call, render.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec
from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.permission import Permission
from clickclock.scheduler.api.operation import ANY_VERSION, Call, Operation, etag, success
from clickclock.scheduler.api.paging import listed
from clickclock.scheduler.api.reading import Body, Page, Query, Word, read_value, set_by_service
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import CalendarExists, CalendarInUse, CalendarNotFound, StaleVersion, no_calendar
from clickclock.scheduler.store import Edited
from clickclock.scheduler.times.business_days import Calendar, CalendarRule, Days, StoredCalendar


class CalendarFilters(Page):
    """Which calendars."""

    calendar_name: Word | None = Field(None, description="This calendar.", examples=["germany"])


class CalendarTarget(Query):
    """One calendar that is to go."""

    calendar_name: Word = Field(description="The calendar.", examples=["germany"])


BODY = Body(Calendar)
_SET_BY_SERVICE = set_by_service(StoredCalendar, Calendar)
_EXAMPLES: Mapping[str, Any] = {
    "business days": {
        "calendarName": "germany",
        "timeZone": "Europe/Berlin",
        "businessDays": ["monday", "tuesday", "wednesday", "thursday", "friday"],
        "excludeDates": ["2026-12-25"],
        "includeDates": ["2026-12-19"],
    },
    "every day but some": {"calendarName": "freeze", "excludeDates": ["2026-11-27", "2026-11-30"]},
}


class GoesByCalendar(Protocol):
    """What may name a calendar."""

    @property
    def calendar_name(self) -> str | None: ...

    @property
    def calendar_rule(self) -> CalendarRule: ...


class Calendars(msgspec.Struct, frozen=True):
    """The calendars that a call needs, by name."""

    by_name: Mapping[str, Calendar]

    def days(self, named: GoesByCalendar) -> Days | None:
        """The days that its calendar leaves; None if it names none. Raises `Invalid` if there is no such calendar."""
        if named.calendar_name is None:
            return None
        found = self.by_name.get(named.calendar_name)
        if found is None:
            raise Invalid(faults=[Fault("calendarName", no_calendar(named.calendar_name))])
        return found.days(named.calendar_rule)


async def calendars_of(engine: Engine, names: Iterable[Any]) -> Calendars:
    """Those of these calendars that there are; what is no text names none."""
    return Calendars(await engine.store.calendars.named(name for name in names if isinstance(name, str)))


def named_in(body: bytes) -> list[Any]:
    """The calendars that the schedules in a body name. Raises `Malformed`, `Invalid`."""
    if b"alendarName" not in body:
        return []
    given = read_value(body)
    return [each.get("calendarName") for each in (given if isinstance(given, list) else [given])
            if isinstance(each, dict)]  # fmt: skip


async def create(call: Call[Query]) -> Response:
    """POST: a new calendar."""
    new = BODY.read(call.body, Calendar.check)
    stored = await call.engine.store.calendars.create(new, call.engine.clock.now())
    return success(201, etag(stored.version), calendar=stored)


async def find(call: Call[CalendarFilters]) -> Response:
    """GET: by name."""
    calendars, cursor = await listed(
        "calendar", call.filters, call.engine.store.calendars.find, lambda each: [each.calendar_name]
    )
    named = call.filters.calendar_name is not None and len(calendars) == 1
    return success(200, etag(calendars[0].version) if named else None, calendars=calendars, nextCursor=cursor)


async def put(call: Call[Query]) -> Response:
    """PUT: the whole definition; what is left out has its default."""
    engine = call.engine
    new: Calendar = BODY.read(call.body, Calendar.check, leave_out=_SET_BY_SERVICE)
    if call.if_match == ANY_VERSION and not await engine.store.calendars.named([new.calendar_name]):
        raise CalendarNotFound
    stored, created = await engine.store.calendars.put(new, engine.clock.now(), call.if_version)
    await engine.edited(Edited(calendar_name=new.calendar_name))
    return success(201 if created else 200, etag(stored.version), calendar=stored)


async def delete(call: Call[CalendarTarget]) -> Response:
    """DELETE: a calendar that no schedule goes by."""
    engine = call.engine
    await engine.store.calendars.delete(call.filters.calendar_name, engine.clock.now(), call.if_version)
    return success()


OPERATIONS = (
    Operation(
        "GET",
        "List calendars",
        Permission.CALENDAR_READ,
        find,
        CalendarFilters,
        {200: {"calendars": list[StoredCalendar], "nextCursor": str | None}},
        description="By name, each with the number of schedules that use it.",
        versioned=True,
    ),
    Operation(
        "POST",
        "Create a calendar",
        Permission.CALENDAR_WRITE,
        create,
        Query,
        {201: {"calendar": StoredCalendar}},
        description="Schedules use it by naming it in `calendarName`. One without any business day is refused.",
        body=Calendar,
        examples=_EXAMPLES,
        versioned=True,
        errors=(CalendarExists, Invalid),
    ),
    Operation(
        "PUT",
        "Create or replace a calendar",
        Permission.CALENDAR_WRITE,
        put,
        Query,
        {200: {"calendar": StoredCalendar}, 201: {"calendar": StoredCalendar}},
        description="The body is the whole definition: a field that is left out has its default. Its schedules go by "
        "it from their next time on; past times do not fire. Fields that the service sets may be sent back and are "
        "ignored.",
        body=Calendar,
        examples=_EXAMPLES,
        versioned=True,
        errors=(StaleVersion, CalendarNotFound, Invalid),
    ),
    Operation(
        "DELETE",
        "Delete a calendar",
        Permission.CALENDAR_WRITE,
        delete,
        CalendarTarget,
        {200: {}},
        description="Refused while schedules use it; the answer names them.",
        target_in_body=True,
        versioned=True,
        errors=(CalendarNotFound, CalendarInUse, StaleVersion),
    ),
)

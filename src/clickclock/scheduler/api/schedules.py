"""`/schedulerService/schedules`: list, create, update, delete.

Parse, call, render. Invariants: a schedule that would never fire is refused when it is made or its times change;
an update changes only the fields that it names, and loses nobody else's change.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid, Malformed, collect
from clickclock.foundation.ids import EXAMPLE_ID, new_id
from clickclock.foundation.permission import Permission
from clickclock.scheduler.api.calendar import Calendars, calendars_of, named_in
from clickclock.scheduler.api.faults import wire_names
from clickclock.scheduler.api.operation import Call, Operation, etag, success, success_with_many
from clickclock.scheduler.api.paging import listed
from clickclock.scheduler.api.reading import Body, Page, Query, Word, numbered, read_object, set_by_service
from clickclock.scheduler.api.references import missing, named_too
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import ScheduleExists, ScheduleNotFound, StaleVersion
from clickclock.scheduler.store import Edited, NewSchedule
from clickclock.scheduler.times.calendar import check_steps
from clickclock.scheduler.times.schedule import Schedule, StoredSchedule, Upcoming, upcoming

RACES_MAX = 100
"""Tries of an update without If-Match: more means that something writes without end."""
_TIMES = (
    "kind", "expression", "time_zone", "start_at", "end_at", "exclude_dates", "dst_gap_policy", "dst_fold_policy",
    "calendar_name", "calendar_rule",
)  # fmt: skip


class ScheduleFilters(Page):
    """Which schedules."""

    application: Word | None = Field(None, description="Schedules of this application's jobs.", examples=["shop"])
    job_name: Word | None = Field(None, description="Schedules of jobs of this name.", examples=["nightly-export"])
    schedule_name: Word | None = Field(None, description="Schedules of this name.", examples=["every-night"])
    schedule_id: Word | None = Field(None, description="This schedule.", examples=[EXAMPLE_ID])


class ScheduleNamed(Query):
    """The schedule that an update is for, where the body does not say it."""

    schedule_id: Word | None = Field(None, description="The schedule.", examples=[EXAMPLE_ID])


class ScheduleTarget(Query):
    """One schedule that is to go."""

    schedule_id: Word = Field(description="The schedule.", examples=[EXAMPLE_ID])


BODY = Body(Schedule, stand_ins={"application": "a", "jobName": "j", "expression": "0 0 * * *"})
_SET_BY_SERVICE = set_by_service(StoredSchedule, Schedule)
_NAMES = frozenset(wire_names(Schedule))


async def create(call: Call[Query]) -> Response:
    """POST: one schedule, or an array of them, all or none."""
    engine = call.engine
    now = engine.clock.now()
    new: list[NewSchedule] = []
    calendars = await calendars_of(engine, named_in(call.body))

    def plan(schedule: Schedule) -> None:
        schedule_id = schedule.schedule_id or new_id()
        new.append(NewSchedule(schedule, schedule_id, first_time(schedule, schedule_id, now, now, calendars)))

    async with named_too(engine, call.body, "schedules", call.seen(Permission.JOB_READ)):
        _, as_array = await BODY.read_several(call.body, plan)
    call.principal.require_each(Permission.SCHEDULE_WRITE, (each.schedule.application for each in new))
    with numbered(new, as_array):
        stored = await engine.store.schedules.create(new, now)
    engine.change_schedules()
    if as_array:
        return await success_with_many(201, "schedules", stored)
    return success(201, etag(stored[0].version), schedule=stored[0])


async def find(call: Call[ScheduleFilters]) -> Response:
    """GET: by id, which is the order in which they were made."""
    schedules, cursor = await listed(
        "schedules",
        call.filters,
        call.engine.store.schedules.find,
        lambda each: [each.schedule_id],
        call.seen(Permission.SCHEDULE_READ),
    )
    named = call.filters.schedule_id is not None and len(schedules) == 1
    return success(200, etag(schedules[0].version) if named else None, schedules=schedules, nextCursor=cursor)


async def update(call: Call[ScheduleNamed]) -> Response:
    """PUT: the given fields over the stored ones."""
    given = read_object(call.body, _SET_BY_SERVICE)
    schedule_id = _agreed_id(given.pop("scheduleId", None), call.filters.schedule_id)
    pauses = given.keys() <= {"paused", "pauseReason"}
    await _require(call, Permission.SCHEDULE_PAUSE if pauses else Permission.SCHEDULE_WRITE, schedule_id)
    stored = await changed(call.engine, schedule_id, given, call.if_version)
    return success(200, etag(stored.version), schedule=stored)


async def changed(
    engine: Engine, schedule_id: str, given: Mapping[str, Any], if_version: int | None = None
) -> StoredSchedule:
    """Put the given fields over the stored ones, and wait until the answer is true."""
    for races_left in range(RACES_MAX - 1, -1, -1):
        old = await engine.store.schedules.get(schedule_id)
        if if_version not in {None, old.version}:
            raise StaleVersion
        calendars = await calendars_of(engine, [given.get("calendarName"), old.calendar_name])
        try:
            new = _merged(old, given, engine.clock.now(), calendars)
        except Invalid as invalid:
            with_job = {"application": old.application, "jobName": old.job_name, "parameters": old.parameters}
            schedules = {"": with_job | {name: value for name, value in given.items() if name == "parameters"}}
            invalid.faults += await missing(engine, invalid.faults, jobs={}, schedules=schedules)
            raise
        try:
            stored = await engine.store.schedules.put(new, engine.clock.now(), old.version)
        except StaleVersion:
            # Somebody else was faster. A caller without a version wants the fields changed, whatever the others are
            # now.
            if if_version is not None or not races_left:
                raise
            continue
        break
    await engine.edited(Edited(schedule_id=schedule_id))
    return stored


async def delete(call: Call[ScheduleTarget]) -> Response:
    """DELETE: what it triggered already goes on."""
    await _require(call, Permission.SCHEDULE_WRITE, call.filters.schedule_id)
    await call.engine.store.schedules.delete(call.filters.schedule_id, call.engine.clock.now(), call.if_version)
    await call.engine.edited(Edited(schedule_id=call.filters.schedule_id))
    return success()


async def _require(call: Call[Any], permission: Permission, schedule_id: str) -> None:
    """Raise `Forbidden` unless the caller may do this to that schedule."""
    if call.principal.scope(permission) is not None:
        of = await call.engine.store.schedules.get(schedule_id)
        call.require_of(permission, of.application, Permission.SCHEDULE_READ, ScheduleNotFound)


def _agreed_id(in_body: Any, in_query: str | None) -> str:
    if in_body is not None and not isinstance(in_body, str):
        raise Invalid(faults=[Fault("scheduleId", "Give text, in quotes.")])
    if in_body is not None and in_query not in {None, in_body}:
        raise Malformed(faults=[Fault("scheduleId", "The query string and the body give different values; give one.")])
    named = in_body if in_query is None else in_query
    if named is None:
        raise Invalid(faults=[Fault("scheduleId", "This is required, in the body or as a query parameter; give it.")])
    return named


def _merged(old: StoredSchedule, given: Mapping[str, Any], now: datetime, calendars: Calendars) -> NewSchedule:
    own = old.model_dump(mode="json", by_alias=True, exclude_unset=True)
    own = {name: value for name, value in own.items() if name not in _SET_BY_SERVICE}
    if given.get("paused") is False and "pauseReason" not in given:
        own.pop("pauseReason", None)
    sentence = "A schedule stays with its job; delete it, and create one for the other job."
    moved = [
        Fault(name, sentence)
        for name in ("application", "jobName")
        if given.get(name) is not None and given[name] != own[name]
    ]

    def check(schedule: Schedule) -> None:
        if has_other_times(schedule, old):
            first_time(schedule, old.schedule_id, old.created_at, now, calendars)

    # A field that nobody knows stays, even if it is null, and is refused.
    merged = {name: value for name, value in {**own, **given}.items() if value is not None or name not in _NAMES}
    try:
        new: Schedule = BODY.validate({**merged, "scheduleId": old.schedule_id}, check)
    except Invalid as invalid:
        raise Invalid(faults=[*moved, *invalid.faults]) from invalid
    if moved:
        raise Invalid(faults=moved)
    return NewSchedule(new, old.schedule_id)


def has_other_times(new: Schedule, old: Schedule) -> bool:
    """Whether a change is one of the times at which it is due."""
    return any(getattr(new, name) != getattr(old, name) for name in _TIMES)


def first_time(schedule: Schedule, schedule_id: str, anchor: datetime, now: datetime, calendars: Calendars) -> Upcoming:
    """Its first time. Raises `Invalid` where nothing would ever be due."""
    faults: list[Fault] = []
    days = collect(faults, lambda: calendars.days(schedule))
    times = collect(faults, lambda: schedule.timetable(anchor, days))
    if times is not None:
        collect(faults, lambda: check_steps(schedule.kind, schedule.expression))
    if faults or times is None:
        raise Invalid(faults=faults)
    first = upcoming(schedule, schedule_id, times, now)
    if first is None:
        sentence = "This is never due from now on; give a time that is still to come, or a later endAt."
        raise Invalid(faults=[Fault("expression", sentence)])
    if schedule.calendar_name is not None and times.fires_after(now) is None:
        sentence = f"The calendar {schedule.calendar_name} leaves out every time; change its days, or the expression."
        raise Invalid(faults=[Fault("calendarName", sentence)])
    return first


OPERATIONS = (
    Operation(
        "GET",
        "List schedules",
        Permission.SCHEDULE_READ,
        find,
        ScheduleFilters,
        {200: {"schedules": list[StoredSchedule], "nextCursor": str | None}},
        description="In the order of their ids. With `scheduleId` the answer has the schedule's ETag.",
        versioned=True,
    ),
    Operation(
        "POST",
        "Create a schedule, or several",
        Permission.SCHEDULE_WRITE,
        create,
        Query,
        {201: {"schedule": StoredSchedule, "schedules": list[StoredSchedule]}},
        description="One object, or an array of up to 10,000: all of them or none. An object is answered with "
        "`schedule`, an array with `schedules`. Nothing that is past fires.",
        body=Schedule,
        examples={
            "every night in Berlin": {
                "application": "shop",
                "jobName": "nightly-export",
                "scheduleName": "every-night",
                "expression": "30 2 * * *",
                "timeZone": "Europe/Berlin",
            },
            "every 15 minutes": {
                "application": "shop",
                "jobName": "nightly-export",
                "kind": "interval",
                "expression": "PT15M",
            },
            "the last business day of each month": {
                "application": "shop",
                "jobName": "nightly-export",
                "kind": "rrule",
                "expression": "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=17;BYMINUTE=0;BYSECOND=0",
                "timeZone": "Europe/Berlin",
            },
        },
        several=True,
        versioned=True,
        errors=(ScheduleExists, Invalid),
    ),
    Operation(
        "PUT",
        "Update a schedule",
        Permission.SCHEDULE_PAUSE,
        update,
        ScheduleNamed,
        {200: {"schedule": StoredSchedule}},
        description="The fields that are given change, the others stay; `null` takes a field back to its default, and "
        "an object such as `catchUp` is replaced as a whole. `paused` pauses and resumes: what was due meanwhile is "
        "skipped, and nothing that is past fires. The answer comes when nothing starts any more by what was there "
        "before: up to half a second later, if a run is on its way. Fields that the service sets are ignored. Any "
        "field but `paused` and `pauseReason` needs `schedule.write`.",
        body=Schedule,
        partial=True,
        examples={
            "pause": {"scheduleId": "every-night", "paused": True, "pauseReason": "Database maintenance."},
            "resume": {"scheduleId": "every-night", "paused": False},
            "other times": {"scheduleId": "every-night", "expression": "0 3 * * *"},
        },
        versioned=True,
        errors=(ScheduleNotFound, StaleVersion, ScheduleExists, Invalid),
    ),
    Operation(
        "DELETE",
        "Delete a schedule",
        Permission.SCHEDULE_WRITE,
        delete,
        ScheduleTarget,
        {200: {}},
        description="Its existing triggers are not affected; one that is on its way has started when the answer comes.",
        target_in_body=True,
        versioned=True,
        errors=(ScheduleNotFound, StaleVersion),
    ),
)

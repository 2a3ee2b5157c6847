"""`/schedulerService/backfill`: start, list, change, cancel.

Parse, call, render. Invariant: what a dry run says would run is what the same call without it runs.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Record
from clickclock.scheduler.api.calendar import calendars_of
from clickclock.scheduler.api.faults import wire_names
from clickclock.scheduler.api.operation import Call, Operation, etag, success
from clickclock.scheduler.api.paging import listed
from clickclock.scheduler.api.reading import Body, Page, Query, Word, read_object
from clickclock.scheduler.errors import BackfillIsOver, BackfillNotFound, ScheduleNotFound, StaleVersion
from clickclock.scheduler.times.backfill import (
    Backfill,
    BackfillState,
    DryRun,
    Pace,
    StoredBackfill,
    check_range,
    count_times,
)


class BackfillFilters(Page):
    """Which backfills."""

    backfill_id: Word | None = Field(None, description="This backfill.", examples=[EXAMPLE_ID])
    application: Word | None = Field(None, description="Backfills of this application's jobs.", examples=["shop"])
    job_name: Word | None = Field(None, description="Backfills of jobs of this name.", examples=["nightly-export"])
    schedule_id: Word | None = Field(None, description="Backfills of this schedule.", examples=["every-night"])
    state: BackfillState | None = Field(None, description="Backfills in this state.", examples=["running"])


class BackfillTarget(Query):
    """One backfill that is to end."""

    backfill_id: Word = Field(description="The backfill.", examples=[EXAMPLE_ID])


class BackfillRequest(Backfill):
    """A backfill that is to start, or, with `dryRun`, only to be looked at."""

    dry_run: bool = Field(False, description="Say what would run, and run nothing.", examples=[True])


class BackfillChange(Record):
    """Changes of a backfill; absent fields stay."""

    backfill_id: Word = Field(description="The backfill.", examples=[EXAMPLE_ID])
    paused: bool | None = Field(None, description="True pauses it, false resumes it.", examples=[True])
    max_concurrent_triggers: int | None = Field(
        None, ge=1, le=1000, description="How many of its triggers may be unfinished at once.", examples=[4]
    )
    max_triggers_per_second: float | None = Field(
        None, gt=0, le=200, description="How many of its times may become triggers per second.", examples=[20]
    )


BODY = Body(BackfillRequest)
CHANGE = Body(BackfillChange)


async def create(call: Call[Query]) -> Response:
    """POST: counted first, then kept, and led on by the backfiller."""
    engine = call.engine
    now = engine.clock.now()
    asked: BackfillRequest = BODY.read(call.body, lambda given: check_range(given, now))
    schedule = await engine.store.schedules.get(asked.schedule_id)
    call.require_of(Permission.BACKFILL_WRITE, schedule.application, Permission.SCHEDULE_READ, ScheduleNotFound)
    calendars = await calendars_of(engine, [schedule.calendar_name])
    times = schedule.timetable(schedule.created_at, calendars.days(schedule))
    counted = await asyncio.to_thread(count_times, times, asked.since, asked.until, engine.limits.backfill_times_max)
    if asked.dry_run:
        already = await engine.store.backfills.already_triggered(asked.schedule_id, asked.since, asked.until)
        told = DryRun(
            total=counted.total,
            excluded=counted.excluded,
            already_triggered=min(already, counted.total),
            times=list(counted.first),
        )
        return success(200, dryRun=told)
    new = Backfill.model_validate(asked.model_dump(exclude_unset=True, exclude={"dry_run"}))
    stored = await engine.store.backfills.create(new, counted, now)
    engine.wake_backfiller()
    return success(201, etag(stored.version), backfill=stored)


async def find(call: Call[BackfillFilters]) -> Response:
    """GET: newest first, each with how far it is."""
    backfills, cursor = await listed(
        "backfill",
        call.filters,
        call.engine.store.backfills.find,
        lambda each: [each.backfill_id],
        call.seen(Permission.BACKFILL_READ),
    )
    named = call.filters.backfill_id is not None and len(backfills) == 1
    return success(200, etag(backfills[0].version) if named else None, backfills=backfills, nextCursor=cursor)


async def change(call: Call[Query]) -> Response:
    """PUT: pause, resume, go faster or slower."""
    engine = call.engine
    given = read_object(call.body)
    asked: BackfillChange = CHANGE.validate(given, lambda _: _refuse_nothing(given))
    await _require(call, asked.backfill_id)
    pace: dict[str, Any] = {
        "max_concurrent": asked.max_concurrent_triggers,
        "per_second": asked.max_triggers_per_second,
    }
    stored = await engine.store.backfills.change(
        asked.backfill_id,
        engine.clock.now(),
        paused=asked.paused,
        pace={name: value for name, value in pace.items() if value is not None},
        if_version=call.if_version,
    )
    engine.wake_backfiller()
    return success(200, etag(stored.version), backfill=stored)


async def _require(call: Call[Any], backfill_id: str) -> None:
    """Raise `BackfillNotFound` or `Forbidden` unless the caller may change that backfill."""
    if call.seen(Permission.BACKFILL_WRITE) is not None:
        found = await call.engine.store.backfills.find({"backfill_id": backfill_id}, None, 1)
        if not found:
            raise BackfillNotFound
        call.require_of(Permission.BACKFILL_WRITE, found[0].application, Permission.BACKFILL_READ, BackfillNotFound)


def _refuse_nothing(given: Mapping[str, Any]) -> None:
    """Report given fields that are faulty."""
    if all(given.get(name) is None for name in ("paused", *wire_names(Pace))):
        names = "paused, maxConcurrentTriggers or maxTriggersPerSecond"
        raise Invalid(faults=[Fault("", f"Nothing is to change; give {names}.")])


async def cancel(call: Call[BackfillTarget]) -> Response:
    """DELETE: no more of its triggers start, and those that run are stopped."""
    engine = call.engine
    await _require(call, call.filters.backfill_id)
    stored = await engine.store.backfills.cancel(call.filters.backfill_id, engine.clock.now(), call.if_version)
    engine.stop_attempts()
    return success(202, backfill=stored)


OPERATIONS = (
    Operation(
        "GET",
        "List backfills",
        Permission.BACKFILL_READ,
        find,
        BackfillFilters,
        {200: {"backfills": list[StoredBackfill], "nextCursor": str | None}},
        description="Newest first, each with how far it is.",
        versioned=True,
    ),
    Operation(
        "POST",
        "Start a backfill, or look at what it would run",
        Permission.BACKFILL_WRITE,
        create,
        Query,
        {200: {"dryRun": DryRun}, 201: {"backfill": StoredBackfill}},
        description="Runs a schedule's nominal times from `from` to `to`, both included, oldest first, in a lane of "
        "its own: behind all other triggers, and never in a cluster's last free slots. A time that has a trigger "
        "already is left out; one that was only skipped runs. At most `backfill_times_max` times.",
        body=BackfillRequest,
        examples={
            "a month": {"scheduleId": "every-night", "from": "2026-10-01T00:00:00Z", "to": "2026-10-31T23:59:59Z"},
            "four at once": {
                "scheduleId": "every-night",
                "from": "2026-10-01T00:00:00Z",
                "to": "2026-10-31T23:59:59Z",
                "maxConcurrentTriggers": 4,
                "reason": "rerun after a fix",
            },
        },
        versioned=True,
        errors=(ScheduleNotFound, Invalid),
    ),
    Operation(
        "PUT",
        "Pause, resume or pace a backfill",
        Permission.BACKFILL_WRITE,
        change,
        Query,
        {200: {"backfill": StoredBackfill}},
        description="While it is paused, no more of its times become triggers; those queued or running continue.",
        body=BackfillChange,
        examples={
            "pause": {"backfillId": EXAMPLE_ID, "paused": True},
            "go on, faster": {"backfillId": EXAMPLE_ID, "paused": False, "maxConcurrentTriggers": 8},
        },
        versioned=True,
        errors=(BackfillNotFound, BackfillIsOver, StaleVersion, Invalid),
    ),
    Operation(
        "DELETE",
        "Cancel a backfill",
        Permission.BACKFILL_WRITE,
        cancel,
        BackfillTarget,
        {202: {"backfill": StoredBackfill}},
        description="Its queued triggers are cancelled, and those that run are stopped.",
        target_in_body=True,
        versioned=True,
        errors=(BackfillNotFound, BackfillIsOver, StaleVersion),
    ),
)

"""`/schedulerService/schedulePreview`: the next times of a schedule that need not exist.

Parse, call, render. Never writes anything.
"""

import asyncio
from collections.abc import Iterator
from datetime import date, datetime
from itertools import islice
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid, collect
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.api.calendar import calendars_of
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.business_days import CalendarRule
from clickclock.scheduler.times.calendar import (
    FoldPolicy,
    GapPolicy,
    Occurrence,
    ScheduleKind,
    Timetable,
    check_steps,
    reading,
    timetable,
)

CHUNK = 50
"""Times computed in one go (about 2 ms); then the loop runs whatever else waits."""


class PreviewFilters(Query):
    """A schedule's times, as its fields say them."""

    kind: ScheduleKind = Field(ScheduleKind.CRON, description="How `expression` is read.", examples=["cron"])
    expression: str = Field(
        max_length=1024,
        description="A cron line (optionally with leading seconds), an ISO 8601 duration or seconds, an instant, or an "
        "RFC 5545 rule.",
        examples=["30 2 * * *"],
    )
    time_zone: str = Field("UTC", max_length=64, description="IANA time zone.", examples=["Europe/Berlin"])
    since: Instant | None = Field(
        None,
        alias="from",
        description="Times after this; now if not given. An interval or a rule without a start counts from it.",
        examples=["2026-03-28T00:00:00.000Z"],
    )
    count: int = Field(10, ge=1, le=1000, description="How many times.", examples=[10])
    start_at: Instant | None = Field(
        None, description="No time before this counts.", examples=["2026-11-20T10:00:00.000Z"]
    )
    end_at: Instant | None = Field(
        None, description="No time after this counts.", examples=["2027-11-20T10:00:00.000Z"]
    )
    exclude_dates: Annotated[
        list[date], BeforeValidator(lambda given: given.split(",") if isinstance(given, str) else given)
    ] = Field(
        default_factory=list,
        max_length=1000,
        description="Local dates to leave out; with commas between where it is a plain query parameter.",
        examples=[["2026-12-25"]],
    )
    calendar_name: Word | None = Field(
        None, description="The calendar whose days decide, beside `excludeDates`.", examples=["germany"]
    )
    calendar_rule: CalendarRule = Field(
        CalendarRule.BUSINESS_DAYS,
        description="The calendar's business days, its other days, or a month's first or last business day.",
        examples=["businessDays"],
    )
    dst_gap_policy: GapPolicy = Field(
        GapPolicy.FIRE_AFTER_GAP,
        description="A fixed local time that the clock jumps over.",
        examples=["fireAfterGap"],
    )
    dst_fold_policy: FoldPolicy = Field(
        FoldPolicy.FIRST, description="A fixed local time that the clock shows twice.", examples=["first"]
    )


class PreviewTime(Record):
    """One nominal time."""

    time: Instant = Field(description="The time in UTC.", examples=["2026-03-29T01:00:00.000Z"])
    local_time: str = Field(description="The time on the wall.", examples=["2026-03-29T03:00:00+02:00"])
    note: str | None = Field(
        None,
        description="What daylight saving or a calendar did to it, if anything.",
        examples=["02:30 does not exist on this day; the first moment after the gap stands in for it."],
    )
    skip_reason: SkipReason | None = Field(
        None, description="Why the job does not run then; null if it does.", examples=["excluded"]
    )

    @classmethod
    def of(cls, occurrence: Occurrence) -> Self:
        """An occurrence, as it is shown."""
        return cls(
            time=occurrence.at,
            local_time=occurrence.local.isoformat(),
            note=occurrence.note,
            skip_reason=occurrence.skip_reason,
        )


def times_after(times: Timetable, after: datetime) -> Iterator[PreviewTime]:
    """All times strictly after `after`, those included that are skipped."""
    occurrence = times.after(after)
    while occurrence is not None:
        yield PreviewTime.of(occurrence)
        occurrence = times.after(occurrence.at)


async def preview(call: Call[PreviewFilters]) -> Response:
    """GET: the times."""
    wanted = call.filters
    since = wanted.since or call.engine.clock.now()
    calendars = await calendars_of(call.engine, [wanted.calendar_name])
    faults: list[Fault] = []
    days = collect(faults, lambda: calendars.days(wanted))
    planned = collect(
        faults,
        lambda: timetable(
            kind=wanted.kind,
            expression=wanted.expression,
            time_zone=wanted.time_zone,
            start_at=wanted.start_at,
            end_at=wanted.end_at,
            exclude_dates=wanted.exclude_dates,
            days=days,
            gap_policy=wanted.dst_gap_policy,
            fold_policy=wanted.dst_fold_policy,
            anchor=since,
        ),
    )
    if planned is not None:
        collect(faults, lambda: check_steps(wanted.kind, wanted.expression))
    if faults or planned is None:
        raise Invalid(faults=faults)
    times = times_after(planned, since)
    found: list[Any] = []
    while len(found) < wanted.count:
        chunk = list(islice(times, min(CHUNK, wanted.count - len(found))))
        if not chunk:
            break
        found += chunk
        await asyncio.sleep(0)
    return success(times=found, reading=reading(wanted.kind, wanted.expression))


OPERATIONS = (
    Operation(
        "GET",
        "Preview a schedule's times",
        Permission.SCHEDULE_READ,
        preview,
        PreviewFilters,
        {200: {"times": list[PreviewTime], "reading": list[str]}},
        description="The next times after `from`, each with its local time, and a note where daylight saving moved or "
        "dropped it. `reading` says what a cron line means where not every cron knows it. Jitter is not in them: it "
        "depends on the schedule's id.",
        errors=(Invalid,),
    ),
)

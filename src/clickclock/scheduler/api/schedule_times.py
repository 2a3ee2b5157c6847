"""`/schedulerService/scheduleTimes`: what became of each nominal time of some schedules.

Parse, call, render. Never computes a time: those that come are foreseen by `/forecast`.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Malformed
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.instant import MILLISECOND
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record, rfc3339
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.jobs.trigger import Kind, SkipReason, State

SCHEDULES_MAX = 50
TIMES_MAX = 10_000
"""Times in one answer, over all its schedules."""


class TimesFilters(Query):
    """Which schedules, and of when."""

    schedule_id: Annotated[
        list[Word], BeforeValidator(lambda given: given.split(",") if isinstance(given, str) else given)
    ] = Field(
        min_length=1,
        max_length=SCHEDULES_MAX,
        description="The schedules; with commas between where it is a plain query parameter.",
        examples=[["every-night", "every-hour"]],
    )
    since: Instant | None = Field(
        None, alias="from", description="Nominal times at this or later.", examples=["2026-11-20T00:00:00.000Z"]
    )
    until: Instant | None = Field(
        None, alias="to", description="Nominal times before this.", examples=["2026-11-21T00:00:00.000Z"]
    )
    limit: int = Field(48, ge=1, le=1000, description="At most this many times of each schedule.", examples=[48])


class ScheduleTime(Record):
    """What became of one nominal time, or of several that were skipped together."""

    nominal_time: Instant = Field(description="The nominal time.", examples=["2026-11-20T02:30:00.000Z"])
    trigger_id: str = Field(description="Its trigger.", examples=[EXAMPLE_ID])
    kind: Kind = Field(description="What decided it: its schedule, or a backfill.", examples=["schedule"])
    state: State = Field(description="Where it stands.", examples=["succeeded"])
    skip_reason: SkipReason | None = Field(description="Why it did not become a run.", examples=["overlap"])
    skipped_count: int | None = Field(description="Times that share this row, if more than one was skipped.")
    skipped_through: Instant | None = Field(description="The last of the times that share this row.")
    due_time: Instant = Field(description="Nominal time plus jitter.")
    started_at: Instant | None = Field(description="When the current or last attempt's process started.")
    finished_at: Instant | None = Field(description="When it ended for good.")
    lag_ms: int | None = Field(description="Start of the first attempt minus due time, in ms.", examples=[4])
    duration_ms: int | None = Field(description="End minus start of the last attempt, in ms.", examples=[1250])
    attempt: int = Field(description="Number of the current or last attempt; 0 before the first.", examples=[1])
    message: str | None = Field(description="What there is to say about its end.")


class ScheduleTimes(Record):
    """The times of one schedule."""

    schedule_id: str = Field(description="The schedule.", examples=["every-night"])
    times: list[ScheduleTime] = Field(description="Its nominal times that were decided, newest first.")
    has_more: bool = Field(description="Whether there are older ones, for which `limit` had no room.", examples=[False])


def check(wanted: TimesFilters) -> None:
    """Raise `Malformed` for what is wrong with the filters together."""
    faults = []
    if len(wanted.schedule_id) * wanted.limit > TIMES_MAX:
        most = TIMES_MAX // len(wanted.schedule_id)
        sentence = f"One answer has at most {TIMES_MAX} times: give at most {most} for so many schedules."
        faults.append(Fault("limit", sentence))
    if wanted.since is not None and wanted.until is not None and wanted.until <= wanted.since:
        faults.append(Fault("to", f"This is not after from, {rfc3339(wanted.since)}; give a later time."))
    if faults:
        raise Malformed(faults=faults)


async def read(call: Call[TimesFilters]) -> Response:
    """GET: schedule by schedule, in the order asked for."""
    wanted = call.filters
    check(wanted)
    ids = list(dict.fromkeys(wanted.schedule_id))
    found = await call.engine.store.overview.times_of(
        ids, wanted.since, wanted.until, wanted.limit, call.seen(Permission.SCHEDULE_READ)
    )
    schedules = [
        ScheduleTimes.trusted(schedule_id=schedule_id, times=[schedule_time(row) for row in rows], has_more=has_more)
        for schedule_id, (rows, has_more) in zip(ids, found, strict=True)
    ]
    return success(schedules=schedules)


def schedule_time(row: Any) -> ScheduleTime:
    """A row of a trigger as one time of its schedule."""
    ran = row.started_at is not None and row.finished_at is not None
    told = dict(zip(row._fields, row, strict=True))
    told["duration_ms"] = (row.finished_at - row.started_at) // MILLISECOND if ran else None
    return ScheduleTime.trusted(**{name: told[name] for name in _FIELDS})


_FIELDS = tuple(ScheduleTime.model_fields)


OPERATIONS = (
    Operation(
        "GET",
        "Read what became of nominal times",
        Permission.SCHEDULE_READ,
        read,
        TimesFilters,
        {200: {"schedules": list[ScheduleTimes]}},
        description="Each nominal time of up to 50 schedules that was decided, newest first, with its trigger's state "
        "or the reason why it was skipped. A schedule that is not there has no times. A row that stands for several "
        "skipped times is in the answer if its last one is in the range.",
    ),
)

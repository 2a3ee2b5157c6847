"""`/schedulerService/forecast`: the times at which schedules will be due.

Parse, call, render. Never writes anything. Invariants: one answer is bounded in times and in seconds; all before its
`to` is in it, so that whoever asks again from there misses nothing.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Malformed
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.instant import ms_of, shifted
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record, rfc3339
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import seen_by
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.api.schedule_preview import PreviewTime
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.calendar import ScheduleKind
from clickclock.scheduler.times.forecast import Coming, ForecastWidth, Foreseen, foresee, summed

WINDOW = timedelta(days=1)
WINDOW_MAX_DAYS = 92
TIMES_MAX = 10_000
SECONDS_MAX = 0.2
"""How long one answer may compute, once the schedules that begin with it are read."""
SCHEDULES_MAX = 2000
"""As many timetables are kept; reading more of them would take seconds."""
CHUNK = 40
"""Times computed in one go (about 2 ms); then the loop runs whatever else waits."""


class ForecastFilters(Query):
    """Whose times, and when."""

    application: Word | None = Field(None, description="Schedules of this application's jobs.", examples=["shop"])
    job_name: Word | None = Field(None, description="Schedules of jobs of this name.", examples=["nightly-export"])
    group_name: Word | None = Field(None, description="Schedules of jobs in this group.", examples=["exports"])
    schedule_id: Word | None = Field(None, description="This schedule.", examples=[EXAMPLE_ID])
    since: Instant | None = Field(
        None, alias="from", description="Times at this or later; now if not given.", examples=["2026-11-20T00:00:00Z"]
    )
    until: Instant | None = Field(
        None,
        alias="to",
        description="Times before this; a day after `from` if not given.",
        examples=["2026-11-21T00:00:00Z"],
    )
    lanes: int | None = Field(
        None,
        ge=1,
        le=SCHEDULES_MAX,
        description="At most this many schedules: those that are due first, all in the range if not given. The buckets "
        "have their times alone.",
        examples=[24],
    )
    bucket: ForecastWidth = Field(ForecastWidth.HOUR, description="Width of the buckets, in UTC.", examples=["hour"])

    def window(self, now: datetime) -> tuple[datetime, datetime]:
        """Beginning and end: nothing is foreseen of the past."""
        since = max(self.since or now, now)
        return since, self.until or shifted(since, WINDOW)


class ForecastLane(Record):
    """A schedule's times, as long as the answer goes."""

    schedule_id: str = Field(description="The schedule.", examples=[EXAMPLE_ID])
    schedule_name: str = Field(description="Its name, unique in its job.", examples=["every-night"])
    application: str = Field(description="The job's application.", examples=["shop"])
    job_name: str = Field(description="The job.", examples=["nightly-export"])
    kind: ScheduleKind = Field(description="How `expression` is read.", examples=["cron"])
    expression: str = Field(description="When it is due.", examples=["30 2 * * *"])
    time_zone: str = Field(description="The zone of its local times.", examples=["Europe/Berlin"])
    skip_reason: SkipReason | None = Field(
        description="Why all its times are skipped as things stand, and none are listed; null if they are not.",
        examples=["paused"],
    )
    times_ms: list[int] = Field(
        description="When the job will be due, jitter included, in ms since 1970.", examples=[[1_795_138_200_000]]
    )
    remarks: list[PreviewTime] = Field(
        description="Nominal times that daylight saving or a calendar moved or dropped. A dropped time has a "
        "`skipReason` and is not among `timesMs`."
    )


class ForecastBucket(Record):
    """How many times come in one minute or hour."""

    start: Instant = Field(alias="from", description="Its beginning.", examples=["2026-11-20T02:00:00.000Z"])
    count: int = Field(description="Times that come in it.", examples=[12])


class Forecast(Record):
    """What will be due."""

    since: Instant = Field(alias="from", description="Beginning of the answer.", examples=["2026-11-20T00:00:00.000Z"])
    until: Instant = Field(
        alias="to",
        description="Its end, not in it: as asked for, or, if it is truncated, where to ask from next.",
        examples=["2026-11-21T00:00:00.000Z"],
    )
    truncated: bool = Field(
        description="Whether it ends before `to` was reached: there are more than 10,000 times, or it took longer "
        "than 0.2 s.",
        examples=[False],
    )
    lanes: list[ForecastLane] = Field(description="The schedules with times, those that come first first.")
    has_more: bool = Field(
        description="Whether further schedules are due before `to`, for which `lanes` had no room.", examples=[False]
    )
    buckets: list[ForecastBucket] = Field(description="All times summed up, oldest first; empty ones are left out.")


def check(wanted: ForecastFilters, now: datetime) -> Sequence[Fault]:
    """The faults of the filters together."""
    since, until = wanted.window(now)
    if until <= since:
        return [Fault("to", f"This is not after {rfc3339(since)}; give a later time: only what comes is foreseen.")]
    if until - since > timedelta(days=WINDOW_MAX_DAYS):
        return [Fault("to", f"A forecast is of at most {WINDOW_MAX_DAYS} days; give an earlier time.")]
    return []


async def read(call: Call[ForecastFilters]) -> Response:
    """GET: as far as one answer goes."""
    wanted, engine = call.filters, call.engine
    since, asked = wanted.window(engine.clock.now())
    names = ("application", "job_name", "group_name", "schedule_id")
    given = {name: value for name in names if (value := getattr(wanted, name)) is not None}
    seen = seen_by(given, call.seen(Permission.SCHEDULE_READ))
    coming, until = ([], asked) if seen is None else await _coming(engine, seen, since, asked, wanted.lanes)
    has_more = wanted.lanes is not None and len(coming) > wanted.lanes
    coming = coming[: wanted.lanes]
    found, until = await _foreseen(engine, coming, since, until)
    fires = [each for each in found if each.occurrence.skip_reason is None]
    buckets = [
        ForecastBucket.trusted(start=start, count=count)
        for start, count in summed((each.due for each in fires), wanted.bucket)
    ]
    forecast = Forecast.trusted(
        since=since,
        until=until,
        truncated=until < asked,
        lanes=_lanes(coming, found, until),
        has_more=has_more,
        buckets=buckets,
    )
    return success(forecast=forecast)


async def _coming(
    engine: Engine, given: Mapping[str, Any], since: datetime, until: datetime, lanes: int | None
) -> tuple[Sequence[Coming], datetime]:
    """The schedules, and how far they suffice. Raises `Malformed` where that is not even the beginning.

    With `lanes` there may be one more than that.
    """
    if lanes is not None:
        return await engine.store.overview.coming(given, until, lanes + 1), until
    coming = await engine.store.overview.coming(given, until, SCHEDULES_MAX + 1)
    if len(coming) <= SCHEDULES_MAX:
        return coming, until
    reach = coming[-1].next_due
    if reach <= since:
        sentence = (
            f"More than {SCHEDULES_MAX} schedules are due before this; name an application, a job or a group, or give "
            "an earlier time."
        )
        raise Malformed(faults=[Fault("from", sentence)])
    return coming[:-1], reach


async def _foreseen(
    engine: Engine, coming: Sequence[Coming], since: datetime, until: datetime
) -> tuple[Sequence[Foreseen], datetime]:
    """The times, and the end of what is complete."""
    found: list[Foreseen] = []
    begun_s: float | None = None
    for step, each in enumerate(foresee(coming, since, until), 1):
        if step % CHUNK == 0:
            await asyncio.sleep(0)
        if each is None:
            continue
        if begun_s is None:
            begun_s = engine.clock.monotonic_s()
        is_late = step % CHUNK == 0 and engine.clock.monotonic_s() - begun_s > SECONDS_MAX
        if (is_late or len(found) >= TIMES_MAX) and each.due > found[-1].due:
            return found, each.due
        found.append(each)
    return found, until


def _lanes(coming: Sequence[Coming], found: Sequence[Foreseen], until: datetime) -> list[ForecastLane]:
    lanes: dict[int, ForecastLane] = {}
    for number, each in enumerate(coming):
        if each.skip_reason is not None and each.next_due < until:
            lanes[number] = _lane(each)
    for due, number, occurrence in found:
        lane = lanes.get(number) or lanes.setdefault(number, _lane(coming[number]))
        if occurrence.skip_reason is None:
            lane.times_ms.append(ms_of(due))
        if occurrence.skip_reason is not None or occurrence.note is not None:
            lane.remarks.append(PreviewTime.of(occurrence))
    return [lanes[number] for number in sorted(lanes)]


def _lane(of: Coming) -> ForecastLane:
    return ForecastLane.trusted(
        schedule_id=of.schedule_id,
        schedule_name=of.schedule_name,
        application=of.schedule.application,
        job_name=of.schedule.job_name,
        kind=of.schedule.kind,
        expression=of.schedule.expression,
        time_zone=of.schedule.time_zone,
        skip_reason=of.skip_reason,
        times_ms=[],
        remarks=[],
    )


OPERATIONS = (
    Operation(
        "GET",
        "Foresee what will be due",
        Permission.SCHEDULE_READ,
        read,
        ForecastFilters,
        {200: {"forecast": Forecast}},
        check=check,
        description="The times of all schedules from now on, or of some, with daylight saving, calendars and jitter. "
        "Dependent jobs and calls are not in it. Where one answer does not reach `to`, it says how far it goes; ask "
        "again from there.",
    ),
)

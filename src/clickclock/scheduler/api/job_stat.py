"""`/schedulerService/jobStat`: what happened to a job's triggers, or to those of an application or group.

Parse, call, render. Never reads triggers that ended: the rollups have them.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Malformed
from clickclock.foundation.record import Instant
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.errors import GroupNotFound, JobNotFound
from clickclock.scheduler.statistics import (
    DAY,
    HOUR,
    Scope,
    Summary,
    SummaryBucket,
    group_by,
    summarise,
    summarise_each,
)

WINDOW = timedelta(days=7)
WINDOW_MAX_DAYS = {"hour": 92, "day": 3660}
"""So that no answer has more than some 2,000 hours or 3,700 days in it."""
EARLIEST = datetime(1970, 1, 8, tzinfo=UTC)


class Width(StrEnum):
    """How wide a bucket is."""

    HOUR = "hour"
    DAY = "day"


class StatFilters(Query):
    """Whose statistics, and of when."""

    application: Word | None = Field(None, description="The job's application, or all its jobs.", examples=["shop"])
    job_name: Word | None = Field(None, description="The job; needs `application`.", examples=["nightly-export"])
    group_name: Word | None = Field(None, description="All jobs that are in this group now.", examples=["exports"])
    since: Instant | None = Field(
        None,
        alias="from",
        description="Beginning of the window, taken back to the full hour; 7 days before `to` if not given.",
        examples=["2026-11-13T00:00:00.000Z"],
    )
    until: Instant | None = Field(
        None,
        alias="to",
        description="End of the window, its last hour counted as a whole; now if not given.",
        examples=["2026-11-20T00:00:00.000Z"],
    )
    bucket: Width = Field(Width.DAY, description="Width of the buckets, in UTC.", examples=["day"])


class JobStat(Summary):
    """A window's numbers, and how things stand now."""

    application: str | None = Field(None, description="The application asked for.", examples=["shop"])
    job_name: str | None = Field(None, description="The job asked for.", examples=["nightly-export"])
    group_name: str | None = Field(None, description="The group asked for.", examples=["exports"])
    since: Instant = Field(alias="from", description="Beginning of the window.", examples=["2026-11-13T00:00:00.000Z"])
    until: Instant = Field(alias="to", description="End of the window.", examples=["2026-11-20T00:00:00.000Z"])
    current_streak: int | None = Field(
        None,
        description="Successes in a row (positive) or failures (negative) up to now; null where it is not one job.",
        examples=[12],
    )
    last_success_at: Instant | None = Field(
        None, description="When the job last succeeded.", examples=["2026-11-20T02:30:04.120Z"]
    )
    last_failure_at: Instant | None = Field(
        None, description="When it last failed for good.", examples=["2026-11-18T02:30:07.900Z"]
    )
    running: int = Field(description="Triggers that start or run now.", examples=[1])
    queued: int = Field(description="Triggers that wait now.", examples=[0])
    buckets: list[SummaryBucket] = Field(
        description="The window by hour or day, oldest first; those without triggers are left out.", examples=[[]]
    )


async def read(call: Call[StatFilters]) -> Response:
    """GET: one answer, whatever it sums over."""
    wanted, engine = call.filters, call.engine
    until = wanted.until or engine.clock.now()
    if until < EARLIEST:
        raise Malformed(faults=[Fault("to", "There are no statistics of so long ago; give a later time.")])
    since = (wanted.since or until - WINDOW).astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    filters = {
        name: value
        for name, value in (("application", wanted.application), ("job_name", wanted.job_name))
        if value is not None
    }
    faults = []
    if wanted.job_name is not None and wanted.application is None:
        faults.append(Fault("application", "Give the application that the job belongs to."))
    if wanted.group_name is not None and filters:
        faults.append(Fault("groupName", "Give a group, or an application with or without a job; not both."))
    if until <= since:
        faults.append(Fault("to", "This is not after from; give a later time."))
    if until - since > timedelta(days=(most := WINDOW_MAX_DAYS[wanted.bucket]) + 1):
        faults.append(Fault("from", f"With bucket={wanted.bucket} a window has at most {most} days; make it shorter."))
    if faults:
        raise Malformed(faults=faults)
    pulse: Mapping[str, Any] = {}
    if wanted.application is not None and wanted.job_name is not None:
        await engine.store.jobs.get(wanted.application, wanted.job_name)
        pulse = await engine.store.statistics.pulse(wanted.application, wanted.job_name) or {}
    live = dict(filters)
    if wanted.group_name is not None:
        if not await engine.store.groups.find({"group_name": wanted.group_name}, None, 1):
            raise GroupNotFound
        live["group_name"] = wanted.group_name
    scope = Scope.of(wanted.application, wanted.job_name, wanted.group_name)
    rollups = await engine.store.statistics.rollups(scope, since, until)
    grouped = group_by(HOUR if wanted.bucket is Width.HOUR else DAY, rollups)
    queued, running = await engine.store.statistics.live_counts(live)
    stat = JobStat.model_construct(
        **dict(summarise(rollup for _, rollup in grouped)),
        application=wanted.application,
        job_name=wanted.job_name,
        group_name=wanted.group_name,
        since=since,
        until=until,
        current_streak=pulse.get("streak"),
        last_success_at=pulse.get("last_success_at"),
        last_failure_at=pulse.get("last_failure_at"),
        running=running,
        queued=queued,
        buckets=summarise_each(grouped),
    )
    return success(jobStat=stat)


OPERATIONS = (
    Operation(
        "GET",
        "Read statistics",
        read,
        StatFilters,
        {200: {"jobStat": JobStat}},
        description="Of one job, of an application's jobs, of a group's jobs, or of all; over a window of full hours. "
        "A trigger counts once, in its final state, in the hour in which it ended, and for the "
        "group that its job was in then.",
        errors=(JobNotFound, GroupNotFound),
    ),
)

"""`/schedulerService/jobStat`: what happened to a job's triggers, or to those of an application or group.

Parse, call, render. Never reads history: the rollups have it, and of triggers that ended no more than those of
the hours that the window divides, and the few that are named.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid, Malformed
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.instant import shifted
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record, rfc3339
from clickclock.foundation.zone import zone_named
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import seen_by
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import GroupNotFound, JobNotFound
from clickclock.scheduler.insight.ranking import Rank
from clickclock.scheduler.insight.statistics import KEPT, Peak, Scope, total
from clickclock.scheduler.insight.summary import Summary, SummaryBucket, grouped, summarise, summarise_each
from clickclock.scheduler.insight.window import HOUR, Days, Hours, dividing, hour_of
from clickclock.scheduler.jobs.trigger import State, Trigger

WINDOW = timedelta(days=7)


class Width(StrEnum):
    """How wide a bucket is."""

    HOUR = "hour"
    DAY = "day"


WINDOW_MAX_DAYS = {Width.HOUR: 92, Width.DAY: KEPT.days}
"""So that no answer has more than some 2,000 hours or 400 days in it."""


class StatFilters(Query):
    """Whose statistics, and of when."""

    application: Word | None = Field(None, description="The job's application, or all its jobs.", examples=["shop"])
    job_name: Word | None = Field(None, description="The job; needs `application`.", examples=["nightly-export"])
    group_name: Word | None = Field(
        None,
        description="What ended while its job was in this group. `rank`, `running` and `queued` are of the jobs that "
        "are in it now.",
        examples=["exports"],
    )
    since: Instant | None = Field(
        None,
        alias="from",
        description="Beginning of the window, any instant of the last 400 days; if not given, 7 days before `to`, "
        "taken back to the full hour.",
        examples=["2026-11-13T00:00:00.000Z"],
    )
    until: Instant | None = Field(
        None,
        alias="to",
        description="End of the window, any instant, not in it; now if not given.",
        examples=["2026-11-20T00:00:00.000Z"],
    )
    bucket: Width = Field(Width.DAY, description="Width of the buckets: hours of UTC, or days.", examples=["day"])
    time_zone: Word = Field("UTC", description="IANA time zone of the days.", examples=["Europe/Berlin"])
    rank: Rank | None = Field(
        None,
        description="Name the jobs, too, that are worst in this: mean duration, mean lag, flakiness, or the share that "
        "failed.",
        examples=["flaky"],
    )
    limit: int = Field(10, ge=1, le=50, description="How many jobs `rank` names at most.", examples=[10])

    def window(self, now: datetime) -> tuple[datetime, datetime]:
        """Beginning and end, as asked for."""
        until = self.until or now
        return self.since or hour_of(shifted(until, -WINDOW)), until


class PeakTrigger(Record):
    """One of the slowest, or latest, triggers. Of one that is kept no longer there is what it was named for."""

    trigger_id: str = Field(description="The trigger.", examples=[EXAMPLE_ID])
    application: str = Field(description="Its job's application.", examples=["shop"])
    job_name: str = Field(description="Its job.", examples=["nightly-export"])
    state: State | None = Field(description="How it ended.", examples=["succeeded"])
    duration_ms: float | None = Field(description="How long it ran.", examples=[4233.0])
    lag_ms: float | None = Field(description="How long after its due time it started.", examples=[41.0])
    due_time: Instant | None = Field(description="When it was due.", examples=["2026-11-20T02:30:00.000Z"])
    started_at: Instant | None = Field(description="When it started.", examples=["2026-11-20T02:30:00.041Z"])
    finished_at: Instant | None = Field(description="When it ended.", examples=["2026-11-20T02:30:04.274Z"])


class RankedJob(Summary):
    """A job's numbers in the full hours that the window is in."""

    application: str = Field(description="Its application.", examples=["shop"])
    job_name: str = Field(description="Its name.", examples=["nightly-export"])


class JobStat(Summary):
    """A window's numbers, and how things stand now."""

    application: str | None = Field(None, description="The application asked for.", examples=["shop"])
    job_name: str | None = Field(None, description="The job asked for.", examples=["nightly-export"])
    group_name: str | None = Field(None, description="The group asked for.", examples=["exports"])
    since: Instant = Field(
        alias="from",
        description="Beginning of what was counted: as asked for, or that of its hour, if that could not be divided.",
        examples=["2026-11-13T00:00:00.000Z"],
    )
    until: Instant = Field(
        alias="to",
        description="End of what was counted: as asked for, or that of its hour, if that could not be divided.",
        examples=["2026-11-20T00:00:00.000Z"],
    )
    undivided_hours: int = Field(
        description="Hours that the window or midnight divides and that were counted as a whole, because triggers of "
        "them are kept no longer, or are too many (20,000 for one answer); 0: all is exact.",
        examples=[0],
    )
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
    slowest: list[PeakTrigger] = Field(description="The ten triggers that ran longest, the longest first.")
    latest: list[PeakTrigger] = Field(
        description="The ten that started longest after their due time, the latest first."
    )
    jobs: list[RankedJob] | None = Field(
        None, description="The jobs of the ranking that was asked for, the worst first; null if none was."
    )
    buckets: list[SummaryBucket] = Field(
        description="The window by hour or day, oldest first; those without triggers are left out.", examples=[[]]
    )


def check(wanted: StatFilters, now: datetime) -> Sequence[Fault]:
    """The faults of the filters together."""
    faults = []
    if wanted.job_name is not None and wanted.application is None:
        faults.append(Fault("application", "Give the application that the job belongs to."))
    if wanted.group_name is not None and (wanted.application is not None or wanted.job_name is not None):
        faults.append(Fault("groupName", "Give a group, or an application with or without a job; not both."))
    if wanted.rank is not None and wanted.job_name is not None:
        faults.append(Fault("rank", "A ranking is of several jobs; leave jobName out, or rank."))
    try:
        zone_named(wanted.time_zone)
    except Invalid as invalid:
        faults += invalid.faults
    earliest = now - KEPT
    too_old = f"Statistics are kept for {KEPT.days} days; give a time after {rfc3339(earliest)}."
    faults += [
        Fault(name, too_old)
        for name, given in (("from", wanted.since), ("to", wanted.until))
        if given is not None and given < earliest
    ]
    if any(each.field == "to" for each in faults):
        return faults
    since, until = wanted.window(now)
    most = WINDOW_MAX_DAYS[wanted.bucket]
    if until <= since:
        faults.append(Fault("to", f"This is not after from, {rfc3339(since)}; give a later time, or an earlier from."))
    elif until - since > timedelta(days=most + 1):
        faults.append(Fault("to", f"With bucket={wanted.bucket} a window has at most {most} days; make it shorter."))
    return faults


class _Whose(NamedTuple):
    """Whose statistics: their scope, the columns of its triggers and jobs, and the job's pulse if it is one."""

    scope: Scope
    columns: Mapping[str, Any]
    pulse: Mapping[str, Any]


async def read(call: Call[StatFilters]) -> Response:
    """GET: one answer, whatever it sums over."""
    wanted, engine, now = call.filters, call.engine, call.engine.clock.now()
    within = call.seen(Permission.STATISTICS_READ)
    if wanted.application is not None:
        call.principal.require(Permission.STATISTICS_READ, application=wanted.application)
    whose = await _whose(engine, wanted, within)
    since, until = wanted.window(now)
    days = Days(zone_named(wanted.time_zone))
    # What ended by now is all there is of this hour: it need not be divided at now.
    ends = [since, until] if until < now else [since]
    midnights = days.starting_in(since, min(until, now)) if wanted.bucket is Width.DAY and since < now else []
    statistics = engine.store.statistics
    counted = await statistics.window(whose.scope, since, until, dividing([*ends, *reversed(midnights)]), within)
    ranked = None if wanted.rank is None else await _ranked(engine, wanted, wanted.rank, whose.columns, now)
    queued, running = await statistics.live_counts(whose.columns)
    spans = Hours() if wanted.bucket is Width.HOUR else days
    groups = grouped(spans, counted.rollups)
    sums = total(groups.values())
    kept = await statistics.triggers_of({each.trigger_id for each in (*sums.slowest, *sums.latest)})
    is_whole = set(counted.undivided)
    stat = JobStat.model_construct(
        **dict(summarise([sums])),
        application=wanted.application,
        job_name=wanted.job_name,
        group_name=wanted.group_name,
        since=hour_of(since) if hour_of(since) in is_whole else since,
        until=hour_of(until) + HOUR if until in ends and hour_of(until) in is_whole else until,
        undivided_hours=len(is_whole),
        current_streak=whose.pulse.get("streak"),
        last_success_at=whose.pulse.get("last_success_at"),
        last_failure_at=whose.pulse.get("last_failure_at"),
        running=running,
        queued=queued,
        slowest=[_peak(each, kept.get(each.trigger_id), "duration_ms") for each in sums.slowest],
        latest=[_peak(each, kept.get(each.trigger_id), "lag_ms") for each in sums.latest],
        jobs=ranked,
        buckets=summarise_each(spans, groups),
    )
    return success(jobStat=stat)


async def _whose(engine: Engine, wanted: StatFilters, within: frozenset[str] | None) -> _Whose:
    """Raises `JobNotFound`, `GroupNotFound`."""
    columns = {"application": wanted.application, "job_name": wanted.job_name, "group_name": wanted.group_name}
    pulse: Mapping[str, Any] = {}
    if wanted.application is not None and wanted.job_name is not None:
        await engine.store.jobs.get(wanted.application, wanted.job_name)
        pulse = await engine.store.statistics.pulse(wanted.application, wanted.job_name) or {}
    if wanted.group_name is not None and not await engine.store.groups.find({"group_name": wanted.group_name}, None, 1):
        raise GroupNotFound
    return _Whose(
        Scope.of(wanted.application, wanted.job_name, wanted.group_name),
        seen_by({name: value for name, value in columns.items() if value is not None}, within) or {},
        pulse,
    )


async def _ranked(
    engine: Engine, wanted: StatFilters, rank: Rank, columns: Mapping[str, Any], now: datetime
) -> list[RankedJob]:
    """Raises `Malformed` where it would be too much work."""
    since, until = wanted.window(now)
    ranked = await engine.store.statistics.ranking(rank, columns, hour_of(since), until, wanted.limit)
    if ranked is None:
        sentence = "There are too many hours of jobs to rank; make the window shorter, or name an application or group."
        raise Malformed(faults=[Fault("rank", sentence)])
    return [
        RankedJob.trusted(**dict(summarise([sums])), application=application, job_name=job_name)
        for (application, job_name), sums in ranked
    ]


def _peak(peak: Peak, kept: Trigger | None, measure: str) -> PeakTrigger:
    known = dict.fromkeys(("state", "duration_ms", "lag_ms", "due_time", "started_at", "finished_at"))
    if kept is not None:
        known = {name: getattr(kept, name) for name in known}
    return PeakTrigger.trusted(
        **{**known, measure: peak.ms},
        trigger_id=peak.trigger_id,
        application=peak.application,
        job_name=peak.job_name,
    )


OPERATIONS = (
    Operation(
        "GET",
        "Read statistics",
        Permission.STATISTICS_READ,
        read,
        StatFilters,
        {200: {"jobStat": JobStat}},
        check=check,
        description="Of one job, of an application's jobs, of a group's jobs, or of all; over any window. A trigger "
        "counts once, in its final state, at the time at which it ended, and for the group that its job was in then. "
        "Who may see some applications alone gets what is of those; a group is then the jobs that are in it now. "
        "Percentiles are within 2 % of the exact ones.",
        errors=(JobNotFound, GroupNotFound),
    ),
)

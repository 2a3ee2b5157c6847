"""`/schedulerService/jobDetail`: all there is to know about one job.

Parse, call, render.
"""

from collections.abc import Sequence
from itertools import islice

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Record
from clickclock.scheduler.access.audit import OF_JOBS, JobChange
from clickclock.scheduler.api.calendar import calendars_of
from clickclock.scheduler.api.operation import Call, Operation, etag, success
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.api.schedule_preview import PreviewTime, times_after
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import JobNotFound, TriggerNotFound
from clickclock.scheduler.insight.alarm import Alarm
from clickclock.scheduler.jobs import command as commands
from clickclock.scheduler.jobs import image_mapping
from clickclock.scheduler.jobs.dependency import IfSkipped
from clickclock.scheduler.jobs.image_mapping import Choice
from clickclock.scheduler.jobs.job import StoredJob, Upstream
from clickclock.scheduler.jobs.trigger import LIVE, Trigger, When
from clickclock.scheduler.times.schedule import StoredSchedule

NEXT_TIMES = 5
RECENT = 20
RUNNING_MAX = 100
SCHEDULES_MAX = 100


class DetailTarget(Query):
    """One job."""

    application: Word = Field(description="The job's application.", examples=["shop"])
    job_name: Word = Field(description="The job.", examples=["nightly-export"])


class ResolvedCommand(Record):
    """What a job's command comes to."""

    argv: list[str] = Field(
        description="The words that will be run; templates stand as they are written.",
        examples=[["python", "export.py"]],
    )
    shell: bool = Field(description="Whether a shell runs it.", examples=[False])
    parameters_used: list[str] = Field(description="Parameters that it uses.", examples=[["day"]])
    image: Choice = Field(
        description="Which image it gets, where it runs in a container, and why.",
        examples=[{"image": "python:3.13", "reason": "The job names its own image, which wins over every prefix."}],
    )
    cluster: str = Field(description="The cluster that runs it.", examples=["local"])


class ScheduleDetail(Record):
    """A schedule with its next times."""

    schedule: StoredSchedule = Field(description="The schedule.")
    next_times: list[PreviewTime] = Field(description="Its next 5 times, those included that are skipped.")


class Neighbour(Record):
    """A job that this one depends on, or that depends on this one."""

    application: str = Field(description="Its application.", examples=["shop"])
    job_name: str = Field(description="Its name.", examples=["extract"])
    exists: bool = Field(description="False where it was deleted by force, and is waited for no more.", examples=[True])
    when: When = Field(description="How the upstream has to end.", examples=["succeeded"])
    if_skipped: IfSkipped = Field(description="What that comes to if the upstream is skipped.", examples=["unmet"])
    last_trigger: Trigger | None = Field(None, description="Its newest trigger.")


class JobDetail(Record):
    """One job, and what it did and will do."""

    job: StoredJob = Field(description="Its definition.")
    command: ResolvedCommand = Field(description="What its command comes to.")
    schedules: list[ScheduleDetail] = Field(description="Its schedules; the first 100.")
    upstream: list[Neighbour] = Field(description="The jobs that it runs after, those that the caller may see.")
    dependents: list[Neighbour] = Field(description="The jobs that run after it, those that the caller may see.")
    running: list[Trigger] = Field(description="Triggers that start or run now; the newest 100.")
    recent: list[Trigger] = Field(description="Its last 20 triggers, newest first.")
    last_success: Trigger | None = Field(None, description="The last trigger that succeeded, while it is kept.")
    alarms: list[Alarm] = Field(description="Its open alarms.")
    last_failure: Trigger | None = Field(None, description="The last trigger that failed for good, while it is kept.")
    changes: list[JobChange] = Field(
        description="The last 20 changes that somebody made of it, its schedules, alarms, silences and backfills, "
        "newest first, while the audit trail keeps them."
    )


async def read(call: Call[DetailTarget]) -> Response:
    """GET: the definition and everything around it."""
    store, now = call.engine.store, call.engine.clock.now()
    key = {"application": call.filters.application, "job_name": call.filters.job_name}
    call.principal.require(Permission.JOB_READ, application=call.filters.application)
    job = await store.jobs.get(**key)
    schedules = await store.schedules.find(key, None, SCHEDULES_MAX)
    calendars = await calendars_of(call.engine, [each.calendar_name for each in schedules])
    pulse = await store.statistics.pulse(**key) or {}
    detail = JobDetail(
        job=job,
        command=await _resolved(call.engine, job),
        schedules=[
            ScheduleDetail.model_construct(
                schedule=each,
                next_times=list(
                    islice(times_after(each.timetable(each.created_at, calendars.days(each)), now), NEXT_TIMES)
                ),
            )
            for each in schedules
        ],
        upstream=await _neighbours(call, job.depends_on),
        dependents=await _neighbours(call, await store.jobs.dependents(**key)),
        running=await store.triggers.find({**key, "states": LIVE}, None, RUNNING_MAX),
        alarms=await store.alarms.find({**key, "is_open": True}, None, RECENT),
        recent=await store.triggers.find(key, None, RECENT),
        last_success=await _trigger(call.engine, pulse.get("last_success_id")),
        last_failure=await _trigger(call.engine, pulse.get("last_failure_id")),
        changes=[
            JobChange.trusted(**{name: getattr(each, name) for name in JobChange.model_fields})
            for each in await store.audit.find({**key, "resources": OF_JOBS}, None, RECENT)
        ],
    )
    return success(200, etag(job.version), jobDetail=detail)


async def _resolved(engine: Engine, job: StoredJob) -> ResolvedCommand:
    parsed = commands.parse(job.command, shell=job.shell, parameter_names=frozenset(job.parameters))
    mappings = await engine.store.image_mappings.all()
    return ResolvedCommand(
        argv=["/bin/sh", "-c", job.command] if job.shell else list(parsed.words),
        shell=job.shell,
        parameters_used=sorted(parsed.parameters_used),
        image=image_mapping.choose(parsed.words, mappings, job.image),
        cluster=job.cluster or engine.default_cluster,
    )


async def _neighbours(call: Call[DetailTarget], jobs: Sequence[Upstream]) -> list[Neighbour]:
    engine, seen = call.engine, call.seen(Permission.JOB_READ)
    jobs = [each for each in jobs if seen is None or each.application in seen]
    there = await engine.store.jobs.existing([each.key for each in jobs])
    found = []
    for each in jobs:
        key = {"application": each.application, "job_name": each.job_name}
        newest = await engine.store.triggers.find(key, None, 1)
        found.append(
            Neighbour(
                **key,
                exists=each.key in there,
                when=each.when,
                if_skipped=each.condition.skipped_is,
                last_trigger=newest[0] if newest else None,
            )
        )
    return found


async def _trigger(engine: Engine, trigger_id: str | None) -> Trigger | None:
    if trigger_id is None:
        return None
    try:
        return await engine.store.triggers.get(trigger_id)
    except TriggerNotFound:
        return None  # its time was up


OPERATIONS = (
    Operation(
        "GET",
        "Read all about one job",
        Permission.JOB_READ,
        read,
        DetailTarget,
        {200: {"jobDetail": JobDetail}},
        description="Its definition, what its command comes to, its schedules with their next times, what it runs, "
        "ran, and how that ended.",
        versioned=True,
        errors=(JobNotFound,),
    ),
)

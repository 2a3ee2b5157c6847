"""`/schedulerService/commandPreview`: what a command becomes for a given nominal time, without running it.

Parse, call, render. Never starts anything, never writes anything, and never reads a secret.
"""

from typing import Annotated

from pydantic import Field, StringConstraints
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid, collect
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record
from clickclock.foundation.zone import zone_named
from clickclock.scheduler.api.job import BODY as JOB
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Body, Query
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import JobNotFound, ScheduleNotFound
from clickclock.scheduler.jobs.command import parameter_name_faults
from clickclock.scheduler.jobs.job import FOLDER_PATTERN, Job, Name, Text
from clickclock.scheduler.jobs.launch import launch_of
from clickclock.scheduler.jobs.secret import VARIABLE_PATTERN
from clickclock.scheduler.jobs.template_values import NO_SCHEDULE, Cadence, Values

PREVIEWED = "preview"
"""Placeholders for the names of a job that is not kept, and for the id of a missing trigger."""


class CommandPreviewRequest(Record):
    """A job that is kept, or a command alone; and the run to fill it in for."""

    application: Name | None = Field(None, description="The job's application; with `jobName`.", examples=["shop"])
    job_name: Name | None = Field(None, description="A job that is kept.", examples=["nightly-export"])
    command: str | None = Field(
        None,
        description="A command to try, in place of the job's own.",
        examples=["python export.py --day {{ nominalTime | subtract(days=1) | date('%Y-%m-%d') }}"],
    )
    shell: bool | None = Field(None, description="Whether `/bin/sh` runs it; as the job says if not given.")
    environment: (
        Annotated[dict[Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)], str], Field(max_length=256)] | None
    ) = Field(None, description="Variables to try, in place of the job's own.", examples=[{"DAY": "{{ nominalTime }}"}])
    working_directory: Text | None = Field(
        None, pattern=FOLDER_PATTERN, description="A folder to try, in place of the job's own."
    )
    parameters: dict[str, str] = Field(
        default_factory=dict, max_length=64, description="Values for its parameters.", examples=[{"day": "today"}]
    )
    nominal_time: Instant | None = Field(
        None, description="The run's nominal time; now if not given.", examples=["2026-11-20T02:30:00.000Z"]
    )
    schedule_id: Name | None = Field(
        None, description="The schedule of the run; the job's only one if not given.", examples=[EXAMPLE_ID]
    )
    time_zone: str | None = Field(
        None, max_length=64, description="The zone to try, where no job is named.", examples=["Europe/Berlin"]
    )
    attempt: int = Field(1, ge=1, le=1000, description="The number of the attempt.", examples=[1])


class CommandPreview(Record):
    """What an attempt would be given."""

    nominal_time: Instant = Field(description="For this nominal time.", examples=["2026-11-20T02:30:00.000Z"])
    time_zone: str | None = Field(
        None, description="The zone of its schedule; null where that is not clear.", examples=["Europe/Berlin"]
    )
    argv: list[str] = Field(
        description="The words that are run. A shell reads the values from `environment`.",
        examples=[["python", "export.py", "--day", "2026-11-19"]],
    )
    environment: dict[str, str] = Field(
        description="The job's variables and those of the attempt; secrets are not among them.",
        examples=[{"CLICKCLOCK_ATTEMPT": "1"}],
    )
    working_directory: str | None = Field(None, description="The folder, if the job has one.", examples=["/srv/shop"])


BODY = Body(CommandPreviewRequest)


async def preview(call: Call[Query]) -> Response:
    """POST: the words, variables and folder of an attempt."""
    asked: CommandPreviewRequest = BODY.read(call.body, _refuse_half)
    if asked.application is not None:
        call.principal.require(Permission.JOB_READ, application=asked.application)
    job = await _job(call.engine, asked)
    cadence = await _cadence(call.engine, asked)
    nominal_time = asked.nominal_time or call.engine.clock.now()
    launch = launch_of(
        job, Values(PREVIEWED, asked.attempt, nominal_time, job.fill_parameters(asked.parameters), cadence)
    )
    told = CommandPreview(
        nominal_time=nominal_time,
        time_zone=None if cadence.zone is None else cadence.zone.key,
        argv=list(launch.argv),
        environment=dict(launch.environment),
        working_directory=launch.working_directory,
    )
    return success(commandPreview=told)


def _refuse_half(asked: CommandPreviewRequest) -> None:
    faults = []
    if (asked.application is None) != (asked.job_name is None):
        faults.append(Fault("jobName", "Give application and jobName, or neither."))
    elif asked.job_name is None and asked.command is None:
        faults.append(Fault("command", "Give a command, or application and jobName of a job."))
    if asked.job_name is None and asked.schedule_id is not None:
        faults.append(Fault("scheduleId", "Give the job of this schedule, too."))
    if asked.time_zone is not None:
        collect(faults, lambda: zone_named(asked.time_zone or ""))
        if asked.job_name is not None:
            faults.append(Fault("timeZone", "Give it without a job alone: a job's schedule has its own zone."))
    if asked.job_name is None:
        faults += [Fault("parameters", sentence) for sentence in parameter_name_faults(dict(asked.parameters))]
    if faults:
        raise Invalid(faults=faults)


async def _cadence(engine: Engine, asked: CommandPreviewRequest) -> Cadence:
    if asked.application is not None and asked.job_name is not None:
        return await engine.store.schedules.cadence(asked.application, asked.job_name, asked.schedule_id)
    return NO_SCHEDULE if asked.time_zone is None else Cadence(zone_named(asked.time_zone))


async def _job(engine: Engine, asked: CommandPreviewRequest) -> Job:
    """The job with what is to be tried; a command alone is a job that declares the parameters that are given."""
    tried = asked.model_dump(
        by_alias=True, exclude_none=True, include={"command", "shell", "environment", "working_directory"}
    )
    if asked.application is None or asked.job_name is None:
        declared = dict.fromkeys(asked.parameters)
        given = {"application": PREVIEWED, "jobName": PREVIEWED, "parameters": declared}
    else:
        given = (await engine.store.jobs.get(asked.application, asked.job_name)).definition
    job: Job = JOB.validate({**given, **tried}, _refuse_faulty_templates)
    return job


def _refuse_faulty_templates(job: Job) -> None:
    if faults := job.template_faults():
        raise Invalid(faults=faults)


OPERATIONS = (
    Operation(
        "POST",
        "Preview a command",
        Permission.JOB_READ,
        preview,
        Query,
        {200: {"commandPreview": CommandPreview}},
        description="What the command, the variables and the folder of a job become for a nominal time. Nothing is "
        "run, nothing is kept, and no secret is read. `command`, `shell`, `environment` and `workingDirectory` try "
        "others than the job's own; a command alone needs no job.",
        body=CommandPreviewRequest,
        examples={
            "a job": {"application": "shop", "jobName": "nightly-export", "nominalTime": "2026-11-20T02:30:00Z"},
            "a command": {
                "command": "echo {{ nominalTime | date('%Y-%m-%d', zone) }}",
                "timeZone": "Europe/Berlin",
                "nominalTime": "2026-11-20T23:30:00Z",
            },
        },
        errors=(JobNotFound, ScheduleNotFound, Invalid),
    ),
)

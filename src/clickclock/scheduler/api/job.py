"""`/schedulerService/job`: create, list, create or replace, delete.

Parse, call, render. Never decides what a job may be (`job.py` of the nouns does).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Forbidden, Invalid
from clickclock.foundation.permission import Permission
from clickclock.foundation.principal import Principal
from clickclock.scheduler.api.notification import unknown_targets
from clickclock.scheduler.api.operation import ANY_VERSION, Call, Operation, etag, success, success_with_many
from clickclock.scheduler.api.paging import listed
from clickclock.scheduler.api.permitting import may_give, more_than_own
from clickclock.scheduler.api.reading import Body, Page, Query, Word, numbered, set_by_service
from clickclock.scheduler.api.references import named_too
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import JobExists, JobHasDependents, JobIsRunning, JobNotFound, StaleVersion
from clickclock.scheduler.executors import Executor
from clickclock.scheduler.jobs import command as commands
from clickclock.scheduler.jobs import image_mapping
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.job import MEMORY_MIN, Job, StoredJob, memory_bytes
from clickclock.scheduler.jobs.run_as import refusal
from clickclock.scheduler.store import Edited


class JobFilters(Page):
    """Which jobs."""

    application: Word | None = Field(None, description="Jobs of this application.", examples=["shop"])
    job_name: Word | None = Field(None, description="Jobs of this name.", examples=["nightly-export"])
    group_name: Word | None = Field(None, description="Jobs of this group.", examples=["exports"])
    enabled: bool | None = Field(None, description="Only enabled jobs, or only disabled ones.", examples=[True])


class JobTarget(Query):
    """One job that is to go."""

    application: Word = Field(description="The job's application.", examples=["shop"])
    job_name: Word = Field(description="The job.", examples=["nightly-export"])
    force: bool = Field(
        False,
        description="Cancel its unfinished triggers, and leave its dependents without it, instead of refusing.",
        examples=[False],
    )


EXAMPLES: Mapping[str, Any] = {
    "four fields": {
        "jobName": "nightly-export",
        "application": "shop",
        "command": "python export.py",
        "preemption": False,
    },
    "with more": {
        "jobName": "nightly-export",
        "application": "shop",
        "command": "python export.py --day {{ parameters.day }}",
        "parameters": {"day": "today"},
        "environment": {"STAGE": "production"},
        "timeoutSeconds": 3600,
        "maxRetries": 3,
    },
}


def _names_alone(parameters: Any) -> dict[str, None]:
    """The names of parameters of which a value fails: a template that uses one is no second fault."""
    return dict.fromkeys(parameters) if isinstance(parameters, dict) else {}


STAND_INS = {"application": "a", "jobName": "j", "command": "true", "parameters": _names_alone}
BODY = Body(Job, whole="command", stand_ins=STAND_INS)
_SET_BY_SERVICE = set_by_service(StoredJob, Job)


async def checks(engine: Engine, more: Sequence[ImageMapping] = ()) -> Callable[[Job], None]:
    """The checks of each job: its cluster and targets are known, and it has an image where it needs one.

    `more` are mappings that come with the jobs.
    """
    runs_images = any(executor.capabilities.wants_image for executor in engine.executors.values())
    mappings = [*more, *(await engine.store.image_mappings.all())] if runs_images else []

    def check(job: Job) -> None:
        faults = [*unknown_targets(engine, job.notifications), *job.template_faults()]
        memory = job.resources.memory_bytes
        cluster = engine.executors.get(job.cluster or engine.default_cluster)
        if cluster is None:
            known = ", ".join(engine.executors)
            faults.append(Fault("cluster", f"There is no cluster {job.cluster!r} here; known are {known}."))
        elif cluster.capabilities.wants_image and not job.image:
            words = commands.parse(job.command, shell=job.shell, parameter_names=frozenset(job.parameters)).words
            if image_mapping.choose(words, mappings, None).image is None:
                faults += image_mapping.none_fits(words, mappings).faults
        elif not cluster.capabilities.wants_image and memory is not None and memory < memory_bytes(MEMORY_MIN):
            sentence = f"Give at least {MEMORY_MIN}: what starts the command takes some 11 MB itself."
            faults.append(Fault("resources.memory", sentence))
        if cluster is not None and job.user is not None and (fault := _user_fault(engine, cluster, job)):
            faults.append(Fault("user", fault))
        if faults:
            raise Invalid(faults=faults)

    return check


def _user_fault(engine: Engine, cluster: Executor, job: Job) -> str | None:
    """Why a job cannot run as its user, as far as that is known here: another node has users of its own."""
    assert job.user is not None
    if (refused := refusal(job.user, engine.limits.users)) or job.node not in {None, engine.node}:
        return refused
    return cluster.capabilities.refuses_user(job.user)


async def create(call: Call[Query]) -> Response:
    """POST: one job, or an array of them, all or none."""
    engine = call.engine
    async with named_too(engine, call.body, "jobs", call.seen(Permission.JOB_READ)):
        jobs, as_array = await BODY.read_several(call.body, await checks(engine))
    call.principal.require_each(Permission.JOB_WRITE, (job.application for job in jobs))
    for number, job in enumerate(jobs):
        _require_beside(call.principal, job, f"[{number}]." if as_array else "")
    with numbered(jobs, as_array):
        stored = await engine.store.jobs.create(jobs, engine.clock.now())
    if as_array:
        return await success_with_many(201, "jobs", stored)
    return success(201, etag(stored[0].version), job=stored[0])


def _require_beside(who: Principal, job: Job, place: str = "") -> None:
    """Raise `Forbidden` unless the caller may read the job's upstreams, and has the role that its attempts get."""
    who.require_each(Permission.JOB_READ, (each.application for each in job.depends_on))
    if job.token is not None and not may_give(who, job.token, job.application):
        raise Forbidden(faults=[Fault(f"{place}token", more_than_own(job.token, job.application))])


async def find(call: Call[JobFilters]) -> Response:
    """GET: by name."""
    jobs, cursor = await listed(
        "job", call.filters, call.engine.store.jobs.find, lambda job: job.key, call.seen(Permission.JOB_READ)
    )
    named = None not in {call.filters.application, call.filters.job_name} and len(jobs) == 1
    return success(200, etag(jobs[0].version) if named else None, jobs=jobs, nextCursor=cursor)


async def put(call: Call[Query]) -> Response:
    """PUT: the whole definition; what is left out has its default."""
    engine = call.engine
    async with named_too(engine, call.body, "jobs", call.seen(Permission.JOB_READ)):
        job: Job = BODY.read(call.body, await checks(engine), leave_out=_SET_BY_SERVICE)
    call.principal.require(Permission.JOB_WRITE, application=job.application)
    _require_beside(call.principal, job)
    if call.if_match == ANY_VERSION:
        await engine.store.jobs.get(*job.key)
    stored, created = await engine.store.jobs.put(job, engine.clock.now(), call.if_version)
    engine.wake_dispatcher()
    await engine.edited(Edited(job=job.key))
    return success(201 if created else 200, etag(stored.version), job=stored)


async def delete(call: Call[JobTarget]) -> Response:
    """DELETE: with its schedules."""
    engine, target = call.engine, call.filters
    call.principal.require(Permission.JOB_WRITE, application=target.application)
    await engine.store.jobs.delete(
        target.application, target.job_name, engine.clock.now(), force=target.force, if_version=call.if_version
    )
    engine.stop_attempts()
    await engine.edited(Edited(job=(target.application, target.job_name)))
    return success()


OPERATIONS = (
    Operation(
        "POST",
        "Create a job, or several",
        Permission.JOB_WRITE,
        create,
        Query,
        {201: {"job": StoredJob, "jobs": list[StoredJob]}},
        description="One object, or an array of up to 10,000: all of them or none. An object is answered with `job`, "
        "an array with `jobs`.",
        body=Job,
        examples=EXAMPLES,
        several=True,
        versioned=True,
        errors=(JobExists, Invalid),
    ),
    Operation(
        "GET",
        "List jobs",
        Permission.JOB_READ,
        find,
        JobFilters,
        {200: {"jobs": list[StoredJob], "nextCursor": str | None}},
        description="By application and name. With both given, the answer has the job's ETag.",
        versioned=True,
    ),
    Operation(
        "PUT",
        "Create or replace a job",
        Permission.JOB_WRITE,
        put,
        Query,
        {200: {"job": StoredJob}, 201: {"job": StoredJob}},
        description="The body is the whole definition: a field that is left out has its default. Fields that the "
        "service sets (`version`, `createdAt`, `updatedAt`) may be sent back and are ignored.",
        body=Job,
        examples=EXAMPLES,
        versioned=True,
        errors=(StaleVersion, JobNotFound, Invalid),
    ),
    Operation(
        "DELETE",
        "Delete a job and its schedules",
        Permission.JOB_WRITE,
        delete,
        JobTarget,
        {200: {}},
        description="Refused while it has unfinished triggers or other jobs depend on it, unless `force=true`, which "
        "cancels the triggers (what runs gets SIGTERM, and SIGKILL after 10 s: `gracePeriodSeconds` is deleted with "
        "the job; where it matters, cancel them first); its dependents keep naming it, and run after it again when it "
        "is created again. A time that is only planned (`starting`, due in more than 0.1 s) holds nothing up: it is "
        "cancelled, too. Its past stays in the triggers and statistics until its time is up.",
        target_in_body=True,
        versioned=True,
        errors=(JobNotFound, JobIsRunning, JobHasDependents, StaleVersion),
    ),
)

"""A launch: all that an executor needs to run one attempt of a job, made from the job and its trigger.

Never starts anything. Invariants: the same trigger and attempt make the same launch; a value never adds a word.

>>> Launch("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1", ("true",)).grace_s
10.0
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from clickclock.foundation.trace_context import TraceContext
from clickclock.scheduler.jobs import command as commands
from clickclock.scheduler.jobs.filled_text import asks_schedule, fill_text
from clickclock.scheduler.jobs.image_mapping import ImageMapping, choose, none_fits
from clickclock.scheduler.jobs.job import AttemptRole, Job, PullPolicy
from clickclock.scheduler.jobs.secret import SecretRef
from clickclock.scheduler.jobs.template_values import Values
from clickclock.scheduler.jobs.trigger import attempt_name


@dataclass(frozen=True, slots=True)
class Launch:
    """All that an executor needs to run one attempt. `name` is `<triggerId>-<attempt>`.

    It is handed over a moment before `not_before`, so that only the start itself is left to do then.
    """

    name: str
    argv: tuple[str, ...]
    application: str = ""
    job_name: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    secret_refs: tuple[SecretRef, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What `secret_refs` name, read a moment before the start; the job's own environment goes over it."""
    token_role: AttemptRole | None = None
    """The role of the token that it gets."""
    working_directory: str | None = None
    user: str | None = None
    """The user that it runs as, by name or number; None is the default user."""
    image: str | None = None
    pull_policy: PullPolicy | None = None
    cpu: float | None = None
    memory_bytes: int | None = None
    timeout_s: float | None = None
    grace_s: float = 10.0
    keep_detached: bool = False
    """What makes a session of its own may outlive the attempt, where a place can do that."""
    not_before: datetime | None = None
    patient: bool = False
    """Nobody waits to hear that it has ended well."""
    group_name: str | None = None
    priority: int = 50
    preemptible: bool = False


def launch_of(
    job: Job,
    values: Values,
    *,
    not_before: datetime | None = None,
    patient: bool = False,
    mappings: Sequence[ImageMapping] | None = None,
    trace: TraceContext | None = None,
) -> Launch:
    """One attempt of `job`; raises `Invalid` if the job has changed and no longer fits its trigger.

    `mappings` are given where attempts run in images: then it has to have one. Its program goes on with `trace`.
    """
    command = commands.parse(job.command, shell=job.shell, parameter_names=frozenset(job.parameters))
    image = job.image
    if mappings is not None and not image:
        image = choose(command.words, mappings, None).image
        if image is None:
            raise none_fits(command.words, mappings)
    fill = partial(fill_text, declared=job.parameters, values=values)
    return Launch(
        name=attempt_name(values.trigger_id, values.attempt),
        application=job.application,
        job_name=job.job_name,
        argv=commands.resolve(command, values),
        # Our own variables go over the job's: a shell command's templates read them.
        environment={name: fill(text) for name, text in job.environment.items()}
        | commands.environment(command, values, application=job.application, job_name=job.job_name)
        | ({} if trace is None else trace.environment),
        secret_refs=tuple(job.secret_refs),
        token_role=job.token,
        working_directory=job.working_directory and fill(job.working_directory),
        user=job.user,
        image=image,
        pull_policy=job.pull_policy,
        cpu=job.resources.cpu,
        memory_bytes=job.resources.memory_bytes,
        timeout_s=job.timeout_seconds,
        grace_s=job.grace_period_seconds,
        keep_detached=job.keep_detached,
        not_before=not_before,
        patient=patient,
        group_name=job.group_name,
        priority=job.priority,
        preemptible=job.preemption,
    )


def depends_on_schedule(job: Job) -> bool:
    """Whether what an attempt of this job is given depends on its schedule: a zone, or a time beside its own.

    Of a command that cannot be parsed any more it is not known, and nobody needs it.
    """
    return (
        asks_schedule(job.command)
        or asks_schedule(job.working_directory or "")
        or any(map(asks_schedule, job.environment.values()))
    )

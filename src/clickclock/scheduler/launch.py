"""A launch: all that an executor needs to run one attempt of a job, made from the job and its trigger.

Never starts anything. Invariants: the same trigger and attempt make the same launch; a value never adds a word.

>>> Launch("01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1", ("true",)).grace_s
10.0
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clickclock.scheduler import command as commands
from clickclock.scheduler.job import Job
from clickclock.scheduler.trigger import attempt_name


@dataclass(frozen=True, slots=True)
class Launch:
    """All that an executor needs to run one attempt. `name` is `<triggerId>-<attempt>`.

    It is handed over a moment before `not_before`, so that only the start itself is left to do then.
    """

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: str | None = None
    image: str | None = None
    cpu: float | None = None
    memory_bytes: int | None = None
    timeout_s: float | None = None
    grace_s: float = 10.0
    not_before: datetime | None = None


def launch_of(
    job: Job,
    *,
    trigger_id: str,
    attempt: int,
    nominal_time: datetime,
    parameters: Mapping[str, str],
    not_before: datetime | None = None,
) -> Launch:
    """One attempt of `job`; raises `Invalid` if the job has changed and no longer fits its trigger."""
    command = commands.parse(job.command, shell=job.shell, parameter_names=frozenset(job.parameters))
    return Launch(
        name=attempt_name(trigger_id, attempt),
        argv=commands.resolve(
            command, trigger_id=trigger_id, attempt=attempt, nominal_time=nominal_time, parameters=parameters
        ),
        # Our own variables go over the job's: a shell command's templates read them.
        environment=job.environment
        | commands.environment(
            application=job.application,
            job_name=job.job_name,
            trigger_id=trigger_id,
            attempt=attempt,
            nominal_time=nominal_time,
            parameters=parameters,
        ),
        working_directory=job.working_directory,
        image=job.image,
        cpu=job.resources.cpu,
        memory_bytes=job.resources.memory_bytes,
        timeout_s=job.timeout_seconds,
        grace_s=job.grace_period_seconds,
        not_before=not_before,
    )

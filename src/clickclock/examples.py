"""Applying the example files, so that something real happens within seconds of the first start.

Never changes what is there: a job or schedule that exists stays as its user left it.
Invariant: safe to repeat; what runs at the first start runs once for a data folder.
"""

import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from clickclock.foundation.errors import ConfigurationError, Fault, Invalid
from clickclock.foundation.ids import new_id
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import GroupExists, JobExists, ScheduleExists
from clickclock.scheduler.jobs.group import Group
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import NewTrigger
from clickclock.scheduler.store import NewSchedule
from clickclock.scheduler.times.schedule import Schedule, upcoming

_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""Whether an expression can be read does not depend on when."""


@dataclass
class Examples:
    """What the files describe; `at_start` are the jobs that run once, when they have just been created."""

    groups: list[Group] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    at_start: set[tuple[str, str]] = field(default_factory=set)


def read_examples(folder: Path | None) -> Examples:
    """What the TOML files in `folder`, if there is one, describe. Raises `ConfigurationError`, naming every file."""
    examples = Examples()
    if folder is None:
        return examples
    try:
        files = sorted(each for each in folder.iterdir() if each.suffix == ".toml")
    except OSError as error:
        sentence = f"{folder} is no folder that can be read ({error.strerror}); give one with TOML files."
        raise ConfigurationError(faults=[Fault("examples", sentence)]) from error
    faults: list[Fault] = []
    for file in files:
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
            schedules = [Schedule.model_validate(each) for each in content.get("schedules", [])]
            for schedule in schedules:
                schedule.timetable(_SOME_TIME)
            examples.groups += [Group.model_validate(each) for each in content.get("groups", [])]
            examples.jobs += [Job.model_validate(each) for each in content.get("jobs", [])]
            examples.schedules += schedules
            examples.at_start |= {(each["application"], each["jobName"]) for each in content.get("atStart", [])}
        except Invalid as invalid:
            faults += [Fault(f"{file}", f"{each.field}: {each.message}") for each in invalid.faults]
        except (OSError, ValueError, KeyError, TypeError) as error:
            faults.append(Fault(f"{file}", str(error)))
    if faults:
        raise ConfigurationError(faults=faults)
    return examples


async def apply_examples(examples: Examples, engine: Engine) -> None:
    """Create the groups, jobs and schedules described that are not there yet."""
    now = engine.clock.now()
    for group in examples.groups:
        with suppress(GroupExists):
            await engine.store.groups.create(group, now)
    for job in examples.jobs:
        with suppress(JobExists):
            await engine.store.jobs.create([job], now)
            if (job.application, job.job_name) in examples.at_start:
                first = NewTrigger(new_id(), job.application, job.job_name, {}, requested_by="examples")
                await engine.store.triggers.create(first, now)
    for schedule in examples.schedules:
        schedule_id = schedule.schedule_id or f"{schedule.application}.{schedule.job_name}"
        due = upcoming(schedule, schedule_id, schedule.timetable(now), now)
        with suppress(ScheduleExists):
            await engine.store.schedules.create([NewSchedule(schedule, schedule_id, due)], now)
    engine.change_schedules()

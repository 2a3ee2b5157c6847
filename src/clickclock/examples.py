"""Applying the example files, so that something real happens within seconds of the first start.

Never changes what is there: a job or schedule that exists stays as its user left it.
Invariant: safe to repeat; what runs at the first start runs once for a data folder.
"""

import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.foundation.ids import new_id
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import GroupExists, JobExists, ScheduleExists
from clickclock.scheduler.group import Group
from clickclock.scheduler.job import Job
from clickclock.scheduler.schedule import Schedule, upcoming
from clickclock.scheduler.store import NewSchedule
from clickclock.scheduler.trigger import NewTrigger


@dataclass
class Examples:
    """What the files describe; `at_start` are the jobs that run once, when they have just been created."""

    groups: list[Group] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    at_start: set[tuple[str, str]] = field(default_factory=set)


def read_examples(folder: Path) -> Examples:
    """What the TOML files in `folder` describe. Raises `ConfigurationError`, naming the file."""
    examples = Examples()
    for file in sorted(folder.glob("*.toml")):
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
            examples.groups += [Group.model_validate(each) for each in content.get("groups", [])]
            examples.jobs += [Job.model_validate(each) for each in content.get("jobs", [])]
            examples.schedules += [Schedule.model_validate(each) for each in content.get("schedules", [])]
            examples.at_start |= {(each["application"], each["jobName"]) for each in content.get("atStart", [])}
        except (tomllib.TOMLDecodeError, ValidationError, KeyError, TypeError) as error:
            raise ConfigurationError(faults=[Fault(str(file), str(error))]) from error
    return examples


async def apply_examples(folder: Path, engine: Engine) -> None:
    """Create the groups, jobs and schedules described in `folder` that are not there yet."""
    examples = read_examples(folder)
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
    engine.wake_dispatcher()

"""Applying the example files, so that something real happens within seconds of the first start.

Never changes what is there: a job or schedule that exists stays as its user left it.
Invariant: safe to repeat.
"""

import tomllib
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import GroupExists, JobExists, ScheduleExists
from clickclock.scheduler.group import Group
from clickclock.scheduler.job import Job
from clickclock.scheduler.schedule import Schedule, upcoming
from clickclock.scheduler.store import NewSchedule


def read_examples(folder: Path) -> tuple[list[Group], list[Job], list[Schedule]]:
    """What the TOML files in `folder` describe. Raises `ConfigurationError`, naming the file."""
    groups: list[Group] = []
    jobs: list[Job] = []
    schedules: list[Schedule] = []
    for file in sorted(folder.glob("*.toml")):
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
            groups += [Group.model_validate(each) for each in content.get("groups", [])]
            jobs += [Job.model_validate(each) for each in content.get("jobs", [])]
            schedules += [Schedule.model_validate(each) for each in content.get("schedules", [])]
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            raise ConfigurationError(faults=[Fault(str(file), str(error))]) from error
    return groups, jobs, schedules


async def apply_examples(folder: Path, engine: Engine) -> None:
    """Create the groups, jobs and schedules described in `folder` that are not there yet."""
    groups, jobs, schedules = read_examples(folder)
    now = engine.clock.now()
    for group in groups:
        with suppress(GroupExists):
            await engine.store.groups.create(group, now)
    for job in jobs:
        with suppress(JobExists):
            await engine.store.jobs.create([job], now)
    for schedule in schedules:
        schedule_id = schedule.schedule_id or f"{schedule.application}.{schedule.job_name}"
        first = upcoming(schedule, schedule_id, schedule.timetable(now), now)
        with suppress(ScheduleExists):
            await engine.store.schedules.create([NewSchedule(schedule, schedule_id, first)], now)
    engine.wake_planner()

"""A group's defaults: they fill what a job left unsaid, and nothing else."""

from typing import Any

import pytest
from pydantic import ValidationError

from clickclock.scheduler.jobs.group import Group, JobDefaults
from clickclock.scheduler.jobs.job import Job


def job(**fields: Any) -> Job:
    return Job.model_validate({"application": "shop", "job_name": "export", "command": "true", **fields})


def group(**defaults: Any) -> Group:
    return Group.model_validate({"group_name": "exports", "defaults": defaults})


def test_what_a_job_leaves_unsaid_comes_from_its_group() -> None:
    made = group(priority=70, timeout_seconds=5, max_retries=2).apply_to(job())
    assert (made.priority, made.timeout_seconds, made.max_retries, made.grace_period_seconds) == (70, 5, 2, 10)


def test_what_a_job_says_itself_stands_even_where_it_says_the_usual() -> None:
    made = group(priority=70, max_retries=2).apply_to(job(priority=50, max_retries=0))
    assert (made.priority, made.max_retries) == (50, 0)


def test_a_group_without_defaults_changes_nothing() -> None:
    made = job()
    assert group().apply_to(made) is made


def test_every_default_is_a_field_of_a_job() -> None:
    assert set(JobDefaults.model_fields) <= set(Job.model_fields)


@pytest.mark.parametrize(
    "fields", [{"group_name": ""}, {"max_concurrent_triggers": 0}, {"unknown": 1}, {"defaults": {"command": "x"}}]
)
def test_what_a_group_refuses(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Group.model_validate({"group_name": "exports", **fields})

"""A job: what it may say, and what it refuses."""

from typing import Any

import pytest
from pydantic import ValidationError

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs.job import Job, StoredJob, memory_bytes


def job(**fields: Any) -> Job:
    return Job.model_validate({"application": "shop", "job_name": "export", "command": "true", **fields})


def test_three_fields_make_a_job_and_preemption_is_off() -> None:
    made = Job.model_validate({"application": "shop", "jobName": "export", "command": "python export.py"})
    assert (made.preemption, made.enabled, made.shell, made.priority, made.key) == (
        False, True, False, 50, ("shop", "export"),
    )  # fmt: skip


def test_a_missing_field_is_named_as_the_caller_knows_it() -> None:
    with pytest.raises(ValidationError) as caught:
        Job.model_validate({"application": "shop"})
    assert [error["loc"] for error in caught.value.errors()] == [("jobName",), ("command",)]


@pytest.mark.parametrize("name", ["a", "A1", "nightly-export", "team/etl:daily@v2", "a b", "x" * 128, "a_b.c"])
def test_names_that_are_safe_everywhere(name: str) -> None:
    assert job(job_name=name).job_name == name


@pytest.mark.parametrize("name", ["", " a", "a ", "-a", "a\n", "a\tb", "ü", "x" * 129, "a;b", "a'b", "../a"])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        job(job_name=name)


@pytest.mark.parametrize(
    "fields",
    [
        {"unknown": 1},
        {"priority": 101},
        {"priority": -1},
        {"max_retries": 101},
        {"timeout_seconds": 0},
        {"grace_period_seconds": -1},
        {"max_concurrent_triggers": 0},
        {"retention_days": 0},
        {"working_directory": "relative"},
        {"environment": {"1A": "x"}},
        {"environment": {"A=B": "x"}},
        {"success_exit_codes": []},
        {"success_exit_codes": [256]},
        {"retry_on_exit_codes": [-1]},
        {"retry_backoff": {"multiplier": 0.5}},
        {"resources": {"memory": "1X"}},
        {"resources": {"cpu": 0}},
        {"command": ""},
        {"command": "a | b"},
        {"command": "echo 'open"},
        {"command": "run {{ parameters.day }}"},
        {"parameters": {"1 2": "x"}},
    ],
)
def test_what_a_job_refuses(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        job(**fields)


def test_a_job_is_read_back_from_what_it_writes() -> None:
    made = job(
        parameters={"day": None, "hour": "1"}, command="run {{ parameters.day }}", labels={"tier": "gold"},
        retry_on_exit_codes=[75], resources={"cpu": 1.5, "memory": "64Mi"}, environment={"A": "b"},
    )  # fmt: skip
    assert Job.model_validate(made.wire()) == made


def test_a_job_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        job().priority = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("quantity", "expected"), [("5", 5), ("1K", 1000), ("1.5Ki", 1536), ("2M", 2_000_000), ("64Mi", 67_108_864),
                               ("1G", 10**9), ("1Gi", 2**30), ("999999999999999Gi", 2**63 - 1)]
)  # fmt: skip
def test_memory_is_written_as_kubernetes_writes_it(quantity: str, expected: int) -> None:
    assert memory_bytes(quantity) == expected
    assert job(resources={"memory": quantity}).resources.memory_bytes == expected
    assert job().resources.memory_bytes is None


def test_the_rule_of_its_retries() -> None:
    made = job(retry_backoff={"initial_seconds": 2, "multiplier": 3, "max_seconds": 9}, retry_on_exit_codes=[75])
    rule = made.retry_rule
    assert (rule.initial_s, rule.multiplier, rule.max_s) == (2, 3, 9)
    assert rule.success_exit_codes == {0}
    assert rule.retry_exit_codes == frozenset({75})
    assert job().retry_rule.retry_exit_codes is None


def test_given_values_go_over_the_declared_defaults() -> None:
    made = job(parameters={"day": None, "hour": "1"})
    assert made.fill_parameters({"day": "monday"}) == {"day": "monday", "hour": "1"}
    assert made.fill_parameters({"day": "", "hour": "2"}) == {"day": "", "hour": "2"}


def test_every_parameter_that_does_not_fit_is_named() -> None:
    made = job(parameters={"day": None, "hour": "1"})
    with pytest.raises(Invalid, match="shop/export") as caught:
        made.fill_parameters({"houre": "2"})
    assert {fault.field for fault in caught.value.faults} == {"parameters.houre", "parameters.day"}
    assert any("hour" in fault.message for fault in caught.value.faults)


def test_what_a_user_said_is_what_goes_back_into_a_request() -> None:
    stored = StoredJob.model_validate(
        {**job().wire(), "version": 3, "createdAt": "2026-11-20T10:00:00Z", "updatedAt": "2026-11-20T10:00:00Z"}
    )
    assert Job.model_validate(stored.definition) == job()
    assert not {"version", "createdAt", "updatedAt"} & set(stored.definition)

"""A launch: made from a job and its trigger, always the same."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from clickclock.foundation.errors import Invalid
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.launch import Launch, launch_of
from clickclock.scheduler.jobs.template_values import Values

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def launched(
    given: dict[str, str] | None = None, *, mappings: Sequence[ImageMapping] | None = None, **fields: Any
) -> Launch:
    """The launch of a job with these fields, whose trigger was given these parameters."""
    job = Job.model_validate({"application": "shop", "job_name": "export", "command": "true", **fields})
    return launch_of(job, Values("t", 2, TEN, given or {}), mappings=mappings)


def test_a_launch_says_all_that_its_job_says() -> None:
    launch = launched(
        image="i", working_directory="/w", timeout_seconds=5, grace_period_seconds=3, keep_detached=True,
        resources={"cpu": 2, "memory": "1Ki"},
    )  # fmt: skip
    assert (launch.name, launch.argv, launch.image, launch.working_directory) == ("t-2", ("true",), "i", "/w")
    assert (launch.timeout_s, launch.grace_s, launch.cpu, launch.memory_bytes) == (5, 3, 2, 1024)
    assert launch.keep_detached


def test_templates_in_variables_and_the_folder_are_filled_in_and_other_braces_stay() -> None:
    launch = launched(
        {"day": "a b"}, parameters={"day": None}, working_directory="/data/{{ parameters.day }}",
        environment={"OUT": "{{parameters.day}}/{{ attempt }}/{{ nominalTime }}", "JINJA": "{{ row.name }} {% x %}"},
    )  # fmt: skip
    assert launch.working_directory == "/data/a b"
    assert launch.environment["OUT"] == f"a b/2/{rfc3339(TEN)}"
    assert launch.environment["JINJA"] == "{{ row.name }} {% x %}"


def test_a_variable_whose_parameter_the_trigger_lacks_is_told() -> None:
    with pytest.raises(Invalid) as caught:
        launched({}, parameters={"day": None}, environment={"OUT": "{{ parameters.day }}"})
    assert [fault.field for fault in caught.value.faults] == ["parameters.day"]


@pytest.mark.parametrize("image", [None, ""])
def test_where_attempts_run_in_images_a_job_without_one_gets_that_of_its_prefix(image: str | None) -> None:
    assert launched(image=image, mappings=[ImageMapping(prefix="true", image="i")]).image == "i"
    with pytest.raises(Invalid):
        launched(image=image, mappings=[])


def test_the_same_trigger_and_attempt_make_the_same_launch() -> None:
    assert launched(environment={"A": "b"}) == launched(environment={"A": "b"})


def test_a_value_fills_a_word_and_never_adds_one() -> None:
    launch = launched(
        {"day": "; rm -rf / $(x) 'y"},
        command="run --at={{ nominalTime }} {{ parameters.day }}",
        parameters={"day": None},
    )
    assert launch.argv == ("run", "--at=2026-11-20T10:00:00.000Z", "; rm -rf / $(x) 'y")


def test_the_environment_is_the_jobs_with_ours_over_it() -> None:
    launch = launched(
        {"day": "monday"}, parameters={"day": None},
        environment={"A": "b", "CLICKCLOCK_TRIGGER_ID": "forged"},
    )  # fmt: skip
    assert launch.environment == {
        "A": "b",
        "CLICKCLOCK_APPLICATION": "shop",
        "CLICKCLOCK_JOB_NAME": "export",
        "CLICKCLOCK_TRIGGER_ID": "t",
        "CLICKCLOCK_ATTEMPT": "2",
        "CLICKCLOCK_NOMINAL_TIME": "2026-11-20T10:00:00.000Z",
        "CLICKCLOCK_PARAM_DAY": "monday",
    }


def test_a_shell_gets_the_command_as_one_word() -> None:
    assert launched(command="a | b", shell=True).argv == ("/bin/sh", "-c", "a | b")  # noqa: S604 - a field, nothing runs


def test_a_job_that_changed_and_no_longer_fits_its_trigger_is_refused() -> None:
    with pytest.raises(Invalid, match="parameters"):
        launched(command="run {{ parameters.day }}", parameters={"day": None})

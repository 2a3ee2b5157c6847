"""What has to change so that there is what files say."""

from typing import Any

import pytest

from clickclock.scheduler.declarations.declaration import (
    KINDS,
    Action,
    Declarable,
    Kept,
    Key,
    Terms,
    Wanted,
    compare,
    said,
)
from clickclock.scheduler.declarations.declaration_schema import declaration_schema
from clickclock.scheduler.times.schedule import Schedule
from tests.stores import NOW, group, job, schedule

KIND_OF = {kind.model: kind for kind in KINDS.values()}


def wanted(*records: Declarable) -> list[Wanted]:
    return [Wanted(KIND_OF[type(each)], each, f"[{place}]") for place, each in enumerate(records)]


def kept(*records: Declarable) -> dict[Key, Kept]:
    return {
        each.key: Kept(each.kind, each.record.model_dump(mode="json", by_alias=True, exclude_unset=True), 1, NOW)
        for each in wanted(*records)
    }


def test_what_is_said_is_without_defaults_and_without_ids_that_nobody_chose() -> None:
    plain = {"application": "shop", "jobName": "export", "command": "true"}
    assert said(job(priority=50, labels={}, retry_backoff={"multiplier": 2})) == plain
    made = schedule(schedule_name="a", schedule_id="01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11")
    assert "scheduleId" not in said(made)
    assert said(schedule(schedule_name="a", schedule_id="mine"))["scheduleId"] == "mine"


def test_a_default_is_said_where_it_wins_over_a_groups() -> None:
    assert said(job(group_name="exports", priority=50, shell=False)).items() >= {"priority": 50}.items()
    assert "shell" not in said(job(group_name="exports", priority=50, shell=False))


@pytest.mark.parametrize(
    ("given", "is_said"),
    [
        ({"application": "shop", "jobName": "export", "command": "true"}, True),
        ({"application": "shop", "jobName": "export", "command": "true", "enabled": False}, True),
        ({"application": "shop", "jobName": "export", "command": "true", "enabled": True}, False),
        ({"application": "shop", "jobName": "export", "command": "false"}, False),
        ({"application": "shop", "jobName": "export"}, False),
        ({"application": "shop", "jobName": "export", "command": "true", "labels": {"a": "b"}}, False),
    ],
)
def test_what_is_kept_word_for_word_needs_no_closer_look(given: dict[str, Any], is_said: bool) -> None:
    (found,) = kept(job(enabled=False, managed_by="repo")).values()
    assert found.says(given) is is_said


def test_what_is_the_same_in_other_words_is_no_change() -> None:
    plan = compare(wanted(job(priority=50)), kept(job()), Terms())
    assert (plan.steps, plan.unchanged) == ([], 1)


def test_a_change_keeps_what_was_switched_by_hand_and_whose_it_is() -> None:
    (step,) = compare(wanted(job(priority=70)), kept(job(enabled=False, managed_by="repo")), Terms()).steps
    assert step.action is Action.UPDATE
    assert step.new == job(priority=70, enabled=False, managed_by="repo")


def test_a_changed_schedule_keeps_its_id() -> None:
    old = schedule(schedule_name="a", schedule_id="s-1")
    (step,) = compare(wanted(schedule(schedule_name="a", jitter_seconds=5)), kept(old), Terms()).steps
    assert isinstance(step.new, Schedule)
    assert step.new.schedule_id == "s-1"


def test_what_the_set_made_goes_with_what_needs_it_first() -> None:
    old = kept(
        group(managed_by="repo"),
        job(managed_by="repo"),
        job("by-hand"),
        job("theirs", managed_by="other"),
        schedule(schedule_name="a", managed_by="repo"),
    )
    plan = compare(wanted(), old, Terms("repo", prune=True, allow_empty=True))
    assert [step.kind.name for step in plan.steps] == ["schedule", "job", "group"]
    assert [step.action for step in plan.steps] == [Action.DELETE] * 3


def test_the_last_job_of_an_application_is_told_and_one_of_several_is_not() -> None:
    old = kept(job(managed_by="repo"), job("other", managed_by="repo"))
    assert [fault.field for fault in compare([], old, Terms("repo", prune=True)).emptied] == ["allowEmpty"]
    assert compare(wanted(job(managed_by="repo")), old, Terms("repo", prune=True)).emptied == []


def test_what_another_set_holds_is_told_by_its_place() -> None:
    new, old = job(managed_by="repo", priority=70), kept(job(managed_by="other"))
    (fault,) = compare(wanted(new), old, Terms("repo")).held_elsewhere
    assert fault.field == "[0]"
    assert compare(wanted(new), old, Terms("repo", adopt=True)).held_elsewhere == []


def test_the_schema_knows_every_field_that_files_may_have_and_none_that_the_service_sets() -> None:
    parts = declaration_schema()["$defs"]
    assert {"jobName", "command", "schedules"} <= parts["DeclaredJob"]["properties"].keys()
    assert parts["DeclaredJob"]["required"] == ["jobName", "command"]
    assert parts["JobSchedule"]["required"] == ["expression"]
    fields = {name for part in parts.values() for name in part.get("properties", {})}
    assert not fields & {"managedBy", "createdAt", "updatedAt"}
    assert all("description" in field for part in parts.values() for field in part.get("properties", {}).values())

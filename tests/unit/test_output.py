"""Answers in the forms of `-o`."""

import csv
import io
import json
from typing import Any

import pytest
import yaml

from clickclock.cli.calling import FORMS
from clickclock.cli.output import written

JOBS: dict[str, Any] = {
    "status": "success",
    "jobs": [
        {
            "application": "a",
            "jobName": "j",
            "priority": -5,
            "command": "=1+1",
            "labels": {"x": "ü"},
            "groupName": None,
        },
        {"application": "a", "jobName": "k", "priority": 50, "command": 'two, "words"', "labels": {}},
    ],
    "nextCursor": None,
}


@pytest.mark.parametrize("payload", [JOBS, {"status": "success"}, {"status": "success", "job": JOBS["jobs"][0]}])
def test_json_and_yaml_are_the_whole_answer(payload: dict[str, Any]) -> None:
    assert json.loads(written(payload, "json")) == payload
    assert yaml.safe_load(written(payload, "yaml")) == payload
    assert all(not text or text.endswith("\n") for text in (written(payload, form) for form in FORMS))


def test_csv_has_a_column_for_each_field_and_no_formulas() -> None:
    first, second = csv.DictReader(io.StringIO(written(JOBS, "csv")))
    assert first == {
        "application": "a",
        "jobName": "j",
        "priority": "-5",
        "command": "'=1+1",
        "labels": '{"x": "ü"}',
        "groupName": "",
    }
    assert second["command"] == 'two, "words"'


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"application": "a", "jobName": "j", "groupName": "g"}, "a/j"),
        ({"triggerId": "t-1", "application": "a", "jobName": "j"}, "t-1"),
        ({"scheduleId": "nightly", "application": "a", "jobName": "j"}, "nightly"),
        ({"groupName": "g", "maxConcurrentTriggers": 1}, "g"),
        ({"prefix": "python -m etl", "image": "i"}, "python -m etl"),
    ],
)
def test_a_row_is_called_by_what_other_commands_take(row: dict[str, Any], name: str) -> None:
    assert written({"status": "success", "rows": [row, row]}, "name") == f"{name}\n{name}\n"
    assert written({"status": "success", "row": row}, "name") == f"{name}\n"


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"scheduleId": "s", "backfillId": "b", "application": "a", "jobName": "j"}, "b"),
        ({"triggerId": "t", "scheduleId": "s", "backfillId": "b", "application": "a", "jobName": "j"}, "t"),
        ({"alarmId": "al", "triggerId": "t", "application": "a", "jobName": "j"}, "al"),
        ({"notificationId": "n", "alarmId": "al", "application": "a"}, "n"),
        ({"sessionId": "x", "kind": "person", "name": "anna"}, "x"),
        ({"scheduleId": "s", "application": "a", "jobName": "j"}, "s"),
        ({"application": "a", "jobName": "j", "groupName": "g"}, "a/j"),
    ],
)
def test_a_row_is_called_by_its_own_id_and_not_by_what_it_belongs_to(row: dict[str, str], name: str) -> None:
    assert written({"status": "success", "rows": [row]}, "name") == f"{name}\n"

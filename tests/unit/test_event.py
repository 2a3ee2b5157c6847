"""Events: what they are called, who wants them, and how they look as CloudEvents."""

from datetime import UTC, datetime, timedelta

import pytest

from clickclock.scheduler.insight.event import EVERYTHING, TYPES, Change, Wanted, unknown_types

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
FAILED = Change(7, AT, "trigger", "failed", "shop", "export", "exports", "t-1", attempt=2, exit_code=1, started_at=AT)


def test_an_event_is_a_cloud_event_with_what_is_known_and_nothing_else() -> None:
    assert FAILED.cloud_event() == {
        "specversion": "1.0",
        "id": "7",
        "source": "/schedulerService",
        "type": "clickclock.trigger.failed",
        "time": "2026-11-20T10:00:00.000Z",
        "subject": "t-1",
        "datacontenttype": "application/json",
        "data": {
            "state": "failed",
            "application": "shop",
            "jobName": "export",
            "groupName": "exports",
            "attempt": 2,
            "startedAt": "2026-11-20T10:00:00.000Z",
            "exitCode": 1,
            "triggerId": "t-1",
        },
    }


def test_an_event_says_what_the_record_says_by_the_same_names() -> None:
    ran = Change(
        *(8, AT, "trigger", "succeeded"),
        attempt=1,
        due_time=AT,
        started_at=AT + timedelta(milliseconds=4),
        finished_at=AT + timedelta(milliseconds=1254),
    )
    assert {"dueTime", "lagMs", "durationMs"} <= ran.cloud_event()["data"].keys()
    assert (ran.cloud_event()["data"]["lagMs"], ran.cloud_event()["data"]["durationMs"]) == (4, 1250)
    assert Change(9, AT, "trigger", "skipped", reason="overlap").cloud_event()["data"]["skipReason"] == "overlap"
    assert Change(9, AT, "trigger", "cancelled", reason="cancelled").cloud_event()["data"]["stopReason"] == "cancelled"
    assert Change(9, AT, "alarm", "opened", reason="missed").cloud_event()["data"]["kind"] == "missed"


@pytest.mark.parametrize(
    ("change", "subject"),
    [
        (Change(1, AT, "job", "created", "shop", "export"), "shop/export"),
        (Change(1, AT, "group", "changed", group_name="exports"), "exports"),
        (Change(1, AT, "alarm", "opened", "shop", "export", subject="a-1"), "a-1"),
    ],
)
def test_an_events_subject_is_the_id_or_the_name_of_what_changed(change: Change, subject: str) -> None:
    assert change.cloud_event()["subject"] == subject


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        (EVERYTHING, True),
        (Wanted(application="shop", job_name="export", group_name="exports"), True),
        (Wanted(application="other"), False),
        (Wanted(job_name="other"), False),
        (Wanted(group_name="other"), False),
        (Wanted(types=frozenset({"trigger"})), True),
        (Wanted(types=frozenset({"alarm", "trigger.failed"})), True),
        (Wanted(types=frozenset({"trigger.succeeded"})), False),
    ],
)
def test_a_listener_gets_what_it_wants_and_nothing_else(wanted: Wanted, takes: bool) -> None:
    assert wanted.takes(FAILED) is takes


def test_every_type_that_there_is_is_known_and_a_slip_is_not() -> None:
    every = [f"{about}.{state}" for about, states in TYPES.items() for state in states]
    assert unknown_types([*TYPES, *every]) == []
    assert unknown_types(["trigger.faild", "jobs"]) == ["jobs", "trigger.faild"]

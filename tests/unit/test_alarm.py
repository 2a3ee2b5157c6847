"""Alarms: what opens and resolves them, who is told, and for whom a silence holds."""

from datetime import UTC, datetime, timedelta

import pytest

from clickclock.scheduler.insight.alarm import (
    BY_SUCCESS,
    AlarmKind,
    Silence,
    expected_by,
    judge,
    missed_sentence,
    scope_faults,
)
from clickclock.scheduler.insight.statistics import FAILURES
from clickclock.scheduler.jobs.notification import TRIES_MAX, WAITS_S, Notifications, Occasion, next_try
from clickclock.scheduler.jobs.trigger import FINISHED, State
from tests.stores import group, job

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize("state", sorted(FINISHED))
def test_a_failure_opens_a_success_resolves_and_a_cancellation_says_nothing(state: State) -> None:
    verdict = judge(state)
    assert (verdict.opens is AlarmKind.FAILURE) == (state in FAILURES)
    assert verdict.resolves == (BY_SUCCESS if state is State.SUCCEEDED else frozenset())


def test_a_job_is_expected_from_its_last_success_its_making_or_its_enabling_whichever_was_last() -> None:
    assert expected_by(HOUR, None, AT, None) == AT + HOUR
    assert expected_by(HOUR, AT + HOUR, AT, None) == AT + 2 * HOUR
    assert expected_by(HOUR, AT + HOUR, AT, AT + 3 * HOUR) == AT + 4 * HOUR


def test_the_message_about_a_missed_run_says_since_when_and_why_perhaps() -> None:
    sentence = missed_sentence(93_600, AT, "Its group exports is paused.")
    assert sentence == (
        "It has not succeeded within 1 d 2 h, the last time at 2026-11-20 10:00:00 UTC. Its group exports is paused."
    )


def test_a_job_says_who_is_told_or_else_its_group_or_else_its_application_field_by_field() -> None:
    application = Notifications(targets=["all"], on=[Occasion.FAILURE], long_run_seconds=60)
    exports = group(defaults={"notifications": {"targets": ["exports"], "longRunSeconds": 10}})
    plain = exports.apply_to(job()).notifications.over(application)
    assert (plain.targets, plain.on, plain.long_run_seconds) == (["exports"], [Occasion.FAILURE], 10)
    own = exports.apply_to(job(notifications={"targets": []})).notifications.over(application)
    assert (own.targets, own.long_run_seconds) == ([], 10)
    assert job().notifications.over(None).targets is None


def test_all_is_told_but_skips_unless_it_is_said_otherwise() -> None:
    assert [each for each in Occasion if not Notifications().wants(each)] == [Occasion.SKIP]
    assert [each for each in Occasion if Notifications(on=[Occasion.SKIP]).wants(each)] == [Occasion.SKIP]


def test_a_notification_is_tried_at_growing_intervals_and_then_given_up() -> None:
    waits = [next_try(tries, AT, 0.0) for tries in range(1, TRIES_MAX + 1)]
    assert waits == [*(AT + timedelta(seconds=each) for each in WAITS_S), None]
    assert list(WAITS_S) == sorted(WAITS_S)
    assert next_try(1, AT, 0.5) == AT + timedelta(seconds=5.25)


@pytest.mark.parametrize(
    ("scope", "covers"),
    [
        ({"application": "shop"}, True),
        ({"application": "shop", "job_name": "export"}, True),
        ({"application": "shop", "job_name": "other"}, False),
        ({"application": "other"}, False),
        ({"group_name": "exports"}, True),
        ({"group_name": "other"}, False),
    ],
)
def test_a_silence_holds_for_a_job_an_application_or_a_group(scope: dict[str, str], covers: bool) -> None:
    silence = Silence(**scope, until=AT, silenced_by="ada", created_at=AT)
    assert silence.covers("shop", "export", "exports") is covers


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        ((None, None, None), "application"),
        ((None, "export", None), "application"),
        (("shop", None, "exports"), "groupName"),
        ((None, "export", "exports"), "groupName"),
    ],
)
def test_a_silence_of_nobody_or_of_two_things_is_refused(scope: tuple[str | None, ...], field: str) -> None:
    assert list(scope_faults(*scope)) == [field]

"""Waits between attempts: exponential, bounded, with full jitter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.retry import RetryRule


def test_each_wait_may_be_longer_until_the_limit() -> None:
    rule = RetryRule(initial_s=1, multiplier=3, max_s=10)
    assert [rule.delay_s(attempt, 1.0) for attempt in (1, 2, 3, 4)] == [1, 3, 9, 10]


def test_the_jitter_is_the_whole_wait() -> None:
    rule = RetryRule(initial_s=8, multiplier=2, max_s=300)
    assert [rule.delay_s(2, fraction) for fraction in (0.0, 0.25, 0.5)] == [0, 4, 8]


def test_without_jitter_a_wait_is_never_shorter() -> None:
    rule = RetryRule(initial_s=30, multiplier=2, max_s=100, has_jitter=False)
    assert [rule.delay_s(attempt, fraction) for attempt, fraction in ((1, 0.0), (1, 0.9), (2, 0.5), (9, 0.0))] == [
        *(30, 30, 60, 100)
    ]


def test_a_job_has_jitter_unless_it_says_none() -> None:
    fields = {"application": "a", "jobName": "j", "command": "true"}
    assert Job.model_validate(fields).retry_rule.has_jitter
    assert not Job.model_validate({**fields, "retryBackoff": {"jitter": "none"}}).retry_rule.has_jitter
    with pytest.raises(ValueError, match="'full' or 'none'"):
        Job.model_validate({**fields, "retryBackoff": {"jitter": "some"}})


def test_a_wait_of_nothing_stays_nothing() -> None:
    assert RetryRule(initial_s=0).delay_s(50, 0.9) == 0
    assert RetryRule(max_s=0).delay_s(50, 0.9) == 0


@pytest.mark.parametrize(
    ("codes", "code", "allowed"),
    [(None, 1, True), (None, None, True), ({75}, 75, True), ({75}, 1, False), ({75}, None, True), (set(), 1, False)],
)
def test_which_failures_are_tried_again(codes: set[int] | None, code: int | None, allowed: bool) -> None:
    rule = RetryRule(retry_exit_codes=None if codes is None else frozenset(codes))
    assert rule.allows(code) is allowed


@given(
    initial_s=st.floats(0, 86400),
    multiplier=st.floats(1, 100),
    max_s=st.floats(0, 604800),
    attempt=st.integers(1, 100_000),
    fraction=st.floats(0, 1, exclude_max=True),
)
def test_no_wait_leaves_its_bounds_however_many_attempts(
    initial_s: float, multiplier: float, max_s: float, attempt: int, fraction: float
) -> None:
    assert 0 <= RetryRule(initial_s, multiplier, max_s).delay_s(attempt, fraction) <= max_s

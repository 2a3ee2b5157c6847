"""A trigger's states, and what each ending means."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from clickclock.scheduler.jobs.retry import RetryRule
from clickclock.scheduler.jobs.trigger import (
    DISRUPTIONS_MAX,
    FINISHED,
    LIVE,
    TRANSITIONS,
    UNFINISHED,
    Conclusion,
    Exit,
    ExitKind,
    State,
    StopReason,
    attempt_name,
    conclude,
    parse_attempt_name,
)

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
RULE = RetryRule(initial_s=8, multiplier=2, max_s=20)


def concluded(
    kind: ExitKind = ExitKind.CODE,
    code: int | None = None,
    *,
    attempt: int = 1,
    max_attempts: int = 3,
    stop_reason: StopReason | None = None,
    rule: RetryRule = RULE,
    fraction: float = 0.5,
    message: str | None = None,
) -> Conclusion:
    exit_ = Exit(kind, TEN, code=code, signal=9 if kind is ExitKind.SIGNAL else None, message=message)
    return conclude(
        exit_, attempt=attempt, max_attempts=max_attempts, stop_reason=stop_reason, rule=rule, fraction=fraction
    )


def test_every_state_has_its_row_and_the_sets_partition_them() -> None:
    assert set(TRANSITIONS) == set(State)
    assert LIVE < UNFINISHED
    assert set(State) == UNFINISHED | FINISHED
    assert not UNFINISHED & FINISHED


def test_an_attempt_begins_from_the_queue_and_every_other_state_comes_after() -> None:
    assert {state for state, following in TRANSITIONS.items() if State.STARTING in following} == {State.QUEUED}
    assert {state for state, following in TRANSITIONS.items() if State.RUNNING in following} == {State.STARTING}
    assert {state for state, following in TRANSITIONS.items() if State.SKIPPED in following} == {State.QUEUED}


def test_what_is_over_for_good_stays_over() -> None:
    for state in (State.SUCCEEDED, State.CANCELLED, State.SKIPPED):
        assert TRANSITIONS[state] == frozenset()
    for state in (State.FAILED, State.TIMED_OUT, State.LOST):
        assert TRANSITIONS[state] == {State.QUEUED}


def test_every_state_can_be_reached_from_the_queue() -> None:
    reached = {State.QUEUED}
    while (more := reached.union(*(TRANSITIONS[state] for state in reached))) != reached:
        reached = more
    assert reached == set(State)


@pytest.mark.parametrize(
    ("kind", "code", "state", "message"),
    [
        (ExitKind.CODE, 0, State.SUCCEEDED, None),
        (ExitKind.CODE, 3, State.FAILED, "The command ended with exit code 3."),
        (ExitKind.SIGNAL, None, State.FAILED, "The command was ended by signal 9."),
        (ExitKind.TIMEOUT, None, State.TIMED_OUT, "The command ran longer than timeoutSeconds and was stopped."),
        (ExitKind.NOT_STARTED, None, State.FAILED, "The command could not be started."),
        (ExitKind.LOST, None, State.LOST, "The attempt vanished; its exit is unknown."),
        (ExitKind.STOPPED, None, State.CANCELLED, "Cancelled."),
    ],
)
def test_each_way_to_end_has_its_state_and_its_sentence(
    kind: ExitKind, code: int | None, state: State, message: str | None
) -> None:
    last = concluded(kind, code, attempt=3)
    assert last == Conclusion(state, message)
    if kind is not ExitKind.CODE or code:
        assert concluded(kind, code, attempt=3, message="The executor says more.").message == "The executor says more."


@pytest.mark.parametrize("kind", [ExitKind.SIGNAL, ExitKind.TIMEOUT, ExitKind.NOT_STARTED, ExitKind.LOST])
def test_a_failure_is_tried_again_while_attempts_remain(kind: ExitKind) -> None:
    assert concluded(kind, attempt=1).retry_at == TEN + timedelta(seconds=4)
    assert concluded(kind, attempt=2).retry_at == TEN + timedelta(seconds=8)
    assert concluded(kind, attempt=3).retry_at is None
    assert concluded(kind, attempt=1, max_attempts=1).retry_at is None
    assert concluded(kind, attempt=1).uses_up_retry


def test_a_success_or_a_stop_is_never_tried_again() -> None:
    assert concluded(ExitKind.CODE, 0).retry_at is None
    assert concluded(ExitKind.STOPPED).retry_at is None


def test_a_rule_says_which_codes_succeed_and_which_are_tried_again() -> None:
    rule = replace(RULE, success_exit_codes=frozenset({0, 7}), retry_exit_codes=frozenset({75}))
    assert concluded(ExitKind.CODE, 7, rule=rule).state is State.SUCCEEDED
    assert concluded(ExitKind.CODE, 75, rule=rule).retry_at is not None
    assert concluded(ExitKind.CODE, 1, rule=rule).retry_at is None
    assert concluded(ExitKind.LOST, rule=rule).retry_at is not None


def test_zero_is_a_failure_where_the_rule_says_so() -> None:
    rule = replace(RULE, success_exit_codes=frozenset({1}))
    assert concluded(ExitKind.CODE, 0, rule=rule).state is State.FAILED


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (StopReason.CANCELLED, "Cancelled."),
        (StopReason.REPLACED, "Replaced by the schedule's next time."),
        (StopReason.SHUTDOWN, "Stopped with the service (--stop-jobs)."),
    ],
)
def test_a_wish_to_stop_ends_the_trigger_whatever_the_attempt_made_of_it(reason: StopReason, message: str) -> None:
    assert concluded(ExitKind.STOPPED, stop_reason=reason) == Conclusion(State.CANCELLED, message)
    # It ended by itself before the signal came: that is what happened, and still nobody wants it again.
    assert concluded(ExitKind.CODE, 0, stop_reason=reason) == Conclusion(State.SUCCEEDED, None)
    for kind in (ExitKind.CODE, ExitKind.TIMEOUT, ExitKind.LOST):
        assert concluded(kind, 3, stop_reason=reason).retry_at is None


def test_a_preempted_attempt_goes_back_to_the_queue_at_once_and_uses_up_no_retry() -> None:
    last = concluded(ExitKind.STOPPED, attempt=3, stop_reason=StopReason.PREEMPTED)
    assert (last.state, last.retry_at, last.uses_up_retry) == (State.QUEUED, TEN, False)


def test_an_attempt_that_failed_while_it_was_to_be_preempted_has_failed() -> None:
    conclusion = concluded(ExitKind.CODE, 3, stop_reason=StopReason.PREEMPTED)
    assert conclusion.state is State.FAILED
    assert conclusion.retry_at is not None


@given(
    kind=st.sampled_from(list(ExitKind)),
    code=st.integers(0, 255),
    attempt=st.integers(1, 5),
    reason=st.none() | st.sampled_from(list(StopReason)),
    fraction=st.floats(0, 1, exclude_max=True),
)
def test_every_ending_is_legal_and_says_when_to_go_on(
    kind: ExitKind, code: int, attempt: int, reason: StopReason | None, fraction: float
) -> None:
    conclusion = concluded(
        kind, code if kind is ExitKind.CODE else None, attempt=attempt, stop_reason=reason, fraction=fraction
    )
    assert conclusion.state in TRANSITIONS[State.RUNNING]
    if conclusion.retry_at is not None:
        assert TEN <= conclusion.retry_at <= TEN + timedelta(seconds=RULE.max_s)
        assert conclusion.state is State.QUEUED or State.QUEUED in TRANSITIONS[conclusion.state]
    assert (conclusion.message is None) == (conclusion.state is State.SUCCEEDED)


@given(st.text(min_size=1), st.integers(1, 10**6))
def test_the_name_of_an_attempt_can_be_read_back(trigger_id: str, attempt: int) -> None:
    assert parse_attempt_name(attempt_name(trigger_id, attempt)) == (trigger_id, attempt)


def test_what_the_cluster_takes_away_is_tried_again_later_each_time_and_uses_up_no_retry() -> None:
    exit_ = Exit(ExitKind.DISRUPTED, TEN, message="Evicted.")
    for count, seconds in ((0, 4), (1, 8), (2, 10)):
        ended = conclude(
            exit_, attempt=1, max_attempts=1, stop_reason=None, rule=RULE, fraction=0.5, preemption_count=count
        )
        assert ended == Conclusion(State.QUEUED, "Evicted.", TEN + timedelta(seconds=seconds), uses_up_retry=False)


def test_what_the_cluster_takes_away_again_and_again_is_lost_in_the_end() -> None:
    exit_ = Exit(ExitKind.DISRUPTED, TEN, message="Evicted.")
    ended = conclude(
        exit_, attempt=1, max_attempts=1, stop_reason=None, rule=RULE, fraction=0.5, preemption_count=DISRUPTIONS_MAX
    )
    assert ended == Conclusion(State.LOST, "Evicted.")


def test_what_the_cluster_takes_away_while_it_is_to_stop_is_stopped() -> None:
    assert concluded(ExitKind.UNSTARTED, stop_reason=StopReason.CANCELLED).state is State.CANCELLED
    assert concluded(ExitKind.DISRUPTED, stop_reason=StopReason.CANCELLED).state is State.CANCELLED
    assert concluded(ExitKind.DISRUPTED, stop_reason=StopReason.PREEMPTED).state is State.QUEUED


def test_what_was_held_for_its_time_and_never_started_is_queued_again_at_once_and_uses_up_no_retry() -> None:
    exit_ = Exit(ExitKind.UNSTARTED, TEN, message="The process supervisor died before the attempt's time.")
    conclusion = conclude(exit_, attempt=1, max_attempts=1, stop_reason=None, rule=RULE, fraction=0.5)
    assert conclusion == Conclusion(State.QUEUED, exit_.message, retry_at=TEN, uses_up_retry=False)

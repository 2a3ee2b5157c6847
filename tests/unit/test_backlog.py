"""What the latest plans and claims say about what waits to be started."""

from datetime import UTC, datetime, timedelta

import pytest

from clickclock.scheduler.store.backlog import BURST, Backlog

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.fixture
def backlog() -> Backlog:
    return Backlog()


def test_at_first_nothing_waits(backlog: Backlog) -> None:
    assert not backlog.starts_wait(NOW)
    assert not backlog.waits_for_slots


def test_a_full_plan_or_claim_says_that_there_may_be_more_until_one_is_not_full(backlog: Backlog) -> None:
    for note in (backlog.planned, lambda may_be_more: backlog.claimed("a", may_be_more=may_be_more, is_blocked=False)):
        note(may_be_more=True)
        assert backlog.starts_wait(NOW)
        note(may_be_more=False)
        assert not backlog.starts_wait(NOW)


def test_each_cluster_counts_for_itself(backlog: Backlog) -> None:
    backlog.claimed("a", may_be_more=True, is_blocked=True)
    backlog.claimed("b", may_be_more=False, is_blocked=False)
    assert backlog.starts_wait(NOW)
    assert backlog.waits_for_slots
    backlog.claimed("a", may_be_more=False, is_blocked=False)
    assert not backlog.starts_wait(NOW)
    assert not backlog.waits_for_slots


@pytest.mark.parametrize(
    ("after", "waits"),
    [(timedelta(seconds=-0.001), False), (timedelta(0), True), (BURST - timedelta(0, 0, 1), True), (BURST, False)],
)
def test_a_burst_is_being_started_for_a_while_after_its_moment(backlog: Backlog, after: timedelta, waits: bool) -> None:
    backlog.planned(may_be_more=False, burst=NOW)
    backlog.planned(may_be_more=False)
    assert backlog.starts_wait(NOW + after) == waits

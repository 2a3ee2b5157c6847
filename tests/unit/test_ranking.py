"""Rankings: which jobs come first, and which are in none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.scheduler.insight.ranking import Outline, Rank, best
from clickclock.scheduler.insight.statistics import Ending, Rollup, total
from clickclock.scheduler.jobs.trigger import State
from tests.unit.test_statistics import ROLLUPS, TEN, rolled


def outline(*endings: tuple[State, float | None, int, bool]) -> Outline:
    """Of triggers by state, duration, attempts and whether they flipped; the lag is 100 ms for each attempt."""
    rollup = Rollup()
    for state, ms, attempts, flips in endings:
        lag_ms = None if ms is None else 100.0 * attempts
        rollup.add(Ending("a", "b", state, TEN, attempts=attempts, duration_ms=ms, lag_ms=lag_ms, is_flip=flips))
    return Outline.load(rollup.dump())


JOBS = {
    ("shop", "steady"): outline((State.SUCCEEDED, 10, 1, False), (State.SUCCEEDED, 10, 1, False)),
    ("shop", "slow"): outline((State.SUCCEEDED, 9000, 1, False)),
    ("shop", "flaky"): outline(
        (State.SUCCEEDED, 20, 2, False), (State.FAILED, 20, 2, True), (State.SUCCEEDED, 20, 1, True)
    ),
    ("crm", "broken"): outline((State.FAILED, 5, 3, False), (State.TIMED_OUT, 5, 3, False)),
    ("crm", "skipped"): outline((State.SKIPPED, None, 0, False)),
}


@pytest.mark.parametrize(
    ("rank", "names"),
    [
        (Rank.SLOWEST, ["slow", "flaky", "steady", "broken"]),
        (Rank.LATEST, ["broken", "flaky", "slow", "steady"]),
        (Rank.FLAKY, ["flaky"]),
        (Rank.FAILING, ["broken", "flaky"]),
    ],
)
def test_the_worst_job_comes_first_and_one_without_fault_not_at_all(rank: Rank, names: list[str]) -> None:
    assert [name for _, name in best(rank, JOBS, 10)] == names
    assert [name for _, name in best(rank, JOBS, 1)] == names[:1]


@given(st.lists(ROLLUPS, max_size=4), st.sampled_from(list(Rank)))
def test_outlines_of_parts_score_as_the_outline_of_all(parts: list[list[Ending]], rank: Rank) -> None:
    merged = Outline()
    for part in parts:
        merged.merge(Outline.load(rolled(part).dump()))
    whole = Outline.load(total(rolled(part) for part in parts).dump())
    assert merged.score(rank) == pytest.approx(whole.score(rank))

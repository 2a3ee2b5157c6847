"""In which order processes are asked whose they are: one that forks all the time is met while it is there."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from clickclock.scheduler.supervisor.descendants import newest_first

_PID_MAX = 32_768


@given(st.lists(st.integers(1, _PID_MAX), unique=True, min_size=1), st.integers(1, _PID_MAX))
def test_the_newest_come_first_wherever_the_circle_of_numbers_stands(pids: list[int], last: int) -> None:
    ages = [(last - pid) % _PID_MAX for pid in newest_first(pids, last)]
    assert all(younger < older for younger, older in itertools.pairwise(ages))
    assert sorted(newest_first(pids, last)) == sorted(pids)


def test_where_the_last_number_is_not_told_the_highest_is_the_newest() -> None:
    assert newest_first([1, 4000, 7], last=0) == sorted([1, 4000, 7], reverse=True)

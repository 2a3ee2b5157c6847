"""Walks in columns, held to walks one after the other."""

from bisect import bisect_left, bisect_right
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.crediting.columns.rolling import (
    changes,
    first_at_least,
    flooding,
    grouped,
    mixed,
    ranges,
    too_soon,
)

STEPS = st.lists(st.lists(st.sampled_from([0, 1, 19, 20, 30, 59, 60, 61, 200]), max_size=40), max_size=5)
KEYS = st.lists(st.tuples(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), st.integers(0, 2)), max_size=30)


def walked(times: list[int], pause: int) -> list[bool]:
    is_too_soon: list[bool] = []
    last = None
    for time in times:
        is_too_soon.append(last is not None and time - last < pause)
        last = last if is_too_soon[-1] else time
    return is_too_soon


@given(STEPS)
def test_what_came_too_soon_is_what_a_walk_finds(steps: list[list[int]]) -> None:
    groups = [list(accumulate(each)) for each in steps]
    at = np.array([time for times in groups for time in times], np.int64)
    is_first = np.array([place == 0 for times in groups for place, _ in enumerate(times)], np.bool_)
    assert too_soon(at, is_first, 60).tolist() == [mark for times in groups for mark in walked(times, 60)]


def test_a_chain_of_a_hundred_thousand_is_walked_in_a_few_rounds() -> None:
    at = np.arange(100_000) * 40
    is_first = np.zeros(len(at), np.bool_)
    is_first[0] = True
    assert np.array_equal(too_soon(at, is_first, 60), np.arange(len(at)) % 2 == 1)


@given(st.lists(st.lists(st.integers(0, 30), max_size=30), max_size=4), st.integers(1, 6), st.integers(1, 6))
def test_a_flood_is_what_counting_finds(people: list[list[int]], even_max: int, odd_max: int) -> None:
    times = [sorted(each) for each in people]
    person = np.array([number for number, each in enumerate(times) for _ in each], np.int64)
    clicks_max = np.where(person % 2 == 1, odd_max, even_max)
    found = flooding(person, np.array([time for each in times for time in each], np.int64), clicks_max, 10)
    assert found.tolist() == [
        bisect_right(each, time) - bisect_right(each, time - 10) > (odd_max if number % 2 else even_max)
        for number, each in enumerate(times)
        for time in each
    ]


def test_a_person_who_may_click_more_than_everybody_does_is_no_flood() -> None:
    person, time_ms = np.array([1, 1, 2, 2]), np.array([0, 1, 0, 1])
    assert flooding(person, time_ms, np.array([1, 1, 1000, 1000]), 10).tolist() == [False, True, False, False]


@given(KEYS)
def test_equal_keys_are_together_and_in_their_order(keys: list[tuple[int, int]]) -> None:
    places, is_first = grouped(*(np.array([key[part] for key in keys], np.int64) for part in (0, 1)))
    assert sorted(places.tolist()) == list(range(len(keys)))
    in_groups = [keys[place] for place in places.tolist()]
    assert int(is_first.sum()) == len(set(keys))
    assert [keys.count(key) for key in keys] == [in_groups.count(key) for key in keys]
    for place, (key, is_new) in enumerate(zip(in_groups, is_first.tolist(), strict=True)):
        assert is_new == (place == 0 or key != in_groups[place - 1])
        assert is_new or places[place - 1] < places[place]


def test_keys_whose_hashes_are_the_same_are_not_the_same() -> None:
    # The hash of two keys mixes the second one into the hash of the first; so it can be chosen to make up for another.
    first = np.array([1, 2, 1, 2], np.int64)
    second = (mixed(first) ^ np.uint64(5)).view(np.int64)
    assert len(set(mixed(first, second).tolist())) == 1
    places, is_first = grouped(first, second)
    assert sorted(places[:2].tolist()) in ([0, 2], [1, 3])
    assert is_first.tolist() == [True, False, True, False]


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), max_size=8))
def test_ranges_follow_each_other(wanted: list[tuple[int, int]]) -> None:
    starts, lengths = (np.array([each[part] for each in wanted], np.int64) for part in (0, 1))
    assert ranges(starts, lengths).tolist() == [start + more for start, length in wanted for more in range(length)]


@given(st.lists(st.integers(0, 9), max_size=12), st.data())
def test_the_first_of_at_least_is_what_bisection_finds(values: list[int], data: st.DataObject) -> None:
    values = sorted(values)
    ends = st.integers(0, len(values))
    asked = data.draw(st.lists(st.tuples(ends, ends, st.integers(-1, 10)).filter(lambda each: each[0] <= each[1])))
    starts, stops, wanted = (np.array([each[part] for each in asked], np.int64) for part in (0, 1, 2))
    found = first_at_least(np.array(values, np.int64), starts, stops, wanted)
    assert found.tolist() == [bisect_left(values, least, start, stop) for start, stop, least in asked]


def test_a_change_is_one_of_any_key() -> None:
    assert changes(np.array([1, 1, 2, 2]), np.array([5, 6, 6, 6])).tolist() == [True, True, True, False]
    assert changes(np.empty(0)).tolist() == []

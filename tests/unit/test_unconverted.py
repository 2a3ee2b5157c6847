"""Unconverted paths, held to dictionaries of lists."""

from collections import defaultdict
from itertools import pairwise
from typing import Final

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.crediting.columns.rolling import mixed
from clickclock.attribution.crediting.columns.unconverted import paths_without_order

WORDS: Final = 2**64
TOUCHPOINTS = st.lists(st.tuples(st.integers(1, 6), st.integers(-2, 2), st.integers(0, 2)), max_size=40)
ORDERS = st.lists(st.tuples(st.integers(1, 7), st.integers(-2, 2)), max_size=6)


def paths(
    touchpoints: list[tuple[int, int, int]], orders: list[tuple[int, int]]
) -> list[tuple[int, int, tuple[int, ...]]]:
    """Person, month and path of what is found."""
    person, month, channel = (np.array([each[part] for each in touchpoints], np.int64) for part in (0, 1, 2))
    found = paths_without_order(
        person, month, channel, *(np.array([each[part] for each in orders], np.int64) for part in (0, 1))
    )
    told = [tuple(found.steps[start:end].tolist()) for start, end in pairwise(found.offsets.tolist())]
    assert len(set(told)) == len(told)
    assert set(found.path.tolist()) == set(range(len(told)))
    return [
        (int(person[first]), int(month[first]), told[path])
        for first, path in zip(found.first.tolist(), found.path.tolist(), strict=True)
    ]


@given(TOUCHPOINTS, ORDERS)
def test_a_path_is_what_a_person_touched_in_a_month_without_an_order(
    touchpoints: list[tuple[int, int, int]], orders: list[tuple[int, int]]
) -> None:
    touchpoints.sort(key=lambda each: each[:2])
    expected: dict[tuple[int, int], tuple[int, ...]] = defaultdict(tuple)
    for person, month, channel in touchpoints:
        if (person, month) not in orders:
            expected[person, month] += (channel,)
    assert paths(touchpoints, orders) == [(*key, path) for key, path in expected.items()]


def unmixed(word: int) -> int:
    """Of which number `mixed` makes this word."""
    word ^= word >> 33
    for factor in (0xC4CEB9FE1A85EC53, 0xFF51AFD7ED558CCD):
        word = word * pow(factor, -1, WORDS) % WORDS
        word ^= word >> 33
    return word


def test_paths_whose_hashes_are_the_same_are_not_the_same() -> None:
    def hash_of(channel: int, place: int) -> int:
        return int(mixed(np.array([channel]), np.array([place]))[0])

    total = hash_of(1, 0) + hash_of(2, 1)
    last = unmixed(unmixed((total - hash_of(3, 0)) % WORDS) ^ 1)
    last -= WORDS * (last >= WORDS // 2)
    assert (hash_of(3, 0) + hash_of(last, 1)) % WORDS == total % WORDS
    touchpoints = [(1, 0, 1), (1, 0, 2), (2, 0, 3), (2, 0, last), (3, 0, 1), (3, 0, 2)]
    assert paths(touchpoints, []) == [(1, 0, (1, 2)), (2, 0, (3, last)), (3, 0, (1, 2))]

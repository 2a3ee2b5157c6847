"""Many orders are split as each of them would be, to the minor unit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clickclock.attribution.crediting.columns.credit_columns import split_many
from clickclock.attribution.crediting.credit import NoWeights, split
from clickclock.attribution.orders.money import MINOR_MAX

AMOUNTS = st.one_of(st.integers(0, 1000), st.integers(0, 10**6), st.integers(0, MINOR_MAX))
WHOLE = st.one_of(st.integers(0, 3), st.integers(0, 10**6), st.integers(0, 2**62))
FEW = st.sampled_from([0.0, 0.1, 0.2, 0.25, 1 / 3, 0.5, 1.0, 3.0, 1e-300, 5e-324, 1e300])
FLOATS = st.one_of(FEW, st.floats(0, 1), st.floats(0, 1e308, allow_subnormal=True))


def orders(weights: st.SearchStrategy[float]) -> st.SearchStrategy[list[tuple[int, list[float]]]]:
    journey = st.lists(weights, min_size=1, max_size=9).filter(any)
    return st.lists(st.tuples(AMOUNTS, journey), max_size=12)


def columns(given: list[tuple[int, list[float]]], kind: Any) -> tuple[NDArray[np.int64], Any, NDArray[np.int64]]:
    amounts = np.array([amount for amount, _ in given], dtype=np.int64)
    weights = np.array([weight for _, journey in given for weight in journey], dtype=kind)
    return amounts, weights, np.cumsum([0, *(len(journey) for _, journey in given)])


def assert_same(given: list[tuple[int, list[float]]], kind: Any) -> None:
    expected = [part for amount, journey in given for part in split(amount, journey)]
    assert split_many(*columns(given, kind)).tolist() == expected


@settings(max_examples=300)
@given(orders(WHOLE))
@example([(1, [2**62 + 1, 2**62])])
def test_whole_weights_are_split_as_one_by_one(given: list[tuple[int, list[float]]]) -> None:
    assert_same(given, np.int64)


@settings(max_examples=600)
@given(orders(FLOATS))
@example([(100, [0.6, 0.4]), (3, [0.1, 0.2, 0.1]), (1, [1e-300, 1.0]), (MINOR_MAX, [5e-324, 1.0])])
@example([(100, [1e308, 1.5e308]), (10, [0.1] * 7), (7, [1e300] * 3), (9, [0.5, 0.25, 0.25]), (100, [0.3, 0.1, 0.2])])
def test_floats_are_split_as_one_by_one(given: list[tuple[int, list[float]]]) -> None:
    assert_same(given, np.float64)


@given(orders(st.one_of(st.integers(0, 2**80), FLOATS)))
def test_numbers_of_any_size_are_split_as_one_by_one(given: list[tuple[int, list[float]]]) -> None:
    assert_same(given, np.object_)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3000), AMOUNTS, st.integers(1, 9), st.randoms(use_true_random=False))
def test_long_journeys_are_split_as_one_by_one(touches: int, amount: int, different: int, random: Any) -> None:
    few = [random.random() + 0.001 for _ in range(different)]
    weights = [random.choice(few) for _ in range(touches)]
    assert_same([(amount, weights), (touches, weights), (amount, weights[:1])], np.float64)
    whole: list[float] = [int(1000 * weight) + 1 for weight in weights]
    assert_same([(amount, whole), (touches, whole)], np.int64)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_many_orders_that_a_float_alone_would_split_wrongly_are_right(kind: Any) -> None:
    chance = np.random.default_rng(3)
    given = [
        (int(amount), (chance.integers(1, 8, touches) * (1 if kind is np.int64 else 0.1)).tolist())
        for amount, touches in zip(chance.integers(0, 500, 3000), chance.integers(1, 12, 3000), strict=True)
    ]
    assert_same(given, kind)


def test_no_orders_have_no_parts() -> None:
    assert_same([], np.float64)


@pytest.mark.parametrize("weights", [[0.0], [1.0, -1.0], [2.0, -1.0], [float("nan")], [1.0, float("inf")], []])
@pytest.mark.parametrize("amount", [0, 100])
def test_weights_that_split_nothing_are_refused_among_others_that_do(amount: int, weights: list[float]) -> None:
    with pytest.raises(NoWeights):
        split_many(*columns([(5, [1.0]), (amount, weights), (5, [0.3, 0.7])], np.float64))


def test_a_negative_amount_is_refused() -> None:
    with pytest.raises(NoWeights, match="-1 is negative"):
        split_many(*columns([(5, [1]), (-1, [1])], np.int64))

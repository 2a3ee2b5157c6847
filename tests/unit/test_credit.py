"""Credits sum to the order's amount, to the minor unit, and always in the same way."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.crediting.credit import NoWeights, split
from clickclock.attribution.orders.money import MINOR_MAX

AMOUNTS = st.integers(0, MINOR_MAX)
WEIGHTS = st.lists(
    st.one_of(st.integers(0, 1000), st.floats(0, 1e300, allow_subnormal=True)), min_size=1, max_size=30
).filter(any)


@given(AMOUNTS, WEIGHTS)
def test_credits_sum_to_the_amount_and_each_is_its_exact_share_rounded_down_or_up(
    amount: int, weights: list[float]
) -> None:
    parts = split(amount, weights)
    total = sum(map(Fraction, weights))
    assert sum(parts) == amount
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - amount * Fraction(weight) / total) < 1


@given(AMOUNTS, st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any), st.integers(1, 10**6))
def test_only_the_proportion_of_the_weights_counts(amount: int, weights: list[int], times: int) -> None:
    assert split(amount, weights) == split(amount, [weight * times for weight in weights])


@given(AMOUNTS, WEIGHTS)
def test_a_touchpoint_without_weight_gets_nothing(amount: int, weights: list[float]) -> None:
    assert split(amount, [0, *weights, 0.0]) == [0, *split(amount, weights), 0]


def test_the_later_of_equal_touchpoints_gets_the_unit_that_is_left() -> None:
    assert split(100, [1, 1, 1]) == [33, 33, 34]
    assert split(101, [1, 1, 1]) == [33, 34, 34]
    assert split(1, [1, 1]) == [0, 1]


def test_the_larger_remainder_comes_before_the_later_touchpoint() -> None:
    assert split(10, [6, 1, 1, 1, 6]) == [4, 0, 1, 1, 4]
    assert split(1, [3, 2]) == [1, 0]
    assert split(7, [5, 3, 4]) == [3, 2, 2]


def test_thirds_as_floats_are_split_as_thirds() -> None:
    assert split(300, [1 / 3, 1 / 3, 1 / 3]) == [100, 100, 100]


def test_the_smallest_weight_that_there_is_does_not_disturb_the_sum() -> None:
    assert split(MINOR_MAX, [5e-324, 1.0]) == [0, MINOR_MAX]


@pytest.mark.parametrize("weights", [[], [0], [0, 0.0], [1, -1], [2, -1], [float("nan")], [1, float("inf")]])
def test_weights_that_split_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(NoWeights):
        split(100, weights)


def test_a_negative_amount_is_refused() -> None:
    with pytest.raises(NoWeights, match="-1 is negative"):
        split(-1, [1])

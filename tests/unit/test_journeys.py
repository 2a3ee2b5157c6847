"""Columns of journeys say what each journey says: the weights to the last bit, and which paths are the same."""

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.attribution.models import BUILT_IN, ByChannel, Journey, JourneyModel, PathRow, TimesNeeded, choose
from clickclock.attribution.models.journeys import ColumnarModel, Journeys, distinct, offsets_of, weights
from clickclock.attribution.models.last_non_direct import LastNonDirect
from clickclock.attribution.models.shapley import WHOLE_MAX, Shapley
from clickclock.attribution.models.table import Paths, path_rows
from clickclock.attribution.models.time_decay import TimeDecay

CHANNELS = ("direct", "google", "mail", "meta", "onsite")
OF_JOURNEYS: list[ColumnarModel] = [
    *(model for model in (choose(name, {}) for name in BUILT_IN) if isinstance(model, ColumnarModel)),
    LastNonDirect(frozenset({"direct", "mail"})),
    TimeDecay(half_life_ms=1),
    TimeDecay(half_life_ms=10_000_019),
    ByChannel({"google": 2.4, "mail": 1.6, "meta": -0.7, "gone": 5}),
    ByChannel({}),
]
STEPS_MS = st.one_of(st.integers(0, 3), st.integers(0, 40 * 86_400_000))
TOUCHES = st.lists(st.tuples(st.integers(0, len(CHANNELS) - 1), STEPS_MS), min_size=1, max_size=12)


def columns(touches: list[list[tuple[int, int]]]) -> Journeys:
    times_ms = [np.cumsum([step_ms for _, step_ms in journey]) for journey in touches]
    return Journeys(
        offsets_of(np.array([len(journey) for journey in touches], np.int64)),
        np.array([channel for journey in touches for channel, _ in journey], np.int16),
        CHANNELS,
        np.array([time_ms for journey in times_ms for time_ms in journey], np.int64),
        np.array([journey[-1] + 5 for journey in times_ms], np.int64),
    )


JOURNEYS = st.lists(TOUCHES, max_size=8).map(columns)


def test_every_journey_model_that_is_built_in_weighs_many_at_once() -> None:
    built_in = [choose(name, {}) for name in BUILT_IN]
    assert [
        model for model in built_in if isinstance(model, JourneyModel) and not isinstance(model, ColumnarModel)
    ] == []


@settings(max_examples=300)
@given(JOURNEYS)
def test_the_weights_of_many_are_those_of_each_to_the_last_bit(journeys: Journeys) -> None:
    for model in OF_JOURNEYS:
        each = [weight for journey in journeys for weight in model.weights(journey)]
        assert model.weights_of_many(journeys).tolist() == each


@given(st.lists(st.integers(1, 130), min_size=1, max_size=14), st.randoms(use_true_random=False))
def test_shapley_keeps_its_proportions_however_often_channels_come(counts: list[int], random: Any) -> None:
    channel = [place for place, count in enumerate(counts) for _ in range(count)]
    random.shuffle(channel)
    names = [str(place) for place in range(len(counts))]
    journeys = Journeys(np.array([0, 1, len(channel) + 1]), np.array([0, *channel]), names)
    one, many = next(iter(journeys)), Shapley().weights_of_many(journeys)
    assert many.tolist() == [*Shapley().weights(one), *Shapley().weights(Journey(tuple(names[c] for c in channel)))]
    by_channel = dict.fromkeys(channel, Fraction(0))
    for code, weight in zip(channel, many[1:].tolist(), strict=True):
        by_channel[code] += Fraction(weight)
    assert max(by_channel.values()) - min(by_channel.values()) <= (
        0 if many.max() > 1 else Fraction(1, WHOLE_MAX) * 130
    )


def test_a_model_that_weighs_one_at_a_time_weighs_many_with_the_same_numbers() -> None:
    class Mixed:
        needs_times = False

        def __init__(self, *numbers: float) -> None:
            self.numbers = numbers

        def weights(self, journey: Journey) -> list[float]:
            return list(self.numbers[: len(journey.channels)])

    journeys = columns([[(0, 0), (1, 1)], [(2, 0)]])
    for numbers, kind in (
        ((1, 2), "i"),
        ((0.1, 2), "f"),
        ((2**53 + 1, 0.5), "O"),
        ((2**70, 1), "f"),
        ((2**70 + 1, 1), "O"),
    ):
        many = weights(Mixed(*numbers), journeys)
        assert many.dtype.kind == kind
        assert many.tolist() == [*numbers, numbers[0]]


def test_time_decay_needs_times_for_many_as_for_one() -> None:
    with pytest.raises(TimesNeeded):
        TimeDecay().weights_of_many(Journeys(np.array([0, 1]), np.array([0]), ["a"]))


def test_columns_that_are_no_journeys_are_refused() -> None:
    channel, names = np.array([0, 0, 0]), ["a"]
    for offsets in ([], [1, 3], [0, 2]):
        with pytest.raises(ValueError, match="begin with 0"):
            Journeys(np.array(offsets, np.int64), channel, names)
    with pytest.raises(ValueError, match="at least one"):
        Journeys(np.array([0, 0, 3]), channel, names)
    with pytest.raises(ValueError, match="one for each"):
        Journeys(np.array([0, 3]), channel, names, np.array([1, 2]))
    with pytest.raises(ValueError, match="time order"):
        Journeys(np.array([0, 1, 3]), channel, names, np.array([1, 3, 2]))
    Journeys(np.array([0, 1, 3]), channel, names, np.array([3, 1, 2]))


@given(JOURNEYS, st.data())
def test_some_of_the_journeys_are_those_journeys(journeys: Journeys, data: st.DataObject) -> None:
    every = list(journeys)
    numbers = data.draw(st.lists(st.integers(0, len(every) - 1)) if every else st.just([]))
    assert list(journeys.only(np.array(numbers, np.int64))) == [every[number] for number in numbers]


@given(JOURNEYS)
def test_the_distinct_paths_are_counted(journeys: Journeys) -> None:
    rows = list(path_rows(journeys))
    assert {row.path: row.conversions for row in rows} == Counter(journey.channels for journey in journeys)
    assert all((row.value, row.nulls) == (0, 0) for row in rows)
    backwards = journeys.only(np.arange(len(journeys))[::-1])
    assert list(path_rows(backwards)) == rows


@given(JOURNEYS, st.data())
def test_journeys_are_alike_only_if_each_channel_is(journeys: Journeys, data: st.DataObject) -> None:
    every = [journey.channels for journey in journeys]
    others = data.draw(
        st.lists(st.integers(0, len(every) - 1), min_size=len(every), max_size=len(every)) if every else st.just([])
    )
    expected = [every[other] for other in others] == every
    assert journeys.are_alike(np.array(others, np.int64)) == expected


@given(st.lists(st.integers(0, 40)), st.integers(41, 10**6))
def test_distinct_codes_are_numbered_in_their_order(codes: list[int], below: int) -> None:
    found, which = distinct(np.array(codes, np.int64), below)
    assert found.tolist() == sorted(set(codes))
    assert found[which].tolist() == codes


@given(st.lists(st.tuples(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4).map(tuple), st.integers(0, 5))))
def test_columns_of_paths_are_the_rows_and_merged_rows_their_sums(given: list[tuple[tuple[str, ...], int]]) -> None:
    rows = [PathRow(path, number, 2 * number, 1) for path, number in given]
    paths = Paths.of(rows)
    assert list(paths) == rows
    assert list(Paths.of(paths)) == rows
    merged = {row.path: row[1:] for row in paths.merged()}
    assert merged.keys() == {row.path for row in rows}
    for path, sums in merged.items():
        assert sums == tuple(sum(column) for column in zip(*(row[1:] for row in rows if row.path == path), strict=True))

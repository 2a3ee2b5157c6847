"""Many journeys as columns, for models that weigh all of them at once.

Never says anything that `Journey` does not: it is the definition, and this is the same in numpy.
Invariants: each journey has at least one touchpoint, in time order; a column that is there has a number for each of its
touchpoints, or for each of its journeys.

>>> both = Journeys(np.array([0, 2, 3]), np.array([1, 0, 1]), ["google", "mail"])
>>> [journey.channels for journey in both]
[('mail', 'google'), ('mail',)]
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.models.journey import BadModel, Journey, JourneyModel

Whole = NDArray[np.int64]
Weights = NDArray[Any]
"""One for each touchpoint, of 64 bits; of a model that mixes kinds of numbers or has larger ones, objects."""

PLACES_PER_CODE_MAX = 4
"""A table of so many places for each code is smaller and faster than sorting the codes."""


@dataclass(frozen=True, eq=False)
class Journeys:
    """Journeys one after the other. Raises `ValueError` for columns that break an invariant."""

    offsets: Whole
    """Where each journey begins among the touchpoints; and, last, how many touchpoints there are."""
    channel: NDArray[np.integer[Any]]
    """Of each touchpoint: its channel, as a place in `channels`."""
    channels: Sequence[str]
    time_ms: Whole | None = None
    """Of each touchpoint; None in a table of paths."""
    order_ms: Whole | None = None
    """Of each journey: its order's effective time."""

    def __post_init__(self) -> None:
        if not len(self.offsets) or self.offsets[0] or self.offsets[-1] != len(self.channel):
            raise ValueError("The offsets begin with 0 and end with the number of touchpoints.")
        if np.any(self.touches < 1):
            raise ValueError("A journey has at least one touchpoint.")
        if self.time_ms is not None and len(self.time_ms) != len(self.channel):
            times, channels = len(self.time_ms), len(self.channel)
            raise ValueError(f"There are not as many times ({times}) as channels ({channels}); give one for each.")
        if self.time_ms is not None and np.any(np.delete(np.diff(self.time_ms), self.starts[1:] - 1) < 0):
            raise ValueError("The touchpoints are not in time order.")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Journey]:
        channels = [self.channels[code] for code in self.channel.tolist()]
        times_ms = None if self.time_ms is None else self.time_ms.tolist()
        orders_ms = [None] * len(self) if self.order_ms is None else self.order_ms.tolist()
        offsets = self.offsets.tolist()
        for start, end, order_ms in zip(offsets, offsets[1:], orders_ms, strict=False):
            yield Journey(
                tuple(channels[start:end]), None if times_ms is None else tuple(times_ms[start:end]), order_ms
            )

    @property
    def starts(self) -> Whole:
        """The place of each journey's first touchpoint."""
        return self.offsets[:-1]

    @property
    def ends(self) -> Whole:
        """The place of each journey's last touchpoint."""
        return self.offsets[1:] - 1

    @cached_property
    def touches(self) -> Whole:
        """How many touchpoints each journey has."""
        return np.diff(self.offsets)

    @cached_property
    def touches_of_channel(self) -> Whole:
        """How many touchpoints each touchpoint's journey has of its channel, itself among them."""
        size = len(self.channels)
        _, which = distinct(self.spread(np.arange(len(self)) * size) + self.channel, len(self) * size)
        return np.bincount(which)[which]

    def only(self, numbers: Whole) -> "Journeys":
        """Some of the journeys, by their numbers."""
        touches = self.touches[numbers]
        offsets = offsets_of(touches)
        places = np.arange(offsets[-1]) + np.repeat(self.starts[numbers] - offsets[:-1], touches)
        times_ms = None if self.time_ms is None else self.time_ms[places]
        orders_ms = None if self.order_ms is None else self.order_ms[numbers]
        return Journeys(offsets, self.channel[places], self.channels, times_ms, orders_ms)

    def tidied(self) -> "Journeys":
        """The same, with those channels alone that are there, each once and sorted."""
        used, channel = distinct(self.channel, len(self.channels))
        names = [self.channels[code] for code in used.tolist()]
        channels = sorted(set(names))
        if channels == list(self.channels):
            return self
        places = {name: place for place, name in enumerate(channels)}
        return replace(self, channel=np.array([places[name] for name in names], np.int64)[channel], channels=channels)

    def alike(self) -> tuple[Whole, Whole]:
        """The first journey of each sequence of channels, by number; and which of these each journey is like."""
        place = np.arange(len(self.channel)) - self.spread(self.starts)
        seed = 0
        while True:
            chance = np.random.default_rng(seed)
            of_channel = chance.integers(0, 2**64, len(self.channels), np.uint64)
            of_place = chance.integers(0, 2**64, self.touches.max(initial=0), np.uint64) | 1
            sums = self.reduced(np.add, of_channel[self.channel] * of_place[place])
            _, firsts, which = np.unique(sums, return_index=True, return_inverse=True)
            if self.are_alike(firsts[which]):
                return firsts, which
            seed += 1  # two that differ had the same sum; by other numbers they will not

    def are_alike(self, others: Whole) -> bool:
        """Whether each journey has the channels of that other one, given by its number."""
        if not np.array_equal(self.touches[others], self.touches):
            return False
        places = np.arange(len(self.channel)) + self.spread(self.starts[others] - self.starts)
        return np.array_equal(self.channel[places], self.channel)

    def spread(self, of_journey: NDArray[Any]) -> NDArray[Any]:
        """A number of each journey, for each of its touchpoints."""
        return np.repeat(of_journey, self.touches)

    def reduced(self, by: np.ufunc, of_touchpoint: NDArray[Any]) -> NDArray[Any]:
        """The numbers of each journey's touchpoints, made one by a ufunc."""
        return by.reduceat(of_touchpoint, self.starts) if len(self) else of_touchpoint[:0]


@runtime_checkable
class ColumnarModel(JourneyModel, Protocol):
    """A journey model that also weighs many journeys at once, which is what makes it fast."""

    def weights_of_many(self, journeys: Journeys) -> Weights:
        """What `weights` says of each, one after the other: the same numbers, to the last bit."""


class Numbering(dict[str, int]):
    """Gives each word a number, from 0 on, when it is first asked for it."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


def journeys_of(paths: Sequence[Sequence[str]]) -> Journeys:
    """Paths as journeys without times."""
    numbering = Numbering()
    touches = np.fromiter(map(len, paths), np.int64, len(paths))
    channel = np.fromiter(map(numbering.__getitem__, chain.from_iterable(paths)), np.int64, int(touches.sum()))
    return Journeys(offsets_of(touches), channel, list(numbering)).tidied()


def weights(model: JourneyModel, journeys: Journeys) -> Weights:
    """A weight for each touchpoint: at once if the model can, else one journey after the other. Raises `BadModel`."""
    if isinstance(model, ColumnarModel):
        found = model.weights_of_many(journeys)
        _expect(len(journeys.channel), len(found))
        return found
    return _exactly([weight for journey in journeys for weight in _weights_of(model, journey)])


def _weights_of(model: JourneyModel, journey: Journey) -> list[float]:
    found = model.weights(journey)
    _expect(len(journey.channels), len(found))
    return found


def _expect(touchpoints: int, count: int) -> None:
    if count != touchpoints:
        raise BadModel(f"It gives {count} weights for {touchpoints} touchpoints; one for each is needed.")


def offsets_of(touches: Whole) -> Whole:
    """Where each journey begins, and all end, by how many touchpoints each has."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(touches)])


def distinct(codes: NDArray[np.integer[Any]], below: int) -> tuple[Whole, Whole]:
    """Which codes there are, sorted, and of each code its place among them. All are from 0 to less than `below`."""
    if below > PLACES_PER_CODE_MAX * len(codes):
        return np.unique(codes, return_inverse=True)
    is_there = np.zeros(below, dtype=np.bool_)
    is_there[codes] = True
    places = np.cumsum(is_there) - 1
    return np.flatnonzero(is_there), places[codes]


def _exactly(numbers: list[Any]) -> Weights:
    """The numbers as an array that holds each of them as it is."""
    array = np.array(numbers, dtype=np.object_)
    for kind in (np.int64, np.float64):
        with suppress(OverflowError, ValueError):
            narrow = array.astype(kind)
            if np.array_equal(narrow.astype(np.object_), array):
                return narrow
    return array

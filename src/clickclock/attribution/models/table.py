"""A table of paths: how often each sequence of channels converted, with what value, and how often it did not.

Never knows people or times. Invariants: no path is empty; no number is negative, infinite or missing; the order of the
rows means nothing, and neither does a row that comes in two parts.

>>> from clickclock.attribution.models.linear import Linear
>>> credit_paths(Linear(), [PathRow(("google", "mail"), 3, 30.0)])["mail"]
Share(conversions=1.5, value=15.0)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Real
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.models.journey import BadModel, JourneyModel
from clickclock.attribution.models.journeys import Journeys, Whole, journeys_of, weights

Numbers = NDArray[np.float64]
FAULTS_TOLD_MAX = 10
"""More would not help to fix the program that wrote the table."""


class PathRow(NamedTuple):
    """One path, oldest channel first."""

    path: tuple[str, ...]
    conversions: float = 1
    value: float = 0
    """Of all its conversions together, in whatever unit the table has."""
    nulls: float = 0
    """How often it ended without a conversion."""


class Share(NamedTuple):
    """What one channel is credited with, of the whole table."""

    conversions: float
    value: float


class BadPath(ValueError):
    """Rows that are no paths; the text says which and why, a line for each."""

    def __init__(self, faults: Sequence[str]) -> None:
        told = list(faults[:FAULTS_TOLD_MAX])
        if len(faults) > len(told):
            told.append(f"… and {len(faults) - len(told):,} more.")
        super().__init__("\n".join(told))


class TableModel(Protocol):
    """Credits channels by looking at all paths together."""

    def credit(self, rows: Iterable[PathRow]) -> dict[str, Share]:
        """Each channel's share, by channel name; they sum to the table's totals. Raises `BadPath`."""


@runtime_checkable
class CountingModel(TableModel, Protocol):
    """A table model that learns from parts of paths, such as steps or sets: they are few, and a day changes a part."""

    def counts(self, paths: "Paths") -> "Paths":
        """The parts of these paths, each once, with how often it was part of a conversion and how often not.

        Whole numbers for whole numbers. The counts of two tables are those of both, added up.
        """

    def credit_counts(self, counts: "Paths") -> dict[str, Share]:
        """What `credit` says of the paths that these are the counts of."""


@dataclass(frozen=True, eq=False)
class Paths:
    """A table of paths as columns, which is also its rows: a path is a journey without times. Raises `BadPath`."""

    journeys: Journeys
    conversions: Numbers
    value: Numbers
    nulls: Numbers

    def __post_init__(self) -> None:
        faults = [
            (place, f"Row {place + 1} has {numbers[place]} as its {name}; give a number of at least 0.")
            for name, numbers in (("conversions", self.conversions), ("value", self.value), ("nulls", self.nulls))
            for place in np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0))).tolist()
        ]
        if faults:
            raise BadPath([sentence for _, sentence in sorted(faults)])

    @classmethod
    def of(cls, rows: Iterable[PathRow]) -> "Paths":
        """The rows as columns, which they may be already; the channels sorted, and no other than theirs."""
        if isinstance(rows, cls):
            journeys = rows.journeys.tidied()
            return rows if journeys is rows.journeys else replace(rows, journeys=journeys)
        rows = list(rows)
        empty = [(number, row.path) for number, row in enumerate(rows, 1) if not row.path or "" in row.path]
        if empty:
            raise BadPath([f"Row {number} has {'an empty' if path else 'no'} channel." for number, path in empty])
        journeys = journeys_of([row.path for row in rows])
        numbers = np.array([row[1:] for row in rows], np.float64).reshape(-1, 3)
        return cls(journeys, *numbers.T)

    def __len__(self) -> int:
        return len(self.journeys)

    def __iter__(self) -> Iterator[PathRow]:
        numbers = zip(self.conversions.tolist(), self.value.tolist(), self.nulls.tolist(), strict=True)
        for journey, each in zip(self.journeys, numbers, strict=True):
            yield PathRow(journey.channels, *each)

    def merged(self) -> "Paths":
        """The rows with equal paths added up."""
        firsts, which = self.journeys.alike()
        columns = (self.conversions, self.value, self.nulls)
        sums = (np.bincount(which, each, len(firsts)).astype(np.float64) for each in columns)
        return Paths(self.journeys.only(firsts), *sums)

    def only(self, numbers: Whole) -> "Paths":
        """Some of the rows, by their numbers."""
        columns = (self.conversions[numbers], self.value[numbers], self.nulls[numbers])
        return Paths(self.journeys.only(numbers), *columns)

    def by_channel(self, of_touchpoint: Numbers) -> dict[str, float]:
        """Numbers of the touchpoints, added up by channel."""
        sums = np.bincount(self.journeys.channel, of_touchpoint, len(self.journeys.channels))
        return dict(zip(self.journeys.channels, sums.tolist(), strict=True))


def path_rows(journeys: Journeys) -> Paths:
    """The distinct paths of journeys, each with as many conversions as there are journeys of it; no value, no nulls.

    Whatever the order of the journeys, that of the paths is the same.
    """
    none = np.zeros(len(journeys))
    return Paths(replace(journeys.tidied(), time_ms=None, order_ms=None), none + 1, none, none).merged()


def counts(model: TableModel, paths: Paths) -> Paths:
    """What a model learns from: of any that counts nothing else, the paths."""
    return model.counts(Paths.of(paths)) if isinstance(model, CountingModel) else paths.merged()


def credit_counts(model: TableModel, counted: Paths) -> dict[str, Share]:
    """Each channel's share, by what was counted: to the last bit the same, in whatever order it comes.

    Raises `BadModel`.
    """
    rows = Paths.of(counted).merged()
    return expect_shares(model.credit_counts(rows) if isinstance(model, CountingModel) else model.credit(rows))


def expect_shares(found: object) -> dict[str, Share]:
    """What a model says of channels, if it is that. Raises `BadModel`."""
    if not isinstance(found, Mapping) or not all(isinstance(share, Share) for share in found.values()):
        raise BadModel("It does not give a dict with a Share of each channel.")
    for channel, share in found.items():
        if not all(isinstance(each, Real) and isfinite(each) for each in share):
            raise BadModel(f"It gives {channel} a share that is infinite or no number.")
    return dict(found)


def credit_paths(model: JourneyModel, rows: Iterable[PathRow]) -> dict[str, Share]:
    """Each channel's share where `model` splits every path by itself. Raises `BadPath`, `BadModel`, `TimesNeeded`."""
    paths = Paths.of(rows)
    journeys = paths.journeys
    weight = weights(model, journeys).astype(np.float64)
    total = journeys.reduced(np.add, weight)
    if not (np.isfinite(total).all() and (weight >= 0).all() and (total > 0).all()):
        raise BadModel("Its weights are not all numbers of at least 0, one of each journey above.")
    part = weight / journeys.spread(total)
    conversions = paths.by_channel(part * journeys.spread(paths.conversions))
    value = paths.by_channel(part * journeys.spread(paths.value))
    return {channel: Share(conversions[channel], value[channel]) for channel in conversions}

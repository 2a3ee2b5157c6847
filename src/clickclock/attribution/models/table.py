"""A table of paths: how often each sequence of channels converted, with what value, and how often it did not.

Never knows people or times. Invariants: no path is empty; no number is negative, infinite or missing; the order of the
rows means nothing, and neither does a row that comes in two parts.

>>> from clickclock.attribution.models.linear import Linear
>>> credit_paths(Linear(), [PathRow(("google", "mail"), 3, 30.0)])["mail"]
Share(conversions=1.5, value=15.0)
"""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import NamedTuple, Protocol

from clickclock.attribution.models.journey import Journey, JourneyModel


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
    """This row is no path; the text says which and why."""


class TableModel(Protocol):
    """Credits channels by looking at all paths together."""

    def credit(self, rows: Iterable[PathRow]) -> dict[str, Share]:
        """Each channel's share, by channel name; they sum to the table's totals. Raises `BadPath`."""


def merged(rows: Iterable[PathRow]) -> list[PathRow]:
    """The rows with equal paths added up, sorted by path. Raises `BadPath`."""
    sums: dict[tuple[str, ...], tuple[float, float, float]] = {}
    for number, (path, conversions, value, nulls) in enumerate(rows, 1):
        if not path:
            raise BadPath(f"Row {number} has no channel.")
        for name, given in (("conversions", conversions), ("value", value), ("nulls", nulls)):
            if not (isfinite(given) and given >= 0):
                raise BadPath(f"Row {number} has {given} as its {name}; give a number of at least 0.")
        if known := sums.get(path):
            sums[path] = (known[0] + conversions, known[1] + value, known[2] + nulls)
        else:
            sums[path] = (conversions, value, nulls)
    return [PathRow(path, *sums[path]) for path in sorted(sums)]


def channels_of(rows: Sequence[PathRow]) -> list[str]:
    """Every channel of the rows, sorted."""
    return sorted({channel for row in rows for channel in row.path})


def credit_paths(model: JourneyModel, rows: Iterable[PathRow]) -> dict[str, Share]:
    """Each channel's share where `model` splits every path by itself. Raises `BadPath`, `TimesNeeded`."""
    table = merged(rows)
    conversions = dict.fromkeys(channels_of(table), 0.0)
    value = dict(conversions)
    for row in table:
        weights = model.weights(Journey(row.path))
        total = sum(weights)
        for channel, weight in zip(row.path, weights, strict=True):
            conversions[channel] += row.conversions * weight / total
            value[channel] += row.value * weight / total
    return {channel: Share(conversions[channel], value[channel]) for channel in conversions}

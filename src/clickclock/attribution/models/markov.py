"""Markov: a channel is worth the conversions that would be lost without it.

Never simulates: the absorbing chain is solved, to the precision of its numbers.
Invariants: the shares sum to the table's totals; none is negative.

The chain of order k: the state is the last k channels (fewer at a path's beginning, none before it); from each state it
moves as the paths did, and ends in a conversion or in nothing. A move to a removed channel ends in nothing.
A channel's removal effect is the part of all conversions that this costs, r = 1 - P(conversion without it) /
P(conversion); its credit is the total times r over the sum of all r. For the value, a conversion counts with the mean
value of the conversions that its last state led to.

What a removal costs is what passes through the channel, and is computed as such (see `chain`): no small effect is the
difference of two large numbers.

Source: Anderl, Becker, von Wangenheim, Schumann, "Mapping the customer journey: Lessons learned from graph-based online
attribution modeling" (2016).

>>> rows = [PathRow(("ga",), 2, 0, 1), PathRow(("mail",), 1), PathRow(("ga", "mail"), 1)]
>>> [round(effect, 9) for effect in removal_effects(rows).conversions.values()]
[0.75, 0.5]
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from clickclock.attribution.models.chain import END, build, solve, steps
from clickclock.attribution.models.table import PathRow, Paths, Share

ORDER_MAX = 4
"""Beyond it nearly every state is seen once, and the chain only repeats the paths."""


class BadOrder(ValueError):
    """This is no order of a chain; give a whole number from 1 to 4."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class Effects(NamedTuple):
    """The removal effects, from 0 to 1, by channel, and the totals that they share."""

    conversions: dict[str, float]
    value: dict[str, float]
    total: Share
    probability: float
    """That a path converts, over the whole chain; without null paths 1."""


class Markov(msgspec.Struct, frozen=True):
    """The exact chain of `order`, with null paths or over the conversions alone. Raises `BadOrder`, `ValueError`."""

    order: int = 1
    with_nulls: bool = True

    def __post_init__(self) -> None:
        # 2.0 is in the range too, and cuts no path.
        if type(self.order) is not int or self.order not in range(1, ORDER_MAX + 1):
            raise BadOrder
        if type(self.with_nulls) is not bool:
            raise ValueError(f"with_nulls is {self.with_nulls!r}; give true or false.")

    def credit(self, rows: Iterable[PathRow]) -> dict[str, Share]:
        return self.credit_counts(self.counts(Paths.of(rows).merged()))

    def counts(self, paths: Paths) -> Paths:
        return steps(paths, self.order)

    def credit_counts(self, counts: Paths) -> dict[str, Share]:
        effects = _effects(counts, self.order, with_nulls=self.with_nulls)
        conversions = _shared(effects.total.conversions, effects.conversions)
        value = _shared(effects.total.value, effects.value)
        return {channel: Share(conversions[channel], value[channel]) for channel in conversions}


def removal_effects(rows: Iterable[PathRow], order: int = 1, *, with_nulls: bool = True) -> Effects:
    """What each channel's removal costs. Raises `BadPath`, `TooManyStates`.

    A value without a conversion has nothing to be a part of, and counts for nothing.
    """
    return _effects(steps(Paths.of(rows).merged(), order), order, with_nulls=with_nulls)


def _effects(counts: Paths, order: int, *, with_nulls: bool) -> Effects:
    """The same, of the steps of all paths. Raises `TooManyStates`."""
    if not with_nulls:
        counts = replace(counts, nulls=np.zeros(len(counts)))
    counted = counts.only(np.flatnonzero(counts.conversions + counts.nulls))
    journeys = counted.journeys
    is_end = np.array([channel == END for channel in journeys.channels], np.bool_)[journeys.channel[journeys.ends]]
    total = Share(float(counted.conversions[is_end].sum()), float(counted.value.sum()))
    none = {channel: 0.0 for channel in journeys.channels if channel != END}
    if not total.conversions:
        return Effects(none, none, total, 0.0)
    whole, lost = solve(build(counted, order))
    # Channels that lead to nothing are not in the chain.
    conversions = none | {channel: _part(conversions, whole[0]) for channel, (conversions, _) in lost.items()}
    value = none | {channel: _part(value, whole[1]) for channel, (_, value) in lost.items()}
    return Effects(conversions, value, total, whole[0])


def _part(lost: float, whole: float) -> float:
    """How much of the whole is lost; rounding takes it out of 0 to 1 by a hair at most."""
    return float(min(max(lost / whole, 0.0), 1.0)) if whole else 0.0


def _shared(total: float, effects: Mapping[str, float]) -> dict[str, float]:
    """The total, in proportion to the effects."""
    whole = math.fsum(effects.values())
    return {channel: total * effect / whole if whole else 0.0 for channel, effect in effects.items()}

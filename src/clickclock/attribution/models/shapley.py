"""Shapley: every channel gets its fair part of what the channels reach together, in two games.

Never looks at the order of touchpoints or at repetitions: a path is the set of its channels.
Invariant: the shares sum to the table's totals.

The Shapley value of i in a game v over n players is the sum, over the sets T without i, of
|T|! (n - |T| - 1)! / n! · (v(T + i) - v(T)).

The set game: v(S) is all conversions of paths inside S. It is a sum of unanimity games, so that the value has a closed
form: each path's conversions are split equally over its distinct channels.
Source: Zhao, Mahboobi, Bagheri, "Shapley Value Methods for Attribution Modeling in Online Advertising" (2018).

The conversion-rate game: v(T) is the conversion rate of the paths whose channels are exactly T, and 0 where there are
none. Each set that converted plays it among its own channels; its value there times its paths gives its conversions. A
channel whose company lowers the rate gets a negative part. For the value, v(T) is the value per path.
Source: the Python package marketing-attribution-models (DP6), there only over a path's last four channels.

>>> Shapley().weights(Journey(("google", "mail", "google")))
[1, 2, 1]
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import comb, lcm

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.journeys import Journeys, distinct, offsets_of
from clickclock.attribution.models.table import PathRow, Paths, Share

WHOLE_MAX = 2**53
"""The whole numbers that a float holds; beyond, hundreds of touchpoints, the weights are the floats nearest to 1/n."""
COUNT_WHOLE = 40
"""The least common multiple of all numbers up to here is no more than that."""


@dataclass(frozen=True, slots=True)
class Shapley:
    """The set game: distinct channels get the same, each channel's touchpoints share equally."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        touches = Counter(journey.channels)
        whole = lcm(*touches.values())
        if whole > WHOLE_MAX:
            return [1 / touches[channel] for channel in journey.channels]
        return [whole // touches[channel] for channel in journey.channels]

    def weights_of_many(self, journeys: Journeys) -> NDArray[np.float64]:
        touches = journeys.touches_of_channel
        # As long as no count is above this, neither is the multiple.
        small = np.minimum(touches, COUNT_WHOLE)
        whole = journeys.reduced(np.lcm, small)
        starts, ends = journeys.starts, journeys.ends
        for number in np.flatnonzero(journeys.reduced(np.maximum, touches) > COUNT_WHOLE).tolist():
            multiple = lcm(*set(touches[starts[number] : ends[number] + 1].tolist()))
            whole[number] = multiple if multiple <= WHOLE_MAX else 1
        return journeys.spread(whole) / touches


@dataclass(frozen=True, slots=True)
class ShapleyRate:
    """The conversion-rate game, on a table with `nulls`."""

    def credit(self, rows: Iterable[PathRow]) -> dict[str, Share]:
        return self.credit_counts(self.counts(Paths.of(rows)))

    def counts(self, paths: Paths) -> Paths:
        return replace(paths, journeys=as_sets(paths.journeys)).merged()

    def credit_counts(self, counts: Paths) -> dict[str, Share]:
        # A set that brought nothing, and a channel of such sets alone, are worth nothing to any other.
        brought = [row for row in counts if row.conversions or (row.value and row.nulls)]
        channels = sorted({channel for row in brought for channel in row.path})
        bits = {channel: 1 << place for place, channel in enumerate(channels)}
        table = [(sum(bits[channel] for channel in row.path), row) for row in brought]
        count = {members: row.conversions + row.nulls for members, row in table}
        by_conversions = _played({members: row.conversions / count[members] for members, row in table}, count)
        by_value = _played({members: row.value / count[members] for members, row in table}, count)
        worth = {channel: Share(by_conversions.get(bit, 0.0), by_value.get(bit, 0.0)) for channel, bit in bits.items()}
        return dict.fromkeys(counts.journeys.channels, Share(0.0, 0.0)) | worth


def as_sets(journeys: Journeys) -> Journeys:
    """Each journey with its channels once, in the order of their places."""
    size = len(journeys.channels)
    members, _ = distinct(journeys.spread(np.arange(len(journeys)) * size) + journeys.channel, len(journeys) * size)
    number, channel = np.divmod(members, max(size, 1))
    return Journeys(offsets_of(np.bincount(number, minlength=len(journeys))), channel, journeys.channels)


def _played(rates: Mapping[int, float], paths: Mapping[int, float]) -> dict[int, float]:
    """The sum over all sets with a rate of their paths times each member's Shapley value, by the member's bit."""
    credit: dict[int, float] = {}
    for members, rate in rates.items():
        for bit, part in _values(members, rates).items() if rate else ():
            credit[bit] = credit.get(bit, 0.0) + paths[members] * part
    return credit


def _values(members: int, rates: Mapping[int, float]) -> dict[int, float]:
    """The Shapley value of each of `members`, by its bit.

    Each set T inside counts for its own members with (|T|-1)! (n-|T|)! / n!, and against the others with
    |T|! (n-|T|-1)! / n!.
    """
    size = members.bit_count()
    values = dict.fromkeys(_bits(members), 0.0)
    for inner in _subsets(members, rates):
        rate = rates.get(inner, 0.0)
        if not rate:
            continue
        inside = inner.bit_count()
        gain = rate / (inside * comb(size, inside))
        loss = rate / ((size - inside) * comb(size, inside)) if inside < size else 0.0
        for bit in values:
            values[bit] += gain if inner & bit else -loss
    return values


def _subsets(members: int, rates: Mapping[int, float]) -> Iterable[int]:
    """The sets inside `members` that may have a rate, by the shorter way of the two."""
    if 1 << members.bit_count() > len(rates):
        return (inner for inner in rates if inner & members == inner)
    return _all_subsets(members)


def _all_subsets(members: int) -> Iterable[int]:
    inner = members
    while inner:
        yield inner
        inner = (inner - 1) & members


def _bits(members: int) -> Iterable[int]:
    while members:
        bit = members & -members
        yield bit
        members ^= bit

"""Shapley: every channel gets its fair part of what the channels reach together, in two games.

Never looks at the order of touchpoints or at repetitions: a path is the set of its channels.
Invariant: the shares sum to the table's totals.

The Shapley value of i in a game v over n players is the sum, over the sets T without i, of
|T|! (n - |T| - 1)! / n! · (v(T + i) - v(T)).

The set game: v(S) is all conversions of paths inside S. It is a sum of unanimity games, so that the value has a closed
form: each path's conversions are split equally over its distinct channels.
Source: Zhao, Mahboobi, Bagheri, "Shapley Value Methods for Attribution Modeling in Online Advertising" (2018).

The conversion-rate game: v(T) is the conversion rate of the paths whose channels are exactly T, and 0 where there are
none. Each observed set S plays it among its own channels; its value there times its paths gives its conversions. A
channel whose company lowers the rate gets a negative part.
Source: the subset game of the Python package marketing-attribution-models (DP6).

>>> Shapley().weights(Journey(("google", "mail", "google")))
[1, 2, 1]
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb, lcm

from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.table import PathRow, Share, channels_of, merged


@dataclass(frozen=True, slots=True)
class Shapley:
    """The set game: distinct channels get the same, each channel's touchpoints share equally."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        touches = Counter(journey.channels)
        whole = lcm(*touches.values())
        return [whole // touches[channel] for channel in journey.channels]


@dataclass(frozen=True, slots=True)
class ShapleyRate:
    """The conversion-rate game, on a table with `nulls`."""

    def credit(self, rows: Iterable[PathRow]) -> dict[str, Share]:
        table = merged(rows)
        channels = channels_of(table)
        bits = {channel: 1 << place for place, channel in enumerate(channels)}
        sums: dict[int, tuple[float, float, float]] = {}
        for path, conversions, value, nulls in table:
            members = sum(bits[channel] for channel in set(path))
            old = sums.get(members, (0.0, 0.0, 0.0))
            sums[members] = (old[0] + conversions, old[1] + value, old[2] + conversions + nulls)
        paths = {members: count for members, (_, _, count) in sums.items() if count}
        by_conversions = _played({members: sums[members][0] / count for members, count in paths.items()}, paths)
        by_value = _played({members: sums[members][1] / count for members, count in paths.items()}, paths)
        return {channel: Share(by_conversions.get(bit, 0.0), by_value.get(bit, 0.0)) for channel, bit in bits.items()}


def _played(rates: Mapping[int, float], paths: Mapping[int, float]) -> dict[int, float]:
    """The sum over all sets of their paths times each member's Shapley value, by the member's bit."""
    credit: dict[int, float] = {}
    for members, count in paths.items():
        for bit, part in _values(members, rates).items():
            credit[bit] = credit.get(bit, 0.0) + count * part
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

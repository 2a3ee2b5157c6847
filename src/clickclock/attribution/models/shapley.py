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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from math import comb, lcm
from operator import xor

import msgspec
import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.journeys import Journeys, distinct, offsets_of
from clickclock.attribution.models.table import PathRow, Paths, Share

WHOLE_MAX = 2**53
"""The whole numbers that a float holds; beyond, hundreds of touchpoints, the weights are the floats nearest to 1/n."""
COUNT_WHOLE = 40
"""The least common multiple of all numbers up to here is no more than that."""
_WORD_BYTES = 16


class Shapley(msgspec.Struct, frozen=True):
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


class ShapleyRate(msgspec.Struct, frozen=True):
    """The conversion-rate game, on a table with `nulls`."""

    def credit(self, rows: Iterable[PathRow]) -> dict[str, Share]:
        return self.credit_counts(self.counts(Paths.of(rows)))

    def counts(self, paths: Paths) -> Paths:
        return replace(paths, journeys=as_sets(paths.journeys)).merged()

    def credit_counts(self, counts: Paths) -> dict[str, Share]:
        # A set that brought nothing, and a channel of such sets alone, are worth nothing to any other.
        brought = [row for row in counts if row.conversions or (row.value and row.nulls)]
        game, paths = _Game([row.path for row in brought]), [row.conversions + row.nulls for row in brought]
        conversions = game.played([row.conversions for row in brought], paths)
        value = game.played([row.value for row in brought], paths)
        worth = {channel: Share(part, value[channel]) for channel, part in conversions.items()}
        return dict.fromkeys(counts.journeys.channels, Share(0.0, 0.0)) | worth


def as_sets(journeys: Journeys) -> Journeys:
    """Each journey with its channels once, in the order of their places."""
    size = len(journeys.channels)
    members, _ = distinct(journeys.spread(np.arange(len(journeys)) * size) + journeys.channel, len(journeys) * size)
    number, channel = np.divmod(members, max(size, 1))
    return Journeys(offsets_of(np.bincount(number, minlength=len(journeys))), channel, journeys.channels)


class _Game:
    """Sets of channels, each there once, and which of them are inside which."""

    def __init__(self, sets: Sequence[tuple[str, ...]]) -> None:
        used = Counter(chain.from_iterable(sets))
        chance = np.random.default_rng(0)
        self._sets = sets
        self._word = {channel: int.from_bytes(chance.bytes(_WORD_BYTES), "little") for channel in used}
        """Sets are known by the sums without carry of their channels' words, which no two of them share."""
        self._place = {reduce(xor, map(self._word.__getitem__, members)): at for at, members in enumerate(sets)}
        self._by_rarest: dict[str, list[int]] = {channel: [] for channel in used}
        for at, members in enumerate(sets):
            self._by_rarest[min(members, key=used.__getitem__)].append(at)

    def played(self, totals: Sequence[float], paths: Sequence[float]) -> dict[str, float]:
        """The sum over all sets of their paths times each member's Shapley value, where v is a set's total per path."""
        rates = [total / count for total, count in zip(totals, paths, strict=True)]
        credit = dict.fromkeys(self._word, 0.0)
        for members, rate, count in zip(self._sets, rates, paths, strict=True):
            for channel, part in zip(members, self._values(members, rates), strict=True) if rate else ():
                credit[channel] += count * part
        return credit

    def _values(self, members: tuple[str, ...], rates: Sequence[float]) -> list[float]:
        """The Shapley value of each of `members`.

        Each set T inside counts for its own members with (|T|-1)! (n-|T|)! / n!, and against the others with
        |T|! (n-|T|-1)! / n!.
        """
        size, lost = len(members), 0.0
        values = [0.0] * size
        for at, inner in self._inside(members):
            if not rates[at]:
                continue
            inside = inner.bit_count()
            gain = rates[at] / (inside * comb(size, inside))
            loss = rates[at] / ((size - inside) * comb(size, inside)) if inside < size else 0.0
            lost += loss
            left = inner
            while left:
                place = left.bit_length() - 1
                values[place] += gain + loss
                left ^= 1 << place
        return [value - lost for value in values]

    def _inside(self, members: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        """The sets inside `members`, and of each a bit for each of `members` that it has.

        By the shorter way of two: all that there could be, or all that have one of these channels as their rarest.
        """
        if 1 << len(members) <= sum(len(self._by_rarest[channel]) for channel in members):
            words = [self._word[channel] for channel in members]
            known = inner = 0
            # From each set to the next, one channel comes or goes (a Gray code).
            for number in range(1, 1 << len(members)):
                bit = number & -number
                inner ^= bit
                known ^= words[bit.bit_length() - 1]
                if (at := self._place.get(known)) is not None:
                    yield at, inner
            return
        bits = {channel: 1 << place for place, channel in enumerate(members)}
        for at in chain.from_iterable(self._by_rarest[channel] for channel in members):
            if bits.keys() >= set(self._sets[at]):
                yield at, sum(bits[channel] for channel in self._sets[at])

"""Time decay: a touchpoint's weight halves with every half-life that it lies before the order.

Never vanishes altogether for a journey that is old as a whole. Formula: w_i = 2^(-(t_order - t_i) / half-life). All are
divided by the last one's weight, which leaves their proportion and keeps old journeys clear of underflow; so the
order's time cancels out, and w_i = 2^(-(t_last - t_i) / half-life).
Source: Google Analytics, "Time decay", with its half-life of 7 days.

>>> day_ms = 86_400_000
>>> TimeDecay().weights(Journey(("google", "meta", "onsite"), (0, 7 * day_ms, 14 * day_ms)))
[0.25, 0.5, 1.0]
"""

from math import inf

import msgspec
import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.models.journey import Journey, TimesNeeded
from clickclock.attribution.models.journeys import Journeys
from clickclock.foundation.instant import DAY_MS


class TimeDecay(msgspec.Struct, frozen=True):
    """Later touchpoints get more."""

    half_life_ms: int = 7 * DAY_MS
    needs_times = True

    def __post_init__(self) -> None:
        given: object = self.half_life_ms
        if isinstance(given, bool) or not isinstance(given, int | float | np.integer) or not 0 < given < inf:
            raise ValueError(f"A half-life of {given} ms is none; give a number of milliseconds above zero.")

    def weights(self, journey: Journey) -> list[float]:
        times_ms = journey.times_ms
        if times_ms is None:
            raise TimesNeeded
        last_ms = times_ms[-1]
        return [2.0 ** ((time_ms - last_ms) / self.half_life_ms) for time_ms in times_ms]

    def weights_of_many(self, journeys: Journeys) -> NDArray[np.float64]:
        times_ms = journeys.time_ms
        if times_ms is None:
            raise TimesNeeded
        lasts_ms = journeys.spread(times_ms[journeys.ends])
        halvings = (times_ms - lasts_ms) / self.half_life_ms
        # One by one: numpy has a power of its own, whose last digit may differ from Python's.
        return np.fromiter(map((2.0).__pow__, halvings.tolist()), np.float64, len(halvings))

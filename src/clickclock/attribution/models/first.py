"""First touch: all credit to the touchpoint that came first.

Never looks at times or channels. Formula: w = (1, 0, …, 0).
Source: the oldest of the single-touch rules; Google Analytics names it "First interaction".

>>> First().weights(Journey(("google", "meta", "onsite")))
[1, 0, 0]
"""

import msgspec
import numpy as np

from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.journeys import Journeys, Whole


class First(msgspec.Struct, frozen=True):
    """The first touchpoint gets all."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        return [1, *[0] * (len(journey.channels) - 1)]

    def weights_of_many(self, journeys: Journeys) -> Whole:
        weights = np.zeros(len(journeys.channel), dtype=np.int64)
        weights[journeys.starts] = 1
        return weights

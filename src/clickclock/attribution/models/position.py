"""Position (U-shaped): the first and the last touchpoint get 40 % each, those between them share 20 %.

Never looks at times or channels. Formula: for n > 2, w_1 = w_n = 0.4 and 0.2 / (n - 2) elsewhere; times 5 (n - 2) these
are whole numbers. One touchpoint gets 100 %, two get 50 % each.
Source: Google Analytics, "Position based".

>>> Position().weights(Journey(("google", "meta", "meta", "meta", "onsite")))
[6, 1, 1, 1, 6]
"""

import msgspec
import numpy as np

from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.journeys import Journeys, Whole


class Position(msgspec.Struct, frozen=True):
    """The ends get more than the middle."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        between = len(journey.channels) - 2
        if between <= 0:
            return [1] * len(journey.channels)
        return [2 * between, *[1] * between, 2 * between]

    def weights_of_many(self, journeys: Journeys) -> Whole:
        between = np.maximum(journeys.touches - 2, 0)
        weights = np.ones(len(journeys.channel), dtype=np.int64)
        weights[journeys.starts] = weights[journeys.ends] = np.where(between, 2 * between, 1)
        return weights

"""Linear: every touchpoint gets the same.

Never looks at times or channels. Formula: w = (1, …, 1), each a share of 1/n.
Source: Google Analytics, "Linear".

>>> Linear().weights(Journey(("google", "meta", "google")))
[1, 1, 1]
"""

import msgspec
import numpy as np

from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.journeys import Journeys, Whole


class Linear(msgspec.Struct, frozen=True):
    """All touchpoints get the same."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        return [1] * len(journey.channels)

    def weights_of_many(self, journeys: Journeys) -> Whole:
        return np.ones(len(journeys.channel), dtype=np.int64)

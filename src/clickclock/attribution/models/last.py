"""Last touch: all credit to the touchpoint nearest to the order.

Never looks at times or channels. Formula: w = (0, …, 0, 1).
Source: the rule by which networks bill; Google Analytics names it "Last interaction".

>>> Last().weights(Journey(("google", "meta", "onsite")))
[0, 0, 1]
"""

import msgspec
import numpy as np

from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.journeys import Journeys, Whole


class Last(msgspec.Struct, frozen=True):
    """The last touchpoint gets all."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        return [*[0] * (len(journey.channels) - 1), 1]

    def weights_of_many(self, journeys: Journeys) -> Whole:
        weights = np.zeros(len(journeys.channel), dtype=np.int64)
        weights[journeys.ends] = 1
        return weights

"""By channel: weighs a journey by what a model of the whole table found each channel to be worth.

Never gives a channel more for being touched more often. Formula: with the table's credit c of each channel, and n_i
touchpoints of i's channel in this journey, w_i = max(c_i, 0) / n_i. A journey whose channels have no credit at all
(none is known, or none is above zero) is split as if all its channels had the same.
Source: how data-driven models, which credit channels, are brought down to orders; ours.

>>> ByChannel({"google": 2.4, "mail": 1.6}).weights(Journey(("google", "mail", "google")))
[1.2, 1.6, 1.2]
"""

from collections import Counter
from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.journeys import Journeys


class ByChannel(msgspec.Struct, frozen=True):
    """Channels get in proportion to `credit`, each channel's touchpoints the same."""

    credit: Mapping[str, float]
    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        touches = Counter(journey.channels)
        worth: Mapping[str, float] = {channel: max(self.credit.get(channel, 0.0), 0.0) for channel in touches}
        if not any(worth.values()):
            worth = dict.fromkeys(touches, 1.0)
        return [worth[channel] / touches[channel] for channel in journey.channels]

    def weights_of_many(self, journeys: Journeys) -> NDArray[np.float64]:
        worth = np.array([max(self.credit.get(channel, 0.0), 0.0) for channel in journeys.channels])[journeys.channel]
        is_worthless = journeys.reduced(np.maximum, worth) == 0
        return np.where(journeys.spread(is_worthless), 1.0, worth) / journeys.touches_of_channel

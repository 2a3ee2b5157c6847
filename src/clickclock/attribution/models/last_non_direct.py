"""Last touch that is not direct: all credit to the last touchpoint that somebody paid or worked for.

Never credits a direct visit while there is another touchpoint. Formula: w is 1 at the largest i whose channel is not
direct, and 0 elsewhere; where all are direct, 1 at the last.
Source: Google Analytics, "Last non-direct click".

>>> LastNonDirect().weights(Journey(("google", "meta", "direct")))
[0, 1, 0]
"""

from collections.abc import Collection

import msgspec
import numpy as np

from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.journeys import Journeys, Whole


class LastNonDirect(msgspec.Struct, frozen=True):
    """The last touchpoint outside `direct` gets all."""

    direct: Collection[str] = frozenset({"direct"})
    """The channels that count as direct."""
    needs_times = False

    def __post_init__(self) -> None:
        given: object = self.direct
        # In a text, parts of its words would be direct, too.
        is_list = isinstance(given, Collection) and not isinstance(given, str)
        if not is_list or not all(isinstance(channel, str) for channel in self.direct):
            raise ValueError(f'direct is {given!r}; give a list of channels, such as ["direct"].')

    def weights(self, journey: Journey) -> list[float]:
        channels = journey.channels
        last = len(channels) - 1
        chosen = next((place for place in range(last, -1, -1) if channels[place] not in self.direct), last)
        weights: list[float] = [0] * len(channels)
        weights[chosen] = 1
        return weights

    def weights_of_many(self, journeys: Journeys) -> Whole:
        is_direct = np.array([channel in self.direct for channel in journeys.channels], dtype=np.bool_)
        places = np.where(is_direct[journeys.channel], -1, np.arange(len(journeys.channel)))
        chosen = journeys.reduced(np.maximum, places)
        weights = np.zeros(len(journeys.channel), dtype=np.int64)
        weights[np.where(chosen < 0, journeys.ends, chosen)] = 1
        return weights

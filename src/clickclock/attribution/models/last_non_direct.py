"""Last touch that is not direct: all credit to the last touchpoint that somebody paid or worked for.

Never credits a direct visit while there is another touchpoint. Formula: w is 1 at the largest i whose channel is not
direct, and 0 elsewhere; where all are direct, 1 at the last.
Source: Google Analytics, "Last non-direct click".

>>> LastNonDirect().weights(Journey(("google", "meta", "direct")))
[0, 1, 0]
"""

from dataclasses import dataclass

from clickclock.attribution.models.journey import Journey


@dataclass(frozen=True, slots=True)
class LastNonDirect:
    """The last touchpoint outside `direct` gets all."""

    direct: frozenset[str] = frozenset({"direct"})
    """The channels that count as direct."""
    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        channels = journey.channels
        last = len(channels) - 1
        chosen = next((place for place in range(last, -1, -1) if channels[place] not in self.direct), last)
        weights: list[float] = [0] * len(channels)
        weights[chosen] = 1
        return weights

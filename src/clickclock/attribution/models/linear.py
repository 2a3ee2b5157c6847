"""Linear: every touchpoint gets the same.

Never looks at times or channels. Formula: w = (1, …, 1), each a share of 1/n.
Source: Google Analytics, "Linear".

>>> Linear().weights(Journey(("google", "meta", "google")))
[1, 1, 1]
"""

from dataclasses import dataclass

from clickclock.attribution.models.journey import Journey


@dataclass(frozen=True, slots=True)
class Linear:
    """All touchpoints get the same."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        return [1] * len(journey.channels)

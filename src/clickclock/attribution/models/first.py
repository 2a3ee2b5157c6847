"""First touch: all credit to the touchpoint that came first.

Never looks at times or channels. Formula: w = (1, 0, …, 0).
Source: the oldest of the single-touch rules; Google Analytics names it "First interaction".

>>> First().weights(Journey(("google", "meta", "onsite")))
[1, 0, 0]
"""

from dataclasses import dataclass

from clickclock.attribution.models.journey import Journey


@dataclass(frozen=True, slots=True)
class First:
    """The first touchpoint gets all."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        return [1, *[0] * (len(journey.channels) - 1)]

"""Last touch: all credit to the touchpoint nearest to the order.

Never looks at times or channels. Formula: w = (0, …, 0, 1).
Source: the rule by which networks bill; Google Analytics names it "Last interaction".

>>> Last().weights(Journey(("google", "meta", "onsite")))
[0, 0, 1]
"""

from dataclasses import dataclass

from clickclock.attribution.models.journey import Journey


@dataclass(frozen=True, slots=True)
class Last:
    """The last touchpoint gets all."""

    needs_times = False

    def weights(self, journey: Journey) -> list[float]:
        return [*[0] * (len(journey.channels) - 1), 1]

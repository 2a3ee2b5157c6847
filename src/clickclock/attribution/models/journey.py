"""A journey as a model sees it: an order's touchpoints in time order; and what a model of single journeys is.

Never holds an identifier or money. Invariants: there is at least one touchpoint; times, where they are known, are one
for each touchpoint and never fall.

>>> Journey(("google", "meta")).times_ms is None
True
"""

from itertools import pairwise
from typing import Protocol, runtime_checkable

import msgspec


class Journey(msgspec.Struct, frozen=True):
    """An order's touchpoints in time order. Raises `ValueError` for one that breaks an invariant."""

    channels: tuple[str, ...]
    times_ms: tuple[int, ...] | None = None
    """When each touchpoint was, in milliseconds since 1970; None in a table of paths, which has no times."""
    order_ms: int | None = None
    """The order's effective time."""

    def __post_init__(self) -> None:
        if not self.channels:
            raise ValueError("A journey has at least one touchpoint.")
        times_ms = self.times_ms
        if times_ms is None:
            return
        if len(times_ms) != len(self.channels):
            raise ValueError(
                f"There are not as many times ({len(times_ms)}) as channels ({len(self.channels)}); give one for each."
            )
        if any(later < earlier for earlier, later in pairwise(times_ms)):
            raise ValueError("The touchpoints are not in time order.")


class TimesNeeded(ValueError):
    """This model weighs by time, and there are no times here, as in every table of paths; choose another model."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class BadModel(ValueError):
    """A model does not answer as it must; the text says how."""


@runtime_checkable
class JourneyModel(Protocol):
    """Credits one journey at a time, without looking at others."""

    @property
    def needs_times(self) -> bool:
        """Whether `weights` raises `TimesNeeded` for a journey without times."""

    def weights(self, journey: Journey) -> list[float]:
        """A weight for each touchpoint, at least 0 and one of them above; only their proportion counts.

        Whole numbers where the model allows it, so that equal shares are equal exactly.
        """

"""A model as a package from elsewhere may bring it: it counts nothing of its own.

>>> Steady().credit([PathRow(("a", "b"), 3, 0, 1)])["b"]
Share(conversions=0.75, value=0)
"""

from collections.abc import Iterable

from clickclock.attribution.models import PathRow, Share


class Steady:
    """Adds floats in the order of the rows, so that another order would show."""

    def credit(self, rows: Iterable[PathRow]) -> dict[str, Share]:
        """The later a touchpoint, the less it gets."""
        found: dict[str, Share] = {}
        for row in rows:
            for place, channel in enumerate(row.path, 1):
                part = row.conversions / (1 + row.nulls) / place
                found[channel] = Share(found.get(channel, Share(0, 0)).conversions + part, 0)
        return found

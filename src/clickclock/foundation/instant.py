"""Instants and milliseconds since 1970, one into the other.

Never computes with floats. Invariant: an instant of whole milliseconds comes back as it was.

>>> ms_of(instant_of(1_795_132_800_123))
1795132800123
"""

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
DAY_MS: Final = 86_400_000


def instant_of(ms: int) -> datetime:
    """The instant of so many milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=ms)


def ms_of(instant: datetime) -> int:
    """The whole milliseconds since 1970 at an instant."""
    return (instant - EPOCH) // MILLISECOND

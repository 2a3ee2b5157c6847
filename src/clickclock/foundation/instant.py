"""Instants and milliseconds since 1970, one into the other.

Never computes with floats. Invariant: an instant of whole milliseconds comes back as it was.

>>> ms_of(instant_of(1_795_132_800_123))
1795132800123
"""

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def instant_of(ms: int) -> datetime:
    """The instant of so many milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=ms)


def ms_of(instant: datetime) -> int:
    """The whole milliseconds since 1970 at an instant."""
    return (instant - EPOCH) // MILLISECOND


def shifted(instant: datetime, by: timedelta) -> datetime:
    """`instant + by`, or the first or the last instant that a datetime can name.

    >>> shifted(EPOCH, timedelta(days=9_999_999)).year
    9999
    """
    try:
        return instant + by
    except OverflowError:
        return _FIRST if by < timedelta(0) else _LAST


def is_local(text: str) -> bool:
    """Whether a text is a time in ISO 8601 without a zone, or a day: no instant, for nobody says where.

    >>> is_local("2026-11-20T10:00:00"), is_local("2026-11-20T10:00:00Z"), is_local("soon")
    (True, False, False)
    """
    try:
        return not text.isdigit() and datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False

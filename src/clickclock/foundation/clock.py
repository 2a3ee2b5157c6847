"""The one place that reads the time.

Never used by nouns: they take `now` as an argument.
Invariants: every instant in the program is an aware datetime in UTC, in whole milliseconds, as the store keeps it.

>>> ManualClock(datetime(2026, 11, 20, tzinfo=UTC)).now().isoformat()
'2026-11-20T00:00:00+00:00'
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Wall time for deciding, monotonic time for waiting."""

    def now(self) -> datetime:
        """The wall clock: an aware UTC datetime in whole milliseconds, never ahead of the true one."""
        ...

    def epoch_ms(self) -> int:
        """The wall clock in milliseconds since 1970: the same instant as `now`, at a tenth of its cost."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that only ever move forward."""
        ...


class SystemClock:
    """This machine's clock, moved by `offset` when a shared database's clock decides."""

    def __init__(self) -> None:
        self.offset = timedelta(0)

    def now(self) -> datetime:
        exact = datetime.now(UTC) + self.offset
        return exact.replace(microsecond=exact.microsecond // 1000 * 1000)

    def epoch_ms(self) -> int:
        return (time.time_ns() + (self.offset // _MICROSECOND * 1000 if self.offset else 0)) // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    def epoch_s(self) -> float:
        """Where 1970 lies on the monotonic clock, finer than a millisecond: added to an instant, it says when that is.

        Never too early: whoever is held up between the two looks takes 1970 for later than it was.
        """
        since_s = time.time() + self.offset.total_seconds()
        return self.monotonic_s() - since_s


class ManualClock:
    """A clock that stands still until it is told to move; for tests and simulation."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic_s = 0.0

    def now(self) -> datetime:
        return self._now

    def epoch_ms(self) -> int:
        return (self._now - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self._now += timedelta(seconds=seconds)
        self._monotonic_s += seconds

    def step_to(self, instant: datetime) -> None:
        """Set the wall clock, as an administrator or NTP would; the monotonic clock does not notice."""
        self._now = instant

"""The one place that reads the time.

Never used by nouns: they take `now` as an argument.
Invariants: every instant in the program is an aware datetime in UTC, in whole milliseconds, as the store keeps it.

>>> ManualClock(datetime(2026, 11, 20, tzinfo=UTC)).now().isoformat()
'2026-11-20T00:00:00+00:00'
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MILLISECOND_NS = 1_000_000


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
    """This machine's wall clock; once a shared database's clock decides, that one.

    The database's clock is followed by this machine's monotonic clock: a step of the wall clock does not move it.
    """

    def __init__(self) -> None:
        self._monotonic_to_epoch_ns: int | None = None

    def follow(self, skew: timedelta) -> None:
        """Go by a clock that is ahead of `now` by `skew`."""
        self._monotonic_to_epoch_ns = self._epoch_ns() + skew // _MICROSECOND * 1000 - time.monotonic_ns()

    @property
    def offset(self) -> timedelta:
        """How far `now` is ahead of this machine's wall clock, in whole milliseconds."""
        while self._monotonic_to_epoch_ns is not None:
            before_ns, now_ns, after_ns = time.time_ns(), self._epoch_ns(), time.time_ns()
            if 0 <= after_ns - before_ns < _MILLISECOND_NS:  # nobody held us up, or stepped the clock
                return timedelta(milliseconds=round((now_ns - before_ns) / _MILLISECOND_NS))
        return timedelta(0)

    def now(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self.epoch_ms())

    def epoch_ms(self) -> int:
        return self._epoch_ns() // _MILLISECOND_NS

    def monotonic_s(self) -> float:
        return time.monotonic()

    def epoch_s(self) -> float:
        """Where 1970 lies on the monotonic clock, finer than a millisecond: added to an instant, it says when that is.

        Never too early: whoever is held up between the two looks takes 1970 for later than it was.
        """
        if self._monotonic_to_epoch_ns is not None:
            return -self._monotonic_to_epoch_ns / 1e9
        since_s = time.time()
        return self.monotonic_s() - since_s

    def _epoch_ns(self) -> int:
        lead_ns = self._monotonic_to_epoch_ns
        return time.time_ns() if lead_ns is None else time.monotonic_ns() + lead_ns


class ManualClock:
    """A clock that stands still until it is moved; for tests and simulation."""

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

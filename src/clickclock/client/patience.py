"""How long a service that was there is waited for: it may be in the middle of a restart.

Never sends anything. Invariant: who never answered is not waited for, except where it is known to be there.

>>> Patience().bear(Unreachable("Nobody is there."))
Traceback (most recent call last):
clickclock.client.connection.Unreachable: Nobody is there.
"""

import time

from clickclock.client.connection import Unavailable, Unreachable

RECONNECT_MAX_S = 15.0
"""Enough for the service, or its database, to be restarted."""
PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 1.0


class Patience:
    """Asking the same again and again; `is_there` says that the service has just answered another call."""

    def __init__(self, *, is_there: bool = False) -> None:
        self._is_there = is_there
        self._has_answered = False
        self._silent_since: float | None = None
        self._pause_s = PAUSE_FIRST_S

    def answered(self) -> None:
        """It is there."""
        self._has_answered, self._silent_since = True, None

    def told(self) -> None:
        """It said something new: the next may come as soon."""
        self._pause_s = PAUSE_FIRST_S

    def bear(self, error: Unreachable | Unavailable) -> None:
        """It did not answer. Raises the error if that has lasted too long, or is how it began."""
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        may_come = self._has_answered or (self._is_there and isinstance(error, Unreachable))
        if not may_come or now - self._silent_since > RECONNECT_MAX_S:
            raise error

    def pause(self, at_most_s: float = PAUSE_MAX_S) -> None:
        """Wait, longer each time."""
        time.sleep(min(self._pause_s, at_most_s))
        self._pause_s = min(self._pause_s * 2, PAUSE_MAX_S)

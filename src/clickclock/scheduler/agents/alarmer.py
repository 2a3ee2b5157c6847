"""What did not run, and what runs too long → alarms.

Never judges how a trigger ended (that is noted where it is counted) and never sends anything (`notifier.py`).
Invariant: it looks only when all that has ended is noted, so that a job which succeeded in time is not taken for
missed, also after the service was away.
"""

from clickclock.foundation.clock import Clock
from clickclock.scheduler.store import Store

LOOK_EVERY_S = 5.0
FIRST_AFTER_S = 5.0
"""After a start: ends of the meantime are reported by then, and what was due in between has begun."""


class Alarmer:
    """One step looks once."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._first_at_s = clock.monotonic_s() + FIRST_AFTER_S

    async def step(self) -> float | None:
        """Look; returns seconds until the next look."""
        wait_s = self._first_at_s - self._clock.monotonic_s()
        if wait_s > 0:
            return wait_s
        await self._store.statistics.count_all()
        await self._store.alarms.look(self._clock.now())
        return LOOK_EVERY_S

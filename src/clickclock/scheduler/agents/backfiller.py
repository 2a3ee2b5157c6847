"""Backfills → queued triggers, a few at a time.

Never starts anything, and never decides how many may run (`backfill.room` does). Invariant: whatever dies here, a time
of a backfill is either still to come or has its trigger.

>>> Backfiller(store, clock, queued=dispatcher_loop.wake)   # doctest: +SKIP
"""

from datetime import datetime

from clickclock.foundation.clock import Clock
from clickclock.scheduler.store import Store

LOOK_EVERY_S = 1.0
"""While one runs, beside being woken when a trigger ends: what it waits for may happen on another replica."""


class Backfiller:
    """One step leads every running backfill a little further."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waits = False
        self._next_at: datetime | None = None

    def look(self) -> None:
        """There is a backfill that was not there, or may go faster than before."""
        self._waits = True

    def may_go_on(self) -> bool:
        """Whether a trigger that ended may have made room for the next."""
        return self._waits or (self._next_at is not None and self._next_at <= self._clock.now())

    async def step(self) -> float | None:
        """Lead on; returns seconds until there may be more to do, None while no backfill runs."""
        led = await self._store.backfills.lead(self._clock.now())
        self._waits, self._next_at = led.blocked > 0, led.next_at
        pauses_s = []
        if led.blocked:
            pauses_s.append(0.0 if led.settled else LOOK_EVERY_S)
        if led.next_at is not None:
            pauses_s.append((led.next_at - self._clock.now()).total_seconds())
        return min(pauses_s, default=None)

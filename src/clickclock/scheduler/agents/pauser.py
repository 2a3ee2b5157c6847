"""Failures in a row → a paused schedule.

Never counts by itself (the store does) and never ends what runs. Invariants: a schedule is paused once for one row of
failures; whoever dies here, the next sweep finds it.

>>> Pauser(store, clock, paused=planner_loop.wake)   # doctest: +SKIP
"""

import logging
from collections.abc import Callable, Collection

from clickclock.foundation.clock import Clock
from clickclock.scheduler.store import Store

SWEEP_EVERY_S = 60.0
"""How often all schedules are looked at that may have to be paused, beside those that just failed."""
SWEEP_MAX = 500

_log = logging.getLogger(__name__)


class Pauser:
    """One step looks at what just failed, and at times at everything."""

    def __init__(self, store: Store, clock: Clock, *, paused: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._paused = paused
        self.on_news: Callable[[], None] = lambda: None
        """Called when there is something to look at."""
        self._failed: set[str] = set()
        self._swept = ""
        self._sweep_at_s = float("-inf")

    def look_at(self, schedule_ids: Collection[str]) -> None:
        """Triggers of these have failed: the next step looks at them."""
        self._failed.update(schedule_ids)
        self.on_news()

    async def step(self) -> float | None:
        """Look and pause; returns 0 while there is more."""
        failed, self._failed = self._failed, set()
        found = await self._store.pausing.failing(failed) if failed else []
        if self._clock.monotonic_s() >= self._sweep_at_s:
            more, last = await self._store.pausing.failing_after(self._swept, SWEEP_MAX)
            found = [*found, *more]
            self._swept = last or ""
            if last is None:
                self._sweep_at_s = self._clock.monotonic_s() + SWEEP_EVERY_S
        for schedule_id in dict.fromkeys(found):
            if reason := await self._store.pausing.pause(schedule_id, self._clock.now()):
                _log.warning("schedule %s is paused: %s", schedule_id, reason)
                self._paused()
        return max(0.0, self._sweep_at_s - self._clock.monotonic_s())

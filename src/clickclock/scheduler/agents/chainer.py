"""Ends of upstream jobs → triggers of the jobs that depend on them.

Never starts or concludes anything. Invariants: whoever dies here, an end that dependents were not told of is found
again, and telling twice changes nothing; what waits for upstreams is looked at again from time to time, since a
schedule or a dependency may have been taken away.

>>> Chainer(store, clock, fired=dispatcher_loop.wake)   # doctest: +SKIP
"""

from clickclock.foundation.clock import Clock
from clickclock.scheduler.store import Store

FOLLOW_MAX = 100
"""Ends in one transaction: each may concern many dependents."""
LOOK_MAX = 100
SWEEP_EVERY_S = 30.0
"""How often all that waits is looked at, beside what just ended or just came."""


class Chainer:
    """One step follows what ended, and looks at what waits."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._sweep_at_s = float("-inf")
        self._swept = ""

    def sweep(self) -> None:
        """Something was changed on which waiting may depend: the next step looks at all that waits."""
        self._sweep_at_s = float("-inf")
        self._swept = ""

    async def step(self) -> float | None:
        """Tell and look; returns 0 while there is more."""
        chains, now = self._store.chains, self._clock.now()
        rounds = [
            (FOLLOW_MAX, await chains.follow(now, FOLLOW_MAX)),
            (LOOK_MAX, await chains.look(now, LOOK_MAX, fresh=True)),
        ]
        if self._clock.monotonic_s() >= self._sweep_at_s:
            swept = await chains.look(now, LOOK_MAX, self._swept)
            rounds.append((LOOK_MAX, swept))
            self._swept = swept.last or ""
            if swept.seen < LOOK_MAX:
                self._swept = ""
                self._sweep_at_s = self._clock.monotonic_s() + SWEEP_EVERY_S
        if any(told.skips or told.seen == most for most, told in rounds):
            return 0.0
        return self._sweep_at_s - self._clock.monotonic_s()

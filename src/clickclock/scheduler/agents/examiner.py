"""Loops and store → what is wrong with this replica now, for whoever asks how it is.

Never mends anything. Invariant: the store is asked at most once in `FAULTS_KEPT_S`, however often somebody asks.

>>> await Examiner(store, clock, loops=engine.loops, beats=heartbeat_loop.health).faults()   # doctest: +SKIP
[]
"""

import asyncio
from collections.abc import Callable

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import StoreUnreachable
from clickclock.foundation.lifecycle import LoopHealth
from clickclock.scheduler.store import Store

FAULTS_KEPT_S = 1.0


class Examiner:
    """Says what is wrong."""

    def __init__(
        self, store: Store, clock: Clock, *, loops: Callable[[], list[LoopHealth]], beats: Callable[[], LoopHealth]
    ) -> None:
        self._store = store
        self._clock = clock
        self._loops = loops
        self._beats = beats
        self._kept: tuple[float, list[str]] | None = None

    async def faults(self) -> list[str]:
        """The present faults, a sentence each; none, when healthy."""
        now_s = self._clock.monotonic_s()
        if self._kept is None or now_s - self._kept[0] > FAULTS_KEPT_S:
            self._kept = (now_s, await self._find())
        return self._kept[1]

    async def _find(self) -> list[str]:
        found = [each.sentence for each in self._loops() if each.is_stalled]
        # It writes, each two seconds: a disk that is full is noticed by nothing less.
        if not found and (error := self._beats().error) is not None:
            found.append(error)
        try:
            await asyncio.wait_for(self._store.ping_s(), timeout=5)
        except StoreUnreachable as unreachable:
            found += [str(unreachable)] if str(unreachable) not in found else []
        except TimeoutError:
            found.append("The store did not answer within 5 s.")
        return found

"""Waiting triggers of high priority → attempts of lower priority that are asked to stop.

Never chooses (`preemption.choose_victims` does) and never stops anything itself. Invariant: it is asked only after the
dispatcher found no room, and what it writes is one transaction: a victim is asked once, for one waiting trigger.

>>> Preempter(store, clock, {}, node="a", lease_id="b", preemptions_max=5, asked=stop_attempts)   # doctest: +SKIP
"""

import logging
from collections.abc import Callable, Mapping

from clickclock.foundation.clock import Clock
from clickclock.scheduler.executors import Executor
from clickclock.scheduler.store import Store

PREEMPTIONS_MAX = 5

_log = logging.getLogger(__name__)


class Preempter:
    """One step makes room on every cluster, where there is need and a victim."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        executors: Mapping[str, Executor],
        *,
        node: str,
        lease_id: str,
        preemptions_max: int,
        asked: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._executors = executors
        self._node = node
        self._lease_id = lease_id
        self._preemptions_max = preemptions_max
        self._asked = asked

    async def step(self) -> float | None:
        """Ask for room; the dispatcher wakes us when it finds none again."""
        for cluster, executor in self._executors.items():
            capacity = await executor.capacity()
            if not capacity.reachable:
                continue
            asked = await self._store.queue.preempt(
                self._clock.now(),
                cluster=cluster,
                node=self._node,
                lease_id=self._lease_id,
                slots=capacity.total,
                preemptions_max=self._preemptions_max,
            )
            if asked:
                _log.info("%d attempts on %s are asked to make room", asked, cluster)
                self._asked()
        return None

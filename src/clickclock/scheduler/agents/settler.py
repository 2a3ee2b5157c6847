"""Edits → answers that are true: what was on its way by the old definition has started before the edit is answered.

Never takes anything back, and never holds an edit up that concerns nothing on its way. Invariants: called when the edit
is on disk, so that nothing more is planned by what was there before; a wait is for what was there when it began, and
has an end, whatever else is planned meanwhile.

>>> settler = Settler(store, clock, {"local": executor})   # doctest: +SKIP
>>> await settler.settle(Edited(schedule_id="every-night"))   # doctest: +SKIP
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.scheduler.executors import Executor
from clickclock.scheduler.store import Edited, Store
from clickclock.scheduler.times.lookahead import HORIZON_S

PLANNED_WITHIN_S = 10.0
"""Longer than a transaction takes: what was due before has been handed over, or was not planned by this definition."""
STARTED_WITHIN_S = 3.0
"""An attempt of which nothing was heard for so long after its time does not hold up the answer any more."""
PLANS_END_WITHIN_S = 1.0
"""A plan is open for some milliseconds; a replica that stands still in the middle of one holds up no answer."""
LOOK_S = 0.01


class Settler:
    """Waits until what is on its way has started."""

    def __init__(self, store: Store, clock: Clock, executors: Mapping[str, Executor]) -> None:
        self._store = store
        self._clock = clock
        self._executors = executors

    async def settle(self, edited: Edited) -> None:
        """Return when all has started that was planned of what was edited, whichever replica planned it."""
        holding = [name for name, executor in self._executors.items() if executor.capabilities.holds_s]
        if not holding:
            return
        await self._until(self._store.queue.nobody_plans_ahead, PLANS_END_WITHIN_S)
        since = self._clock.now() - timedelta(seconds=PLANNED_WITHIN_S)
        under_way = await self._store.queue.under_way(edited, holding, since)
        if not under_way:
            return
        rest_s = (max(under_way.values()) - self._clock.now()).total_seconds()
        await asyncio.sleep(min(max(0.0, rest_s), HORIZON_S))

        async def have_started() -> bool:
            starting = await self._store.queue.starting_among(under_way)
            return not starting or starting <= await self._seen_started(holding)

        await self._until(have_started, STARTED_WITHIN_S)

    async def _seen_started(self, clusters: Sequence[str]) -> set[str]:
        """The attempts that our executors have seen start, whether the store says so yet or not."""
        seen: set[str] = set()
        for cluster in clusters:
            with contextlib.suppress(ExecutorUnreachable):  # then the store says it, or the time is up
                known = await self._executors[cluster].inventory()
                seen |= {name for name, each in known.items() if each.started_at is not None or each.exit is not None}
        return seen

    async def _until(self, holds: Callable[[], Awaitable[bool]], within_s: float) -> None:
        until_s = asyncio.get_running_loop().time() + within_s
        while not await holds() and asyncio.get_running_loop().time() < until_s:  # noqa: ASYNC110 - others tell nobody
            await asyncio.sleep(LOOK_S)

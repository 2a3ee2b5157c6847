"""Retention: finished triggers and their logs go when their job says so.

Never touches what is unfinished. Invariant: logs go before rows, so that a crash leaves nothing that no row names.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from clickclock.foundation.clock import Clock
from clickclock.scheduler.executors import Executor
from clickclock.scheduler.job import Job
from clickclock.scheduler.store import Store
from clickclock.scheduler.trigger import attempt_name

LOOK_EVERY_S = 600.0
PRUNE_MAX = 500
"""Triggers in one transaction: retention waits for the living, not they for it."""
ROLLUP_DAYS = 400
"""Statistics outlive the triggers they were made of."""
JOBS_PAGE = 1000


class Pruner:
    """One step removes what is too old now."""

    def __init__(self, store: Store, clock: Clock, executors: Mapping[str, Executor]) -> None:
        self._store = store
        self._clock = clock
        self._executors = executors

    async def step(self) -> float | None:
        """Prune at most `PRUNE_MAX` triggers; returns 0 while there may be more."""
        now = self._clock.now()
        default = now - timedelta(days=float(Job.model_fields["retention_days"].default))
        old = await self._store.triggers.prunable(await self._limits(now), default, PRUNE_MAX)
        names = [attempt_name(trigger_id, number + 1) for trigger_id, tries in old for number in range(tries)]
        for executor in self._executors.values():
            await executor.remove_logs(names)
        await self._store.triggers.prune([trigger_id for trigger_id, _ in old], now - timedelta(days=ROLLUP_DAYS))
        return 0.0 if len(old) == PRUNE_MAX else LOOK_EVERY_S

    async def _limits(self, now: datetime) -> dict[tuple[str, str], datetime]:
        """Jobs that keep their history for another time than the default."""
        limits: dict[tuple[str, str], datetime] = {}
        after: tuple[str, str] | None = None
        while page := await self._store.jobs.find({}, after, JOBS_PAGE):
            limits.update({each.key: now - timedelta(days=each.retention_days) for each in page})
            after = page[-1].key
        return limits

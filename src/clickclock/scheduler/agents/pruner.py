"""Retention: finished triggers and their logs go when their job says so, and records when they are old.

Never touches what is unfinished. Invariant: logs go before rows, so that a crash leaves nothing that no row names.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from clickclock.foundation.clock import Clock
from clickclock.scheduler.executors import Executor
from clickclock.scheduler.insight.statistics import KEPT
from clickclock.scheduler.jobs.group import Group
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.limits import Limits
from clickclock.scheduler.jobs.trigger import attempt_name
from clickclock.scheduler.store import AUDIT_PRUNE_MAX, CHANGE_PRUNE_MAX, Store

LOOK_EVERY_S = 600.0
PRUNE_MAX = 500
"""Triggers in one transaction: retention waits for the living, not they for it."""
CHANGE_HOURS = 24
CHANGES_MAX = 2_000_000
"""What listeners can come back to: a day, or some hundred bytes for each of so many changes."""
ALARM_DAYS = 90
"""Alarms that are over, and their notifications."""
PAGE = 1000


class Pruner:
    """One step removes what is too old now."""

    def __init__(
        self, store: Store, clock: Clock, executors: Mapping[str, Executor], *, audit_days: int = Limits().audit_days
    ) -> None:
        self._store = store
        self._clock = clock
        self._executors = executors
        self._audit_kept = timedelta(days=audit_days)

    async def step(self) -> float | None:
        """Prune at most `PRUNE_MAX` triggers; returns 0 while there may be more."""
        now = self._clock.now()
        default = now - timedelta(days=float(Job.model_fields["retention_days"].default))
        await self._store.statistics.count_all()  # what goes has to be in the statistics
        old = await self._store.triggers.prunable(await self._limits(now), default, PRUNE_MAX)
        names = [attempt_name(trigger_id, number + 1) for trigger_id, tries in old for number in range(tries)]
        for executor in self._executors.values():
            await executor.remove_logs(names)
        await self._store.triggers.prune([trigger_id for trigger_id, _ in old], now - KEPT)
        while await self._store.changes.prune(now - timedelta(hours=CHANGE_HOURS), CHANGES_MAX) == CHANGE_PRUNE_MAX:
            pass
        await self._store.alarms.prune(now - timedelta(days=ALARM_DAYS))
        await self._store.outbox.prune(now - timedelta(days=ALARM_DAYS))
        await self._store.browser_sessions.prune(now)
        await self._store.sign_ins.prune(now)
        await self._store.attempt_tokens.prune()
        while await self._store.audit.prune(now - self._audit_kept, now) >= AUDIT_PRUNE_MAX:
            pass
        return 0.0 if len(old) == PRUNE_MAX else LOOK_EVERY_S

    async def _limits(self, now: datetime) -> dict[tuple[str, str], datetime]:
        """Until when each job keeps its history: as it says, or its group."""
        groups: dict[str | None, Group] = {}
        name: list[str] | None = None
        while grouped := await self._store.groups.find({}, name, PAGE):
            groups.update({each.group_name: each for each in grouped})
            name = [grouped[-1].group_name]
        limits: dict[tuple[str, str], datetime] = {}
        key: tuple[str, str] | None = None
        while jobs := await self._store.jobs.find({}, key, PAGE):
            for each in jobs:
                group = groups.get(each.group_name)
                effective = group.apply_to(each) if group else each
                limits[each.key] = now - timedelta(days=effective.retention_days)
            key = jobs[-1].key
        return limits

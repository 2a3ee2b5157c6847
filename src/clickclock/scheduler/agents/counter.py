"""Concluded triggers → statistics.

Never concludes anything. Invariant: each counts once (the store marks it in the same transaction), a moment after it
ended; who asks for statistics has the rest counted first.
"""

from clickclock.scheduler.store import COUNT_MAX, Store

LOOK_EVERY_S = 5.0
"""Often enough that a question finds little left to count; seldom enough to count in batches."""


class Counter:
    """One step counts a batch."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def step(self) -> float | None:
        """Count; returns 0 while there is more."""
        return 0.0 if await self._store.statistics.count() == COUNT_MAX else LOOK_EVERY_S

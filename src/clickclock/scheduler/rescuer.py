"""Attempts whose replica is gone → adopted, or lost.

Never starts anything. Invariants: at the start all that this node left behind is ours before anything else happens;
later, an attempt of another node is lost only when that node's lease has run out and it did not come back meanwhile.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.scheduler.executors import Executor
from clickclock.scheduler.store import Held, Store
from clickclock.scheduler.trigger import Exit, ExitKind, State

LOOK_EVERY_S = 5.0

_log = logging.getLogger(__name__)


class Rescuer:
    """`adopt` once at the start; then one step looks for what nobody holds."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        executors: Mapping[str, Executor],
        *,
        node: str,
        lease_id: str,
        fraction: Callable[[], float],
        concluded: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._executors = executors
        self._node = node
        self._lease_id = lease_id
        self._fraction = fraction
        self._concluded = concluded
        self._heard: dict[str, datetime | None] = {}
        self._unanswered: set[str] = set()

    async def adopt(self) -> None:
        """Take over what this node left behind: before any loop runs, and after the executors are open."""
        queue = self._store.queue
        await queue.take_over(await queue.left_behind(self._node, self._lease_id), self._lease_id)
        held = await queue.held(self._lease_id)
        for cluster, executor in self._executors.items():
            await self._adopt(cluster, executor, [each for each in held if each.cluster == cluster])

    async def _adopt(self, cluster: str, executor: Executor, held: list[Held]) -> None:
        """Compare what is ours with what is there; a cluster that does not answer is asked again by each step."""
        try:
            known = await executor.inventory()
        except ExecutorUnreachable as error:
            self._unanswered.add(cluster)
            _log.warning("%s: %s Its %d attempts are adopted when it answers.", cluster, error, len(held))
            return
        mine = {each.name: each for each in held}
        # Those that were claimed and never reached the executor are started by the dispatcher's first step.
        lost = [each for name, each in mine.items() if name not in known and each.state is State.RUNNING]
        await self._give_up(lost)
        await self._let_go(executor, known.keys() - mine.keys())
        if mine:
            _log.info("adopted %d attempts on %s, %d of them lost", len(mine), cluster, len(lost))

    async def _adopt_late(self, cluster: str, executor: Executor) -> None:
        """A cluster answers that did not at the start. What it knew before we looked, and is not held, is not ours."""
        known = await executor.inventory()
        held = {each.name for each in await self._store.queue.held(self._lease_id)}
        await self._let_go(executor, known.keys() - held)
        self._unanswered.discard(cluster)

    async def step(self) -> float | None:
        """Look for attempts whose replica's lease has run out."""
        queue = self._store.queue
        expired = await queue.abandoned(self._clock.now())
        abandoned = await self._silent(expired)
        await queue.take_over([each for each in abandoned if each.node == self._node], self._lease_id)
        # Under their own lease, in one transaction: were they ours for a moment before, their holder could forget them
        # as not its own, and, if we died in that moment, take them back and run them again.
        await self._give_up([each for each in abandoned if each.node != self._node])
        for cluster, executor in self._executors.items():
            with contextlib.suppress(ExecutorUnreachable):  # its attempts stay as they are until it answers
                if cluster in self._unanswered:
                    await self._adopt_late(cluster, executor)
                await self._give_up(await self._vanished(cluster, executor))
        return LOOK_EVERY_S

    async def _silent(self, expired: list[Held]) -> list[Held]:
        """Those whose holder said nothing since the last look.

        After a step of the clock every lease looks expired, until its holder beats again.
        """
        leases = {each.lease_id for each in expired}
        beats = await self._store.replicas.heartbeats(leases) if leases else {}
        before, self._heard = self._heard, {lease_id: beats.get(lease_id) for lease_id in leases}
        silent = before.items() & self._heard.items()
        return [each for each in expired if (each.lease_id, self._heard[each.lease_id]) in silent]

    async def _vanished(self, cluster: str, executor: Executor) -> list[Held]:
        """Attempts that the store had as running before we asked the executor, and still has, and it knows nothing of.

        Held before and after: so it was neither started nor concluded in between, and is not on its way either.
        """
        before = {each.name for each in await self._store.queue.held(self._lease_id) if each.state is State.RUNNING}
        missing = before - (await executor.inventory()).keys()
        if not missing:
            return []
        after = await self._store.queue.held(self._lease_id)
        return [each for each in after if each.cluster == cluster and each.name in missing]

    async def _give_up(self, lost: list[Held]) -> None:
        if not lost:
            return
        now = self._clock.now()
        exits: dict[str, dict[str, Exit]] = {}
        for each in lost:
            message = f"Nothing is known of the attempt on {each.node or 'its node'}."
            exits.setdefault(each.lease_id, {})[each.name] = Exit(ExitKind.LOST, now, message=message)
        for lease_id, of_lease in exits.items():
            await self._store.queue.finish(lease_id, of_lease, self._fraction)
        _log.warning("%d attempts are lost, one is %s", len(lost), lost[0].name)
        self._concluded()

    @staticmethod
    async def _let_go(executor: Executor, foreign: set[str]) -> None:
        """End what runs here and is no longer ours: somebody else concluded it while we were away."""
        if foreign:
            names = sorted(foreign)
            await executor.stop(names, 0.0)
            ended = [name for name, sighting in (await executor.inventory()).items() if sighting.exit is not None]
            await executor.forget(sorted(foreign & set(ended)))

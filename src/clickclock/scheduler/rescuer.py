"""Attempts whose replica is gone → adopted, or lost; and what runs here although it was given up → ended.

Never starts anything. Invariants: at the start all that this node left behind is ours before anything else happens;
later, an attempt of another node is lost only when that node's lease has run out and it did not come back meanwhile;
nothing is ended that anybody's lease holds; a cluster that fails holds up no other.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.lifecycle import Parts
from clickclock.scheduler.executors import Executor
from clickclock.scheduler.store import Held, Store
from clickclock.scheduler.trigger import Exit, ExitKind, State

LOOK_EVERY_S = 5.0
FORGOTTEN_AFTER_S = 2 * LOOK_EVERY_S
"""A look that is longer ago than this is none."""

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
        self._looked_at_s = float("-inf")
        self.clusters = Parts(clock.monotonic_s)

    async def adopt(self) -> None:
        """Take over what this node left behind: before any loop runs, and after the executors are open."""
        queue = self._store.queue
        await queue.take_over(await queue.left_behind(self._node, self._lease_id), self._lease_id)
        held = await queue.held(self._lease_id)

        async def adopt(cluster: str) -> None:
            executor = self._executors[cluster]
            known = await executor.inventory()
            mine = {each.name: each for each in held if each.cluster == cluster}
            # Those that were claimed and never reached the executor are started by the dispatcher's first step.
            lost = [each for name, each in mine.items() if name not in known and each.state is State.RUNNING]
            await self._give_up(lost)
            await self._let_go(executor, known.keys() - mine.keys())
            if mine:
                _log.info("adopted %d attempts on %s, %d of them lost", len(mine), cluster, len(lost))

        with contextlib.suppress(ExecutorUnreachable):  # the steps look again, until it answers
            await self.clusters.step(self._executors, adopt)

    async def step(self) -> float | None:
        """Look for attempts whose replica's lease has run out."""
        queue = self._store.queue
        expired = await queue.abandoned(self._clock.now())
        abandoned = await self._silent(expired)
        await queue.take_over([each for each in abandoned if each.node == self._node], self._lease_id)
        # Under their own lease, in one transaction: were they ours for a moment before, their holder could forget them
        # as not its own, and, if we died in that moment, take them back and run them again.
        await self._give_up([each for each in abandoned if each.node != self._node])
        with contextlib.suppress(ExecutorUnreachable):  # attempts there stay as they are until it answers
            await self.clusters.step(self._executors, self._compare)
        return LOOK_EVERY_S

    async def _compare(self, cluster: str) -> None:
        """What the store has and the cluster has not is lost; what runs there and is nobody's is ended."""
        executor = self._executors[cluster]
        before = {each.name for each in await self._store.queue.held(self._lease_id) if each.state is State.RUNNING}
        known = await executor.inventory()
        after = await self._store.queue.held(self._lease_id)
        # Held before and after: so it was neither started nor concluded in between, and is not on its way either.
        missing = before - known.keys()
        await self._give_up([each for each in after if each.cluster == cluster and each.name in missing])
        # Asked of the store after the executor: what was claimed by then is held by then.
        running = {name for name, sighting in known.items() if sighting.exit is None}
        await self._let_go(executor, running - {each.name for each in after})

    async def _silent(self, expired: list[Held]) -> list[Held]:
        """Those whose holder said nothing since the last look.

        After a step of the clock every lease looks expired, until its holder beats again. So it does after a store that
        was away: what we saw before that says nothing of whoever could not beat meanwhile, as we could not look.
        """
        now_s = self._clock.monotonic_s()
        if now_s - self._looked_at_s > FORGOTTEN_AFTER_S:
            self._heard = {}
        self._looked_at_s = now_s
        leases = {each.lease_id for each in expired}
        beats = await self._store.replicas.heartbeats(leases) if leases else {}
        before, self._heard = self._heard, {lease_id: beats.get(lease_id) for lease_id in leases}
        silent = before.items() & self._heard.items()
        return [each for each in expired if (each.lease_id, self._heard[each.lease_id]) in silent]

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

    async def _let_go(self, executor: Executor, strange: set[str]) -> None:
        """End what runs here and is no longer anybody's: it was concluded while we were away, or stood still."""
        foreign = strange - await self._store.queue.live_among(strange)
        if foreign:
            names = sorted(foreign)
            _log.warning("%d attempts here were given up meanwhile and are ended, one is %s", len(names), names[0])
            await executor.stop(names, 0.0)
            ended = [name for name, sighting in (await executor.inventory()).items() if sighting.exit is not None]
            await executor.forget(sorted(foreign & set(ended)))

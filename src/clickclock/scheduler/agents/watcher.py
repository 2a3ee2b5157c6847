"""Exits → conclusions: steps 7 to 9 of the journey; and requests to stop, on their way to the executor.

Never judges an exit (`trigger.conclude` does). Invariants: an exit is forgotten by its executor only after its
conclusion is on disk; an attempt that is no longer ours is left alone; a cluster that fails holds up no other.
"""

import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.lifecycle import Parts
from clickclock.scheduler.executors import Executor, Sighting, shared
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Held, Store

YIELD_S, YIELD_S_MAX = 0.02, 0.5
"""While starts wait, ends may wait this long: nobody is late for hearing of an end."""
PATIENCE_S = 0.15
"""News that nobody waits for waits this long for another write whose commit it can share."""
FINISH_MAX = 200
"""Conclusions in one transaction."""
SEEN_RUNNING_AFTER_S = 0.02
"""An attempt that ends sooner than this is never written as running: its end says it all, in one write less.

One that nobody waits for is not until `PATIENCE_S`."""
STOP_AGAIN_S = 1.0
"""An attempt that is to stop and was still on its way to the executor is looked for again after this long."""

_log = logging.getLogger(__name__)


class Watcher:
    """One step carries news from the executors to the store, and wishes to stop the other way."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        executors: Mapping[str, Executor],
        *,
        lease_id: str,
        fraction: Callable[[], float],
        concluded: Callable[[bool], None],
        look_for_stops_s: float,
    ) -> None:
        self._store = store
        self._clock = clock
        self._executors = executors
        self._lease_id = lease_id
        self._fraction = fraction
        self._concluded = concluded
        self._look_for_stops_s = look_for_stops_s
        self._is_urgent = False
        self._look_for_stops_at_s = float("-inf")
        self._concluded_at_s = float("-inf")
        self._told: set[str] = set()
        self._untold: set[str] = set()
        self._fresh: dict[str, dict[str, tuple[float, Sighting]]] = {name: {} for name in executors}
        self._ended: dict[str, dict[str, Sighting]] = {name: {} for name in executors}
        self.clusters = Parts(clock.monotonic_s)
        self._stopping = Parts(clock.monotonic_s)

    def look_for_stops(self) -> None:
        """Somebody wants an attempt stopped: the next step finds out which."""
        self._look_for_stops_at_s = float("-inf")
        self._store.flush()

    def hear(self) -> None:
        """An executor has news: if somebody may wait for it, it waits for no step that has patience."""
        if any(each.is_urgent for each in self._executors.values()):
            self._store.flush()

    async def step(self) -> float | None:
        """Carry what is new; returns seconds until the next look."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._look_for_stops_at_s:
            all_told = await self._stop(await self._store.queue.stopping(self._lease_id))
            self._look_for_stops_at_s = now_s + (self._look_for_stops_s if all_told else STOP_AGAIN_S)
        backlog = self._store.queue.backlog
        yields = now_s - self._concluded_at_s < YIELD_S_MAX and backlog.starts_wait(self._clock.now())
        self._is_urgent = self._is_urgent or any(each.is_urgent for each in self._executors.values())
        is_patient = self._store.writes_in_order and not (self._is_urgent or backlog.waits_for_slots)
        may_wait_s = PATIENCE_S if is_patient else 0.0

        async def carry(cluster: str) -> None:
            executor = self._executors[cluster]
            mark_at_s = now_s + (may_wait_s or SEEN_RUNNING_AFTER_S)
            self._note(mark_at_s, cluster, await executor.observe())
            if not yields:
                await self._conclude(cluster, executor, may_wait_s)
                await self._mark_running(now_s, cluster, may_wait_s)

        rests_s = await self.clusters.step(self._executors, carry)
        if yields:
            return YIELD_S
        self._is_urgent = False
        self._concluded_at_s = self._clock.monotonic_s()
        pause_s = max(0.0, self._look_for_stops_at_s - self._concluded_at_s)
        if moments_s := [mark_at_s for fresh in self._fresh.values() for mark_at_s, _ in fresh.values()]:
            # Not at once for each: what has run for a moment is marked together.
            pause_s = min(pause_s, max(SEEN_RUNNING_AFTER_S, min(moments_s) - self._concluded_at_s))
        return pause_s if rests_s is None else min(pause_s, rests_s)

    def _note(self, mark_at_s: float, cluster: str, news: Sequence[Sighting]) -> None:
        for sighting in news:
            if sighting.exit is None:
                self._fresh[cluster][sighting.name] = (mark_at_s, sighting)
                if sighting.name in self._untold:  # it has arrived, and can hear it now
                    self.look_for_stops()
            else:
                self._fresh[cluster].pop(sighting.name, None)
                self._ended[cluster][sighting.name] = sighting

    async def _stop(self, wanted: list[Held]) -> bool:
        """Tell each once: a second SIGTERM means "at once" to many programs. False if some could not hear it yet."""
        self._told &= {each.name for each in wanted}

        async def tell(cluster: str) -> None:
            executor = self._executors[cluster]
            untold = [each for each in wanted if each.cluster == cluster and each.name not in self._told]
            known = await executor.inventory() if untold else {}
            for each in untold:
                if each.name in known:
                    await executor.stop([each.name], each.grace_s)
                    self._told.add(each.name)

        with contextlib.suppress(ExecutorUnreachable):  # it is asked when the cluster answers again
            await self._stopping.step(self._executors, tell)
        self._untold = {each.name for each in wanted if each.cluster in self._executors} - self._told
        return not self._untold

    async def _conclude(self, cluster: str, executor: Executor, may_wait_s: float) -> None:
        ended = self._ended[cluster]
        while ended:
            batch = dict(list(ended.items())[:FINISH_MAX])
            now, ends = self._clock.now(), ((name, sighting.exit) for name, sighting in batch.items())
            exits = {name: exit_.known_at(now) for name, exit_ in ends if exit_ is not None}
            finish = self._store.queue.finish
            conclusions = await finish(self._lease_id, exits, self._fraction, may_wait_s=may_wait_s)
            foreign = batch.keys() - conclusions.keys()
            if foreign:
                _log.warning("%d attempts ended that were no longer ours, one is %s", len(foreign), min(foreign))
            # On disk. If we die here, the executor tells us again, and the fence lets nothing be written twice.
            await self._let_go(executor, batch.keys(), foreign)
            for name in batch:
                del ended[name]
            self._concluded(any(each.state is State.QUEUED or each.retry_at for each in conclusions.values()))

    async def _let_go(self, executor: Executor, ended: Collection[str], foreign: Collection[str]) -> None:
        """Forget what has ended; but what another replica has taken over it has still to see end."""
        anywhere = shared(executor)
        theirs = await self._store.queue.live_among(foreign) if anywhere is not None else set()
        if anywhere is not None and theirs:
            await anywhere.release(sorted(theirs))
        await executor.forget([name for name in ended if name not in theirs])

    async def _mark_running(self, now_s: float, cluster: str, may_wait_s: float) -> None:
        """Write attempts that have run for a moment as running."""
        fresh = self._fresh[cluster]
        seen = [sighting for mark_at_s, sighting in fresh.values() if mark_at_s <= now_s]
        now = self._clock.now()
        started = [(each.name, each.node, min(each.started_at, now)) for each in seen if each.started_at is not None]
        if started:
            await self._store.queue.mark_running(self._lease_id, started, may_wait_s=may_wait_s)
        for each in seen:
            fresh.pop(each.name, None)

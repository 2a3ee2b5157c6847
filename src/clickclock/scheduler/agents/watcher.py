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
COMPANY_S_MAX = 0.05
"""An end waits for a plan that comes within this time, and shares its commit."""
PATIENCE_S = 0.1
"""News that nobody waits for waits this long for company, or for a plan."""
FINISH_MAX = 200
"""Conclusions in one transaction."""
SEEN_RUNNING_AFTER_S = 0.02
"""An attempt that ends sooner than this is never written as running: its end says it all, in one write less."""
STOP_AGAIN_S = 1.0
"""An attempt that is to stop and was still on its way to the executor is looked for again after this long."""

_log = logging.getLogger(__name__)


class Watcher:
    """One step carries news from the executors to the store, and wishes to stop the other way."""

    def __init__(  # noqa: PLR0913 - one for each thing that it goes by
        self,
        store: Store,
        clock: Clock,
        executors: Mapping[str, Executor],
        *,
        lease_id: str,
        fraction: Callable[[], float],
        concluded: Callable[[bool], None],
        look_for_stops_s: float,
        starts_wait: Callable[[], bool],
        company_in_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`company_in_s`: how soon something else is written that ends may wait for."""
        self._store = store
        self._clock = clock
        self._executors = executors
        self._lease_id = lease_id
        self._fraction = fraction
        self._concluded = concluded
        self._look_for_stops_s = look_for_stops_s
        self._starts_wait = starts_wait
        self._company_in_s = company_in_s
        self.is_told = False
        self._has_company = False
        self._is_urgent = False
        self._told_at_s: float | None = None
        self._look_for_stops_at_s = float("-inf")
        self._concluded_at_s = float("-inf")
        self._told: set[str] = set()
        self._untold: set[str] = set()
        self._fresh: dict[str, tuple[float, Sighting]] = {}
        self._ended: dict[str, dict[str, Sighting]] = {name: {} for name in executors}
        self.clusters = Parts(clock.monotonic_s)
        self._stopping = Parts(clock.monotonic_s)

    def look_for_stops(self) -> None:
        """Somebody wants an attempt stopped: the next step finds out which."""
        self._look_for_stops_at_s = float("-inf")

    def hear(self) -> float | None:
        """An executor has news. In how many seconds a step is wanted; None if a plan comes before, and can bring it."""
        self.is_told = True
        if self._told_at_s is None:
            self._told_at_s = self._clock.monotonic_s()
        wait_s, in_s = self._may_wait_s(), self._company_in_s()
        return None if in_s is not None and 0 < in_s <= wait_s else wait_s

    def hurry(self) -> None:
        """Somebody waits for what there is."""
        self._is_urgent = self._has_company = True

    def join(self) -> bool:
        """What ends waited for comes now; whether the next step has any to write, or news to look at."""
        self._has_company = self.is_told or any(self._ended.values())
        return self._has_company

    async def step(self) -> float | None:
        """Carry what is new; returns seconds until the next look."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._look_for_stops_at_s:
            all_told = await self._stop(await self._store.queue.stopping(self._lease_id))
            self._look_for_stops_at_s = now_s + (self._look_for_stops_s if all_told else STOP_AGAIN_S)
        yields = self._starts_wait() and now_s - self._concluded_at_s < YIELD_S_MAX
        rest_s = 0.0 if self._has_company else self._may_wait_s()
        self._has_company = self.is_told = False
        if not rest_s:
            self._is_urgent, self._told_at_s = False, None

        async def carry(cluster: str) -> None:
            executor = self._executors[cluster]
            self._note(now_s, cluster, await executor.observe())
            if not yields and not rest_s:
                await self._conclude(cluster, executor)

        rests_s = await self.clusters.step(self._executors, carry)
        if yields:
            return YIELD_S
        await self._mark_running(now_s)
        if rest_s and any(self._ended.values()):
            return rest_s
        self._concluded_at_s = self._clock.monotonic_s()
        pause_s = SEEN_RUNNING_AFTER_S if self._fresh else self._look_for_stops_at_s - now_s
        return pause_s if rests_s is None else min(pause_s, rests_s)

    def _may_wait_s(self) -> float:
        """How long ends wait for a commit that comes anyway, or, if nobody waits for them, for each other."""
        in_s = self._company_in_s()
        self._is_urgent = self._is_urgent or any(each.is_urgent for each in self._executors.values())
        if in_s is None:
            return 0.0
        if 0 < in_s <= COMPANY_S_MAX:
            return in_s
        if self._is_urgent or self._told_at_s is None:
            return 0.0
        return max(0.0, self._told_at_s + PATIENCE_S - self._clock.monotonic_s())

    def _note(self, now_s: float, cluster: str, news: Sequence[Sighting]) -> None:
        for sighting in news:
            if sighting.exit is None:
                self._fresh[sighting.name] = (now_s, sighting)
                if sighting.name in self._untold:  # it has arrived, and can hear it now
                    self.look_for_stops()
            else:
                self._fresh.pop(sighting.name, None)
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

    async def _conclude(self, cluster: str, executor: Executor) -> None:
        ended = self._ended[cluster]
        while ended:
            batch = dict(list(ended.items())[:FINISH_MAX])
            now, ends = self._clock.now(), ((name, sighting.exit) for name, sighting in batch.items())
            exits = {name: exit_.known_at(now) for name, exit_ in ends if exit_ is not None}
            conclusions = await self._store.queue.finish(self._lease_id, exits, self._fraction)
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

    async def _mark_running(self, now_s: float) -> None:
        """Write attempts that have run for a moment as running."""
        seen = [sighting for since_s, sighting in self._fresh.values() if now_s - since_s >= SEEN_RUNNING_AFTER_S]
        now = self._clock.now()
        started = [(each.name, each.node, min(each.started_at, now)) for each in seen if each.started_at is not None]
        if started:
            await self._store.queue.mark_running(self._lease_id, started)
        for each in seen:
            self._fresh.pop(each.name, None)

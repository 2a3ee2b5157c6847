"""Attempts whose replica is gone → adopted, or lost; and what runs here although it was given up → ended.

Never starts anything. Invariants: at the start all that this node left behind is ours before anything else happens;
later, an attempt is taken over, or lost with its host, only when its holder's lease has run out and nothing was heard
while we listened for long enough; nothing is ended that anybody's lease holds; a cluster that fails holds up no other.

>>> rescuer = Rescuer(store, clock, executors, node="host-1", lease_id=lease_id, fraction=random, concluded=wake,
...     took_over=look)   # doctest: +SKIP
>>> await rescuer.adopt()   # doctest: +SKIP
"""

import contextlib
import logging
from collections.abc import Callable, Mapping

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.lifecycle import Parts
from clickclock.scheduler.executors import Executor, Sighting, shared
from clickclock.scheduler.jobs.trigger import Exit, ExitKind, State
from clickclock.scheduler.store import Held, LastBeat, Store

LOOK_EVERY_S = 1.0
COMPARE_EVERY_S = 5.0
"""How often the store and the clusters are compared; and how often one looks who is silent where nobody else can be."""
SILENT_S = 6.0
"""A holder is gone only when it said nothing new for so long while we listened: by our own clock, whatever the
database's says, and after an outage of the store from the moment on at which we could look again, as all could."""
LOOKS_MISSED_MAX = 3
"""After a pause of so many looks, a replica has not listened."""

_log = logging.getLogger(__name__)


class Rescuer:
    """`adopt` once at the start; then one step looks for what nobody holds."""

    def __init__(  # noqa: PLR0913 - one for each thing that a replica is given
        self,
        store: Store,
        clock: Clock,
        executors: Mapping[str, Executor],
        *,
        node: str,
        lease_id: str,
        fraction: Callable[[], float],
        concluded: Callable[[], None],
        took_over: Callable[[], None] = lambda: None,
        look_every_s: float | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._executors = executors
        self._node = node
        self._lease_id = lease_id
        self._fraction = fraction
        self._concluded = concluded
        self._took_over = took_over
        self._look_every_s = look_every_s or LOOK_EVERY_S
        self._heard: dict[str, tuple[LastBeat | None, float]] = {}
        self._looked_at_s = float("-inf")
        self._compared_at_s: dict[str, float] = {}
        self._untold: dict[str, dict[str, bool]] = {name: {} for name in executors}
        """Attempts that became ours, of which their executor was not told yet; and whether others may contest them."""
        self._strange: dict[str, set[str]] = {}
        self.clusters = Parts(clock.monotonic_s)

    async def adopt(self) -> None:
        """Take over what this node left behind: before any loop runs, and after the executors are open."""
        queue = self._store.queue
        left = await queue.left_behind(self._node, self._lease_id, self._clock.now())
        await queue.take_over(left, self._lease_id, self._node)
        held = await queue.held(self._lease_id)

        async def adopt(cluster: str) -> None:
            executor = self._executors[cluster]
            mine = {each.name: each for each in held if each.cluster == cluster}
            if shared(executor) is not None:
                self._untold[cluster] = dict.fromkeys(mine, False)
                await self._tell_what_is_ours(cluster)
            known = await executor.inventory()
            # Those that were claimed and never reached the executor are started by the dispatcher's first step.
            lost = [each for name, each in mine.items() if name not in known and each.state is State.RUNNING]
            await self._give_up(lost)
            await self._let_go(cluster, known.keys() - mine.keys(), known)
            if mine:
                _log.info("adopted %d attempts on %s, %d of them lost", len(mine), cluster, len(lost))

        with contextlib.suppress(ExecutorUnreachable):  # the steps look again, until it answers
            await self.clusters.step(self._executors, adopt)

    def doubt(self) -> None:
        """Our lease had ended: others may have taken over what is ours, and the next step finds out."""
        self._compared_at_s.clear()

    async def step(self) -> float | None:
        """Look for attempts whose replica's lease has run out."""
        abandoned = await self._store.queue.abandoned(self._clock.now())
        expired = [each for each in abandoned if each.lease_id != self._lease_id]
        silent, left = await self._gone({each.lease_id for each in expired})
        mine: list[Held] = []
        lost: list[Held] = []
        for each in expired:
            belongs_to_host = self._belongs_to_host(each)
            if each.node == self._node or belongs_to_host is False:
                if each.lease_id in (silent if belongs_to_host else silent | left):
                    mine.append(each)
            elif belongs_to_host and each.lease_id in silent:
                lost.append(each)
        await self._take_over(mine)
        # Under their own lease, in one transaction: were they ours for a moment before, their holder could forget them
        # as not its own, and, if we died in that moment, take them back and run them again.
        await self._give_up(lost)
        with contextlib.suppress(ExecutorUnreachable):  # attempts there stay as they are until it answers
            await self.clusters.step(self._executors, self._look)
        return self._look_every_s

    def _belongs_to_host(self, each: Held) -> bool | None:
        """Whether an attempt is lost with its host; None if we cannot go on with it, and others can."""
        executor = self._executors.get(each.cluster)
        if executor is not None:
            return shared(executor) is None
        beat, _ = self._heard.get(each.lease_id, (None, 0.0))
        return None if beat is not None and each.cluster in beat.shared_clusters else True

    async def _take_over(self, abandoned: list[Held]) -> None:
        if not abandoned:
            return
        await self._store.queue.take_over(abandoned, self._lease_id, self._node)
        for each in abandoned:
            if shared(self._executors.get(each.cluster)) is not None:
                self._untold[each.cluster][each.name] = True
        _log.warning("%d attempts of a replica that is gone are taken over", len(abandoned))

    async def _look(self, cluster: str) -> None:
        if self._untold[cluster]:
            await self._tell_what_is_ours(cluster)
        now_s = self._clock.monotonic_s()
        if now_s - self._compared_at_s.get(cluster, float("-inf")) >= COMPARE_EVERY_S:
            await self._compare(cluster)
            self._compared_at_s[cluster] = now_s

    async def _tell_what_is_ours(self, cluster: str) -> None:
        """Have the executor go on with attempts that became ours. Others may have been quicker with some."""
        executor, untold = shared(self._executors[cluster]), dict(self._untold[cluster])
        held = {each.name for each in await self._store.queue.held(self._lease_id)}
        for is_contested in (False, True):
            names = sorted(name for name in held & untold.keys() if untold[name] is is_contested)
            if names and executor is not None:
                await executor.adopt(names, contested=is_contested)
        for name in untold:
            self._untold[cluster].pop(name, None)
        self._took_over()

    async def _compare(self, cluster: str) -> None:
        """What the store has and the cluster has not is lost; what runs there and is nobody's is ended."""
        executor = self._executors[cluster]
        before = {each.name for each in await self._store.queue.held(self._lease_id) if each.state is State.RUNNING}
        known = await executor.inventory()
        after = await self._store.queue.held(self._lease_id)
        # Held before and after: so it was neither started nor concluded in between, and is not on its way either.
        missing = before - known.keys() - self._untold[cluster].keys()
        await self._give_up([each for each in after if each.cluster == cluster and each.name in missing])
        if any(each.cluster == cluster and each.state is State.STARTING and each.name not in known for each in after):
            self._took_over()  # it may never have been handed over, or was given back
        # Asked of the store after the executor: what was claimed by then is held by then.
        running = {name for name, sighting in known.items() if sighting.exit is None}
        await self._let_go(cluster, running - {each.name for each in after}, known)

    async def _gone(self, expired: set[str]) -> tuple[set[str], set[str]]:
        """Of holders whose lease ran out: those that were silent for long enough, and those that said that they leave.

        After a step of the database's clock every lease looks expired, until its holder beats again. So it does after a
        store that was away: what was not heard while nobody could speak says nothing.
        """
        now_s = self._clock.monotonic_s()
        if now_s - self._looked_at_s > LOOKS_MISSED_MAX * self._look_every_s:
            self._heard = {}
        self._looked_at_s = now_s
        beats = await self._store.replicas.last_beats(self._clock.now())
        before = self._heard
        self._heard = {}
        for lease_id in beats.keys() | expired:
            beat, since_s = beats.get(lease_id), now_s
            if lease_id in before and before[lease_id][0] == beat:
                since_s = before[lease_id][1]
            self._heard[lease_id] = (beat, since_s)
        silent = {each for each in expired if now_s - self._heard[each][1] >= SILENT_S}
        return silent, {each for each in expired & beats.keys() if beats[each].has_left}

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

    async def _let_go(self, cluster: str, strange: set[str], known: Mapping[str, Sighting]) -> None:
        """End what runs here and is no longer anybody's: it was concluded while we were away, or stood still.

        Where all replicas see the same attempts, others conclude and remove them all the time: there, what was strange
        at the last look already. And what another has taken over meanwhile is let be.
        """
        executor = self._executors[cluster]
        anywhere = shared(executor)
        live = await self._store.queue.live_among(strange)
        foreign = strange - live
        if anywhere is not None:
            await anywhere.release(sorted(live))
            self._strange[cluster], foreign = foreign, foreign & self._strange.get(cluster, set())
        if foreign:
            # An ended attempt was concluded, and we died before the executor forgot it: there is nothing to report.
            if running := sorted(name for name in foreign if known[name].exit is None):
                _log.warning(
                    "%d attempts here were given up meanwhile and are ended, one is %s", len(running), running[0]
                )
            await executor.stop(sorted(foreign), 0.0)
            ended = [name for name, sighting in (await executor.inventory()).items() if sighting.exit is not None]
            await executor.forget(sorted(foreign & set(ended)))

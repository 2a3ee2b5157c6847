"""The engine: the agents of one replica, their loops, and how they wake each other.

Never decides, and never speaks HTTP. Invariants: nothing runs before what this node left behind is adopted; stopping
leaves jobs running, unless they are to be stopped too.

>>> engine = Engine(store, clock, {"local": executor}, node="host-1", version="0.1.0")   # doctest: +SKIP
"""

import asyncio
import contextlib
import logging
import random
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from clickclock.foundation.clock import Clock, SystemClock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.ids import new_id
from clickclock.foundation.lifecycle import Loop, LoopHealth, run_all
from clickclock.foundation.shown_settings import ShownSetting
from clickclock.scheduler.agents.alarmer import Alarmer
from clickclock.scheduler.agents.announcer import Announcer
from clickclock.scheduler.agents.auditor import Auditor
from clickclock.scheduler.agents.authenticator import Authenticator, mint
from clickclock.scheduler.agents.backfiller import Backfiller
from clickclock.scheduler.agents.chainer import Chainer
from clickclock.scheduler.agents.counter import Counter
from clickclock.scheduler.agents.dispatcher import Dispatcher
from clickclock.scheduler.agents.examiner import Examiner
from clickclock.scheduler.agents.notifier import Notifier
from clickclock.scheduler.agents.pauser import Pauser
from clickclock.scheduler.agents.planner import Plan, Planner
from clickclock.scheduler.agents.preempter import Preempter
from clickclock.scheduler.agents.pruner import Pruner
from clickclock.scheduler.agents.rescuer import COMPARE_EVERY_S, Rescuer
from clickclock.scheduler.agents.scanner import Scanner
from clickclock.scheduler.agents.settler import Settler
from clickclock.scheduler.agents.watcher import Watcher
from clickclock.scheduler.executors import Executor, condition, shared
from clickclock.scheduler.jobs.lease import Lease
from clickclock.scheduler.jobs.limits import Limits
from clickclock.scheduler.store import Edited, Heartbeat, Hint, Planned, Store
from clickclock.scheduler.targets import Target
from clickclock.scheduler.times.lookahead import HORIZON_S
from clickclock.scheduler.vault import Vault

LEASE_S = 7.0
HEARTBEAT_EVERY_S = 2.0
"""Three heartbeats may fail to come before a replica counts as gone."""
HEARTBEAT_RETRY_S_MAX = 1.0
POLL_S = 1.0  # how often a replica looks for what others wrote, where others may write
SKEW_TOLD_S = 1.0
"""A machine whose clock is off by more than this is reported in the log, when it is noticed."""
PLAN_AHEAD_S = 0.005
"""How long before its time a trigger is planned that could not be planned within the horizon: about what it takes."""

_log = logging.getLogger(__name__)


class Engine:
    """One replica's engine."""

    def __init__(  # noqa: PLR0913 - one for each thing that a replica is given
        self,
        store: Store,
        clock: Clock,
        executors: Mapping[str, Executor],
        *,
        node: str,
        version: str,
        targets: Mapping[str, Target] | None = None,
        fraction: Callable[[], float] = random.random,
        vault: Vault | None = None,
        limits: Limits | None = None,
        url: str | None = None,
        settings: Sequence[ShownSetting] = (),
    ) -> None:
        """`url` is where other replicas reach our API, if there can be any; `settings` is what people are shown."""
        self.store = store
        self.clock = clock
        self.executors = executors
        self.default_cluster = next(iter(executors))
        self.replica_id = new_id()
        self.node = store.audit.node = node
        self.url, self.version, self.settings = url, version, settings
        self.peer_trust: Callable[[], tuple[ssl.SSLContext | bool, str | None]] = lambda: (True, None)
        self._lease = Lease(LEASE_S)
        self.vault = vault or Vault(None, {})
        self.started_at, self.limits = clock.now(), limits or Limits()
        self._is_news, self._offset = False, timedelta(0)
        self._idle_s = 30.0 if store.kind == "sqlite" else POLL_S
        self.authenticator = Authenticator(store, clock)
        self._make_agents(targets or {}, fraction)
        self._make_loops()

    def _make_agents(self, targets: Mapping[str, Target], fraction: Callable[[], float]) -> None:
        store, clock, executors, users = self.store, self.clock, self.executors, self.limits.users
        here: dict[str, Any] = {"node": self.node, "lease_id": self.replica_id}
        given: dict[str, Any] = {"vault": self.vault, "users": users, "mint": mint, "url": self.url}
        self.dispatcher = Dispatcher(store, clock, executors, **here, fraction=fraction, ahead_s=PLAN_AHEAD_S, **given)
        self.planner = Planner(
            store,
            clock,
            replaced=self.stop_attempts,
            start_with=self._start_planned,
            ahead_s=PLAN_AHEAD_S,
            horizon_s=lambda: min(HORIZON_S, self.executors[self.default_cluster].capabilities.holds_s / 2),
        )
        self.watcher = Watcher(
            store,
            clock,
            executors,
            lease_id=self.replica_id,
            fraction=fraction,
            concluded=self._concluded,
            look_for_stops_s=self._idle_s,
        )
        self.rescuer = Rescuer(
            store,
            clock,
            executors,
            **here,
            fraction=fraction,
            concluded=self.wake_dispatcher,
            took_over=self._took_over,
            look_every_s=COMPARE_EVERY_S if store.kind == "sqlite" else None,
        )
        self.settler = Settler(store, clock, executors)
        self.preempter = Preempter(
            store, clock, executors, **here, preemptions_max=self.limits.preemptions_max, asked=self.stop_attempts
        )
        self.backfiller, self.chainer = Backfiller(store, clock), Chainer(store, clock)
        self.pauser = Pauser(store, clock, paused=self.change_schedules)
        self.counter, self.pruner = Counter(store), Pruner(store, clock, executors, audit_days=self.limits.audit_days)
        self.alarmer, self.auditor = Alarmer(store, clock), Auditor(store, clock)
        self.notifier = Notifier(
            store, clock, targets, lease_id=self.replica_id, fraction=fraction, done=self.wake_notifier
        )
        self.announcer = Announcer(store, clock, joined=self.wake_announcer)
        self.scanner = Scanner(
            store,
            clock,
            node=self.node,
            replica_id=self.replica_id,
            default_cluster=self.default_cluster,
            capacities=self.capacities,
            beat_error=lambda: self._heartbeat_loop.health().error,
        )

    def _make_loops(self) -> None:
        idle_s = self._idle_s
        self._planner_loop = Loop("planner", self.planner.step, idle_s)
        self._dispatcher_loop = Loop("dispatcher", self._dispatch, idle_s)
        self._preempter_loop = Loop("preempter", self.preempter.step, idle_s)
        self._watcher_loop = Loop("watcher", self.watcher.step, idle_s)
        self._rescuer_loop = Loop("rescuer", self.rescuer.step)
        # After an outage the others wait for it, for as long as for any heartbeat.
        self._heartbeat_loop = Loop("heartbeat", self.beat, back_off_max_s=HEARTBEAT_RETRY_S_MAX)
        # What can wait for a moment does, while something live is due.
        busy_s = self.planner.busy_s
        self._backfiller_loop = Loop("backfiller", self.backfiller.step, busy_s=busy_s)
        self._chainer_loop = Loop("chainer", self.chainer.step, idle_s)
        self.store.on_queued, self.store.queue.on_chain = self.wake_dispatcher, self._chainer_loop.wake
        pauser_loop = Loop("pauser", self.pauser.step)
        self.store.queue.on_failure, self.pauser.on_news = self.pauser.look_at, pauser_loop.wake
        self._announcer_loop = Loop("announcer", self.announcer.step)
        self._notifier_loop = Loop("notifier", self.notifier.step)
        self._loops = [
            *(self._planner_loop, self._dispatcher_loop, self._preempter_loop, self._watcher_loop, self._rescuer_loop),
            *(self._heartbeat_loop, self._backfiller_loop, self._chainer_loop),
            *(pauser_loop, Loop("counter", self.counter.step, busy_s=busy_s)),
            Loop("pruner", self.pruner.step, idle_max_s=3600.0, busy_s=busy_s),
            self._announcer_loop,
            *(Loop("alarmer", self.alarmer.step, busy_s=busy_s), Loop("auditor", self.auditor.step, busy_s=busy_s)),
            self._notifier_loop,
            Loop("scanner", self.scanner.step),
        ]
        self.faults = Examiner(self.store, self.clock, loops=self.loops, beats=self._heartbeat_loop.health).faults

    def change_schedules(self) -> None:
        """Schedules changed, or what they depend on: here, and so for every replica."""
        self._planner_loop.wake()
        self.wake_chainer()
        self.store.hints.tell(Hint.SCHEDULES)

    async def edited(self, what: Edited) -> None:
        """This was changed, and is on disk: returns when nothing is on its way any more by what was there before."""
        self.change_schedules()
        await self.settler.settle(what)

    def wake_dispatcher(self) -> None:
        """A trigger is queued, or may start where it could not before."""
        self._is_news = True
        self._dispatcher_loop.wake()

    async def _dispatch(self) -> float | None:
        news, self._is_news = self._is_news, False
        pause_s = await self.dispatcher.step()
        if self.store.queue.backlog.waits_for_slots:
            self._preempter_loop.wake()
            if news:
                self.store.hints.tell(Hint.TRIGGERS)  # others may have room; those that have none tell nobody again
        return pause_s

    def wake_backfiller(self) -> None:
        """A backfill is new, or may go on."""
        self.backfiller.look()
        self._backfiller_loop.wake()

    def wake_chainer(self) -> None:
        """A job changed, or something that others may depend on was cancelled."""
        self.chainer.sweep()
        self._chainer_loop.wake()

    def stop_attempts(self) -> None:
        """Somebody wants attempts stopped, of whichever replica."""
        self._look_for_stops()
        self.store.hints.tell(Hint.STOPS)

    def _look_for_stops(self) -> None:
        self.watcher.look_for_stops()
        self._watcher_loop.wake()

    def wake_notifier(self) -> None:
        """Somebody is to be told something."""
        self._notifier_loop.wake()

    def wake_announcer(self) -> None:
        """Somebody listens."""
        self._announcer_loop.wake()

    def _heard(self, hints: set[Hint]) -> None:
        if Hint.SCHEDULES in hints:
            self._planner_loop.wake()
        if Hint.TRIGGERS in hints:
            self._dispatcher_loop.wake()
        if Hint.STOPS in hints:
            self._look_for_stops()
        if Hint.TOKENS in hints:
            self.authenticator.forget()

    def _concluded(self, queued_again: bool) -> None:
        if queued_again or self.store.queue.backlog.waits_for_slots:
            self._dispatcher_loop.wake()
        if self.backfiller.may_go_on():
            self._backfiller_loop.wake()

    def _hear(self) -> None:
        self.watcher.hear()
        self._watcher_loop.wake()

    async def _start_planned(self, plan: Plan) -> Planned:
        needs_step = True  # a lost answer may have fired
        try:
            planned, needs_step = await self.dispatcher.start_with(plan)
        finally:
            if needs_step:
                self.wake_dispatcher()
        return planned

    def _took_over(self) -> None:
        """Attempts of another replica are ours: some may never have been started, and some are to be stopped."""
        self.dispatcher.doubt()
        self._dispatcher_loop.wake()
        self._look_for_stops()

    async def open(self) -> None:
        """Say that we are here, connect to the clusters, and adopt what this node left behind."""
        await self._set_clock()
        self.started_at = self.clock.now()
        await self.beat()
        # Replicas that share a database are one service, and may go on with each other's attempts.
        owner = self.node if self.store.kind == "sqlite" else self.store.installation_id or self.node
        for executor in self.executors.values():
            if (anywhere := shared(executor)) is not None:
                anywhere.share(owner, lambda at_s: self._lease.holds(at_s, self.clock.monotonic_s(), self.clock.now()))
            await executor.open(self._hear)
        await self.rescuer.adopt()
        with contextlib.suppress(ExecutorUnreachable):
            # What ended meanwhile is written before anything is planned: a plan would take it for unfinished.
            await self.watcher.step()
        self.store.hints.listen(self._heard)

    async def run(self, until: asyncio.Event) -> None:
        """Work until `until` is set. Call `open` first, `close` afterwards."""
        await run_all(self._loops, until)

    async def close(self, *, stop_jobs: bool) -> None:
        """Let go: jobs continue and are adopted at the next start, unless `stop_jobs` ends and concludes them."""
        if stop_jobs:
            await self.store.queue.stop_all(self.replica_id)
            await self.dispatcher.settle()
            self.watcher.look_for_stops()
            while await self._ends_are_awaited():
                await self.watcher.step()
                await self._watcher_loop.woken(0.05)  # an executor has news, or a moment has passed
        await asyncio.gather(self.notifier.close(), self.auditor.step())
        await self.store.replicas.leave(self.replica_id, self.clock.now())
        for executor in self.executors.values():
            await executor.close()

    async def _ends_are_awaited(self) -> bool:
        """Whether attempts of ours have not ended, on clusters that answer. The others' end at the next start."""
        clusters = {each.cluster for each in await self.store.queue.held(self.replica_id)}
        return any([(await self.executors[name].capacity()).reachable for name in clusters & self.executors.keys()])

    async def _set_clock(self) -> None:
        """Take the database's clock where several replicas share it."""
        if isinstance(self.clock, SystemClock) and self.store.kind != "sqlite":
            self.clock.follow(await self.store.clock_skew(self.clock))
            if abs(self.clock.offset - self._offset) > timedelta(seconds=SKEW_TOLD_S):
                off_s = self.clock.offset.total_seconds()
                _log.warning("the database's clock is %+.3f s from this machine's, and is the one that counts", off_s)
            self._offset = self.clock.offset

    @property
    def clock_skew_ms(self) -> float:
        """How far the clock that counts is ahead of this machine's."""
        return self.clock.offset / timedelta(milliseconds=1) if isinstance(self.clock, SystemClock) else 0.0

    async def capacities(self) -> list[dict[str, Any]]:
        """What each cluster holds, and what is wrong with it."""
        agents = (self.dispatcher, self.watcher, self.rescuer)
        troubles = {
            name: next(filter(None, (agent.clusters.trouble(name) for agent in agents)), None)
            for name in self.executors
        }
        return await asyncio.gather(
            *(condition(name, executor, troubles[name]) for name, executor in self.executors.items())
        )

    async def beat(self) -> float:
        """Renew the lease."""
        await self._set_clock()
        clusters = await self.capacities()
        now, asked_s = self.clock.now(), self.clock.monotonic_s()
        await self.store.replicas.beat(
            Heartbeat(
                replica_id=self.replica_id,
                node=self.node,
                host=socket.gethostname(),
                version=self.version,
                started_at=self.started_at,
                heartbeat_at=now,
                lease_until=now + timedelta(seconds=LEASE_S),
                clusters=clusters,
                loops=[{"name": each.name, "stalled": each.is_stalled, "error": each.error} for each in self.loops()],
                clock_skew_ms=self.clock_skew_ms,
                url=self.url,
            )
        )
        if self._lease.renew(asked_s, now):
            # There was none, or it had ended: others may have gone on with what we have.
            self.dispatcher.doubt()
            self.rescuer.doubt()
            self._rescuer_loop.wake()
        return HEARTBEAT_EVERY_S

    def loops(self) -> list[LoopHealth]:
        """How the loops do."""
        return [loop.health() for loop in self._loops]

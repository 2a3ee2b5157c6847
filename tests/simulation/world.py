"""The simulated world: nodes whose processes outlive their replicas, calls that fail or never return, one clock.

It never decides anything about jobs. Invariant: a node remembers every name that it ever ran, so that a second run of
one name is noticed at the moment it happens.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import sqlalchemy as sa

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import ExecutorUnreachable, StoreUnreachable
from clickclock.scheduler.executors import Capabilities, Capacity, Launch, LogChunk, Sighting
from clickclock.scheduler.jobs.trigger import Exit, ExitKind
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.supervisor.waiting import HOLD_S_MAX

T = TypeVar("T")
SLOTS = (3, 3, 20)
"""Of each node: so few that something always waits for one, or so many that nothing does."""
CODES = (0, 0, 0, 1, 75)


class Died(BaseException):
    """The replica is gone in the middle of what it did; no handler of the product may catch this."""


class Turns:
    """Several steps at the same time: each waits for its turn before every call, and the dice say whose it is."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._waiting: list[asyncio.Future[None]] = []
        self._changed = asyncio.Event()

    async def take(self) -> None:
        """Until it is our turn."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._changed.set()
        await turn

    async def play(self, *steps: Awaitable[object]) -> list[object]:
        """Run all to their ends; what each raised or returned."""
        tasks = [asyncio.ensure_future(step) for step in steps]
        for task in tasks:
            task.add_done_callback(lambda _: self._changed.set())
        while unfinished := sum(not task.done() for task in tasks):
            if len(self._waiting) == unfinished:
                self._waiting.pop(self._dice.randrange(unfinished)).set_result(None)
            self._changed.clear()
            await self._changed.wait()
        return await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class Faults:
    """What goes wrong for one replica: a death at the nth call from now, and how often a call fails."""

    dice: random.Random
    failing: float = 0.0
    calls_to_live: int | None = None
    turns: Turns | None = None

    async def around(self, call: Callable[[], Awaitable[T]], fault: type[Exception]) -> T:
        """A call that may never happen, happen and not be answered, or be the replica's last."""
        if self.turns is not None:
            await self.turns.take()
        self._maybe_die()
        if self.dice.random() < self.failing:
            raise fault
        result = await call()
        if self.turns is not None:
            await self.turns.take()
        self._maybe_die()
        if self.dice.random() < self.failing:
            raise fault
        return result

    def _maybe_die(self) -> None:
        if self.calls_to_live is not None:
            self.calls_to_live -= 1
            if self.calls_to_live < 0:
                raise Died


class FaultyDatabase(Database):
    """The one real database, as one replica reaches it."""

    def __init__(self, real: Database, faults: Faults) -> None:
        self._real = real
        self._faults = faults
        self.kind = real.kind
        self.is_sqlite = real.is_sqlite
        self.on_queued = lambda: None

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        return await self._faults.around(lambda: self._real.read(work), StoreUnreachable)

    async def write(self, work: Callable[[sa.Connection], T], *, may_wait_s: float = 0.0) -> T:
        return await self._faults.around(lambda: self._real.write(work, may_wait_s=may_wait_s), StoreUnreachable)

    def flush(self) -> None:
        self._real.flush()


@dataclass(slots=True)
class Process:
    """One run of an attempt. `starts_s`, until when it is held, and `ends_s` are on the monotonic clock."""

    name: str
    node: str
    starts_s: float
    lasts_s: float
    code: int
    started_at: datetime | None = None
    ends_s: float = float("inf")
    stopped: bool = False
    exit: Exit | None = None


@dataclass(slots=True)
class Node:
    """One machine: what runs on it, and what its executor still remembers."""

    name: str
    known: dict[str, Process] = field(default_factory=dict)
    listener: "Connection | None" = None

    def tell(self, name: str) -> None:
        if self.listener is not None:
            self.listener.news[name] = None


class World:
    """All nodes, one clock, and the memory of everything that ever ran."""

    def __init__(self, dice: random.Random, clock: ManualClock) -> None:
        self.dice = dice
        self.clock = clock
        self.nodes: dict[str, Node] = {}
        self.slots = dice.choice(SLOTS)
        self.runs: dict[str, Process] = {}
        self.doubled: list[str] = []

    def start(self, node: Node, launch: Launch) -> None:
        """Run it, unless the node knows the name."""
        if launch.name in node.known:
            return
        duration_s = self.dice.choice((0.0, 0.5, 2.0, 8.0)) * self.dice.random()
        ahead_s = 0.0 if launch.not_before is None else (launch.not_before - self.clock.now()).total_seconds()
        starts_s = self.clock.monotonic_s() + (ahead_s if 0 < ahead_s <= HOLD_S_MAX else 0.0)
        process = Process(launch.name, node.name, starts_s, duration_s, self.dice.choice(CODES))
        node.known[launch.name] = process
        self._begin_if_due(node, process)

    def _begin_if_due(self, node: Node, process: Process) -> None:
        if process.started_at is None and process.exit is None and process.starts_s <= self.clock.monotonic_s():
            if process.name in self.runs:
                self.doubled.append(process.name)
            self.runs[process.name] = process
            process.started_at = self.clock.now()
            process.ends_s = min(process.ends_s, self.clock.monotonic_s() + process.lasts_s)
            node.tell(process.name)

    def pass_time(self) -> None:
        """Start what was held for its moment, and end what has run its time."""
        for node in self.nodes.values():
            for process in node.known.values():
                self._begin_if_due(node, process)
                if process.exit is None and process.ends_s <= self.clock.monotonic_s():
                    process.exit = self._exit_of(process)
                    node.tell(process.name)

    def _exit_of(self, process: Process) -> Exit:
        now = self.clock.now()
        if process.stopped:
            return Exit(ExitKind.STOPPED, now, process.started_at)
        return Exit(ExitKind.CODE, now, process.started_at, code=process.code, cpu_seconds=0.25, max_memory_bytes=1024)


class Connection:
    """One replica's executor on its node: it ends with the replica, what it started does not."""

    capabilities = Capabilities(holds_s=HOLD_S_MAX)
    is_urgent = True

    def __init__(self, world: World, node: Node, faults: Faults) -> None:
        self.news: dict[str, None] = {}
        self._world = world
        self._node = node
        self._faults = faults
        self._told: list[Sighting] = []

    async def open(self, on_change: Callable[[], None]) -> None:
        self._node.listener = self
        self.news = dict.fromkeys(self._node.known)

    async def start(self, launches: Sequence[Launch]) -> None:
        async def start() -> None:
            for launch in launches:
                self._world.start(self._node, launch)

        await self._faults.around(start, ExecutorUnreachable)

    async def observe(self) -> Sequence[Sighting]:
        async def observe() -> list[Sighting]:
            return [self._sighting(self._node.known[name]) for name in self.news if name in self._node.known]

        sightings = await self._faults.around(observe, ExecutorUnreachable)
        self.news = {}
        if self._told and self._world.dice.random() < 0.3:
            # Delivered again, however long ago it was.
            sightings = [*sightings, *self._world.dice.sample(self._told, min(3, len(self._told)))]
        self._told.extend(sightings)
        return sightings

    async def inventory(self) -> Mapping[str, Sighting]:
        async def inventory() -> dict[str, Sighting]:
            return {name: self._sighting(process) for name, process in self._node.known.items()}

        return await self._faults.around(inventory, ExecutorUnreachable)

    async def stop(self, names: Sequence[str], grace_s: float) -> None:
        async def stop() -> None:
            for name in names:
                process = self._node.known.get(name)
                if process is not None and process.exit is None:
                    if process.started_at is None:
                        process.exit = Exit(ExitKind.STOPPED, self._world.clock.now())
                        self._node.tell(name)
                        continue
                    # Some obey at once, some need the whole grace period, and some just end by themselves.
                    process.stopped = process.stopped or self._world.dice.random() < 0.8
                    grace = self._world.dice.random() * min(grace_s, 3.0)
                    process.ends_s = min(process.ends_s, self._world.clock.monotonic_s() + grace)

        await self._faults.around(stop, ExecutorUnreachable)

    async def forget(self, names: Sequence[str]) -> None:
        async def forget() -> None:
            for name in names:
                if name in self._node.known and self._node.known[name].exit is not None:
                    del self._node.known[name]

        await self._faults.around(forget, ExecutorUnreachable)

    async def read_log(self, name: str, offset: int, limit: int) -> LogChunk | None:
        return None

    async def remove_logs(self, names: Sequence[str]) -> None:
        return

    async def capacity(self) -> Capacity:
        return Capacity(self._world.slots, True, (self._node.name,))

    async def close(self) -> None:
        self._node.listener = None

    def _sighting(self, process: Process) -> Sighting:
        return Sighting(process.name, process.node, process.started_at, process.exit)


def jump(clock: ManualClock, seconds: float) -> None:
    """Step the wall clock, as an administrator does, or as a lid that was closed for a while."""
    clock.step_to(clock.now() + timedelta(seconds=seconds))


def columns(row: sa.Row[Any]) -> dict[str, Any]:
    return dict(row._mapping)

"""An executor whose attempts do what a test says, when it says so: no processes, no waiting.

Never decides how an attempt ends: the script does. Invariants: those of the door (`executors/__init__.py`): a name that
is started twice runs once, a change is told once, and after `open` all is told again until it is forgotten.

>>> executor = ScriptedExecutor(clock)
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.scheduler.executors import Capabilities, Capacity, Launch, LogChunk, Sighting
from clickclock.scheduler.jobs.trigger import Exit, ExitKind


class ScriptedTarget:
    """Somebody who is told, and raises what the script says."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str]] = []
        self.raises: Exception | None = None
        self.hold: asyncio.Event | None = None
        self.is_closed = False

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        self.got.append((notification_id, body))
        if self.hold is not None:
            await self.hold.wait()
        if self.raises is not None:
            raise self.raises

    async def close(self) -> None:
        self.is_closed = True


class ScriptedExecutor:
    """One cluster. `begin` and `end` are the script; the rest is the door."""

    def __init__(self, clock: Clock, node: str = "node-1", slots: int = 1000, *, wants_image: bool = False) -> None:
        self.capabilities = Capabilities(wants_image=wants_image)
        self.is_urgent = True
        self._clock = clock
        self._node = node
        self._known: dict[str, Sighting] = {}
        self._news: dict[str, Sighting] = {}
        self._logs: dict[str, bytes] = {}
        self._on_change: Callable[[], None] = lambda: None
        self.slots = slots
        self.reachable = True
        self.takes_starts = True
        self.obeys = True
        self.launches: dict[str, Launch] = {}
        self.starts: list[str] = []
        self.stops: list[tuple[str, float]] = []
        self.forgotten: list[str] = []

    def begin(self, name: str) -> None:
        """The attempt's process has started, and prints its name."""
        self._logs[name] = name.encode()
        self._tell(Sighting(name, self._node, self._clock.now()))

    def end(self, name: str, code: int = 0, kind: ExitKind = ExitKind.CODE, **fields: Any) -> None:
        """The attempt has ended."""
        began = self._known[name].started_at if name in self._known else None
        exit_ = Exit(kind, self._clock.now(), began, code=code if kind is ExitKind.CODE else None, **fields)
        self._tell(Sighting(name, self._node, began, exit_))

    def lose(self, name: str) -> None:
        """The attempt vanishes, and nothing is known of it any more."""
        self._known.pop(name)
        self._news.pop(name, None)

    def _tell(self, sighting: Sighting) -> None:
        self._known[sighting.name] = self._news[sighting.name] = sighting
        self._on_change()

    @property
    def running(self) -> list[str]:
        """Names of what has not ended."""
        return sorted(name for name, sighting in self._known.items() if sighting.exit is None)

    async def open(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._news = dict(self._known)
        if self._news:
            on_change()

    async def start(self, launches: Sequence[Launch]) -> None:
        if not self.takes_starts:
            raise ExecutorUnreachable
        for launch in launches:
            if launch.name not in self._known:
                self.starts.append(launch.name)
                self.launches[launch.name] = launch
                self.begin(launch.name)

    async def observe(self) -> Sequence[Sighting]:
        news, self._news = self._news, {}
        return list(news.values())

    async def inventory(self) -> Mapping[str, Sighting]:
        if not self.reachable:
            raise ExecutorUnreachable
        return dict(self._known)

    async def stop(self, names: Sequence[str], grace_s: float) -> None:
        for name in names:
            self.stops.append((name, grace_s))
            if self.obeys and name in self.running:
                self.end(name, kind=ExitKind.STOPPED)

    async def forget(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._known and self._known[name].exit is not None:
                self.forgotten.append(name)
                del self._known[name]

    async def read_log(self, name: str, offset: int, limit: int) -> LogChunk | None:
        if name not in self._logs:
            return None
        piece = self._logs[name][offset : offset + limit]
        end = offset + len(piece)
        return LogChunk(piece, end, name not in self.running and end >= len(self._logs[name]))

    async def remove_logs(self, names: Sequence[str]) -> None:
        for name in names:
            self._logs.pop(name, None)

    async def capacity(self) -> Capacity:
        return Capacity(self.slots, self.reachable, (self._node,), None if self.reachable else "It is away.")

    async def close(self) -> None:
        self._on_change = lambda: None


class SharedScriptedExecutor(ScriptedExecutor):
    """A cluster whose attempts belong to no host: all of them are known here, and this says which are ours."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.capabilities = Capabilities(is_shared=True)
        self.adopted: dict[str, bool] = {}
        self.released: list[str] = []
        self.owner = ""

    def share(self, owner: str, holds: Callable[[float], bool]) -> None:
        self.owner = owner

    async def adopt(self, names: Sequence[str], *, contested: bool) -> None:
        if not self.reachable:
            raise ExecutorUnreachable
        self.adopted |= dict.fromkeys(names, contested)

    async def release(self, names: Sequence[str]) -> None:
        self.released += names

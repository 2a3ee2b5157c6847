"""A replica whose attempts do nothing: the whole state machine on a real store, and no processes.

Run as `python -m tests.bench.nothing URL NODE`. Invariants: those of the executors' door, as far as nothing can break
them: a name that is started twice runs once, and an exit is told until it is forgotten.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

import uvloop
from msgspec.structs import replace

from clickclock.foundation.clock import Clock, SystemClock
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.executors import Capabilities, Capacity, Launch, LogChunk, Sighting
from clickclock.scheduler.jobs.trigger import Exit, ExitKind
from clickclock.scheduler.store import Store

SLOTS = 2000


class NothingExecutor:
    """One cluster on which everything ends in the moment that it begins."""

    capabilities = Capabilities()
    is_urgent = True

    def __init__(self, clock: Clock, node: str) -> None:
        self._clock = clock
        self._node = node
        self._known: dict[str, Sighting] = {}
        self._news: dict[str, Sighting] = {}
        self._on_change: Callable[[], None] = lambda: None

    async def open(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change

    async def start(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            wait_s = 0.0
            if launch.not_before is not None:
                wait_s = (launch.not_before - self._clock.now()).total_seconds()
            if wait_s > 0:
                asyncio.get_running_loop().call_later(wait_s, self._run, launch.name)
            else:
                self._run(launch.name)

    def _run(self, name: str) -> None:
        if name in self._known:
            return
        now = self._clock.now()
        self._known[name] = self._news[name] = Sighting(name, self._node, now, Exit(ExitKind.CODE, now, now, code=0))
        self._on_change()

    async def observe(self) -> Sequence[Sighting]:
        news, self._news = self._news, {}
        return list(news.values())

    async def inventory(self) -> Mapping[str, Sighting]:
        return {name: replace(sighting) for name, sighting in self._known.items()}

    async def stop(self, names: Sequence[str], grace_s: float) -> None:
        return

    async def forget(self, names: Sequence[str]) -> None:
        for name in names:
            self._known.pop(name, None)

    async def read_log(self, name: str, offset: int, limit: int) -> LogChunk | None:
        return None

    async def remove_logs(self, names: Sequence[str]) -> None:
        return

    async def capacity(self) -> Capacity:
        return Capacity(SLOTS, True, (self._node,))

    async def close(self) -> None:
        return


async def _serve(url: str, node: str) -> None:
    clock, stopped = SystemClock(), asyncio.Event()
    store = await Store.open(url)
    engine = Engine(store, clock, {"local": NothingExecutor(clock, node)}, node=node, version="bench")
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await engine.open()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await engine.run(until=stopped)
    await engine.close(stop_jobs=False)
    await store.close()


if __name__ == "__main__":
    uvloop.run(_serve(sys.argv[1], sys.argv[2]))

"""The executor of one container engine: which attempts there are, and whether the engine answers.

Never waits for a container in a call of the door: each attempt has a task of its own. Invariants: what an earlier life,
or another replica, made and never started is removed, for its dispatcher starts it anew; nothing is reported before it
is known what is there; of an engine that is shared, only what was started or adopted here is acted on.

>>> ContainerExecutor(name="boxes", data_dir=Path("/var/lib/clickclock"), node="host-1", log_bytes_max=10_000_000,
...     clock=SystemClock(), options={"engine": "unix:///run/podman/podman.sock"}).name   # doctest: +SKIP
'boxes'
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.scheduler.executors import Capabilities, Capacity, Launch, LogChunk, Sighting
from clickclock.scheduler.executors.container.attempt import ContainerAttempt, Surroundings
from clickclock.scheduler.executors.container.engine import Engine, EngineUnreachable, Refused
from clickclock.scheduler.executors.container.options import ContainerOptions
from clickclock.scheduler.executors.container.request import (
    ATTEMPT,
    CLUSTER,
    CREATED,
    OWNER,
    REMOVING,
    container_name,
)
from clickclock.scheduler.executors.log_file import LogFiles

PING_EVERY_S = 5.0
LIST_EVERY_S = 15.0
"""How often an engine that is shared is asked which containers others have."""
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.1, 2.0
_CLOSE_S_MAX = 5.0
"""How long closing waits for containers that are being started or removed; the next start sees to the rest."""

_log = logging.getLogger(__name__)


class ContainerExecutor:
    """Runs attempts as containers."""

    # The image knows its users.
    capabilities = Capabilities(wants_image=True, refuses_user=lambda _: None)
    is_urgent = True

    def __init__(
        self,
        *,
        name: str,
        data_dir: Path,
        node: str,
        log_bytes_max: int,
        clock: Clock,
        options: Mapping[str, Any],
    ) -> None:
        """`options` is the cluster's own table. Raises pydantic's `ValidationError` with all that is wrong with it."""
        self.name = name
        self._node = node
        self._options = ContainerOptions.model_validate(options)
        self.capabilities = replace(self.capabilities, is_shared=self._options.is_shared)
        self._is_alone = True
        self._others: frozenset[str] = frozenset()
        self._listed_at_s = float("-inf")
        self._engine = Engine(self._options)
        self._logs = LogFiles(data_dir.absolute() / "logs", log_bytes_max)
        self._around = Surroundings(
            cluster=name,
            node=node,
            owner=node,
            holds=lambda _: True,
            engine=self._engine,
            options=self._options,
            logs=self._logs,
            marks=data_dir.absolute() / "stops" / name.replace("/", "%"),
            clock=clock,
            tell=self._hear,
            give_back=self._give_back,
        )
        self._on_change: Callable[[], None] = lambda: None
        self._attempts: dict[str, ContainerAttempt] = {}
        self._news: dict[str, None] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._clearing: set[asyncio.Task[None]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._knows_all = False
        self._lacks_init: str | None = None
        self._tried_at_s = float("-inf")

    def share(self, owner: str, holds: Callable[[float], bool]) -> None:
        """See `SharedExecutor.share`."""
        self._around.owner, self._around.holds, self._is_alone = owner, holds, False

    async def open(self, on_change: Callable[[], None]) -> None:
        """Find what still runs; an engine that does not answer is asked again until it does."""
        self._on_change = on_change
        await self._logs.open()
        self._around.marks.mkdir(parents=True, exist_ok=True, mode=0o700)
        await self._look()
        self._keeper = asyncio.create_task(self._keep_looking(), name=f"{self.name}: keep in touch with the engine")

    async def start(self, launches: Sequence[Launch]) -> None:
        if launches and not self._answers:
            raise ExecutorUnreachable(self._trouble)
        for launch in launches:
            if launch.name not in self._attempts:
                self._take_on(ContainerAttempt(launch.name, self._around, launch))

    async def observe(self) -> Sequence[Sighting]:
        news, self._news = self._news, {}
        return [self._attempts[name].sighting for name in news if name in self._attempts]

    async def inventory(self) -> Mapping[str, Sighting]:
        if not self._knows_all:
            raise ExecutorUnreachable(self._trouble)
        theirs = {name: Sighting(name, self._node) for name in self._others}
        return theirs | {name: attempt.sighting for name, attempt in self._attempts.items()}

    async def adopt(self, names: Sequence[str], *, contested: bool) -> None:
        """Go on with containers that others made; whose holder stands still finds his own gone, or refused."""
        if not self._knows_all:
            raise ExecutorUnreachable(self._trouble)
        for name in names:
            if name in self._attempts:
                continue
            try:
                there = await self._engine.inspect(container_name(name))
                if there is not None and there["State"]["Status"] == CREATED:
                    await self._engine.remove(there["Id"])
                elif there is not None and name not in self._attempts:
                    self._take_on(ContainerAttempt(name, self._around, None))
            except Refused as refused:  # it is being started or removed at this moment: then look again
                raise ExecutorUnreachable(str(refused)) from refused

    async def release(self, names: Sequence[str]) -> None:
        """See `SharedExecutor.release`."""
        given = sorted(self._attempts.keys() & set(names))
        tasks = [self._tasks[name] for name in given]
        for name, task in zip(given, tasks, strict=True):
            self._give_back(name)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.remove_logs(given)

    def _give_back(self, name: str) -> None:
        self._attempts.pop(name, None)
        self._tasks.pop(name, None)

    async def stop(self, names: Sequence[str], grace_s: float) -> None:
        for name in names:
            if name in self._others and name not in self._attempts:
                self._take_on(ContainerAttempt(name, self._around, None))
            if name in self._attempts:
                self._attempts[name].stop(grace_s)

    async def forget(self, names: Sequence[str]) -> None:
        for name in names:
            attempt = self._attempts.get(name)
            if attempt is not None and attempt.sighting.exit is not None:
                del self._attempts[name]
                self._tasks.pop(name).cancel()
                clearing = asyncio.create_task(attempt.clear_away(), name=f"{name}: remove its container")
                self._clearing.add(clearing)
                clearing.add_done_callback(self._clearing.discard)

    async def read_log(self, name: str, offset: int, limit: int) -> LogChunk | None:
        attempt = self._attempts.get(name)
        ended = self._knows_all if attempt is None else attempt.sighting.exit is not None
        return await self._logs.read(name, offset, limit, ended=ended)

    async def remove_logs(self, names: Sequence[str]) -> None:
        await self._logs.remove(names)

    async def capacity(self) -> Capacity:
        trouble = None if self._answers else self._trouble
        return Capacity(self._options.capacity, self._answers, (self._node,), trouble)

    async def close(self) -> None:
        """Let go: containers run on, and are found again by their labels. Accepted attempts are handed over first."""
        begun = [asyncio.create_task(attempt.begun.wait()) for attempt in self._attempts.values()]
        if begun and self._answers:
            await asyncio.wait(begun, timeout=_CLOSE_S_MAX)
        tasks = [*begun, *self._tasks.values(), *([self._keeper] if self._keeper is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        if self._clearing:
            await asyncio.wait(self._clearing, timeout=_CLOSE_S_MAX)
        for task in self._clearing:
            task.cancel()
        await asyncio.gather(*self._clearing, return_exceptions=True)
        await self._engine.close()

    @property
    def _answers(self) -> bool:
        return self._knows_all and self._engine.trouble is None and self._lacks_init is None

    @property
    def _trouble(self) -> str:
        return self._engine.trouble or self._lacks_init or "The engine has not told yet which containers it has."

    async def _keep_looking(self) -> None:
        pause_s = _PAUSE_S_MIN
        while True:
            await self._try_init()
            await asyncio.sleep(PING_EVERY_S if self._answers else pause_s)
            pause_s = _PAUSE_S_MIN if self._answers else min(2 * pause_s, _PAUSE_S_MAX)
            await self._look()

    async def _look(self) -> None:
        """Whether it answers; and, when it does for the first time, what is there of ours."""
        try:
            await self._engine.ping()
            now_s = asyncio.get_running_loop().time()
            if not self._knows_all or (not self._is_alone and now_s - self._listed_at_s >= LIST_EVERY_S):
                await self._find_again()
                self._listed_at_s = now_s
        except EngineUnreachable:
            return
        except Refused as refused:
            self._engine.trouble = f"The container engine refused: {refused}"
        except (ValueError, KeyError, TypeError) as error:
            self._engine.trouble = f"What answers at {self._options.engine} is no container engine: {error!r}"

    async def _try_init(self) -> None:
        """Whether containers get their init: else every attempt would end without having begun."""
        now_s = asyncio.get_running_loop().time()
        is_known = self._tried_at_s > float("-inf") and self._lacks_init is None
        is_soon = now_s - self._tried_at_s < LIST_EVERY_S
        if not self._options.init or is_known or is_soon or not self._knows_all or self._engine.trouble is not None:
            return
        self._tried_at_s = now_s
        try:
            self._lacks_init = await self._engine.lacks_init()
        except (EngineUnreachable, Refused, ValueError, KeyError, TypeError) as error:
            _log.debug("whether %s has an init is not known: %s", self.name, error)
        if self._lacks_init:
            _log.error("%s: %s", self.name, self._lacks_init)

    async def _find_again(self) -> None:
        listed = await self._engine.list({OWNER: self._around.owner, CLUSTER: self.name})
        found = {there["Labels"][ATTEMPT]: there["State"] for there in listed}
        for name in [name for name, state in found.items() if state == REMOVING]:
            # Somebody is at it, or the engine died meanwhile: then it has to be told again.
            del found[name]
            with contextlib.suppress(Refused):
                await self._engine.remove(container_name(name))
        if not self._is_alone:
            self._others = frozenset(name for name, state in found.items() if state != CREATED)
            found = {}
        for name in found.keys() - self._attempts.keys():
            attempt = ContainerAttempt(name, self._around, None)
            if found[name] == CREATED:
                await self._engine.remove(attempt.container)  # refused if it was being started: then look again
            else:
                self._take_on(attempt)
        knew_all, self._knows_all = self._knows_all, True
        if self._attempts and not knew_all:
            _log.info("found %d containers of ours on %s", len(self._attempts), self.name)

    def _take_on(self, attempt: ContainerAttempt) -> None:
        self._attempts[attempt.name] = attempt
        self._tasks[attempt.name] = asyncio.create_task(attempt.run(), name=attempt.name)

    def _hear(self, sighting: Sighting) -> None:
        self._news[sighting.name] = None
        self._on_change()

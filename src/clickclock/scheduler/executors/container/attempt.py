"""One attempt's container, from its launch, or from being found again, to its exit.

Never concludes anything for the store. Invariants: every step may be done twice, since an engine that gave no answer
may have done it; what was asked to stop is noted on disk before the first signal, so that whoever reads the exit later
knows why; an exit is reported after the output is in its file.

>>> await ContainerAttempt(launch.name, around, launch).run()   # doctest: +SKIP
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from clickclock.foundation.clock import Clock, SystemClock
from clickclock.scheduler.executors import LeaseLost, LogChunk, Sighting
from clickclock.scheduler.executors.container import request
from clickclock.scheduler.executors.container.engine import NOT_FOUND, Engine, EngineUnreachable, Refused
from clickclock.scheduler.executors.container.options import ContainerOptions
from clickclock.scheduler.executors.container.output import Output
from clickclock.scheduler.executors.container.request import ATTEMPT, Circumstances, container_name
from clickclock.scheduler.executors.log_file import LogFiles
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.trigger import NEVER_STARTED, Exit, ExitKind

STARTS_AT_ONCE = 8
"""Containers that one replica has made at once: an engine does them one after the other in great part."""
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.1, 5.0
_LOOK_AGAIN_S = 1.0
_FIRST_BYTES = 300

_log = logging.getLogger(__name__)


@dataclass
class Surroundings:
    """What all attempts of one cluster share."""

    cluster: str
    node: str
    owner: str
    holds: Callable[[float], bool]
    engine: Engine
    options: ContainerOptions
    logs: LogFiles
    marks: Path
    clock: Clock
    tell: Callable[[Sighting], None]
    give_back: Callable[[str], None]
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(STARTS_AT_ONCE))
    pulls: dict[str, asyncio.Lock] = field(default_factory=dict)

    @property
    def shift(self) -> timedelta:
        """How far the service's clock is ahead of this machine's, by which the engine stamps."""
        return self.clock.offset if isinstance(self.clock, SystemClock) else timedelta(0)


class _Over(Exception):
    """It is over: with this exit."""

    def __init__(self, ending: Exit) -> None:
        super().__init__()
        self.ending = ending


class ContainerAttempt:
    """One attempt: `run` until it is over."""

    def __init__(self, name: str, around: Surroundings, launch: Launch | None) -> None:
        """Without a `launch` the container is there already."""
        self.name = name
        self.container = container_name(name)
        self.sighting = Sighting(name, around.node)
        self._around = around
        self._engine = around.engine
        self._launch = launch
        self._accepted_s = around.clock.monotonic_s()
        self._moment_s = self._accepted_s
        if launch is not None and launch.not_before is not None:
            # From now on by a clock that does not step: a clock that is set back must not keep it from starting. The
            # wall clock is asked first: what passes between the two looks makes the moment later, never earlier.
            early_s = (launch.not_before - around.clock.now()).total_seconds()
            self._moment_s = around.clock.monotonic_s() + early_s
        self._output = Output(around.logs, name)
        self._mark = around.marks / name
        self._asked = _noted(self._mark)
        self._kill_at_s: float | None = None
        self._hurry = asyncio.Event()
        self._limits: Mapping[str, str] = {}
        self._is_ours = launch is None
        self._may_be_there = self._is_ours
        self._may_run = False
        self.begun = asyncio.Event()
        """It runs, or is over already: from now on the engine knows of it."""

    async def run(self) -> None:
        """Live it, however often the engine goes away and comes back."""
        pause_s = _PAUSE_S_MIN
        while self.sighting.exit is None:
            try:
                if self._launch is not None and self.sighting.started_at is None:
                    await self._start(self._launch)
                await self._until_end()
            except _Over as over:
                self._see(over.ending)
            except LeaseLost:
                _log.warning("%s was accepted before our lease was lost, and is not started", self.name)
                self._around.give_back(self.name)
                return
            except EngineUnreachable:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_S_MAX)
            except Refused as refused:
                _log.warning("%s: the engine refused: %s", self.name, refused)
                await asyncio.sleep(_PAUSE_S_MAX)
            except Exception:  # noqa: BLE001 - whatever it is, the attempt runs on and its end has to be seen
                _log.exception("%s: the engine's answer was not understood", self.name)
                await asyncio.sleep(_PAUSE_S_MAX)

    def stop(self, grace_s: float) -> None:
        """Have it ended; a second call can only make it sooner."""
        self._ask(ExitKind.STOPPED, grace_s)

    def _ask(self, kind: ExitKind, grace_s: float) -> None:
        if self.sighting.exit is None:
            kill_at_s = self._around.clock.monotonic_s() + grace_s
            self._kill_at_s = kill_at_s if self._kill_at_s is None else min(self._kill_at_s, kill_at_s)
            self._asked = self._asked or kind
            self._hurry.set()

    async def clear_away(self) -> None:
        """Remove the container and the note, now that the exit is recorded for good."""
        while self._may_be_there:
            try:
                if self._is_ours or self._bears_our_name(await self._engine.inspect(self.container)):
                    await self._engine.remove(self.container)
                break
            except EngineUnreachable:
                await asyncio.sleep(_LOOK_AGAIN_S)
            except Refused as refused:
                if refused.status != NOT_FOUND:
                    _log.warning("%s cannot be removed: %s", self.container, refused)
                break
        self._mark.unlink(missing_ok=True)

    def _bears_our_name(self, there: Any | None) -> bool:
        """A container of this name may be somebody else's; what we made says so in its labels."""
        return there is not None and (there["Config"].get("Labels") or {}).get(ATTEMPT) == self.name

    async def _start(self, launch: Launch) -> None:
        await self._end_if_stopped()
        made = await self._create(launch)
        if made is None:
            return
        await self._until_moment()
        await self._end_if_stopped()
        self._may_run = True
        try:
            async with self._around.gate:
                if not self._around.holds(self._accepted_s):
                    await self._engine.remove(made)
                    raise LeaseLost
                # A replica that stood still for longer than its lease starts nothing. And by its id: had another made
                # one of that name meanwhile, that is not started a second time.
                await self._engine.start(made)
        except Refused as refused:
            there = await self._engine.inspect(self.container)
            if there is None or request.instant(there["State"]["StartedAt"]) is None:
                self._fail(request.why_not_started(launch.argv[0], str(refused)))

    async def _until_moment(self) -> None:
        """Wait for its moment, or to be stopped before."""
        early_s = self._moment_s - self._around.clock.monotonic_s()
        if early_s > 0:
            with contextlib.suppress(TimeoutError):
                # With the clock's own step: never a moment early.
                async with asyncio.timeout(early_s + 0.001):
                    await self._hurry.wait()

    async def _create(self, launch: Launch) -> str | None:
        """Have its container made; the id of it, or None if it was started already."""
        around = self._around
        policy = launch.pull_policy or around.options.pull_policy
        image = launch.image or ""
        if not image:
            self._fail("The job has no image, and no prefix of the mapping fits its command.")
        try:
            body = request.creation(launch, around.options, cluster=around.cluster, owner=around.owner)
        except ValueError as error:
            self._fail(str(error))
        pulled = False
        while True:
            try:
                if policy == "always" and not pulled:
                    await self._pull(image)
                    pulled = True
                self._may_be_there = True
                async with self._around.gate:
                    if not self._around.holds(self._accepted_s):
                        raise LeaseLost
                    made = await self._engine.create(self.container, body)
            except Refused as refused:
                if refused.status == NOT_FOUND and policy == "ifNotPresent" and not pulled:
                    await self._pull(image)
                    pulled = True
                    continue
                if await self._was_started(refused):
                    self._is_ours = True
                    return None
                continue
            self._is_ours = True
            return made

    async def _was_started(self, refused: Refused) -> bool:
        """Whether the container of our name has run: an earlier call made it, whose answer was lost; or somebody else.

        One that was made and never started is removed, to be made anew: whoever made it, if not we, stands still, and
        will not find what he is about to start.
        """
        there = await self._engine.inspect(self.container)
        if there is None:
            self._fail(f"The container engine made no container: {refused}")
        if not self._bears_our_name(there):
            self._fail(f"The engine has a container {self.container} that is not ours; remove or rename it.")
        if there["State"]["Status"] != request.CREATED:
            return True
        await self._engine.remove(there["Id"])
        return False

    async def _pull(self, image: str) -> None:
        """One after the other for each image: who waited finds its layers there."""
        try:
            async with self._around.pulls.setdefault(image, asyncio.Lock()):
                await self._engine.pull(image)
        except Refused as refused:
            self._fail(f"The image {image} could not be pulled: {refused}")

    async def _until_end(self) -> None:
        state = self._see_start(await self._engine.inspect(self.container))
        chores = [asyncio.create_task(self._follow()), asyncio.create_task(self._end_when_asked())]
        try:
            while state["Status"] not in request.ENDED:
                await self._engine.wait(self.container)
                state = self._see_start(await self._engine.inspect(self.container))
                if state["Status"] not in request.ENDED:
                    await asyncio.sleep(_PAUSE_S_MIN)
        finally:
            for chore in chores:
                chore.cancel()
            await asyncio.gather(*chores, return_exceptions=True)
        await self._copy(follow=False)
        raise _Over(request.exit_of(state, self._around.clock.now(), self._circumstances()))

    def _see_start(self, there: Any | None) -> Any:
        """Its state. Raises `_Over` if there is no such container."""
        if there is None:
            message = "The container was removed before its end was seen; its exit is unknown."
            began = self.sighting.started_at
            raise _Over(Exit(self._asked or ExitKind.LOST, self._around.clock.now(), began, message=message))
        if self._launch is None:
            self._limits = there["Config"]["Labels"]
        if self.sighting.started_at is None and there["State"]["Status"] != request.CREATED:
            started_at = request.instant(there["State"]["StartedAt"])
            if started_at is not None:
                self.begun.set()
                self.sighting = Sighting(self.name, self._around.node, started_at + self._around.shift)
                self._around.tell(self.sighting)
        return there["State"]

    async def _follow(self) -> None:
        while not self._output.is_full():
            with contextlib.suppress(EngineUnreachable):
                await self._copy(follow=True)
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _copy(self, *, follow: bool) -> None:
        """Bring the file up to date; a full disk, or an engine that keeps none, loses output, and never the exit."""
        try:
            self._output.again()
            if self._output.is_full():
                return
            told = self._engine.follow(self.container) if follow else self._engine.logs(self.container)
            async with contextlib.aclosing(told) as pieces:
                async for data in pieces:
                    self._output.take(data)
                    if self._output.is_full():
                        return
        except (OSError, Refused) as error:
            _log.warning("output of %s cannot be kept: %s", self.name, error)

    async def _end_when_asked(self) -> None:
        """Time out, or wait to be asked; then SIGTERM, and SIGKILL when the grace period is over."""
        kind = await self._asked_or_late()
        try:
            await asyncio.to_thread(_note, self._mark, kind)
        except OSError as error:
            _log.warning("why %s is stopped cannot be noted: %s", self.name, error)
        await self._signal("SIGTERM")
        while (wait_s := (self._kill_at_s or 0.0) - self._around.clock.monotonic_s()) > 0:
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._hurry.wait()
        await self._signal("SIGKILL")

    async def _asked_or_late(self) -> ExitKind:
        timeout_s, grace_s = self._bounds()
        left_s = None
        if timeout_s is not None and self.sighting.started_at is not None:
            left_s = max(0.0, timeout_s - (self._around.clock.now() - self.sighting.started_at).total_seconds())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                while self._kill_at_s is None:
                    await self._hurry.wait()
        if self._kill_at_s is None:
            self._ask(ExitKind.TIMEOUT, grace_s)
        return ExitKind.TIMEOUT if self._asked is ExitKind.TIMEOUT else ExitKind.STOPPED

    def _bounds(self) -> tuple[float | None, float]:
        """Time-out and grace period: of the launch, or as the container's labels say."""
        if self._launch is not None:
            return self._launch.timeout_s, self._launch.grace_s
        timeout = self._limits.get(request.TIMEOUT)
        return float(timeout) if timeout else None, float(self._limits.get(request.GRACE) or 0.0)

    async def _signal(self, signal: str) -> None:
        while True:
            try:
                await self._engine.kill(self.container, signal)
            except EngineUnreachable:
                await asyncio.sleep(_LOOK_AGAIN_S)
            except Refused:
                return  # it has ended
            else:
                return

    async def _end_if_stopped(self) -> None:
        """Once stopped before the start, it never runs. A start without an answer may have happened: then go on."""
        if self._asked is None:
            return
        if self._may_run:
            try:
                await self._engine.remove(self.container)
            except Refused as refused:
                if refused.status != NOT_FOUND:
                    return
        raise _Over(Exit(self._asked, self._around.clock.now(), message=NEVER_STARTED))

    def _fail(self, sentence: str) -> NoReturn:
        raise _Over(Exit(ExitKind.NOT_STARTED, self._around.clock.now(), message=sentence))

    def _see(self, ending: Exit) -> None:
        self.begun.set()
        self.sighting = Sighting(self.name, self._around.node, ending.started_at, ending)
        self._around.tell(self.sighting)

    def _circumstances(self) -> Circumstances:
        chunk: LogChunk | None = self._around.logs.look(self.name, 0, _FIRST_BYTES, ended=True)
        command = self._launch.argv[0] if self._launch is not None else self._limits.get(request.COMMAND, "")
        first_output = chunk.data if chunk is not None else b""
        return Circumstances(self._asked, self._around.shift, command, first_output, self._bounds()[0])


def _note(mark: Path, kind: ExitKind) -> None:
    """Published by rename: there is a whole note, or none."""
    fresh = mark.with_name(f".{mark.name}")
    fresh.write_text(kind)
    fresh.rename(mark)


def _noted(mark: Path) -> ExitKind | None:
    try:
        return ExitKind(mark.read_text())
    except (OSError, ValueError):  # none, or none that we wrote
        return None

"""The embedded executor: attempts as processes of this host, run by a supervisor that outlives the service.

Never spawns a job itself and never holds a pipe to one: the supervisor does, and the output goes to files. Killing the
service at any moment kills no job. Invariants: `start` returns when the attempts are in the supervisor's journal; what
is known here is what the supervisor said last; when its connection breaks, another one hears everything anew.

>>> ProcessExecutor(name="local", data_dir=Path("/var/lib/clickclock"), node="host-1", slots=16,
...     log_bytes_max=10_000_000, base_environment={"PATH": "/usr/bin"}, clock=SystemClock()).name
'local'
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from clickclock.foundation.clock import Clock, SystemClock
from clickclock.foundation.environment import environment_to_start
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.scheduler import supervisor
from clickclock.scheduler.executors import Capabilities, Capacity, Launch, LogChunk, Sighting
from clickclock.scheduler.executors.accounts import accounts_of, why_not
from clickclock.scheduler.executors.log_file import LogFiles
from clickclock.scheduler.executors.start_request import render
from clickclock.scheduler.jobs.trigger import Exit, ExitKind
from clickclock.scheduler.supervisor.link import PROTOCOL, line_of, reach

_CONNECT_TRIES = 8
_PAUSE_S_MIN, _PAUSE_S_MAX = 0.01, 5.0
_FORGET_AFTER_S = 1.0
_ANSWER_S_MAX = 30.0
"""A supervisor that does not answer for so long (a hung disk) counts as unreachable."""


class ProcessExecutor:
    """Runs attempts as processes on this host."""

    def __init__(
        self,
        *,
        name: str,
        data_dir: Path,
        node: str,
        slots: int,
        log_bytes_max: int,
        base_environment: Mapping[str, str],
        clock: Clock,
        umask: int | None = None,
    ) -> None:
        """`base_environment` and `umask` are what every job gets; `log_bytes_max` bounds the output kept of one."""
        self.name = name
        self._node = node
        self._slots = slots
        self._folder = data_dir.absolute() / "supervisor"
        self._logs = LogFiles(data_dir.absolute() / "logs", log_bytes_max)
        self._greeting: dict[str, Any] = {"do": "hello", "environment": dict(base_environment), "umask": umask}
        self._greeting["log_bytes_max"] = log_bytes_max
        self._clock = clock
        self._on_change: Callable[[], None] = lambda: None
        self._known: dict[str, Sighting] = {}
        self._news: dict[str, None] = {}
        self.capabilities = Capabilities(refuses_user=why_not)
        """`holds_s` is how far ahead of its moment the supervisor holds an attempt, as it said when we met."""
        self._changes_users = False
        """Whether the supervisor can; one of an earlier release would run the job as itself."""
        self._line: _Line | None = None
        self._trouble: str | None = "The executor is not open."
        self._keeper: asyncio.Task[None] | None = None
        self._forgotten: set[str] = set()
        self._patient: set[str] = set()
        self._starting: set[str] = set()  # not yet journalled, as far as we know; it may already have written
        self._reminder: asyncio.Task[None] | None = None

    async def open(self, on_change: Callable[[], None]) -> None:
        """Connect to the supervisor, starting it if there is none. Raises `OSError` without a data folder.

        If that fails, `capacity` says why, and it is tried again until it works.
        """
        self._on_change = on_change
        await self._logs.open()
        self._folder.mkdir(exist_ok=True, mode=0o700)
        await self._try_connect()
        self._keeper = asyncio.create_task(self._keep_connected(), name=f"{self.name}: keep the supervisor connected")

    async def start(self, launches: Sequence[Launch]) -> None:
        """Have attempts started; returns when they are journalled. See `Executor.start`."""
        if launches:
            accounts, refused = await accounts_of(launches, changes_users=self._changes_users)
            forgotten = set(self._forgotten)
            shift = self._shift()
            started = [render(each, shift, accounts.get(each.name)) for each in launches if each.name not in refused]
            self._starting |= (names := {each.name for each in launches})
            try:
                await self._ask({"do": "start", "launches": started, "forget": sorted(forgotten)})
            finally:
                self._starting -= names
            self._forgotten -= forgotten
            self._patient |= {launch.name for launch in launches if launch.patient}
            for launch in launches:
                self._known.setdefault(launch.name, Sighting(launch.name, self._node))
            self._refuse(refused)

    def _refuse(self, sentences: Mapping[str, str]) -> None:
        """These end before they begin. If we die here, they are handed over again, and end in the same way."""
        for name, sentence in sentences.items():
            ending = Exit(ExitKind.NOT_STARTED, self._clock.now(), message=sentence)
            self._known[name] = Sighting(name, self._node, None, ending)
            self._news[name] = None
        if sentences:
            self._on_change()

    async def observe(self) -> Sequence[Sighting]:
        """What changed since the last call."""
        news, self._news = self._news, {}
        return [self._known[name] for name in news if name in self._known]

    @property
    def is_urgent(self) -> bool:
        """Whether some of the news is not of attempts that nobody waits for, and that run or have ended well."""
        return any(name not in self._patient or _is_trouble(self._known.get(name)) for name in self._news)

    async def inventory(self) -> Mapping[str, Sighting]:
        """Everything known; raises `ExecutorUnreachable` rather than tell what may be out of date."""
        if self._line is None:
            raise ExecutorUnreachable(self._trouble)
        return dict(self._known)

    async def stop(self, names: Sequence[str], grace_s: float) -> None:
        """SIGTERM to all that each attempt started, SIGKILL after `grace_s`; what has ended is left as it is."""
        if names:
            await self._ask({"do": "stop", "names": list(names), "grace_s": grace_s})

    async def forget(self, names: Sequence[str]) -> None:
        """Drop exits that are recorded for good. From then on the name is free: starting it again would run it."""
        # The supervisor hears of it with the next start, or a moment later: it costs neither a message of its own.
        for name in names:
            if name in self._known and self._known[name].exit is not None:
                del self._known[name]
                self._patient.discard(name)
                self._forgotten.add(name)
        if self._forgotten and (self._reminder is None or self._reminder.done()):
            self._reminder = asyncio.create_task(self._say_forgotten(_FORGET_AFTER_S))

    async def _say_forgotten(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        names = set(self._forgotten)
        with contextlib.suppress(ExecutorUnreachable):  # it is said again with the next start
            if names:
                await self._ask({"do": "forget", "names": sorted(names)})
                self._forgotten -= names

    async def read_log(self, name: str, offset: int, limit: int) -> LogChunk | None:
        """Output from the attempt's file; works without the supervisor, which then cannot tell that it is complete."""
        sighting = self._known.get(name)
        ended = sighting.exit is not None if sighting else self._line is not None and name not in self._starting
        return await self._logs.read(name, offset, limit, ended=ended)

    async def remove_logs(self, names: Sequence[str]) -> None:
        """Delete output files, and folders that this leaves empty."""
        await self._logs.remove(names)

    async def capacity(self) -> Capacity:
        """The configured slots, while the supervisor answers."""
        return Capacity(self._slots, self._line is not None, (self._node,), self._trouble)

    async def close(self) -> None:
        """Let go; attempts run on. The supervisor leaves by itself when the last of them has ended."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._reminder is not None:
            self._reminder.cancel()
            await self._say_forgotten(0.0)
        if self._line is not None:
            await self._line.hang_up()
        self._line, self._trouble = None, "The executor is closed."

    async def _ask(self, request: dict[str, Any]) -> None:
        if self._line is None:
            raise ExecutorUnreachable(self._trouble)
        await self._line.ask(request)

    async def _keep_connected(self) -> None:
        pause_s = _PAUSE_S_MIN
        while True:
            if self._line is not None:
                await self._line.broken.wait()
                replaced, self._line = self._line.replaced, None
                self._trouble = _Broken.__doc__
                if replaced:
                    self._trouble = f"Another service took over the supervisor in {self._folder}; give each its own."
                    return
                pause_s = _PAUSE_S_MIN
            await self._try_connect()
            if self._line is None:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    async def _try_connect(self) -> None:
        try:
            await self._connect()
        except ExecutorUnreachable as error:
            self._trouble = str(error)

    async def _connect(self) -> None:
        """Have a connection. A supervisor that is just leaving may refuse or break it: then another is started."""
        pause_s = 0.0
        for _ in range(_CONNECT_TRIES):
            try:
                self._line = await self._greet(self._dial())
            except (FileNotFoundError, ConnectionRefusedError, _Broken):
                await asyncio.sleep(pause_s)
                pause_s = 2 * pause_s or _PAUSE_S_MIN
                await self._launch_supervisor()
            except OSError as error:
                raise ExecutorUnreachable(f"The process supervisor cannot be reached: {error.strerror}.") from error
            else:
                self._trouble = None
                return
        raise ExecutorUnreachable(f"The process supervisor does not start; see {self._folder / 'errors'}.")

    def _dial(self) -> socket.socket:
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        channel.setblocking(False)
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        try:
            channel.connect(reach(folder))
        except OSError:
            channel.close()
            raise
        finally:
            os.close(folder)
        return channel

    async def _greet(self, channel: socket.socket) -> "_Line":
        line = _Line(self._hear)
        await asyncio.get_running_loop().create_unix_connection(lambda: line, sock=channel)
        try:
            await line.ask(self._greeting)
        except BaseException:
            await line.hang_up()
            raise
        return line

    async def _launch_supervisor(self) -> None:
        """Run the supervisor's starter, which ends when one listens."""
        program = Path(supervisor.__file__).with_name("__main__.py")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            with os.fdopen(os.open(self._folder / "errors", flags, 0o600), "ab") as errors:
                starter = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", "-X", "utf8", str(program), str(self._folder)),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                    env=environment_to_start(),
                )
        except OSError as error:
            raise ExecutorUnreachable(f"The process supervisor cannot be started: {error.strerror}.") from error
        await starter.wait()

    def _hear(self, message: dict[str, Any]) -> None:
        told = message.get("seen", ())
        if "hello" in message:
            told = message["attempts"]
            self.capabilities = replace(self.capabilities, holds_s=message.get("holds_s", 0.0))
            self._changes_users = message.get("changes_users", False)
            self._miss({attempt["name"] for attempt in told})
        shift = self._shift()
        for attempt in told:
            self._learn(attempt, shift)
        if self._news:
            self._on_change()

    def _miss(self, told: set[str]) -> None:
        """What was known and is not told of any more is lost: the journal was removed."""
        for name, sighting in self._known.items():
            if name not in told and sighting.exit is None:
                message = "The process supervisor has no record of the attempt: its journal was removed."
                ending = Exit(ExitKind.LOST, self._clock.now(), sighting.started_at, message=message)
                self._known[name] = Sighting(name, self._node, sighting.started_at, ending)
                self._news[name] = None

    def _shift(self) -> timedelta:
        """How far the service's clock is ahead of this machine's, by which the supervisor stamps."""
        if isinstance(self._clock, SystemClock):
            return self._clock.offset
        while True:
            before, there, after = SystemClock().now(), self._clock.now(), SystemClock().now()
            if before == after:  # all three within one millisecond: else the difference may be one too many
                return there - before

    def _learn(self, attempt: dict[str, Any], shift: timedelta) -> None:
        """Take in what the supervisor tells of one attempt; what is told again is no news."""
        name, at, how = attempt["name"], attempt["at"], attempt["exit"]
        if name in self._forgotten:
            return
        known = self._known.get(name, Sighting(name, self._node))
        started_at = known.started_at
        if started_at is None and at is not None:
            started_at = datetime.fromtimestamp(at, UTC) + shift
        ending = known.exit
        if ending is None and how is not None:
            fields = {key: value for key, value in how.items() if key not in {"kind", "at"}}
            finished_at = datetime.fromtimestamp(how["at"], UTC) + shift
            if started_at is not None:
                finished_at = max(finished_at, started_at)  # even if the wall clock was set back in between
            ending = Exit(ExitKind(how["kind"]), finished_at, started_at, **fields)
        self._known[name] = Sighting(name, self._node, started_at, ending)
        if self._known[name] != known:
            self._news[name] = None


def _is_trouble(sighting: Sighting | None) -> bool:
    return sighting is not None and sighting.exit is not None and sighting.exit.code != 0


class _Broken(ExecutorUnreachable):
    """The connection to the process supervisor broke."""


class _Line(asyncio.Protocol):
    """One connection to the supervisor: requests and their answers, and what it tells unasked."""

    def __init__(self, hear: Callable[[dict[str, Any]], None]) -> None:
        self._hear = hear
        self._rest = b""
        self._answers: dict[int, asyncio.Future[None]] = {}
        self._last_id = 0
        self._transport: asyncio.Transport | None = None
        self._fault: ExecutorUnreachable = _Broken()
        self.broken = asyncio.Event()
        self.replaced = False

    async def ask(self, request: dict[str, Any]) -> None:
        """Send a request and wait for its answer; raises `ExecutorUnreachable` when there will be none."""
        if self._transport is None or self.broken.is_set():
            raise self._fault
        self._last_id += 1
        loop = asyncio.get_running_loop()
        answer = self._answers[self._last_id] = loop.create_future()
        self._transport.write(line_of({**request, "id": self._last_id}))
        too_late = loop.call_later(_ANSWER_S_MAX, self._give_up, "The process supervisor does not answer.")
        try:
            await answer
        finally:
            too_late.cancel()

    async def hang_up(self) -> None:
        """Close the connection and wait until it is."""
        if self._transport is not None:
            self._transport.close()
            await self.broken.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def _give_up(self, fault: str) -> None:
        self._fault = ExecutorUnreachable(fault)
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line.decode())
            if message.get("hello", PROTOCOL) != PROTOCOL:
                self._give_up("The process supervisor is of another version; it leaves when its jobs have ended.")
                return
            if "done" in message:
                self._answered(message)
            elif "replaced" in message:
                self.replaced = True
            else:
                self._hear(message)

    def _answered(self, message: dict[str, Any]) -> None:
        answer = self._answers.pop(message["done"], None)
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(ExecutorUnreachable(message["error"]))
        else:
            answer.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self._fault)
        self._answers.clear()
        self.broken.set()

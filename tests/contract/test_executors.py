"""One contract, every executor: what the dispatcher and the watcher rely on, whatever runs the attempts.

A new member joins by one parameter of the fixture `member`; where places differ, the member says what holds there.
Nothing here waits for seconds to pass: it waits for sightings, or for output; only a fault reaches the deadline.
"""

import asyncio
import contextlib
import os
import select
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.ids import new_id
from clickclock.scheduler.executors import Executor, Launch, LogChunk, Sighting
from clickclock.scheduler.executors.container import ContainerExecutor
from clickclock.scheduler.executors.kubernetes import KubernetesExecutor
from clickclock.scheduler.executors.process import ProcessExecutor
from clickclock.scheduler.jobs.trigger import Exit, ExitKind
from clickclock.scheduler.supervisor.attempt_log import log_path
from tests.container_engine import IMAGE, OPTIONS, ContainerEngine
from tests.contract.kubernetes_double import KubernetesDouble
from tests.contract.kubernetes_kubelet import API_SERVER, makes_namespaces

DEADLINE_S = 90.0
LOG_BYTES_MAX = 100_000
SLACK_BYTES = 10 * 4096
"""Of the disk's blocks some are not full, and some say where the others are."""
KUBERNETES_IMAGE = "example.com/tools:1"
BASE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "CLICKCLOCK_TEST_BASE": "base"}


class ProcessMember:
    """How the contract meets the process executor."""

    image: str | None = None
    cpu_probe: tuple[str, ...] = ("nproc",)
    own_variables = frozenset({"CLICKCLOCK_ATTEMPT_NAME"})
    many = 200
    ordered = True
    """Whether output and errors go into one pipe."""
    measures = True
    """Whether processor time and memory are known."""
    makes_folders = False
    """Whether a working directory that is not there is made."""
    is_process_1 = False
    """Whether its first process is that of its own container, which ignores each signal from inside that it does not
    handle."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def build(self) -> Executor:
        """A new executor for the same place, as after a restart of the service."""
        return ProcessExecutor(
            name="local",
            data_dir=self._folder,
            node="host-1",
            slots=4,
            log_bytes_max=LOG_BYTES_MAX,
            base_environment=BASE,
            clock=SystemClock(),
        )

    def log(self, name: str) -> Path:
        """The file that keeps an attempt's output."""
        return Path(log_path(str(self._folder / "logs"), name))

    def wait_until_gone(self, pid: int) -> None:
        """Wait until a process that a job named is no more."""
        try:
            watch = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        gone = poll.poll(DEADLINE_S * 1000)
        os.close(watch)
        assert gone, f"process {pid} is still there"


class ContainerMember(ProcessMember):
    """How the contract meets the container executor: a real engine, Podman's."""

    image = IMAGE
    cpu_probe = (
        "sh",
        "-c",
        "cd /sys/fs/cgroup; cat cpu.max cpu/cpu.cfs_quota_us 2>/dev/null | awk '{print ($1 <= 50000)}'",
    )
    own_variables = frozenset({"HOME", "HOSTNAME", "TERM", "container"})
    many = 6
    ordered = False
    measures = False
    makes_folders = True

    def __init__(self, folder: Path, engine: ContainerEngine) -> None:
        super().__init__(folder)
        self._engine = engine

    def build(self) -> Executor:
        return ContainerExecutor(
            name="boxes",
            data_dir=self._folder,
            node="host-1",
            log_bytes_max=LOG_BYTES_MAX,
            clock=SystemClock(),
            options={**OPTIONS, "engine": self._engine.address, "capacity": 4, "environment": BASE},
        )

    def wait_until_gone(self, pid: int) -> None:
        """What a container names as its processes are gone with it: they are those of its own namespace."""
        assert self._engine.run("ps", "--quiet", "--filter", "status=running") == ""


class KubernetesMember(ProcessMember):
    """How the contract meets the executor of Kubernetes: a double of a cluster, whose pods are processes."""

    image = KUBERNETES_IMAGE
    own_variables = frozenset({"HOSTNAME", *API_SERVER})
    many = 20
    ordered = False
    measures = False
    makes_folders = True

    def __init__(self, folder: Path, double: KubernetesDouble, **options: Any) -> None:
        super().__init__(folder)
        self._options = {"kubeconfig": str(double.kubeconfig), **options}
        self._double = double
        self.is_process_1 = makes_namespaces()

    def build(self) -> Executor:
        return KubernetesExecutor(
            name="cluster",
            data_dir=self._folder,
            node="host-1",
            log_bytes_max=LOG_BYTES_MAX,
            clock=SystemClock(),
            options=self._options,
        )

    def wait_until_gone(self, pid: int) -> None:
        """The number is one of the pod's own namespace, of which nothing is left when its first process is gone."""
        if self.is_process_1:
            assert not self._double.call(self._double.kubelet.runs_any)
        else:
            super().wait_until_gone(pid)


class RealKubernetesMember(KubernetesMember):
    """The same on a real cluster, whose kubeconfig `REAL_KUBECONFIG` names: see CONTRIBUTING.md."""

    image = os.environ.get("REAL_KUBERNETES_IMAGE", "docker.io/library/busybox:stable")
    own_variables = frozenset({"HOSTNAME", "HOME", *API_SERVER})
    cpu_probe = ContainerMember.cpu_probe
    is_process_1 = True

    def __init__(self, folder: Path, kubeconfig: str, **options: Any) -> None:
        ProcessMember.__init__(self, folder)
        namespace = os.environ.get("REAL_KUBERNETES_NAMESPACE", "clickclock")
        self._options = {"kubeconfig": kubeconfig, "namespace": namespace, **options}

    def wait_until_gone(self, pid: int) -> None:
        """Its processes are another machine's, and all of a pod's end with it."""


class Place:
    """An open executor and all that was observed of it."""

    def __init__(self, member: ProcessMember) -> None:
        self.member = member
        self.executor = member.build()
        self.seen: dict[str, Sighting] = {}
        self._changed = asyncio.Event()

    async def open(self) -> None:
        await self.executor.open(self._changed.set)
        self._changed.set()

    async def reopen(self) -> None:
        """What a restart of the service does; nothing that was seen is remembered."""
        await self.executor.close()
        self.executor = self.member.build()
        self.seen.clear()
        await self.open()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Observe until the condition holds."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                self._changed.clear()
                self.seen.update({sighting.name: sighting for sighting in await self.executor.observe()})
                if condition():
                    return
                await self._changed.wait()

    async def start(self, *argv: str, name: str | None = None, **fields: object) -> str:
        """Start one attempt; its name."""
        name = name or f"{new_id()}-1"
        launch = Launch(name, argv, **{"image": self.member.image, **fields})  # type: ignore[arg-type] # as given
        await self.executor.start([launch])
        return name

    async def shell(self, script: str, name: str | None = None, **fields: object) -> str:
        """Start a shell script; its name."""
        return await self.start("/bin/sh", "-c", script, name=name, **fields)

    async def running(self, name: str) -> Sighting:
        """The sighting of an attempt that has started."""
        await self.until(lambda: name in self.seen and self.seen[name].started_at is not None)
        return self.seen[name]

    async def end(self, name: str) -> Exit:
        """How an attempt ended."""
        await self.until(lambda: name in self.seen and self.seen[name].exit is not None)
        ending = self.seen[name].exit
        assert ending is not None
        return ending

    async def output(self, name: str) -> bytes:
        """All output of an attempt that has ended."""
        chunk = await self.executor.read_log(name, 0, 10 * LOG_BYTES_MAX)
        assert chunk is not None
        assert chunk.complete
        return chunk.data

    async def kept(self, name: str) -> list[LogChunk]:
        """What is kept of the output of an attempt that has ended, in pieces that nothing is missing of."""
        pieces: list[LogChunk] = []
        while not pieces or not pieces[-1].complete:
            offset = pieces[-1].next_offset if pieces else 0
            chunk = await self.executor.read_log(name, offset, 10 * LOG_BYTES_MAX)
            assert chunk is not None
            pieces.append(chunk)
        return pieces

    def disk_bytes(self, name: str) -> int:
        """What the output takes on this host."""
        return self.member.log(name).stat().st_blocks * 512

    async def grown(self, name: str, size: int) -> None:
        """Wait until so much was written."""
        await self._until(lambda: self.member.log(name).exists() and self.member.log(name).stat().st_size >= size)

    async def until_disk(self, name: str, size: int) -> None:
        """Wait until it takes no more than that."""
        await self._until(lambda: self.disk_bytes(name) <= size)

    async def _until(self, holds: Callable[[], bool]) -> None:
        never = asyncio.Event()
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(never.wait(), 0.005)

    async def printed(self, name: str, text: bytes) -> bytes:
        """Output so far, once it holds `text`."""
        never = asyncio.Event()
        async with asyncio.timeout(DEADLINE_S):
            while True:
                chunk = await self.executor.read_log(name, 0, 10 * LOG_BYTES_MAX)
                if chunk is not None and text in chunk.data:
                    return chunk.data
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(never.wait(), 0.005)

    async def leave(self) -> None:
        """End all attempts and close."""
        names = list(await self.executor.inventory())
        await self.executor.stop(names, 0.0)
        await self.until(lambda: all(name in self.seen and self.seen[name].exit for name in names))
        await self.executor.forget(names)
        await self.executor.close()


@pytest.fixture(
    params=["process", "kubernetes", pytest.param("container", marks=pytest.mark.needs("podman", "runc", "busybox"))]
)
def member(request: pytest.FixtureRequest, tmp_path: Path) -> ProcessMember:
    """Each executor in turn."""
    if request.param == "container":
        return ContainerMember(tmp_path / "data", request.getfixturevalue("engine_for_all"))
    if request.param == "kubernetes" and (real := os.environ.get("REAL_KUBECONFIG")):
        return RealKubernetesMember(tmp_path / "data", real, capacity=4, environment=BASE)
    if request.param == "kubernetes":
        double = request.getfixturevalue("kubernetes")
        return KubernetesMember(tmp_path / "data", double, capacity=4, environment=BASE)
    return ProcessMember(tmp_path / "data")


@pytest.fixture
def kubernetes(tmp_path: Path) -> Iterator[KubernetesDouble]:
    """A double of a cluster."""
    with KubernetesDouble(tmp_path / "cluster") as double:
        yield double


@pytest.fixture
async def place(member: ProcessMember) -> AsyncIterator[Place]:
    """An open, empty executor."""
    place = Place(member)
    await place.open()
    yield place
    await place.leave()


async def test_an_attempt_is_seen_running_and_then_ended_with_its_code(place: Place) -> None:
    before = SystemClock().now()
    name = await place.shell("exit 3")
    ending = await place.end(name)
    assert (ending.kind, ending.code, ending.signal) == (ExitKind.CODE, 3, None)
    assert ending.started_at is not None
    assert before <= ending.started_at <= ending.finished_at <= SystemClock().now()
    assert (ending.node or place.seen[name].node) in (await place.executor.capacity()).nodes


async def test_an_attempt_that_a_signal_ends_says_which(place: Place) -> None:
    if place.member.is_process_1:
        assert (await place.end(await place.shell("kill -USR1 $$; exit 3"))).code == 3
        return
    ending = await place.end(await place.shell("kill -USR1 $$; sleep 60"))
    assert (ending.kind, ending.code, ending.signal) == (ExitKind.SIGNAL, None, signal.SIGUSR1)


async def test_a_command_that_is_not_found_is_observed_as_not_started(place: Place) -> None:
    ending = await place.end(await place.start("no-such-command-anywhere"))
    assert ending.kind is ExitKind.NOT_STARTED
    assert "no-such-command-anywhere" in (ending.message or "")


async def test_a_file_that_is_not_executable_is_observed_as_not_started(place: Place) -> None:
    ending = await place.end(await place.start("/etc/passwd"))
    assert ending.kind is ExitKind.NOT_STARTED
    assert "not executable" in (ending.message or "")


async def test_a_working_directory_that_is_not_there_is_observed_as_not_started(place: Place) -> None:
    ending = await place.end(await place.start("true", working_directory="/no/such/folder"))
    if place.member.makes_folders:
        assert ending.code == 0
        return
    assert ending.kind is ExitKind.NOT_STARTED
    assert "/no/such/folder" in (ending.message or "")


async def test_an_argument_that_no_process_can_take_is_observed_as_not_started(place: Place) -> None:
    ending = await place.end(await place.start("echo", "a\0b"))
    assert ending.kind is ExitKind.NOT_STARTED


async def test_started_twice_it_runs_once(place: Place) -> None:
    name = f"{new_id()}-1"
    launch = Launch(name, ("/bin/sh", "-c", "echo ran"), image=place.member.image)
    await place.executor.start([launch, launch])
    await place.executor.start([launch])
    await place.end(name)
    await place.executor.start([launch])
    assert await place.output(name) == b"ran\n"


async def test_started_again_after_a_restart_of_the_service_it_runs_once(place: Place) -> None:
    name = await place.shell("echo ran; sleep 60")
    await place.printed(name, b"ran")
    await place.reopen()
    await place.shell("echo ran; sleep 60", name=name)
    await place.executor.stop([name], 0.0)
    await place.end(name)
    # A pod that is ended without grace may be gone before its output was read to the end, and the log then says so.
    assert (await place.output(name)).splitlines().count(b"ran") == 1


async def test_none_starts_before_its_moment(place: Place) -> None:
    moment = SystemClock().now() + timedelta(milliseconds=50)
    name = await place.start("/bin/true", not_before=moment)
    assert (await place.end(name)).kind is ExitKind.CODE
    started_at = place.seen[name].started_at
    assert started_at is not None
    assert started_at >= moment


async def test_who_may_be_handed_over_long_before_its_moment_is_held_for_it(place: Place) -> None:
    moment = SystemClock().now() + timedelta(seconds=0.9 * place.executor.capabilities.holds_s)
    names = [await place.start("/bin/true", not_before=moment - timedelta(milliseconds=30 * n)) for n in range(3)]
    for number, name in enumerate(names):
        assert (await place.end(name)).kind is ExitKind.CODE
        started_at = place.seen[name].started_at
        assert started_at is not None
        assert started_at >= moment - timedelta(milliseconds=30 * number)


async def test_who_is_stopped_before_its_moment_never_runs(place: Place, tmp_path: Path) -> None:
    ahead = timedelta(seconds=max(0.09, 0.9 * place.executor.capabilities.holds_s))
    name = await place.start("/bin/touch", str(tmp_path / "ran"), not_before=SystemClock().now() + ahead)
    await place.executor.stop([name], 1.0)
    assert (await place.end(name)).kind is ExitKind.STOPPED
    later = await place.start("/bin/true", not_before=SystemClock().now() + ahead)
    await place.end(later)
    assert not (tmp_path / "ran").exists()


async def test_many_attempts_of_one_call_all_run(place: Place) -> None:
    names = [f"{new_id()}-1" for _ in range(place.member.many)]
    await place.executor.start([Launch(name, ("true",), image=place.member.image) for name in names])
    for name in names:
        assert (await place.end(name)).code == 0


async def test_output_and_errors_are_kept_in_order(place: Place) -> None:
    name = await place.shell("echo one; echo two >&2; echo three")
    await place.end(name)
    lines = (await place.output(name)).splitlines()
    assert lines == [b"one", b"two", b"three"] if place.member.ordered else sorted(lines) == [b"one", b"three", b"two"]


MANY_LINES = f"seq 1000001 1006000 | sed s/$/{'.' * 92}/"
MANY_BYTES = b"".join(b"%d%s\n" % (line, b"." * 92) for line in range(1_000_001, 1_006_001))


async def test_of_an_output_past_the_limit_the_beginning_and_the_end_are_kept(place: Place) -> None:
    name = await place.shell(f"{MANY_LINES}; echo this went wrong; exit 3")
    assert (await place.end(name)).code == 3
    written = MANY_BYTES + b"this went wrong\n"
    head, tail = await place.kept(name)
    assert (head.left_out, head.is_torn, head.complete) == (0, True, False)
    assert head.data == written[: len(head.data)]
    assert len(head.data) >= LOG_BYTES_MAX // 3
    assert (tail.next_offset, tail.is_torn, tail.complete) == (len(written), False, True)
    assert tail.data == written[-len(tail.data) :]
    assert len(tail.data) >= LOG_BYTES_MAX // 3
    assert head.next_offset + tail.left_out + len(tail.data) == len(written)
    for offset in range(0, len(written), 9973):
        chunk = await place.executor.read_log(name, offset, 100)
        assert chunk is not None
        assert chunk.data == written[offset + chunk.left_out : chunk.next_offset]
        assert (chunk.left_out == 0) is not (head.next_offset <= offset < len(written) - len(tail.data))
    assert place.disk_bytes(name) <= LOG_BYTES_MAX + SLACK_BYTES


async def test_a_job_that_goes_on_is_held_to_the_limit_while_it_runs(place: Place) -> None:
    name = await place.shell(f"{MANY_LINES}; sleep 1000")
    await place.grown(name, len(MANY_BYTES))
    await place.until_disk(name, LOG_BYTES_MAX + SLACK_BYTES)
    assert (await place.executor.inventory())[name].exit is None
    chunk = await place.executor.read_log(name, len(MANY_BYTES) - 100, 1000)
    assert chunk is not None
    assert (chunk.data, chunk.complete) == (MANY_BYTES[-100:], False)
    await place.executor.stop([name], 0.0)
    await place.end(name)
    assert place.disk_bytes(name) <= LOG_BYTES_MAX + SLACK_BYTES


async def test_whoever_reads_along_gets_true_bytes_at_true_offsets(place: Place) -> None:
    name = await place.shell(MANY_LINES)
    offset = 0
    async with asyncio.timeout(DEADLINE_S):
        while offset < len(MANY_BYTES):
            chunk = await place.executor.read_log(name, offset, 65536)
            if chunk is not None:
                assert chunk.data == MANY_BYTES[offset + chunk.left_out : chunk.next_offset]
                offset = chunk.next_offset
    await place.end(name)


async def test_an_attempt_has_no_input(place: Place) -> None:
    assert (await place.end(await place.shell("cat"))).code == 0


async def test_stop_asks_first(place: Place) -> None:
    name = await place.shell("trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    await place.printed(name, b"ready")
    await place.executor.stop([name], 10.0)
    ending = await place.end(name)
    assert (ending.kind, ending.code) == (ExitKind.STOPPED, 7)
    assert (await place.output(name)).endswith(b"asked\n")


async def test_who_does_not_listen_is_killed_after_the_grace_period(place: Place) -> None:
    name = await place.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
    await place.printed(name, b"ready")
    await place.executor.stop([name], 0.1)
    await place.executor.stop([name], 0.1)
    ending = await place.end(name)
    assert (ending.kind, ending.signal) == (ExitKind.STOPPED, signal.SIGKILL)


async def test_many_attempts_stopped_at_once_all_end_whether_they_had_begun_or_not(place: Place) -> None:
    names = [f"{new_id()}-1" for _ in range(place.member.many)]
    await place.executor.start([Launch(name, ("sleep", "60"), image=place.member.image) for name in names])
    await place.executor.stop(names, 5.0)
    for name in names:
        assert (await place.end(name)).kind is ExitKind.STOPPED


async def test_stop_ends_all_that_the_attempt_started(place: Place) -> None:
    name = await place.shell("(trap '' TERM; sh -c 'echo child $$ ready; exec sleep 60') & wait")
    child = int((await place.printed(name, b"ready\n")).split()[1])
    await place.executor.stop([name], 0.5)
    assert (await place.end(name)).kind is ExitKind.STOPPED
    await asyncio.to_thread(place.member.wait_until_gone, child)


async def test_what_an_ended_command_leaves_behind_ends_with_it(place: Place) -> None:
    name = await place.shell("sleep 60 & echo child $!")
    ending = await place.end(name)
    assert (ending.kind, ending.code) == (ExitKind.CODE, 0)
    child = int((await place.output(name)).split()[1])
    await asyncio.to_thread(place.member.wait_until_gone, child)


async def test_stopping_what_has_ended_or_is_unknown_changes_nothing(place: Place) -> None:
    name = await place.shell("exit 4")
    await place.end(name)
    await place.executor.stop([name, f"{new_id()}-1"], 0.0)
    assert (await place.executor.inventory())[name].exit == place.seen[name].exit


async def test_an_attempt_that_runs_too_long_times_out(place: Place) -> None:
    name = await place.start("sleep", "60", timeout_s=0.1, grace_s=1.0)
    ending = await place.end(name)
    assert ending.kind is ExitKind.TIMEOUT
    assert ending.started_at is not None
    assert (ending.finished_at - ending.started_at).total_seconds() >= 0.1


async def test_a_time_out_has_a_grace_period_too(place: Place) -> None:
    name = await place.shell("trap '' TERM; while :; do sleep 0.01; done", timeout_s=0.2, grace_s=0.1)
    ending = await place.end(name)
    assert (ending.kind, ending.signal) == (ExitKind.TIMEOUT, signal.SIGKILL)


async def test_a_job_gets_the_base_environment_and_its_own_and_nothing_else(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLICKCLOCK_TEST_SECRET", "of the service")
    await place.reopen()
    name = await place.start("env", environment={"CLICKCLOCK_TEST_OWN": "größe\n2", "PATH": "/usr/bin:/bin"})
    await place.end(name)
    lines = (await place.output(name)).decode().replace("\n2\n", "\\n2\n").splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    assert variables["CLICKCLOCK_TEST_OWN"] == "größe\\n2"
    assert variables["PATH"] == "/usr/bin:/bin"
    assert variables.keys() - place.member.own_variables == {*BASE, "CLICKCLOCK_TEST_OWN"}


async def test_a_job_runs_in_its_working_directory(place: Place) -> None:
    name = await place.start("pwd", working_directory="/usr/bin")
    elsewhere = await place.start("pwd")
    await place.end(name)
    await place.end(elsewhere)
    assert await place.output(name) == b"/usr/bin\n"
    assert await place.output(elsewhere) == b"/\n"


async def test_a_job_that_wants_more_than_its_memory_fails(place: Place) -> None:
    dd = ("dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1")
    small = await place.start(*dd, memory_bytes=16 << 20)
    large = await place.start(*dd, memory_bytes=256 << 20)
    assert (await place.end(small)).code != 0
    assert (await place.end(large)).code == 0


async def test_a_command_under_a_memory_limit_is_not_found_just_as_clearly(place: Place) -> None:
    ending = await place.end(await place.start("/no/such/command", memory_bytes=16 << 20))
    assert ending.kind is ExitKind.NOT_STARTED
    assert "/no/such/command" in (ending.message or "")


async def test_a_job_gets_no_more_cores_than_it_asked_for(place: Place) -> None:
    name = await place.start(*place.member.cpu_probe, cpu=0.5)
    await place.end(name)
    assert await place.output(name) == b"1\n"


async def test_processor_time_and_memory_are_reported(place: Place) -> None:
    name = await place.shell("dd if=/dev/zero of=/dev/null bs=64M count=2")
    ending = await place.end(name)
    if not place.member.measures:
        assert (ending.cpu_seconds, ending.max_memory_bytes) == (None, None)
        return
    assert ending.cpu_seconds is not None
    assert ending.max_memory_bytes is not None
    assert ending.cpu_seconds > 0
    assert 64 << 20 <= ending.max_memory_bytes < 128 << 20


async def test_an_exit_is_observed_again_after_a_restart_until_it_is_forgotten(place: Place) -> None:
    name = await place.shell("exit 5")
    first = await place.end(name)
    await place.reopen()
    again = await place.end(name)
    assert (again.kind, again.code) == (first.kind, first.code)
    await place.executor.forget([name])
    assert name not in await place.executor.inventory()
    await place.reopen()
    assert name not in await place.executor.inventory()
    assert await place.executor.observe() == []


async def test_an_attempt_that_ends_while_no_service_is_there_is_observed_afterwards(place: Place) -> None:
    name = await place.shell("sleep 0.2; exit 6")
    await place.reopen()
    assert (await place.end(name)).code == 6


async def test_what_runs_cannot_be_forgotten(place: Place) -> None:
    name = await place.start("sleep", "60")
    await place.running(name)
    await place.executor.forget([name])
    assert name in await place.executor.inventory()


async def test_an_observation_is_told_once_and_the_inventory_always(place: Place) -> None:
    name = await place.start("true")
    await place.end(name)
    assert await place.executor.observe() == []
    assert (await place.executor.inventory())[name] == place.seen[name]


async def test_a_log_is_read_in_pieces_while_it_grows(place: Place) -> None:
    name = await place.shell("echo first; sleep 60")
    await place.printed(name, b"first\n")
    assert await place.executor.read_log(name, 0, 4) == LogChunk(b"firs", 4, complete=False)
    assert await place.executor.read_log(name, 4, 100) == LogChunk(b"t\n", 6, complete=False)
    await place.executor.stop([name], 0.0)
    await place.end(name)
    assert await place.executor.read_log(name, 0, 4) == LogChunk(b"firs", 4, complete=False)
    assert await place.executor.read_log(name, 6, 100) == LogChunk(b"", 6, complete=True)


async def test_a_log_is_gone_when_it_is_removed(place: Place) -> None:
    name = await place.shell("echo something")
    await place.end(name)
    await place.executor.remove_logs([name, f"{new_id()}-1"])
    assert await place.executor.read_log(name, 0, 10) is None


@pytest.mark.parametrize("name", ["../../../etc/passwd", "", ".", "a/b", "a\0b", "x" * 300])
async def test_there_is_no_log_of_a_name_that_is_none(place: Place, name: str) -> None:
    assert await place.executor.read_log(name, 0, 10) is None


async def test_capacity_is_what_was_configured_while_the_cluster_answers(place: Place) -> None:
    capacity = await place.executor.capacity()
    assert (capacity.total, capacity.reachable) == (4, True)
    await place.executor.close()
    assert not (await place.executor.capacity()).reachable
    await place.reopen()

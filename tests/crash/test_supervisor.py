"""kill -9 for real, of the service and of the supervisor; torn journals, full disks, restarted machines.

What must hold after each: no attempt runs twice, none that ran is unknown, and what is not known is said to be lost.
"""

import asyncio
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.ids import new_id
from clickclock.scheduler import supervisor
from clickclock.scheduler.executors import Launch, Sighting
from clickclock.scheduler.executors.process import ProcessExecutor
from clickclock.scheduler.jobs.trigger import Exit, ExitKind
from clickclock.scheduler.supervisor.attempt_log import log_path
from clickclock.scheduler.supervisor.journal import REWRITE_BYTES, Attempt, Ending, Journal
from clickclock.scheduler.supervisor.loop import STOOD_STILL_S
from clickclock.scheduler.supervisor.spawn import ATTEMPT_VARIABLE, start_ticks
from clickclock.scheduler.supervisor.waiting import HOLD_S_MAX

DEADLINE_S = 90.0
FILES = 128
BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()

SERVICE = """
import asyncio, sys
from pathlib import Path
from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.executors import Launch
from clickclock.scheduler.executors.process import ProcessExecutor

async def serve(folder, *jobs):
    executor = ProcessExecutor(name="local", data_dir=Path(folder), node="host-1", slots=4, log_bytes_max=100_000,
        base_environment={"PATH": "/usr/bin:/bin"}, clock=SystemClock())
    await executor.open(lambda: None)
    await executor.start([Launch(name, ("/bin/sh", "-c", script)) for name, script in zip(jobs[::2], jobs[1::2])])
    print("started", flush=True)
    await asyncio.Event().wait()

asyncio.run(serve(*sys.argv[1:]))
"""


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until another process has done something that has no event here."""
    async with asyncio.timeout(DEADLINE_S):
        while not await holds():  # noqa: ASYNC110  (polled: see above)
            await asyncio.sleep(0.005)


class Service:
    """The service's side: an executor, and what it observed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.executor = ProcessExecutor(
            name="local",
            data_dir=folder,
            node="host-1",
            slots=4,
            log_bytes_max=100_000,
            base_environment={"PATH": "/usr/bin:/bin"},
            clock=SystemClock(),
        )
        self.seen: dict[str, Sighting] = {}
        self.changed = asyncio.Event()

    async def start(
        self,
        script: str,
        name: str | None = None,
        timeout_s: float | None = None,
        not_before: datetime | None = None,
    ) -> str:
        name = name or f"{new_id()}-1"
        argv = ("/bin/sh", "-c", script)
        await self.executor.start([Launch(name, argv, timeout_s=timeout_s, grace_s=5.0, not_before=not_before)])
        return name

    async def running(self, name: str) -> Sighting:
        return await self._sighting(name, ended=False)

    async def running_or_over(self, name: str) -> Sighting:
        """Either: an attempt of which nobody knows whether it ran is over when nothing of it was found for a while."""
        return await self._sighting(name, ended=None)

    async def end(self, name: str) -> Exit:
        ending = (await self._sighting(name, ended=True)).exit
        assert ending is not None
        return ending

    async def _sighting(self, name: str, *, ended: bool | None) -> Sighting:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                self.changed.clear()
                self.seen.update({sighting.name: sighting for sighting in await self.executor.observe()})
                sighting = self.seen.get(name)
                if sighting is not None and (
                    (ended is not False and sighting.exit is not None)
                    or (ended is not True and sighting.exit is None and sighting.started_at is not None)
                ):
                    return sighting
                await self.changed.wait()

    async def printed(self, name: str, text: bytes) -> bytes:
        """The output, once it holds `text`."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                chunk = await self.executor.read_log(name, 0, 100_000)
                if chunk is not None and text in chunk.data:
                    return chunk.data
                await asyncio.sleep(0.005)

    async def kill_supervisor(self) -> None:
        """End the supervisor with SIGKILL, and wait until the executor has another."""
        lock = self.folder / "supervisor" / "lock"
        before = lock.read_text(encoding="ascii")
        os.kill(int(before), signal.SIGKILL)

        async def another_answers() -> bool:
            capacity = await self.executor.capacity()
            return capacity.reachable and lock.read_text(encoding="ascii") not in {"", before}

        await until(another_answers)


@asynccontextmanager
async def serving(folder: Path, *, stop: bool = True) -> AsyncIterator[Service]:
    """A service on `folder`; at the end its attempts are stopped, or left to run."""
    service = Service(folder)
    await service.executor.open(service.changed.set)
    try:
        yield service
    finally:
        with suppress(ExecutorUnreachable):
            names = [name for name, sighting in (await service.executor.inventory()).items() if sighting.exit is None]
            await service.executor.stop(names if stop else [], 0.0)
            for name in names if stop else ():
                await service.end(name)
        await service.executor.close()


async def supervisor_gone(folder: Path) -> None:
    """Wait until no supervisor holds the folder."""
    with (folder / "supervisor" / "lock").open("rb") as lock:
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)


def write_journal(folder: Path, *records: object, boot_id: str = BOOT_ID) -> None:
    """The journal that a supervisor which was killed left behind."""
    (folder / "supervisor").mkdir(parents=True, mode=0o700)
    lines = [json.dumps(record) for record in ({"boot": boot_id}, *records)]
    (folder / "supervisor" / "journal").write_text("\n".join(lines) + "\n", encoding="utf-8")


def sleeper(**environment: str) -> subprocess.Popen[bytes]:
    """A process that was started by somebody else."""
    return subprocess.Popen(["sleep", "60"], env={"PATH": "/usr/bin:/bin", **environment}, start_new_session=True)


def sizes(path: Path) -> tuple[int, int]:
    """How long a file is, and what it takes on the disk."""
    status = path.stat()
    return status.st_size, status.st_blocks * 512


def run_service(folder: Path, *jobs: str) -> subprocess.Popen[str]:
    """A service in a process of its own, once it has started its jobs: name, script, and so on."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE, str(folder), *jobs],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.stdout.close()
    return process


# The service dies.


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_the_death_of_the_service_ends_no_job_and_loses_no_exit(tmp_path: Path, number: signal.Signals) -> None:
    living, ending = f"{new_id()}-1", f"{new_id()}-1"
    process = run_service(tmp_path, living, "echo alive; exec sleep 60", ending, "sleep 0.3; exit 9")
    os.killpg(process.pid, number)  # the whole group, as Ctrl-C in a terminal does
    process.wait()
    async with serving(tmp_path) as service:
        assert (await service.running(living)).exit is None
        assert (await service.end(ending)).code == 9
        assert await service.printed(living, b"alive") == b"alive\n"


async def test_an_exit_waits_in_the_journal_when_service_and_supervisor_are_gone(tmp_path: Path) -> None:
    name = f"{new_id()}-1"
    process = run_service(tmp_path, name, "sleep 0.1; exit 9")
    process.kill()
    process.wait()
    await supervisor_gone(tmp_path)
    async with serving(tmp_path) as service:
        assert (await service.end(name)).code == 9


async def test_a_time_out_is_kept_without_the_service(tmp_path: Path) -> None:
    async with serving(tmp_path, stop=False) as service:
        name = await service.start("exec sleep 60", timeout_s=0.3)
    await supervisor_gone(tmp_path)
    async with serving(tmp_path) as service:
        assert (await service.end(name)).kind is ExitKind.TIMEOUT


async def test_a_lock_that_the_service_was_started_with_ends_with_it(tmp_path: Path) -> None:
    folder, program = tmp_path / "supervisor", Path(supervisor.__file__).with_name("__main__.py")
    folder.mkdir(mode=0o700)
    with (tmp_path / "lock").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        command = (sys.executable, "-I", "-S", str(program), str(folder))
        starter = await asyncio.create_subprocess_exec(*command, pass_fds=[held.fileno()])
        assert await starter.wait() == 0
    async with serving(tmp_path):
        with (tmp_path / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


# The supervisor dies.


async def test_after_the_death_of_the_supervisor_living_attempts_are_adopted_and_not_doubled(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        name = await service.start("echo ran; exec sleep 60")
        before = await service.running(name)
        await service.printed(name, b"ran")
        await service.kill_supervisor()
        await service.start("echo ran; exec sleep 60", name=name)
        assert (await service.executor.inventory())[name] == before
        await service.executor.stop([name], 5.0)
        assert (await service.end(name)).kind is ExitKind.STOPPED
        assert await service.printed(name, b"ran") == b"ran\n"


async def test_an_adopted_attempt_that_ends_by_itself_is_lost_with_a_sentence(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with serving(tmp_path / "data") as service:
        name = await service.start(f"read line < {pipe}; exit 0")
        await service.running(name)
        await service.kill_supervisor()
        await asyncio.to_thread(pipe.write_text, "go on\n")
        ending = await service.end(name)
        assert ending.kind is ExitKind.LOST
        assert "exit is unknown" in (ending.message or "")


async def test_a_long_output_keeps_its_end_and_its_bounds_when_service_and_supervisor_are_killed(
    tmp_path: Path,
) -> None:
    name, pipe, data = f"{new_id()}-1", tmp_path / "pipe", tmp_path / "data"
    os.mkfifo(pipe)
    part = "seq -f %099.0f"
    process = run_service(data, name, f"{part} 0 99999; read line < {pipe}; {part} 100000 199999; echo the error")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    log = Path(log_path(str(data / "logs"), name))
    async with serving(data) as service:
        await service.running(name)

        async def is_bounded() -> bool:
            size, disk = await asyncio.to_thread(sizes, log)
            return size >= 10_000_000 and disk <= 150_000

        await until(is_bounded)
        chunk = await service.executor.read_log(name, 9_999_900, 1000)
        assert chunk is not None
        assert (chunk.data, chunk.next_offset) == (b"%099d\n" % 99_999, 10_000_000)
        await service.kill_supervisor()
        await asyncio.to_thread(pipe.write_text, "go on\n")
        await service.end(name)
        assert (await asyncio.to_thread(sizes, log))[1] <= 150_000
        chunk = await service.executor.read_log(name, 10_000_000, 10_000_000)
        assert chunk is not None
        assert chunk.left_out > 9_000_000
        rest = b"".join(b"%099d\n" % line for line in range(100_000, 200_000)) + b"the error\n"
        assert chunk.data == rest[chunk.left_out :]
        assert chunk.complete
        await service.executor.remove_logs([name])
        assert not log.parent.exists()


async def test_an_adopted_attempt_still_times_out(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        name = await service.start("exec sleep 60", timeout_s=1.0)
        await service.running(name)
        await service.kill_supervisor()
        assert (await service.end(name)).kind is ExitKind.TIMEOUT


async def test_what_an_attempt_left_behind_ends_when_it_ended_unwatched(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        name = await service.start("sleep 60 & echo $! ready; exec sleep 60")
        child, *_ = (await service.printed(name, b"ready")).split()
        await service.kill_supervisor()
        watch = os.pidfd_open(int(child))
        await service.executor.stop([name], 5.0)
        await service.end(name)
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(watch, gone.set)
        async with asyncio.timeout(DEADLINE_S):
            await gone.wait()
        loop.remove_reader(watch)
        os.close(watch)


async def test_more_attempts_are_adopted_than_files_may_be_open_by_default(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    names = [f"{new_id()}-1" for _ in range(FILES + 10)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
        async with serving(tmp_path) as service:
            await service.executor.start([Launch(name, ("/bin/sleep", "60")) for name in names])
            for name in names:
                await service.running(name)
            await service.kill_supervisor()
            known = await service.executor.inventory()
            assert [name for name in names if known[name].exit is not None] == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_supervisor_killed_again_and_again_starts_each_attempt_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        names = [f"{new_id()}-1" for _ in range(60)]
        launches = [Launch(name, ("/bin/sh", "-c", "echo ran; exec sleep 60")) for name in names]
        for round_ in range(3):
            await service.executor.start(launches[: 20 * (round_ + 1)])
            await service.kill_supervisor()
        await service.executor.start(launches)
        for name in names:
            ending = (await service.running_or_over(name)).exit
            if ending is None:
                assert await service.printed(name, b"ran") == b"ran\n"
            else:
                chunk = await service.executor.read_log(name, 0, 100)
                assert chunk is None or chunk.data in {b"", b"ran\n"}
                assert ending.kind is ExitKind.LOST


async def test_an_attempt_that_the_supervisor_only_held_is_known_not_to_have_run(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        name = await service.start("echo ran", not_before=SystemClock().now() + timedelta(seconds=0.95 * HOLD_S_MAX))
        await service.kill_supervisor()
        ending = await service.end(name)
        assert ending.kind is ExitKind.UNSTARTED
        assert ending.started_at is None
        assert await service.executor.read_log(name, 0, 100) is None


async def test_an_attempt_that_is_held_no_longer_is_not_said_not_to_have_run(tmp_path: Path) -> None:
    name = f"{new_id()}-1"
    write_journal(
        tmp_path,
        {"attempts": [{"name": name, "grace_s": 10.0, "held": True}]},
        {"attempts": [{"name": name, "held": False}]},
    )
    async with serving(tmp_path) as service:
        assert (await service.end(name)).kind is ExitKind.LOST


async def test_after_a_restart_of_the_machine_nobody_knows_whether_what_was_held_ran(tmp_path: Path) -> None:
    name = f"{new_id()}-1"
    write_journal(tmp_path, {"attempts": [{"name": name, "grace_s": 10.0, "held": True}]}, boot_id="another")
    async with serving(tmp_path) as service:
        assert (await service.end(name)).kind is ExitKind.LOST


async def test_a_supervisor_that_stood_still_over_the_moment_of_an_attempt_gives_it_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        moment = SystemClock().now() + timedelta(seconds=0.8 * HOLD_S_MAX)
        name = await service.start("echo ran", not_before=moment)
        supervisor = int((tmp_path / "supervisor" / "lock").read_text(encoding="ascii"))
        os.kill(supervisor, signal.SIGSTOP)

        async def is_past() -> bool:
            return SystemClock().now() > moment + timedelta(seconds=1.1 * STOOD_STILL_S)

        await until(is_past)
        os.kill(supervisor, signal.SIGCONT)
        assert (await service.end(name)).kind is ExitKind.UNSTARTED
        assert await service.executor.read_log(name, 0, 100) is None


async def test_an_attempt_that_was_to_be_spawned_and_is_not_there_is_lost_and_not_started(tmp_path: Path) -> None:
    name = f"{new_id()}-1"
    write_journal(tmp_path, {"attempts": [{"name": name, "timeout_s": None, "grace_s": 10.0}]})
    async with serving(tmp_path) as service:
        await service.start("echo ran", name=name)
        ending = await service.end(name)
        assert ending.kind is ExitKind.LOST
        assert "may or may not have run" in (ending.message or "")
        assert await service.executor.read_log(name, 0, 100) is None


async def test_an_attempt_whose_start_was_not_recorded_is_found_by_its_environment(tmp_path: Path) -> None:
    name = f"{new_id()}-1"
    write_journal(tmp_path, {"attempts": [{"name": name, "timeout_s": None, "grace_s": 10.0}]})
    job = sleeper(**{ATTEMPT_VARIABLE: name})
    async with serving(tmp_path) as service:
        sighting = await service.running(name)
        assert sighting.started_at is not None
        assert abs((SystemClock().now() - sighting.started_at).total_seconds()) < 20.0
        await service.executor.stop([name], 0.0)
        assert job.wait(DEADLINE_S) == -signal.SIGTERM
        assert (await service.end(name)).kind is ExitKind.STOPPED


async def test_a_process_that_only_has_the_number_of_an_attempt_is_neither_adopted_nor_touched(tmp_path: Path) -> None:
    name = f"{new_id()}-1"
    stranger = sleeper()
    born = (start_ticks(stranger.pid) or 0) - 1000
    attempt = {"name": name, "timeout_s": 0.0, "grace_s": 0.0, "pid": stranger.pid, "born": [born, born], "at": 1.0}
    write_journal(tmp_path, {"attempts": [attempt]})
    async with serving(tmp_path) as service:
        assert (await service.end(name)).kind is ExitKind.LOST
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


async def test_after_a_restart_of_the_machine_what_ran_is_lost_and_what_ended_is_known(tmp_path: Path) -> None:
    ran, ended = f"{new_id()}-1", f"{new_id()}-1"
    write_journal(
        tmp_path,
        {"attempts": [{"name": ran, "grace_s": 1, "pid": os.getpid(), "born": [0, 10**12], "at": 1.0}]},
        {"attempts": [{"name": ended, "at": 1.0, "exit": {"kind": "code", "code": 3, "at": 2.0}}]},
        boot_id="another",
    )
    async with serving(tmp_path) as service:
        ending = await service.end(ran)
        assert ending.kind is ExitKind.LOST
        assert "machine restarted" in (ending.message or "")
        assert (await service.end(ended)).code == 3


async def test_a_removed_journal_is_noticed(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        name = await service.start("exec sleep 60")
        await service.running(name)
        leader = int(
            json.loads((tmp_path / "supervisor" / "journal").read_text().splitlines()[2])["attempts"][0]["pid"]
        )
        (tmp_path / "supervisor" / "journal").unlink()
        await service.kill_supervisor()
        ending = await service.end(name)
        assert ending.kind is ExitKind.LOST
        assert "journal was removed" in (ending.message or "")
        os.killpg(leader, signal.SIGKILL)


# The journal.


async def test_a_torn_last_line_is_the_end_of_the_journal(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        name = await service.start("exit 9")
        await service.end(name)
    await supervisor_gone(tmp_path)
    with (tmp_path / "supervisor" / "journal").open("ab") as journal:
        journal.write(b'{"forgotten": ["' + name.encode())
    async with serving(tmp_path) as service:
        assert (await service.end(name)).code == 9
        other = await service.start("exit 8")
        assert (await service.end(other)).code == 8
    await supervisor_gone(tmp_path)
    async with serving(tmp_path) as service:
        assert (await service.end(other)).code == 8


def test_every_prefix_of_a_journal_is_a_state_that_was_true(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path), "boot")
    journal.accept([Attempt(name="a", grace_s=1.0), Attempt(name="b", grace_s=1.0)])
    journal.note(Attempt(name="a", pid=7, born=(1, 1), at=1.0))
    journal.note(Attempt(name="a", exit=Ending(kind="code", code=0, at=2.0)))
    journal.forget(["a", "b"])
    journal.flush()
    data = path.read_bytes()
    assert Journal(str(path), "boot").attempts.keys() == {"b"}
    for size in range(len(data)):
        path.write_bytes(data[:size])
        attempts = Journal(str(path), "boot").attempts
        assert attempts.keys() in (set(), {"a", "b"}, {"b"})
        assert "exit" not in attempts.get("b", {})


def test_what_is_held_stays_so_in_the_journal_until_that_is_taken_back_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path), "boot")
    journal.accept([Attempt(name="a", grace_s=1.0, held=True), Attempt(name="b", grace_s=1.0, held=True)])
    journal.let_go(["a"])
    attempts = Journal(str(path), "boot").attempts
    assert (attempts["a"]["held"], attempts["b"]["held"]) == (False, True)


def test_a_write_that_fails_leaves_no_torn_line_and_is_made_later(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path), "boot")
    journal.accept([Attempt(name="a", grace_s=1.0)])
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            journal.accept([Attempt(name="b", grace_s=1.0)])
        journal.note(Attempt(name="a", exit=Ending(kind="code", code=0, at=2.0)))
        with pytest.raises(OSError, match="File too large"):
            journal.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert journal.attempts.keys() == {"a"}
    journal.flush()
    assert "exit" in Journal(str(path), "boot").attempts["a"]


def test_the_journal_does_not_grow_with_what_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path), "boot")
    journal.accept([Attempt(name="kept", grace_s=1.0)])
    largest = 0
    for batch in range(150):
        names = [f"{batch}-{index}-{'x' * 40}" for index in range(200)]
        journal.accept([Attempt(name=name, grace_s=1.0) for name in names])
        journal.note(*(Attempt(name=name, exit=Ending(kind="code", code=0, at=2.0)) for name in names))
        journal.forget(names)
        journal.flush()
        largest = max(largest, path.stat().st_size)
    assert REWRITE_BYTES / 2 < largest < REWRITE_BYTES + 100_000
    assert Journal(str(path), "boot").attempts.keys() == {"kept"}


# The folder.


async def test_the_newest_service_takes_over_and_the_other_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as first, serving(tmp_path) as second:
        name = await second.start("exit 0")
        assert (await second.end(name)).code == 0
        with pytest.raises(ExecutorUnreachable):
            await first.start("exit 0")

        async def first_says_so() -> bool:
            return "took over" in ((await first.executor.capacity()).message or "")

        await until(first_says_so)
        assert (await second.executor.capacity()).reachable


async def test_a_supervisor_with_nothing_to_run_and_nobody_to_serve_leaves(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        await service.end(await service.start("exit 0"))
    await supervisor_gone(tmp_path)
    assert not (tmp_path / "supervisor" / "socket").exists()
    assert (tmp_path / "supervisor" / "errors").read_bytes() == b""


async def test_a_data_folder_may_have_a_long_name(tmp_path: Path) -> None:
    async with serving(tmp_path / ("long " * 40) / ("longer " * 30)) as service:
        assert (await service.end(await service.start("exit 9"))).code == 9


async def test_only_its_owner_reads_the_data_folder(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        name = await service.start("echo secret; umask > /dev/null")
        await service.end(name)
        for path in (tmp_path / "logs", tmp_path / "supervisor", *(tmp_path / "logs").iterdir()):
            assert path.stat().st_mode & 0o777 == 0o700
        for path in (*(tmp_path / "logs").rglob("*.log"), *(tmp_path / "supervisor").iterdir()):
            assert path.stat().st_mode & 0o177 == 0

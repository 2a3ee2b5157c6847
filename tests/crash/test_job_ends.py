"""When an attempt has ended nothing of it is left: each way to get away, against each way to end, with real processes.

A process is found from outside, by a word of its command line, so nothing that it changes about itself hides it.
"""

import asyncio
import fcntl
import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from clickclock.foundation.ids import new_id
from clickclock.scheduler.executors import Launch
from clickclock.scheduler.jobs.trigger import ExitKind
from clickclock.scheduler.supervisor.attempt_log import log_path
from tests.crash.test_supervisor import Service, run_service, serving, supervisor_gone, until

ESCAPES = {
    "background": "{sleep} &",
    "nohup": "nohup {sleep} >/dev/null 2>&1 &",
    "timeout": "timeout 900 {sleep} &",
    "set -m": "set -m; {sleep} & set +m",
    "process_group=0": "python3 -c 'import subprocess; subprocess.Popen(\"{sleep}\".split(), process_group=0)'",
    "Perl's setpgrp": "perl -e 'if (!fork) {{ setpgrp; exec qw({sleep}) }}'",
    "setsid": "setsid {sleep} &",
    "setsid and a clean environment": "env -i setsid --fork /bin/{sleep}",
    "double fork": "(setsid sh -c '{sleep} & exit 0' &)",
    "a daemon that overwrote its environment": (
        "perl -MPOSIX -e 'exit if fork; POSIX::setsid(); exit if fork; %ENV = (); $0 = qq(x); exec qw(/bin/{sleep})'"
    ),
    "a tree of sessions": "setsid sh -c 'setsid sh -c \"setsid {sleep} & {sleep}\" & {sleep}' &",
    "what ignores SIGTERM": "(trap '' TERM HUP INT; exec {sleep}) & (trap '' TERM; setsid {sleep}) &",
    "a suspended process": "setsid sh -c 'kill -STOP $$; {sleep}' {sleep} &",
}
DETACHED = frozenset({"setsid", "setsid and a clean environment", "double fork", "a tree of sessions"})
ATTACHED = frozenset({"background", "nohup", "timeout", "set -m", "process_group=0", "Perl's setpgrp"})
NUMBERS = itertools.count(40_000_000 + os.getpid() * 1000)


@pytest.fixture
def words() -> Iterator[dict[str, str]]:
    """For each escape a number of seconds to sleep that no other process on this machine has in its command line."""
    words = {escape: str(next(NUMBERS)) for escape in ESCAPES}
    yield words
    for pid in itertools.chain(*map(processes, words.values())):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def word(words: dict[str, str]) -> str:
    """One of them, for a test that needs one."""
    return words["a tree of sessions"]


def processes(word: str) -> list[int]:
    """Who sleeps for so long, and has not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and f"sleep {word}".encode() in (entry / "cmdline").read_bytes().replace(
                b"\0", b" "
            ):
                state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
                found += [int(entry.name)] if state not in {b"Z", b"X"} else []
    return found


def escaping(escape: str, word: str, then: str) -> str:
    """A script that lets something get away, and goes on."""
    return f"{ESCAPES[escape].format(sleep=f'sleep {word}')}\necho ready\n{then}"


async def away(service: Service, name: str, word: str, *, least: int = 1) -> None:
    """Wait until the job said that it is ready, and what it started is there."""
    await service.printed(name, b"ready\n")

    async def is_there() -> bool:
        return len(processes(word)) >= least

    await until(is_there)


async def start(service: Service, script: str, *, timeout_s: float | None = None, keep: bool = False) -> str:
    name = f"{new_id()}-1"
    argv = ("/bin/sh", "-c", script)
    await service.executor.start([Launch(name, argv, timeout_s=timeout_s, grace_s=0.2, keep_detached=keep)])
    return name


class Gate:
    """What lets attempts go on: their scripts read a line from it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "gate"
        self.path.touch()

    @property
    def script(self) -> str:
        return f"while [ ! -s {self.path} ]; do sleep 0.02; done"

    def open(self) -> None:
        self.path.write_text("open", encoding="ascii")


async def start_each(service: Service, words: dict[str, str], then: str) -> list[str]:
    """One attempt for each way to get away, once what it started is there."""
    names = [await start(service, escaping(escape, word, then)) for escape, word in words.items()]
    for name, word in zip(names, words.values(), strict=True):
        await away(service, name, word)
    return names


async def ends(service: Service, names: list[str], words: dict[str, str]) -> set[tuple[ExitKind, int | None, bool]]:
    """How they ended: kind, code, and whether there was a message. Raises if something is left of one that has."""
    endings = {escape: await service.end(name) for name, escape in zip(names, words, strict=True)}
    assert {escape: left for escape, word in words.items() if (left := processes(word))} == {}
    return {(ending.kind, ending.code, bool(ending.message)) for ending in endings.values()}


async def test_after_a_normal_end_nothing_is_left(tmp_path: Path, words: dict[str, str]) -> None:
    gate = Gate(tmp_path)
    async with serving(tmp_path) as service:
        names = await start_each(service, words, f"{gate.script}; exit 3")
        gate.open()
        assert await ends(service, names, words) == {(ExitKind.CODE, 3, False)}


async def test_after_a_stop_nothing_is_left(tmp_path: Path, words: dict[str, str]) -> None:
    async with serving(tmp_path) as service:
        names = await start_each(service, words, "exec sleep 60")
        await service.executor.stop(names, 0.2)
        assert await ends(service, names, words) == {(ExitKind.STOPPED, None, False)}


async def test_after_a_time_out_nothing_is_left(tmp_path: Path, words: dict[str, str]) -> None:
    async with serving(tmp_path) as service:
        names = [await start(service, escaping(*each, "exec sleep 60"), timeout_s=5.0) for each in words.items()]
        assert await ends(service, names, words) == {(ExitKind.TIMEOUT, None, False)}
        for name in names:
            await service.printed(name, b"ready\n")


async def test_when_the_supervisor_was_killed_nothing_is_left_after_a_stop(
    tmp_path: Path, words: dict[str, str]
) -> None:
    async with serving(tmp_path) as service:
        names = await start_each(service, words, "exec sleep 60")
        await service.kill_supervisor()
        await service.executor.stop(names, 0.2)
        assert await ends(service, names, words) == {(ExitKind.STOPPED, None, False)}


async def test_when_the_supervisor_was_killed_nothing_is_left_after_a_normal_end(
    tmp_path: Path, words: dict[str, str]
) -> None:
    gate = Gate(tmp_path)
    async with serving(tmp_path) as service:
        names = await start_each(service, words, f"{gate.script}; exit 3")
        await service.kill_supervisor()
        gate.open()
        assert await ends(service, names, words) == {(ExitKind.LOST, None, True)}


async def test_a_supervisor_that_is_killed_while_an_attempt_is_leaving_knows_how_it_ended(
    tmp_path: Path, word: str
) -> None:
    async with serving(tmp_path) as service:
        name = await start(service, escaping("what ignores SIGTERM", word, "trap 'exit 7' TERM; sleep 60 & wait"))
        await away(service, name, word, least=2)
        await service.executor.stop([name], 600.0)

        async def has_result() -> bool:
            return '"result"' in (tmp_path / "supervisor" / "journal").read_text(encoding="utf-8")

        await until(has_result)
        assert processes(word) != []
        await service.kill_supervisor()
        ending = await service.end(name)
        assert (ending.kind, ending.code) == (ExitKind.STOPPED, 7)
        assert processes(word) == []


async def test_what_the_first_process_leaves_keeps_its_grace_period_after_a_stop(tmp_path: Path, word: str) -> None:
    async with serving(tmp_path) as service:
        worker = "trap 'sleep 0.3; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
        name = await start(service, f'timeout 900 sh -c "{worker}"; true')
        await service.printed(name, b"ready\n")
        await service.executor.stop([name], 60.0)
        assert (await service.end(name)).kind is ExitKind.STOPPED
        assert b"saved\n" in await service.printed(name, b"saved")


async def test_when_the_service_stops_the_job_goes_on_and_nothing_is_left_when_it_ends(
    tmp_path: Path, word: str
) -> None:
    name, gate = f"{new_id()}-1", Gate(tmp_path)
    script = escaping("a tree of sessions", word, f"{gate.script}; exit 3")
    process = run_service(tmp_path, name, script)
    async with asyncio.timeout(90.0):
        while len(processes(word)) < 3:  # noqa: ASYNC110  (another process does it)
            await asyncio.sleep(0.005)
    process.terminate()
    process.wait()
    assert len(processes(word)) >= 3
    gate.open()
    await supervisor_gone(tmp_path)
    assert processes(word) == []
    async with serving(tmp_path) as service:
        assert (await service.end(name)).code == 3


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "supervisor killed"])
async def test_what_detaches_itself_is_kept_where_the_job_says_so_and_nothing_else(
    tmp_path: Path, words: dict[str, str], *, is_killed: bool
) -> None:
    others = {escape: str(next(NUMBERS)) for escape in words}
    async with serving(tmp_path) as service:
        names = []
        for escape, word in words.items():
            other = f"timeout 900 sleep {others[escape]} & set -m; sleep {others[escape]} & set +m\n"
            names.append(await start(service, other + escaping(escape, word, "exec sleep 60"), keep=True))
        for name, word in zip(names, words.values(), strict=True):
            await away(service, name, word)
        if is_killed:
            await service.kill_supervisor()
        await service.executor.stop(names, 0.2)
        assert await ends(service, names, others) == {(ExitKind.STOPPED, None, False)}
        await service.end(await start(service, "exit 0"))
        kept = {escape for escape, word in words.items() if processes(word)}
        assert kept & ATTACHED == set()
        assert kept >= DETACHED


async def test_a_daemon_whose_parent_ends_before_it_has_a_session_stays(tmp_path: Path, word: str) -> None:
    other = str(next(NUMBERS))
    async with serving(tmp_path) as service:
        daemon = f"(sleep 0.05; exec setsid sleep {word}) & timeout 900 sleep {other} &"
        assert (await service.end(await start(service, daemon, keep=True))).code == 0
        assert (len(processes(word)), processes(other)) == (1, [])


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "supervisor killed"])
async def test_what_stays_is_held_to_the_limit_of_the_output(tmp_path: Path, *, is_killed: bool) -> None:
    gate, limit, left = Gate(tmp_path), 100_000, tmp_path / "left"
    async with serving(tmp_path) as service:
        daemon = f"touch {left}; until [ -s {gate.path} ]; do head -c 100000 /dev/zero; sleep 0.05; done"
        # Until it has a session of its own, it is a part of the job, and ends with it.
        await_it = f"until [ -e {left} ]; do sleep 0.01; done; echo ready"
        name = await start(service, f"setsid sh -c '{daemon}' & {await_it}", keep=True)
        try:
            assert (await service.end(name)).code == 0
            if is_killed:
                await service.kill_supervisor()
            log = log_path(str(tmp_path / "logs"), name)
            more = os.stat(log).st_size + 20 * limit  # noqa: PTH116 - a Path may not be asked here

            async def is_long_and_held() -> bool:
                status = os.stat(log)  # noqa: PTH116
                return status.st_size > more and status.st_blocks * 512 < limit + 20 * 4096

            await until(is_long_and_held)
        finally:
            gate.open()


@pytest.mark.parametrize("is_killed", [False, True], ids=["", "supervisor killed"])
async def test_what_forks_and_leaves_all_the_time_is_caught(tmp_path: Path, *, is_killed: bool) -> None:
    # It gives up by itself: should it not be caught, it must not fly on for ever.
    comet = "$| = 1; $end = time + 100; print qq(ready\\n); "
    comet += "while (time < $end) { exit if fork; select(undef, undef, undef, 0.001) }"
    lock = tmp_path / "lock"
    async with serving(tmp_path) as service:
        # Whoever is left holds the lock, by the descriptor that it inherited.
        name = await start(service, f"exec 9>{lock}; flock 9; setsid perl -e '{comet}' & exec sleep 60")
        await service.printed(name, b"ready\n")
        if is_killed:
            await service.kill_supervisor()
        await service.executor.stop([name], 0.2)
        ending = await service.end(name)
        assert (ending.kind, ending.message) == (ExitKind.STOPPED, None)
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_the_end_of_one_attempt_touches_nothing_of_another(tmp_path: Path, word: str) -> None:
    async with serving(tmp_path) as service:
        other = await start(service, escaping("double fork", word, "exec sleep 60"))
        await away(service, other, word)
        for _ in range(3):
            name = await start(service, "setsid sleep 60 & exit 0")
            await service.end(name)
        assert len(processes(word)) == 1
        assert (await service.executor.inventory())[other].exit is None
        await service.executor.stop([other], 0.2)
        await service.end(other)
        assert processes(word) == []

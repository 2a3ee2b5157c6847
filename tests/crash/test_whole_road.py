"""A click's whole road with the real programs, killed at random: over HTTP, through the journal, into the lake.

Every click that was answered 204 is in the lake once. One that had no answer may be there, once. One that was refused
because the disk failed is nowhere.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.acceptance.clicking import children, collecting, entries, parent_of, unsealed_lines, until
from tests.acceptance.service import running
from tests.crash.preloaded import disk
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
CLIENTS = 12
SEGMENTS = {"CLICKCLOCK_SEGMENT_BYTES": str(2**20), "CLICKCLOCK_SEGMENT_AGE_S": "0.3"}
"""Small, so that many are sealed on the way."""
COMPACT = [sys.executable, "-m", "clickclock.cli", "compact", "--all", "--processes", "1"]


class Clicker:
    """Clients, and what they were answered."""

    def __init__(self, port: int, name: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.clicker", str(port), str(CLIENTS), name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.acknowledged: set[str] = set()
        self.refused: set[str] = set()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            (self.acknowledged if line[0] == "+" else self.refused).add(line[1:-1])

    def until_more(self, count: int) -> None:
        """Wait until so many more clicks were acknowledged."""
        wanted = len(self.acknowledged) + count
        until(lambda: len(self.acknowledged) >= wanted, f"{count} more clicks were acknowledged")

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextlib.contextmanager
def clicking(port: int, name: str = "c") -> Iterator[Clicker]:
    """Clients until the end of the block."""
    clicker = Clicker(port, name)
    try:
        yield clicker
    finally:
        clicker.end()


class Compactions:
    """One compaction after the other until told to end; of two, the second is killed at some moment of its way."""

    def __init__(self, data_dir: Path, luck: random.Random) -> None:
        self._command = [*COMPACT, "--data-dir", str(data_dir)]
        self._luck = luck
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.codes: list[int] = []

    def __enter__(self) -> "Compactions":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def killed(self) -> int:
        return self.codes.count(-signal.SIGKILL)

    def _run(self) -> None:
        while not self._ended.is_set():
            began_s = time.monotonic()
            self.codes.append(_compaction(self._command).wait())
            takes_s = time.monotonic() - began_s
            doomed = _compaction(self._command)
            try:
                # The first half is Python that starts.
                doomed.wait(self._luck.uniform(0.5, 1.0) * takes_s)
            except subprocess.TimeoutExpired:
                os.killpg(doomed.pid, signal.SIGKILL)
            self.codes.append(doomed.wait())


def _compaction(command: list[str]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": "src"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def in_the_lake(data_dir: Path) -> Counter[str]:
    """Compact what is left, and how often each click's user is in the lake."""
    assert _compaction([*COMPACT, "--data-dir", str(data_dir)]).wait(timeout=60) == 0
    assert entries(data_dir) == []
    users = DeltaTable(data_dir / "lake/clicks").to_pyarrow_table(columns=["cli_ubid"])["cli_ubid"]
    return Counter(users.to_pylist())


def check(clicker: Clicker, found: Counter[str], at_least: int) -> None:
    assert len(clicker.acknowledged) >= at_least
    assert clicker.acknowledged - found.keys() == set(), "acknowledged, and lost"
    assert [user for user, count in found.items() if count > 1] == [], "there more than once"


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_collectors_and_compactions_killed_at_random_lose_and_double_nothing(tmp_path: Path) -> None:
    luck = random.Random(1)
    port = free_port()
    with clicking(port) as clicker, Compactions(tmp_path, luck) as compactions:
        for victims in ("worker", "parent", "all", "worker"):
            with collecting(tmp_path, "--processes", "2", port=port, variables=SEGMENTS) as collect:
                clicker.until_more(luck.randrange(100, 2000))
                pids = {"worker": collect.workers[:1], "parent": [collect.process.pid]}
                kill(pids.get(victims, [collect.process.pid, *collect.workers]))
                if victims == "worker":
                    clicker.until_more(luck.randrange(100, 2000))
        until(lambda: compactions.killed >= 3, "some compactions were killed")
        with collecting(tmp_path, "--processes", "2", port=port, variables=SEGMENTS) as collect:
            clicker.until_more(500)
            assert collect.stop() == 0
    assert set(compactions.codes) == {0, -signal.SIGKILL}
    assert unsealed_lines(tmp_path) == 0
    check(clicker, in_the_lake(tmp_path), at_least=1000)


def test_a_service_killed_under_clicks_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SEGMENTS.items():
        monkeypatch.setenv(name, value)
    luck = random.Random(2)
    port = free_port()
    options = ("--clicks", "--click-port", str(port))
    with clicking(port) as clicker:
        for _ in range(3):
            with running(tmp_path, *options) as service:
                clicker.until_more(luck.randrange(100, 2000))
                service.kill()
        with running(tmp_path, *options) as service:
            clicker.until_more(500)
            collectors = children(service.process.pid)
            assert service.stop() == 0
            until(lambda: not any(map(parent_of, collectors)), "all has ended")
    check(clicker, Counter(_user(entry.raw) for entry in entries(tmp_path)), at_least=800)
    check(clicker, in_the_lake(tmp_path), at_least=800)


def _user(raw: bytes) -> str:
    return raw.partition(b"cli_ubid=")[2].partition(b"&")[0].decode()


@pytest.mark.needs("cc")
@pytest.mark.parametrize("every", [2, 7])
def test_a_disk_that_fails_now_and_then_acknowledges_nothing_that_is_not_there(tmp_path: Path, every: int) -> None:
    data_dir = tmp_path / "data"
    port = free_port()
    variables = {**SEGMENTS, **disk(tmp_path, fails_every=every)}
    with collecting(data_dir, port=port, variables=variables) as collect, clicking(port) as clicker:
        clicker.until_more(100)
        until(lambda: len(clicker.refused) > 20, "some clicks were refused")
        (worker,) = collect.workers
        if every > 2:
            kill([worker])
            clicker.until_more(100)
        collect.stop()
    found = in_the_lake(data_dir)
    check(clicker, found, at_least=100)
    assert clicker.refused & found.keys() == set(), "refused, and there"

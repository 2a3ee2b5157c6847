"""Clicks as clients send them, and the real `clickclock collect` that takes them, to be killed and looked into.

Never talks to the code in this process, except to read the journal. Invariants: what a client sends goes out byte for
byte; whatever happens to the test, its collectors are gone afterwards.
"""

import contextlib
import itertools
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from clickclock.attribution.clicks.entry import Entry, decode
from clickclock.attribution.journal import State, inspect, read, segments, slots
from clickclock.attribution.registering.sighting import Sighting, sight
from tests.ports import is_free

READY_WITHIN_S = 60
ANSWERED_WITHIN_S = 60
POLL_S = 0.01
REST = 4
"""Who asks takes a fifth of a core at most: whoever is waited for needs it."""
ORDER = {
    "client_id": "c", "order_id": "o-1", "cli_ubid": "u", "seller_id": "s", "event_time": 1_790_000_000_000,
    "amount": "24.90", "currency": "EUR", "status": "completed",
}  # fmt: skip
"""One that is taken."""
numbers = itertools.count()


def click_path(**parameters: str | None) -> str:
    """A click as the interface has it, with other parameters or without some (None)."""
    usual = {
        "client_id": "shop-1",
        "cli_ubid": f"u-{next(numbers)}",
        "seller_id": "77",
        "asvt": "1",
        "atag": "t",
        "event_time": str(time.time_ns() // 1_000_000),
    }
    given = {name: value for name, value in (usual | parameters).items() if value is not None}
    return "/aclick?" + "&".join(f"{name}={value}" for name, value in given.items())


def until(holds: Callable[[], Any], what: str, deadline_s: float = ANSWERED_WITHIN_S) -> None:
    """Wait until another process has done something that has no event here."""
    asked_s = time.monotonic()
    deadline = asked_s + deadline_s
    while not holds():
        assert time.monotonic() < deadline, f"after {deadline_s:.0f} s still not: {what}"
        time.sleep(max(POLL_S, REST * (time.monotonic() - asked_s)))
        asked_s = time.monotonic()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes


class Caller:
    """One connection of a client that sends bytes as they are."""

    def __init__(self, url: str) -> None:
        host, _, port = url.partition("://")[2].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=ANSWERED_WITHIN_S)
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def ask(self, path: str, *fields: str, body: str | None = None) -> None:
        """Send a GET, or a POST if there is a body."""
        method = "GET" if body is None else "POST"
        length = [] if body is None else [f"Content-Length: {len(body.encode())}"]
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", *fields, *length]
        self.send(("\r\n".join(head) + "\r\n\r\n" + (body or "")).encode())

    def answer(self) -> Answer | None:
        """The next answer; None if the connection was ended instead."""
        try:
            first = self._stream.readline()
        except ConnectionError:
            return None
        if not first:
            return None
        lines = list(iter(lambda: self._stream.readline().strip().decode(), ""))
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Answer(int(first.split()[1]), headers, self._stream.read(int(headers.get("content-length", 0))))

    def call(self, path: str, *fields: str, body: str | None = None) -> Answer:
        """Ask and wait."""
        self.ask(path, *fields, body=body)
        answer = self.answer()
        assert answer is not None, path
        return answer


def call(url: str, path: str, *fields: str, body: str | None = None) -> Answer:
    """One request on a connection of its own."""
    with Caller(url) as caller:
        return caller.call(path, *fields, body=body)


def entries(data_dir: Path) -> list[Entry]:
    """All that the journals of a data folder hold now."""
    return [
        decode(line)
        for slot in slots(data_dir / "journal")
        for segment in segments(slot)
        for frame in read(segment)
        for line in frame.lines
    ]


def sighted(data_dir: Path) -> list[Sighting]:
    """The same as it is shown to people."""
    return [sight(entry) for entry in entries(data_dir)]


def unsealed_lines(data_dir: Path) -> int:
    """Lines in segments that are not sealed."""
    live = [each for slot in slots(data_dir / "journal") for each in segments(slot) if each.state is State.LIVE]
    return sum(inspect(segment).lines for segment in live)


def parent_of(pid: int) -> int | None:
    """Who started a process that runs; None if it runs no more."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, parent = stat.rpartition(")")[2].split()[:2]
        return None if state == "Z" else int(parent)
    return None


def children(pid: int) -> list[int]:
    """The processes that a process started and that still run, oldest first."""
    running = (int(path.name) for path in Path("/proc").glob("[0-9]*"))
    return sorted(each for each in running if parent_of(each) == pid)


@dataclass
class Collect:
    """A running `clickclock collect`."""

    url: str
    process: subprocess.Popen[str]
    data_dir: Path

    @property
    def workers(self) -> list[int]:
        """The processes that answer."""
        return children(self.process.pid)

    def kill(self) -> None:
        """As a crash would, the one process alone."""
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self) -> int:
        """Cleanly; returns the exit code."""
        self.process.terminate()
        return self.process.wait(timeout=60)


def log_of(data_dir: Path) -> Path:
    """What a collector of this data folder wrote on standard error."""
    return data_dir.with_name(f"{data_dir.name}.log")


def start(
    data_dir: Path, *options: str, port: int = 0, variables: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start `clickclock collect`; it does not wait for anything."""
    settings = ["--data-dir", os.fspath(data_dir), "--click-port", str(port), *options]
    with log_of(data_dir).open("a") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "clickclock.cli", "collect", *settings],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": "src", **(variables or {})},
        )


def ready(process: subprocess.Popen[str], data_dir: Path) -> Collect:
    """Wait until it takes clicks."""
    watchdog = threading.Timer(READY_WITHIN_S, process.kill)
    watchdog.start()
    assert process.stdout is not None
    said = re.fullmatch(r"clicks are taken at (http://\S+)/aclick\n", process.stdout.readline())
    watchdog.cancel()
    assert said is not None, f"the collector ended with {process.wait()} before it was ready"
    return Collect(said[1], process, data_dir)


@contextlib.contextmanager
def collecting(
    data_dir: Path, *options: str, port: int = 0, variables: Mapping[str, str] | None = None
) -> Iterator[Collect]:
    """A collector that takes clicks; killed at the end if it still runs."""
    process = start(data_dir, *options, port=port, variables=variables)
    try:
        yield ready(process, data_dir)
    finally:
        workers = children(process.pid)
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
        # They end by themselves, and hold the data folder until then.
        until(lambda: not any(map(parent_of, workers)), "its workers are gone")
        if port:  # so does one that was just being started, or whose parent had been killed before
            until(lambda: is_free(port), "nobody listens any more")
        sys.stderr.write(log_of(data_dir).read_text())  # shown if the test fails

"""The real collector as a subprocess, and its journal.

Never talks to the collector but over HTTP. Invariant: whatever happens to the test, its collector is gone afterwards.
"""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from clickclock.attribution.clicks.entry import Entry, decode
from clickclock.attribution.journal import Tail

READY_WITHIN_S = 60
WRITTEN_WITHIN_S = 60.0


class Collector:
    """A running `clickclock collect`."""

    def __init__(self, url: str, journal: Path) -> None:
        self.url = url
        self.host = url.partition("://")[2].replace("127.0.0.1", "localhost")
        self._tail = Tail(journal)
        self._entries: list[Entry] = []

    def forget(self) -> None:
        """Let the next entry be the first."""
        self._read()
        self._entries.clear()

    def entries(self, count: int) -> list[Entry]:
        """The entries since then, once there are so many."""
        deadline = time.monotonic() + WRITTEN_WITHIN_S
        while len(self._entries) < count:
            assert time.monotonic() < deadline, self._entries
            time.sleep(0.01)
            self._read()
        return list(self._entries)

    def answered(self, status: int, at_least: int = 0) -> int:
        """How many requests were answered so, once they are so many."""
        deadline = time.monotonic() + WRITTEN_WITHIN_S
        while True:
            text = httpx.get(f"{self.url}/metrics").text
            found = re.search(rf'^clickclock_responses_total{{status="{status}"}} (\d+)$', text, re.MULTILINE)
            assert found is not None, text
            if int(found[1]) >= at_least:
                return int(found[1])
            assert time.monotonic() < deadline, text
            time.sleep(0.01)

    def _read(self) -> None:
        while frames := self._tail.read_more():
            self._entries += [decode(line) for frame in frames for line in frame.lines]


@contextlib.contextmanager
def collecting(data_dir: Path, *options: str) -> Iterator[Collector]:
    """A collector on a free port that takes clicks; drained at the end."""
    command = [sys.executable, "-m", "clickclock.cli", "collect", "--data-dir", str(data_dir), "--click-port", "0"]
    environment = {**os.environ, "PYTHONPATH": "src"}
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, env=environment)
    watchdog = threading.Timer(READY_WITHIN_S, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        ready = re.search(r"taken at (http://[^/]+)", process.stdout.readline())
        watchdog.cancel()
        assert ready is not None, f"the collector ended with {process.wait()} before it was ready"
        yield Collector(ready[1], data_dir / "journal" / "0")
    finally:
        watchdog.cancel()
        process.terminate()
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
            if process.stdout is not None:
                process.stdout.close()

"""Raw limits of this machine, under which no scheduler that starts a process and keeps its word can get.

`python -m tests.bench raw`
"""

import json
import sqlite3
import subprocess
import time
from pathlib import Path

from tests.bench.machine import sync_ms
from tests.bench.report import Report, percentile
from tests.bench.stamps import Stamps, compile_c, spawn


def run(folder: Path, *, quick: bool) -> Report:
    """Spawns per second, durable commits, disk syncs, and the start of a bare interpreter."""
    count = 300 if quick else 2000
    stamps = Stamps(folder)
    report = Report(f"raw: what the machine itself can do ({count} processes, one after the other)", who="this machine")
    report.add("C, vfork and exec", "processes/s", count / _vfork_s(folder, stamps, count))
    report.add("os.posix_spawn and waitpid", "processes/s", count / spawn_s(stamps, count))
    commits = commit_ms(folder, count // 2)
    report.add("SQLite commit, WAL, synchronous=FULL, p50", "ms", percentile(commits, 0.5))
    report.add("SQLite commit, WAL, synchronous=FULL, p99", "ms", percentile(commits, 0.99))
    for name, value in zip(("p50", "p99"), sync_ms(folder, count // 2), strict=True):
        report.add(f"4 KiB append and fdatasync, {name}", "ms", value)
    return report


def spawn_s(stamps: Stamps, count: int) -> float:
    """Seconds to run the job `count` times, one after the other."""
    begun = time.perf_counter()
    for n in range(count):
        spawn(stamps.argv(str(n)))
    return time.perf_counter() - begun


def _vfork_s(folder: Path, stamps: Stamps, count: int) -> float:
    compile_c("vfork.c", folder / "vfork")
    words = [str(folder / "vfork"), str(count), *stamps.argv("c")]
    return float(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)) / 1e9


def commit_ms(folder: Path, count: int) -> list[float]:
    """How long each of `count` durable transactions of one row took."""
    took = []
    connection = sqlite3.connect(folder / "commit.db", isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE row (number INTEGER PRIMARY KEY, words TEXT)")
        for n in range(count):
            begun = time.perf_counter()
            connection.execute("INSERT INTO row VALUES (?, ?)", (n, "x" * 200))
            took.append(1000 * (time.perf_counter() - begun))
    finally:
        connection.close()
    return took

"""The machine: what it is, how fast its disk says "written", and what a process used of it.

Never measures a product. Invariant: a process's own CPU time counts its threads and leaves out its children, which
are the jobs.

>>> cpu_seconds(os.getpid()) >= 0
True
"""

import contextlib
import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path

from tests.bench.report import percentile

_TICKS = os.sysconf("SC_CLK_TCK")


def describe(folder: Path) -> list[str]:
    """What this machine is, and how busy; `folder` is on the disk that is measured."""
    p50_ms, p99_ms = sync_ms(folder)
    load = ", ".join(f"{each:.2f}" for each in os.getloadavg())
    return [
        f"{os.cpu_count()} cores, {_cpu_model()}, Linux {platform.release()}, Python {platform.python_version()}",
        f"disk: 4 KiB append + fdatasync p50 {p50_ms:.3f} ms, p99 {p99_ms:.3f} ms",
        f"load average before the run: {load}",
    ]


def sync_ms(folder: Path, count: int = 300) -> tuple[float, float]:
    """p50 and p99 of appending 4 KiB and waiting until they are on disk."""
    block, took = b"x" * 4096, []
    file = os.open(folder / "sync", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(count):
            begun = time.perf_counter()
            os.write(file, block)
            os.fdatasync(file)
            took.append(1000 * (time.perf_counter() - begun))
    finally:
        os.close(file)
        (folder / "sync").unlink()
    return percentile(took, 0.5), percentile(took, 0.99)


def cpu_seconds(*pids: int) -> float:
    """User and system time of these processes, their children excluded; one that has ended counts nothing."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def resident_mb(pid: int) -> float:
    """Resident memory in 10^6 bytes."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) * 1024 / 1e6


def proportional_mb(pid: int) -> float:
    """The memory of a process, what it shares with others divided by how many they are (PSS)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def running_with(argument: str) -> list[int]:
    """Processes that have a word beginning with `argument` in their command line."""
    return [pid for pid in _pids() if any(word.startswith(argument) for word in _words(pid))]


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _pids() -> Iterable[int]:
    return (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(": ")[2]
    return platform.machine()

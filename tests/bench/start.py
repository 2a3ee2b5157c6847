"""What a short command and a start cost: CPU of `--help` and `job list`, start to ready, memory of an idle scheduler.

`python -m tests.bench start`. `CLICKCLOCK_BENCH_BASE` names the `src` of another commit: then both run in turns, and
the other one's numbers stand beside ours. Both are compiled first, as an installation is: else the one whose bytecode
is not kept would be slower by what compiling takes.
"""

import compileall
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import httpx

from tests.bench.machine import cpu_seconds, proportional_mb
from tests.bench.report import Goal, Report
from tests.bench.service import Service

BASE = "base"
SHARE = 0.6
MEMORY_MB = 100
SETTLED_S = 10.0


def run(folder: Path, *, quick: bool) -> Report:
    """Each in turns with the base, if there is one; the middle of what was measured."""
    report = Report("start: what a short command and a start cost")
    sources = {"ours": Path("src").resolve()}
    if base := os.environ.get("CLICKCLOCK_BENCH_BASE"):
        sources[BASE] = Path(base).resolve()
    else:
        report.notes.append("CLICKCLOCK_BENCH_BASE names no other commit to compare with")
    for source in sources.values():
        compileall.compile_dir(source / "clickclock", quiet=1)
    goal = Goal(factor=SHARE, of=BASE)
    with Service(folder, "--no-clicks") as service:
        for title, words in (("--help", ("--help",)), ("job list", ("--url", service.url, "job", "list"))):
            rounds = [{name: _command_ms(at, words) for name, at in sources.items()} for _ in range(5 if quick else 25)]
            _add(report, f"CPU of {title}", "ms", rounds, goal)
        time.sleep(SETTLED_S)
        report.add(
            "idle: memory of all processes", "MB", sum(map(proportional_mb, service.pids())), Goal(most=MEMORY_MB)
        )
    starts = [
        {name: _start(at, folder / f"{name}-{number}") for name, at in sources.items()}
        for number in range(3 if quick else 9)
    ]
    _add(report, "start to ready", "s", [{name: each[0] for name, each in turn.items()} for turn in starts], goal)
    _add(report, "CPU until ready", "s", [{name: each[1] for name, each in turn.items()} for turn in starts], goal)
    return report


def _add(report: Report, name: str, unit: str, rounds: list[dict[str, float]], goal: Goal) -> None:
    middle = {who: median(each[who] for each in rounds) for who in rounds[0]}
    report.add(name, unit, middle.pop("ours"), goal if middle else None, middle)


def _command_ms(source: Path, words: tuple[str, ...]) -> float:
    """The CPU that a command takes, its end included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "clickclock.cli", *words]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def _start(source: Path, folder: Path) -> tuple[float, float]:
    """Seconds until a service in an empty folder answers, and the CPU that the service has taken by then."""
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "clickclock.cli", "serve", "--data-dir", str(folder / "data"), "--no-clicks"]
    begun = time.perf_counter()
    with subprocess.Popen([*command, "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = next(line.split()[4] for line in process.stdout if " ready at " in line)
        httpx.get(f"{url}jobTrigger?limit=1").raise_for_status()
        ready_s, cpu_s = time.perf_counter() - begun, cpu_seconds(process.pid)
        process.terminate()
    return ready_s, cpu_s

"""From `start` to the container's first instruction, beside `podman run` (`python -m tests.bench containers`).

Both moments are the engine's own (`State.StartedAt`), one container at a time, ours and the engine's CLI in turns.
"""

import asyncio
import json
import re
import shutil
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.ids import new_id
from clickclock.scheduler.executors import Launch
from clickclock.scheduler.executors.container import ContainerExecutor
from tests.bench.report import Goal, Report, percentile
from tests.container_engine import IMAGE, OPTIONS, ContainerEngine, container_engine

CLI = "podman run"
WARM = 2


def run(folder: Path, *, quick: bool) -> Report:
    """In turns, so that both meet the same machine."""
    count = 10 if quick else 40
    report = Report(f"containers: start → first instruction, and → exit known; {count} one at a time")
    if shutil.which("podman") is None:
        report.notes.append("podman is not installed")
        return report
    with container_engine(folder) as engine:
        starts, ends = asyncio.run(_measure(engine, folder, count))
    for share, title in ((0.5, "median"), (0.9, "p90")):
        goal = Goal(factor=1.3, of=CLI) if share == 0.5 else None
        ours, theirs = (percentile(each, share) for each in starts)
        report.add(f"start → first instruction, {title}", "ms", ours, goal, {CLI: theirs})
        ours, theirs = (percentile(each, share) for each in ends)
        report.add(f"start → exit known, {title}", "ms", ours, None, {CLI: theirs})
    return report


async def _measure(
    engine: ContainerEngine, folder: Path, count: int
) -> tuple[tuple[list[float], list[float]], tuple[list[float], list[float]]]:
    changed = asyncio.Event()
    executor = ContainerExecutor(
        name="boxes",
        data_dir=folder / "data",
        node="bench",
        log_bytes_max=10**6,
        clock=SystemClock(),
        options={**OPTIONS, "engine": engine.address},
    )
    await executor.open(changed.set)
    starts: tuple[list[float], list[float]] = ([], [])
    ends: tuple[list[float], list[float]] = ([], [])
    for turn in range(-WARM, count):
        pairs = (await _ours(executor, changed, engine), await asyncio.to_thread(_theirs, engine))
        if turn >= 0:
            for place, (start_ms, end_ms) in enumerate(pairs):
                starts[place].append(start_ms)
                ends[place].append(end_ms)
    await executor.close()
    return starts, ends


async def _ours(executor: ContainerExecutor, changed: asyncio.Event, engine: ContainerEngine) -> tuple[float, float]:
    name = f"{new_id()}-1"
    begun_s = time.time()
    await executor.start([Launch(name, ("true",), image=IMAGE)])
    while (await executor.inventory())[name].exit is None:
        changed.clear()
        await changed.wait()
    ended_s = time.time()
    started_s = await asyncio.to_thread(_started_s, engine, f"clickclock-{name}")
    await executor.forget([name])
    return 1000 * (started_s - begun_s), 1000 * (ended_s - begun_s)


def _theirs(engine: ContainerEngine) -> tuple[float, float]:
    name = f"by-hand-{new_id()}"
    begun_s = time.time()
    engine.run("run", "--name", name, "--init", "--network=host", IMAGE, "true")
    ended_s = time.time()
    started_s = _started_s(engine, name)
    engine.run("rm", name)
    return 1000 * (started_s - begun_s), 1000 * (ended_s - begun_s)


def _started_s(engine: ContainerEngine, container: str) -> float:
    state: Any = json.loads(engine.run("inspect", "--format", "{{json .State}}", container))
    # Of nine digits Python takes six.
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", state["StartedAt"])).timestamp()

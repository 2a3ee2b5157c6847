"""From `POST jobTrigger` to the start of the process, and how many a second (`python -m tests.bench trigger`)."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from tests.bench.machine import cpu_seconds
from tests.bench.peer import Peer, present
from tests.bench.raw import spawn_s
from tests.bench.report import Goal, Report, percentile
from tests.bench.service import APPLICATION, Service
from tests.bench.stamps import Stamps, faults, in_ms

PEERS = ("APScheduler", "Celery")
CALLERS = 16
ROUNDS = 4
WARM = 20


def run(folder: Path, *, quick: bool) -> Report:
    """One at a time, in rounds with the peers; then 16 callers at once."""
    one_by_one, at_once = (100, 800) if quick else (200, 8000)
    report = Report(f"trigger: POST jobTrigger → process start; {one_by_one} one at a time, {at_once:,} by {CALLERS}")
    _sequential(folder, one_by_one, report)
    _crowd(folder, at_once, report)
    return report


def _sequential(folder: Path, count: int, report: Report) -> None:
    names = present(PEERS, report.notes)
    lags: dict[str, list[float]] = {name: [] for name in ("clickclock", *names)}
    for name in ("one", *names):
        (folder / name).mkdir()
    stamps = {"clickclock": Stamps(folder / "one"), **{name: Stamps(folder / name) for name in names}}
    with ExitStack() as stack:
        service = stack.enter_context(Service(folder / "one"))
        service.create_job("stamp", stamps["clickclock"].command("{{ parameters.n }}"), parameters={"n": None})
        peers = {name: stack.enter_context(Peer(name, folder / name)) for name in names}
        called(service, WARM, 1, stamps["clickclock"])
        for name, peer in peers.items():
            lags_of(peer, stamps[name], WARM)
        for _ in range(ROUNDS):
            lags["clickclock"] += lags_of_ours(service, stamps["clickclock"], count // ROUNDS, report)
            for name, peer in peers.items():
                lags[name] += lags_of(peer, stamps[name], count // ROUNDS)
    goals = {"median": Goal(most=2.5), "p99": Goal(most=10)}
    for share, title in ((0.5, "median"), (0.99, "p99"), (1.0, "max")):
        found = {who: percentile(each, share) for who, each in lags.items()}
        report.add(f"one at a time, {title}", "ms", found.pop("clickclock"), goals.get(title), found)


def _crowd(folder: Path, count: int, report: Report) -> None:
    (folder / "crowd").mkdir()
    stamps = Stamps(folder / "crowd")
    with Service(folder / "crowd") as service:
        service.create_job("stamp", stamps.command("{{ parameters.n }}"), parameters={"n": None})
        called(service, 50, CALLERS, None)
        stamps.wait_for(50, patience_s=5)
        stamps.clear()
        pids = service.pids()
        before_s = [cpu_seconds(pid) for pid in pids]
        told = called(service, count, CALLERS, None)
        started = stamps.wait_for(count, patience_s=20)
        service.settle()
        used_us = [1e6 * (cpu_seconds(pid) - before) / count for pid, before in zip(pids, before_s, strict=True)]
    first_ns = min(told["sent"].values())
    spawning_s = spawn_s(stamps, count // 4) * 4
    report.faults += faults("clickclock", started, told["sent"])
    if told["refused"]:
        report.faults.append(f"clickclock refused triggers: {told['refused'][0]}")
    report.add(f"{CALLERS} callers, accepted", "1/s", count / (told["last_answer"] - first_ns) * 1e9, Goal(least=800))
    last_ns = started[-1].at_ns if started else told["last_answer"]
    report.add(
        f"{CALLERS} callers, started",
        "1/s",
        len(started) / (last_ns - first_ns) * 1e9,
        Goal(least=800),
        {"spawn loop": count / spawning_s},
    )
    report.notes.append(
        f"{CALLERS} callers: CPU per trigger {used_us[0]:.0f} µs in the service, "
        f"{sum(used_us[1:]):.0f} µs in the supervisor"
    )


def lags_of_ours(service: Service, stamps: Stamps, count: int, report: Report) -> list[float]:
    """From each call of ours to the start of its process, one at a time, in ms."""
    stamps.clear()
    told = called(service, count, 1, stamps)
    started = stamps.read()
    report.faults += faults("clickclock", started, told["sent"])
    return [in_ms(each.at_ns - told["sent"][each.label]) for each in started if each.label in told["sent"]]


def called(service: Service, count: int, callers: int, stamps: Stamps | None) -> dict[str, Any]:
    """Have callers in another process trigger the job; returns what they tell (see `callers`)."""
    url = httpx.URL(service.url)
    words = [*(url.host, str(url.port), APPLICATION, "stamp", str(count), str(callers))]
    words += [str(stamps.file)] if stamps else []
    environment = os.environ | ({"CLICKCLOCK_TOKEN": service.token} if service.token else {})
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bench.callers", *words],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def lags_of(peer: Peer, stamps: Stamps, count: int) -> list[float]:
    """How long a peer takes from being asked to the start, one at a time, in ms."""
    lags = []
    for n in range(count):
        stamps.clear()
        asked_ns = peer.order("trigger", label=str(n))
        started = stamps.wait_for(1, patience_s=30, every_s=0.001)
        lags += [in_ms(each.at_ns - asked_ns) for each in started]
    return lags

"""What a large installation needs, simulated from measured unit costs (`python -m tests.bench scale`).

A million schedules with a thousand fires a second, and a billion clicks a day: how late, how full, with how many
machines, and what breaks first. Nothing here runs the product: the unit costs below were measured with it, and stand in
docs/explanation/performance.md; docs/explanation/scale.md says what follows.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from math import ceil
from pathlib import Path

from tests.bench.report import Report, percentile

DAY_S = 86_400


@dataclass(frozen=True)
class Fire:
    """What one fire costs: planned, claimed, started and concluded."""

    replica_ms: float = 0.67
    """CPU of a replica; beside the jobs, which run elsewhere."""
    database_ms: float = 0.60
    """CPU of PostgreSQL, with the commits shared by a batch."""
    commit_ms: float = 2.0
    """One durable commit on a database in the same zone, with the way there and back."""
    batch: int = 100
    """Fires that share it, at most."""
    row_bytes: int = 1_150
    """Of a trigger with its attempt, in its table and indexes."""


@dataclass(frozen=True)
class Click:
    """What one click costs, from the request to the credits."""

    collector_us: float = 12.3
    compaction_us: float = 3.07
    journal_bytes: int = 541
    lake_bytes: float = 71.7
    attribution_us: float = 8.5
    """CPU of a full run over all clicks, all models, by click."""
    sync_ms: float = 1.0
    """A sync of a network disk."""


@dataclass(frozen=True)
class Prices:
    """Dollars, as large clouds list them for machines that are kept."""

    core_hour: float = 0.04
    object_gb_month: float = 0.023
    disk_gb_month: float = 0.08


FIRE, CLICK, PRICES = Fire(), Click(), Prices()


def run(folder: Path, *, quick: bool) -> Report:
    """No measurement: seconds either way."""
    report = Report("scale: simulated from the unit costs in tests/bench/scale.py", with_ratios=False)
    _schedules(report, seconds=300 if quick else 900)
    _clicks(report, seconds=20 if quick else 120)
    report.notes.append(f"nothing in {folder.name} was measured: these are sums and a simulation")
    return report


def due(seconds: int, *, jitter_s: int, luck: random.Random) -> list[float]:
    """When a million schedules with a thousand fires a second are due, in one hour that begins on the hour.

    As people write them: 45,000 by the minute (three quarters of all fires), 540,000 by the hour, of which half on the
    hour itself, and 6,000 by the minute from any second on.
    """
    times: list[float] = []
    for minute in range(0, seconds, 60):
        times += [minute + luck.uniform(0, jitter_s) for _ in range(45_000)]
    times += [luck.uniform(0, jitter_s) for _ in range(270_000)]
    times += [luck.uniform(0, 3600) for _ in range(270_000)]
    for phase in (luck.uniform(0, 60) for _ in range(6_000)):
        times += [phase + minute for minute in range(0, seconds, 60)]
    return sorted(time for time in times if time < seconds)


def lags_s(times: list[float], replicas: int, database_cores: int, fire: Fire) -> Iterator[tuple[float, int]]:
    """Each batch of fires: how late its first one is, and how many they are.

    A batch waits for a replica, then for a core of the database; planning the next ones goes on meanwhile.
    """
    replica_free, core_free = [0.0] * replicas, [0.0] * database_cores
    heapify(replica_free)
    heapify(core_free)
    at = 0
    while at < len(times):
        begins = max(times[at], replica_free[0])
        end = at
        while end < len(times) and end - at < fire.batch and times[end] <= begins:
            end += 1
        count = max(1, end - at)
        ready = begins + count * fire.replica_ms / 1000
        written = max(ready, core_free[0]) + count * fire.database_ms / 1000
        heapreplace(core_free, written)
        heapreplace(replica_free, ready)  # the commit is waited for by a thread of its own
        yield written + fire.commit_ms / 1000 - times[at], count
        at += count


def _schedules(report: Report, seconds: int) -> None:
    luck = random.Random(1)
    for jitter_s in (0, 60):
        times = due(seconds, jitter_s=jitter_s, luck=luck)
        for replicas, cores in ((1, 2), (3, 4), (6, 8)):
            late = list(lags_s(times, replicas, cores, FIRE))
            name = f"{replicas} replicas, PostgreSQL on {cores} cores, jitter {jitter_s} s"
            lags = [lag for lag, count in late for _ in range(count)]
            for share, word in ((0.5, "lag p50"), (0.99, "lag p99"), (1.0, "latest")):
                report.add(f"{name}: {word}", "s", percentile(lags, share))
            report.add(f"{name}: database busy", "%", len(lags) * FIRE.database_ms / 10 / (cores * seconds))
    fires = 1000 * DAY_S
    report.add("rows of a day", "GB", fires * FIRE.row_bytes / 1e9)
    report.add("… kept for 30 days", "TB", 30 * fires * FIRE.row_bytes / 1e12)
    cores = ceil(1000 * (FIRE.replica_ms + FIRE.database_ms) / 1000 / 0.5)
    report.add("cores, half of them idle", "cores", cores)
    report.add("… a month", "$", cores * PRICES.core_hour * 730)


def waits_ms(per_s: float, hosts: int, seconds: int, click: Click, luck: random.Random) -> list[float]:
    """From a click's arrival at its host until its sync has returned: every sync takes all that has come meanwhile."""
    rate, now, found = per_s / hosts, 0.0, []
    waiting: list[float] = []
    arrival = luck.expovariate(rate)
    while now < seconds:
        while arrival <= now:
            waiting.append(arrival)
            arrival += luck.expovariate(rate)
        if not waiting:
            now = arrival
            continue
        now += len(waiting) * click.collector_us / 1e6 + luck.uniform(0.5, 1.5) * click.sync_ms / 1000
        found += [1000 * (now - came) for came in waiting]
        waiting = []
    return found


def _clicks(report: Report, seconds: int) -> None:
    luck = random.Random(1)
    a_day = 1_000_000_000
    mean = a_day / DAY_S
    report.add("clicks: mean", "1/s", mean)
    for factor, hosts in ((3, 1), (3, 3), (3, 2), (10, 3)):
        waits = waits_ms(factor * mean, hosts, seconds, CLICK, luck)
        name = f"{factor} × the mean on {hosts} host{'s' if hosts > 1 else ''}, one process each"
        report.add(f"{name}: p50", "ms", percentile(waits, 0.5))
        report.add(f"{name}: p99", "ms", percentile(waits, 0.99))
        report.add(f"{name}: busy", "%", 100 * factor * mean / hosts * CLICK.collector_us / 1e6)
    slow = waits_ms(3 * mean, 3, seconds, replace(CLICK, sync_ms=20.0), luck)
    report.add("3 × the mean on 3 hosts, syncs of 20 ms: p99", "ms", percentile(slow, 0.99))
    report.add("journal, until it is compacted", "GB an hour", 3600 * mean * CLICK.journal_bytes / 1e9)
    report.add("lake: a day", "GB", a_day * CLICK.lake_bytes / 1e9)
    report.add("lake: a year", "TB", 365 * a_day * CLICK.lake_bytes / 1e12)
    report.add("compaction: of a core", "%", 100 * mean * CLICK.compaction_us / 1e6)
    month = 30 * a_day
    full_h = month * CLICK.attribution_us / 1e6 / 3600
    report.add("a full run over 30 days", "core-hours", full_h)
    report.add("… with 64 cores", "h", full_h / 64)
    cores = 3 * 2 + 2
    dollars = cores * PRICES.core_hour * 730 + 30 * full_h / 10 * PRICES.core_hour
    stored = 365 * a_day * CLICK.lake_bytes / 1e9 * PRICES.object_gb_month
    report.add("collectors, compaction and daily runs: a month", "$", dollars)
    report.add("a year of clicks in an object store: a month", "$", stored)

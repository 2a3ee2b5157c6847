"""The audit trail behind a million records, and what a record adds to a change (`python -m tests.bench audit`).

Both stores, in this process: pages by every filter and by two together; then changes with and without a record, in
turns, so that whatever else happens on the machine happens to both. The disk syncs as always.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import uuid_utils

from clickclock.foundation.ids import new_id
from clickclock.scheduler.access.audit import Act
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import NewTrigger
from clickclock.scheduler.store import Store
from clickclock.scheduler.store.schema_audit import audit
from tests.bench.replicas import postgresql
from tests.bench.report import Goal, Report, percentile

PAGE_GOAL_MS = 50
DAYS = 28
CHUNK = 10_000
KINDS = (("job", "job.write"), ("trigger", "trigger.create"), ("schedule", "schedule.pause"), ("alarm", "alarm.read"))
_a = audit.c


def run(folder: Path, *, quick: bool) -> Report:
    """A million records (--quick: 100,000), and a thousand changes (200)."""
    count, changes = (100_000, 200) if quick else (1_000_000, 1_000)
    report = Report(
        f"audit: {count:,} records; the slowest of ten pages of 100; {changes:,} changes", with_ratios=False
    )
    folder.mkdir(exist_ok=True)
    asyncio.run(_of_store(f"sqlite:///{folder / 'clickclock.db'}", "SQLite", count, changes, report))
    with postgresql(folder) as server:
        server.psql("CREATE DATABASE audited;")
        asyncio.run(_of_store(str(server.get_uri("audited")), "PostgreSQL", count, changes, report))
    return report


async def _of_store(url: str, name: str, count: int, changes: int, report: Report) -> None:
    now = datetime.now(UTC)
    store = await Store.open(url)
    with store._database.engine.connect() as connection:
        for start in range(0, count, CHUNK):
            with connection.begin():
                connection.execute(sa.insert(audit), list(_records(now, start, count)))
    for question, filters in _questions(now).items():
        took = []
        for _ in range(11):
            begun = time.perf_counter()
            await store.audit.find(filters, None, 101)
            took.append(1000 * (time.perf_counter() - begun))
        report.add(f"{name}, {question}", "ms", max(took[1:]), Goal(most=PAGE_GOAL_MS), {"cold": took[0]})
    await _changes(store, name, changes, report)
    await store.close()


def _records(now: datetime, start: int, count: int) -> Iterator[dict[str, Any]]:
    step = timedelta(days=DAYS) / count
    for n in range(start, min(start + CHUNK, count)):
        at = now - timedelta(days=DAYS) + n * step
        resource, permission = KINDS[n % len(KINDS)]
        yield {
            "audit_id": str(uuid_utils.uuid7(nanoseconds=int(1e9 * at.timestamp()))),
            "at": at,
            "principal": "rare" if n % 100_000 == 0 else f"person-{n % 50}",
            "principal_id": f"person:{n % 50}",
            "proof": "session",
            "address": "203.0.113.7",
            "request_id": f"request-{n}",
            "operation": "PUT job",
            "permission": permission,
            "resource": resource,
            "resource_id": f"app-{n % 7}/job-{n % 1000}",
            "application": f"app-{n % 7}",
            "job_name": f"job-{n % 1000}",
            "outcome": "refused" if n % 10_000 == 1 else "done",
            "count": 1,
            "changes": '{"priority":{"before":50,"after":70}}',
            "chain": "past/0",
            "position": n + 1,
            "hash": "0" * 64,
        }


def _questions(now: datetime) -> dict[str, dict[str, Any]]:
    week = {"since": now - timedelta(days=14), "until": now - timedelta(days=7)}
    its_job = {"application": "app-3", "job_name": "job-500"}
    return {
        "all": {},
        "of a principal": {"principal": "person-7"},
        "of a principal with ten records": {"principal": "rare"},
        "of nobody": {"principal": "nobody"},
        "of a job": its_job,
        "of a thing": {"resource_id": "app-3/job-500"},
        "by permission": {"permission": "job.write"},
        "refused": {"outcome": "refused"},
        "of a week": week,
        "refused, of a week": {**week, "outcome": "refused"},
        "of a principal, refused": {"principal": "person-7", "outcome": "refused"},
        "of a principal, of an application, of a week": {**week, "principal": "person-7", "application": "app-3"},
        "of a kind alone": {"resource": "alarm"},
        "of a kind that there is none of": {"resource": "calendar"},
        "of nothing by five filters": {
            "principal": "person-7",
            "permission": "job.write",
            "outcome": "refused",
            "resource": "alarm",
            "application": "app-3",
        },
        "of a chain": {"chain": "past/0"},
    }


async def _changes(store: Store, name: str, changes: int, report: Report) -> None:
    now = datetime.now(UTC)
    act = Act(now, "POST job", "job.write", "ada", "person:1", "session", "203.0.113.7", "request")
    await store.jobs.create([_job("triggered")], now)
    took: dict[tuple[str, bool], list[float]] = {}
    for n in range(2 * changes):
        is_audited = n % 2 == 0
        new = NewTrigger(trigger_id=new_id(), application="bench", job_name="triggered", parameters={})
        with store.audit.by(act) if is_audited else contextlib.nullcontext():
            for what, change in (
                ("POST job", lambda n=n: store.jobs.create([_job(f"job-{n}")], now)),
                ("POST jobTrigger", lambda new=new: store.triggers.create(new, now)),
            ):
                begun = time.perf_counter()
                await change()
                took.setdefault((what, is_audited), []).append(1000 * (time.perf_counter() - begun))
    for what in ("POST job", "POST jobTrigger"):
        median, without = (percentile(took[what, each], 0.5) for each in (True, False))
        report.add(f"{name}, {what} in the store, median", "ms", median, None, {"without a record": without})


def _job(job_name: str) -> Job:
    return Job(application="bench", job_name=job_name, command="python export.py", parameters={"day": "today"})

"""A past, written straight into a store: a million finished triggers with their attempts, rollups and pulses.

Never goes through the service, which would need half an hour for it. Invariant: the rollups are made by the store's
own code, from the same endings as the rows.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import uuid_utils

from clickclock.scheduler.insight.statistics import Ending
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store.rollups import count
from clickclock.scheduler.store.schema import attempt, job_trigger

APPLICATIONS = 5
JOBS = 20
"""In each application."""
DAYS = 28
CHUNK = 20_000
_ENDS = (State.SUCCEEDED,) * 95 + (State.FAILED,) * 3 + (State.TIMED_OUT, State.SKIPPED)


@dataclass(frozen=True)
class Past:
    """What is in the rows of one trigger."""

    trigger_id: str
    ending: Ending
    due: datetime
    started: datetime | None


def name_of(n: int) -> tuple[str, str]:
    """Application and name of the n-th job."""
    return f"history-{n % APPLICATIONS}", f"job-{n // APPLICATIONS % JOBS}"


def write(database: Path, now: datetime, count: int) -> None:
    """Add `count` finished triggers, evenly over the last `DAYS` days before `now`."""
    insert(database, _past(now, count))


def insert(database: Path, pasts: Iterable[Past]) -> None:
    """Add these triggers."""
    engine = sa.create_engine(f"sqlite:///{database}")
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA synchronous=OFF")
        connection.exec_driver_sql("PRAGMA cache_size=-262144")
        connection.commit()
        chunk: list[Past] = []
        for each in pasts:
            chunk.append(each)
            if len(chunk) == CHUNK:
                _insert(connection, chunk)
                chunk = []
        if chunk:
            _insert(connection, chunk)
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()


def _insert(connection: sa.Connection, chunk: list[Past]) -> None:
    with connection.begin():
        connection.execute(sa.insert(job_trigger), [_trigger_row(each) for each in chunk])
        connection.execute(sa.insert(attempt), [_attempt_row(each) for each in chunk if each.started is not None])
        count(connection, CHUNK, waits=True)


def _past(now: datetime, count: int) -> Iterator[Past]:
    chance = random.Random(1)
    step = timedelta(days=DAYS) / count
    for n in range(count):
        due = now - step * (count - n)
        state = chance.choice(_ENDS)
        application, job_name = name_of(n)
        lag_ms, duration_ms = chance.lognormvariate(1.5, 0.7), chance.lognormvariate(7, 1)
        memory = chance.randrange(10**7, 10**8)
        if state is State.SKIPPED:
            yield _of(Ending(application, job_name, state, due), due, None)
        else:
            yield ran((application, job_name), state, due, lag_ms, duration_ms, memory, until=now)


def ran(
    job: tuple[str, str],
    state: State,
    due: datetime,
    lag_ms: float,
    duration_ms: float,
    memory: int,
    *,
    until: datetime,
) -> Past:
    """A trigger that ran, for so long or until then, with `memory` bytes at most."""
    started = due + timedelta(milliseconds=lag_ms)
    ending = Ending(
        *job,
        state,
        min(until, started + timedelta(milliseconds=duration_ms)),
        attempts=1,
        duration_ms=duration_ms,
        lag_ms=lag_ms,
        cpu_seconds=duration_ms / 5000,
        max_memory_bytes=memory,
    )
    return _of(ending, due, started)


def _of(ending: Ending, due: datetime, started: datetime | None) -> Past:
    return Past(str(uuid_utils.uuid7(nanoseconds=int(1e9 * due.timestamp()))), ending, due, started)


def _trigger_row(past: Past) -> dict[str, Any]:
    ending = past.ending
    return {
        "trigger_id": past.trigger_id,
        "kind": "schedule",
        "application": ending.application,
        "job_name": ending.job_name,
        "schedule_id": f"{ending.application}.{ending.job_name}",
        "group_name": "history",
        "cluster": "local",
        "state": ending.state,
        "skip_reason": "overlap" if ending.state is State.SKIPPED else None,
        "nominal_time": past.due,
        "due_time": past.due,
        "ready_at": past.due,
        "queued_at": past.due,
        "started_at": past.started,
        "finished_at": ending.finished_at,
        "lag_ms": None if ending.lag_ms is None else round(ending.lag_ms),
        "serial": False,
        "priority": 50,
        "attempt": ending.attempts,
        "max_attempts": 1,
        "exit_code": {State.SUCCEEDED: 0, State.FAILED: 1}.get(ending.state),
        "node": "bench",
        "resolved_command": ["/usr/bin/true"],
        "parameters": {},
        "cpu_seconds": ending.cpu_seconds,
        "max_memory_bytes": ending.max_memory_bytes,
        "preemption_count": 0,
    }


def _attempt_row(past: Past) -> dict[str, Any]:
    return {
        "trigger_id": past.trigger_id,
        "attempt": 1,
        "state": past.ending.state,
        "started_at": past.started,
        "finished_at": past.ending.finished_at,
        "exit_code": {State.SUCCEEDED: 0, State.FAILED: 1}.get(past.ending.state),
        "cluster": "local",
        "node": "bench",
        "cpu_seconds": past.ending.cpu_seconds,
        "max_memory_bytes": past.ending.max_memory_bytes,
    }

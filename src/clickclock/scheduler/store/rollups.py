"""Statistics in the store: concluded triggers, counted once each into rollups by scope and hour.

Never reads history: what was counted is not looked at again, so an answer takes milliseconds behind a million rows.
Invariant: a trigger is marked as counted in the transaction that adds it to the rollups, so it counts exactly once,
whatever dies. Counting in batches, apart from concluding, keeps it out of the way of the living.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.statistics import FAILURES, Ending, Key, Rollup, Scope, roll_up, streak
from clickclock.scheduler.store.alarming import take_note
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import insert_of
from clickclock.scheduler.store.schema import (
    MILLISECOND,
    UNCOUNTED_ROWS,
    UNFINISHED_ROWS,
    job_pulse,
    job_trigger,
    rollup,
)
from clickclock.scheduler.trigger import LIVE, State

COUNT_MAX = 1000
"""Triggers counted in one transaction."""
KEYS_PER_QUERY = 200
_COUNTING_LOCK = 0x636C6B64
"""On PostgreSQL one replica counts at a time; the others need not."""

_t = job_trigger.c
_key = sa.tuple_(rollup.c.kind, rollup.c.application, rollup.c.name, rollup.c.hour)
# Statements are made once: making one costs more than running it.
_UNCOUNTED = (
    sa.select(
        _t.trigger_id, _t.application, _t.job_name, _t.group_name, _t.state, _t.skipped_count, _t.started_at,
        _t.finished_at, _t.attempt, _t.preemption_count, _t.lag_ms, _t.cpu_seconds, _t.max_memory_bytes,
        _t.message,
    )
    .where(UNCOUNTED_ROWS)
    .order_by(_t.finished_at, _t.trigger_id)
    .limit(sa.bindparam("most"))
)  # fmt: skip
_ROLLUPS = sa.select(rollup).where(_key.in_(sa.bindparam("keys", expanding=True)))
_COUNTED = sa.update(job_trigger).where(_t.trigger_id == sa.bindparam("b_id")).values(counted=True)
_PULSES = sa.select(job_pulse).where(
    sa.tuple_(job_pulse.c.application, job_pulse.c.job_name).in_(sa.bindparam("jobs", expanding=True))
)
_NO_PULSE: dict[str, Any] = {
    "streak": 0,
    "last_success_id": None,
    "last_success_at": None,
    "last_failure_id": None,
    "last_failure_at": None,
}


def count(connection: sa.Connection, most: int) -> int:
    """Count up to `most` concluded triggers, the oldest first; returns how many there were."""
    if connection.dialect.name == "postgresql":
        mine = connection.execute(sa.select(sa.func.pg_try_advisory_xact_lock(_COUNTING_LOCK))).scalar()
        if not mine:
            return 0
    rows = connection.execute(_UNCOUNTED, {"most": most}).all()
    if rows:
        endings = [_ending(row) for row in rows]
        _add(connection, roll_up(endings))
        take_note(connection, rows)
        _feel_pulse(connection, [(row.trigger_id, ending) for row, ending in zip(rows, endings, strict=True)])
        connection.execute(_COUNTED, [{"b_id": row.trigger_id} for row in rows])
    return len(rows)


def _ending(row: Any) -> Ending:
    ran = row.started_at is not None
    return Ending(
        row.application,
        row.job_name,
        State(row.state),
        row.finished_at,
        group_name=row.group_name,
        count=row.skipped_count or 1,
        attempts=row.attempt,
        preemption_count=row.preemption_count,
        duration_ms=(row.finished_at - row.started_at) / MILLISECOND if ran else None,
        lag_ms=row.lag_ms,
        cpu_seconds=row.cpu_seconds,
        max_memory_bytes=row.max_memory_bytes,
    )


def _add(connection: sa.Connection, rollups: Mapping[Key, Rollup]) -> None:
    keys = [(*key.scope, key.hour) for key in rollups]
    for start in range(0, len(keys), KEYS_PER_QUERY):
        for row in connection.execute(_ROLLUPS, {"keys": keys[start : start + KEYS_PER_QUERY]}):
            key = Key(Scope(row.kind, row.application, row.name), row.hour)
            rollups[key].merge(Rollup.load(row.content))
    connection.execute(
        _set_rollup(connection.dialect.name),
        [{**key.scope._asdict(), "hour": key.hour, "content": each.dump()} for key, each in rollups.items()],
    )


@lru_cache
def _set_rollup(dialect: str) -> Any:
    statement = insert_of(dialect, rollup)
    return statement.on_conflict_do_update(
        index_elements=["kind", "application", "name", "hour"], set_={"content": statement.excluded.content}
    )


@lru_cache
def _set_pulse(dialect: str) -> Any:
    statement = insert_of(dialect, job_pulse)
    return statement.on_conflict_do_update(
        index_elements=["application", "job_name"], set_={name: statement.excluded[name] for name in _NO_PULSE}
    )


def _feel_pulse(connection: sa.Connection, endings: Sequence[tuple[str, Ending]]) -> None:
    told = [(trigger_id, each) for trigger_id, each in endings if each.state in FAILURES | {State.SUCCEEDED}]
    jobs = sorted({(each.application, each.job_name) for _, each in told})
    pulses: dict[tuple[str, str], dict[str, Any]] = {}
    for start in range(0, len(jobs), KEYS_PER_QUERY):
        for row in connection.execute(_PULSES, {"jobs": jobs[start : start + KEYS_PER_QUERY]}):
            pulses[row.application, row.job_name] = row._asdict()
    for trigger_id, each in told:
        pulse = pulses.setdefault((each.application, each.job_name), dict(_NO_PULSE))
        outcome = "success" if each.state is State.SUCCEEDED else "failure"
        pulse["streak"] = streak(pulse["streak"], each.state)
        pulse[f"last_{outcome}_id"], pulse[f"last_{outcome}_at"] = trigger_id, each.finished_at
    if jobs:
        connection.execute(
            _set_pulse(connection.dialect.name),
            [{**pulses[key], "application": key[0], "job_name": key[1]} for key in jobs],
        )


class Statistics:
    """Rollups, written in batches and read by window."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self) -> int:
        """Count a batch of what concluded; returns how many, at most `COUNT_MAX`."""
        return await self._database.write(lambda c: count(c, COUNT_MAX))

    async def count_all(self) -> None:
        """Count all that has concluded by now."""
        while await self.count() == COUNT_MAX:
            pass

    async def rollups(self, scope: Scope, since: datetime, until: datetime) -> list[tuple[datetime, Rollup]]:
        """A scope's rollups of all hours that begin in [since, until), oldest first, with what just concluded."""
        await self.count_all()
        query = (
            sa.select(rollup.c.hour, rollup.c.content)
            .where(
                rollup.c.kind == scope.kind,
                rollup.c.application == scope.application,
                rollup.c.name == scope.name,
                rollup.c.hour >= since,
                rollup.c.hour < until,
            )
            .order_by(rollup.c.hour)
        )
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [(row.hour, Rollup.load(row.content)) for row in rows]

    async def pulse(self, application: str, job_name: str) -> Mapping[str, Any] | None:
        """Streak, last success and last failure of a job (columns of `job_pulse`), if it ever ended."""
        await self.count_all()
        query = sa.select(job_pulse).where(job_pulse.c.application == application, job_pulse.c.job_name == job_name)
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        return None if row is None else row._asdict()

    async def live_counts(self, filters: Mapping[str, Any]) -> tuple[int, int]:
        """How many triggers are queued, and how many start or run; `filters` are columns of the trigger."""
        query = (
            sa.select(_t.state, sa.func.count().label("here"))
            .where(UNFINISHED_ROWS, *(_t[name] == value for name, value in filters.items()))
            .group_by(_t.state)
        )
        counts = {State(row.state): row.here for row in await self._database.read(lambda c: c.execute(query).all())}
        return counts.get(State.QUEUED, 0), sum(counts.get(state, 0) for state in LIVE)

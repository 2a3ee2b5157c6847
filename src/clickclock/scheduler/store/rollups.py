"""Statistics in the store: what concluded, rolled up by job and hour in the transaction that concluded it.

Never reads triggers: history can be a million rows long and an answer still takes milliseconds.
Invariants: a rollup row is only ever added to; batches add in key order, so that two replicas cannot deadlock.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.statistics import FAILURES, Ending, Key, Rollup, Spread, roll_up, streak
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import insert_of
from clickclock.scheduler.store.schema import (
    UNFINISHED_ROWS,
    job,
    job_hour,
    job_hour_bucket,
    job_pulse,
    job_trigger,
)
from clickclock.scheduler.trigger import LIVE, State

_KEY = ("application", "job_name", "hour")
_ADDED = (
    "succeeded", "failed", "timed_out", "cancelled", "lost", "skipped", "retry_count", "preemption_count",
    "duration_count", "lag_count", "duration_sum", "lag_sum", "cpu_seconds",
)  # fmt: skip
_SMALLEST = ("duration_min", "lag_min")
_LARGEST = ("duration_max", "lag_max", "max_memory_bytes")
_STATE_COLUMNS = {
    State.SUCCEEDED: "succeeded",
    State.FAILED: "failed",
    State.TIMED_OUT: "timed_out",
    State.CANCELLED: "cancelled",
    State.LOST: "lost",
    State.SKIPPED: "skipped",
}


def record(connection: sa.Connection, endings: Sequence[tuple[str, Ending]]) -> None:
    """Add concluded triggers (each with its id) to the rollups and the pulses of their jobs, in this transaction."""
    if not endings:
        return
    rollups = sorted(roll_up(ending for _, ending in endings).items())
    dialect = connection.dialect.name
    connection.execute(_add_hours(dialect), [_hour_row(key, rollup) for key, rollup in rollups])
    buckets = [row for key, rollup in rollups for row in _bucket_rows(key, rollup)]
    if buckets:
        connection.execute(_add_buckets(dialect), buckets)
    _record_pulse(connection, endings)


# Statements are made once: making one costs more than running it.
@lru_cache
def _add_hours(dialect: str) -> Any:
    statement = insert_of(dialect, job_hour)
    old, new = job_hour.c, statement.excluded
    return statement.on_conflict_do_update(
        index_elements=_KEY,
        set_={
            **{name: old[name] + new[name] for name in _ADDED},
            **{name: _either(old[name] < new[name], old[name], new[name]) for name in _SMALLEST},
            **{name: _either(old[name] > new[name], old[name], new[name]) for name in _LARGEST},
        },
    )


@lru_cache
def _add_buckets(dialect: str) -> Any:
    statement = insert_of(dialect, job_hour_bucket)
    return statement.on_conflict_do_update(
        index_elements=[*_KEY, "metric", "bucket"],
        set_={"count": job_hour_bucket.c.count + statement.excluded.count},
    )


@lru_cache
def _set_pulse(dialect: str) -> Any:
    statement = insert_of(dialect, job_pulse)
    return statement.on_conflict_do_update(
        index_elements=["application", "job_name"], set_={name: statement.excluded[name] for name in _NO_PULSE}
    )


_PULSES = (
    sa.select(job_pulse)
    .where(sa.tuple_(job_pulse.c.application, job_pulse.c.job_name).in_(sa.bindparam("jobs", expanding=True)))
    .order_by(job_pulse.c.application, job_pulse.c.job_name)
    .with_for_update()
)
_NO_PULSE: dict[str, Any] = {
    "streak": 0,
    "last_success_id": None,
    "last_success_at": None,
    "last_failure_id": None,
    "last_failure_at": None,
}


def _either(first: sa.ColumnElement[bool], old: Any, new: Any) -> sa.ColumnElement[Any]:
    """`old` if it is `first` or there is nothing else; portable where `min(a, b)` and `least(a, b)` are not."""
    return sa.case((sa.or_(first, new.is_(None)), old), else_=new)


def _hour_row(key: Key, rollup: Rollup) -> dict[str, Any]:
    return {
        **key._asdict(),
        **{column: rollup.states[state] for state, column in _STATE_COLUMNS.items()},
        "retry_count": rollup.retry_count,
        "preemption_count": rollup.preemption_count,
        "cpu_seconds": rollup.cpu_seconds,
        "max_memory_bytes": rollup.max_memory_bytes,
        **_spread_columns("duration", rollup.duration),
        **_spread_columns("lag", rollup.lag),
    }


def _spread_columns(name: str, spread: Spread) -> dict[str, Any]:
    return {
        f"{name}_count": spread.count,
        f"{name}_sum": spread.sum_ms,
        f"{name}_min": spread.min_ms,
        f"{name}_max": spread.max_ms,
    }


def _bucket_rows(key: Key, rollup: Rollup) -> Iterable[dict[str, Any]]:
    for metric, spread in (("duration", rollup.duration), ("lag", rollup.lag)):
        for bucket, count in sorted(spread.buckets.items()):
            yield {**key._asdict(), "metric": metric, "bucket": bucket, "count": count}


def _record_pulse(connection: sa.Connection, endings: Sequence[tuple[str, Ending]]) -> None:
    told = [(trigger_id, each) for trigger_id, each in endings if each.state in FAILURES | {State.SUCCEEDED}]
    jobs = sorted({(each.application, each.job_name) for _, each in told})
    if not jobs:
        return
    pulses: dict[tuple[str, str], dict[str, Any]] = {
        (row.application, row.job_name): dict(row._mapping) for row in connection.execute(_PULSES, {"jobs": jobs})
    }
    for trigger_id, each in told:
        pulse = pulses.setdefault((each.application, each.job_name), dict(_NO_PULSE))
        outcome = "success" if each.state is State.SUCCEEDED else "failure"
        pulse["streak"] = streak(pulse["streak"], each.state)
        pulse[f"last_{outcome}_id"], pulse[f"last_{outcome}_at"] = trigger_id, each.finished_at
    connection.execute(
        _set_pulse(connection.dialect.name),
        [{**pulses[key], "application": key[0], "job_name": key[1]} for key in jobs],
    )


class Statistics:
    """Rollups for reading."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rollups(
        self, filters: Mapping[str, Any], group_name: str | None, since: datetime, until: datetime, *, by_hour: bool
    ) -> list[tuple[Key, Rollup]]:
        """Rollups of all hours that begin in [since, until), summed over jobs; one per hour, or one for all."""

        def work(connection: sa.Connection) -> list[tuple[Key, Rollup]]:
            return _read(connection, filters, group_name, since, until, by_hour=by_hour)

        return await self._database.read(work)

    async def pulse(self, application: str, job_name: str) -> Mapping[str, Any] | None:
        """Streak, last success and last failure of a job (columns of `job_pulse`), if it ever ended."""
        query = sa.select(job_pulse).where(job_pulse.c.application == application, job_pulse.c.job_name == job_name)
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        return None if row is None else row._asdict()

    async def live_counts(self, filters: Mapping[str, Any]) -> tuple[int, int]:
        """How many triggers are queued, and how many start or run; `filters` are columns of the trigger."""
        query = (
            sa.select(job_trigger.c.state, sa.func.count())
            .where(
                UNFINISHED_ROWS,
                *(job_trigger.c[name] == value for name, value in filters.items()),
            )
            .group_by(job_trigger.c.state)
        )
        counts = {State(state): n for state, n in await self._database.read(lambda c: c.execute(query).all())}
        return counts.get(State.QUEUED, 0), sum(counts.get(state, 0) for state in LIVE)


def _read(
    connection: sa.Connection,
    filters: Mapping[str, Any],
    group_name: str | None,
    since: datetime,
    until: datetime,
    *,
    by_hour: bool,
) -> list[tuple[Key, Rollup]]:
    def conditions(table: sa.Table) -> list[sa.ColumnElement[bool]]:
        wanted = [table.c.hour >= since, table.c.hour < until]
        wanted += [table.c[name] == value for name, value in filters.items()]
        if group_name is not None:
            wanted.append(_member(table, group_name))
        return wanted

    hour = [job_hour.c.hour] if by_hour else []
    totals = (
        sa.select(
            *hour,
            *(sa.func.coalesce(sa.func.sum(job_hour.c[name]), 0).label(name) for name in _ADDED),
            *(sa.func.min(job_hour.c[name]).label(name) for name in _SMALLEST),
            *(sa.func.max(job_hour.c[name]).label(name) for name in _LARGEST),
        )
        .where(*conditions(job_hour))
        .group_by(*hour)
    )
    bucket_hour = [job_hour_bucket.c.hour] if by_hour else []
    buckets = (
        sa.select(
            *bucket_hour,
            job_hour_bucket.c.metric,
            job_hour_bucket.c.bucket,
            sa.func.sum(job_hour_bucket.c.count).label("values"),
        )
        .where(*conditions(job_hour_bucket))
        .group_by(*bucket_hour, job_hour_bucket.c.metric, job_hour_bucket.c.bucket)
    )
    found: dict[datetime, Rollup] = {}
    for row in connection.execute(totals):
        found[row.hour if by_hour else since] = _rollup(row)
    for row in connection.execute(buckets):
        rollup = found[row.hour if by_hour else since]
        spread = rollup.duration if row.metric == "duration" else rollup.lag
        spread.buckets[row.bucket] = int(row.values)
    application, job_name = filters.get("application", ""), filters.get("job_name", "")
    return [(Key(application, job_name, start), rollup) for start, rollup in sorted(found.items())]


def _member(table: sa.Table, group_name: str) -> sa.ColumnElement[bool]:
    return sa.exists().where(
        job.c.application == table.c.application, job.c.job_name == table.c.job_name, job.c.group_name == group_name
    )


def _rollup(row: Any) -> Rollup:
    rollup = Rollup(
        retry_count=int(row.retry_count),
        preemption_count=int(row.preemption_count),
        duration=Spread(int(row.duration_count), float(row.duration_sum), row.duration_min, row.duration_max),
        lag=Spread(int(row.lag_count), float(row.lag_sum), row.lag_min, row.lag_max),
        cpu_seconds=float(row.cpu_seconds),
        max_memory_bytes=row.max_memory_bytes,
    )
    rollup.states.update({state: int(getattr(row, column)) for state, column in _STATE_COLUMNS.items()})
    return rollup

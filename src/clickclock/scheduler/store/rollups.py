"""Statistics in the store: concluded triggers, counted once each into rollups by scope and hour.

Never reads history: what was counted is not looked at again, so an answer takes milliseconds behind a million rows.
Invariant: a trigger is marked as counted in the transaction that adds it to the rollups, so it counts exactly once,
whatever dies. Counting in batches, apart from concluding, keeps it out of the way of the living.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.insight.grid import Figure
from clickclock.scheduler.insight.ranking import Job, Rank
from clickclock.scheduler.insight.statistics import FAILURES, Ending, Key, Rollup, Scope, is_flip, roll_up, streak
from clickclock.scheduler.jobs.trigger import LIVE, State, Trigger
from clickclock.scheduler.store.alarm_evaluation import take_note
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.history_page import unled
from clickclock.scheduler.store.rows import ENDING_COLUMNS, among, ending_of, equal, insert_of, trigger_of
from clickclock.scheduler.store.schema import (
    UNCOUNTED_ROWS,
    UNFINISHED_ROWS,
    UNLED_GROUP,
    job_pulse,
    job_trigger,
    rollup,
)
from clickclock.scheduler.store.windows import Counted, ends_of, grid_of, nodes_of, ranking_of, rollups_of, window_of

COUNT_MAX = 100
"""Triggers counted in one transaction: some 5 ms, for which live triggers may have to wait."""
KEYS_PER_QUERY = 200
_COUNTING_LOCK = 0x636C6B64
"""On PostgreSQL one transaction counts at a time; a replica that only helps need not wait for it."""

_t = job_trigger.c
_key = sa.tuple_(rollup.c.kind, rollup.c.application, rollup.c.name, rollup.c.hour)
# Statements are made once: making one costs more than running it.
_UNCOUNTED = (
    sa.select(*ENDING_COLUMNS, _t.message)
    .where(UNCOUNTED_ROWS)
    .order_by(_t.finished_at, _t.trigger_id)
    .limit(sa.bindparam("most"))
)
_ROLLUPS = sa.select(rollup).where(_key.in_(sa.bindparam("keys", expanding=True)))
_PULSES = sa.select(job_pulse).where(
    sa.tuple_(job_pulse.c.application, job_pulse.c.job_name).in_(sa.bindparam("jobs", expanding=True))
)
_OUTCOMES = FAILURES | {State.SUCCEEDED}
_NO_PULSE: dict[str, Any] = {
    "streak": 0,
    "last_success_id": None,
    "last_success_at": None,
    "last_failure_id": None,
    "last_failure_at": None,
}


def count(connection: sa.Connection, most: int, *, waits: bool) -> list[Ending]:
    """Count up to `most` concluded triggers, the oldest first; returns them.

    While another transaction counts, either wait until it has, or leave it to that.
    """
    if not hold_counts(connection, waits=waits):
        return []
    endings: list[Ending] = []
    rows = connection.execute(_UNCOUNTED, {"most": most}).all()
    if rows:
        flips = _feel_pulse(connection, rows)
        endings = [ending_of(row, is_flip=row.trigger_id in flips) for row in rows]
        _add(connection, roll_up(endings))
        take_note(connection, rows)
        connection.execute(_mark(connection.dialect.name), {"counted": [row.trigger_id for row in rows]})
        if flips:
            connection.execute(_mark_flips(connection.dialect.name), {"flips": sorted(flips)})
    return endings


def hold_counts(connection: sa.Connection, *, waits: bool) -> bool:
    """Let nobody else count until this transaction ends; whether it is so. SQLite has one writer anyway."""
    if connection.dialect.name != "postgresql":
        return True
    lock = sa.func.pg_advisory_xact_lock if waits else sa.func.pg_try_advisory_xact_lock
    return connection.execute(sa.select(lock(_COUNTING_LOCK))).scalar() is not False


def uncount(connection: sa.Connection, undone: Iterable[Ending]) -> None:
    """Take skips that were counted and are undone out of the rollups that are still kept; counts have to be held."""
    gone = roll_up(undone)
    left = dict(_rollups(connection, list(gone)))
    for key, each in left.items():
        each.states = {state: n for state, had in each.states.items() if (n := had - gone[key].states.get(state, 0))}
    _set(connection, {key: each for key, each in left.items() if each.states})
    for key in (key for key, each in left.items() if not each.states):
        connection.execute(sa.delete(rollup).where(_key == (*key.scope, key.hour)))


def _add(connection: sa.Connection, rollups: Mapping[Key, Rollup]) -> None:
    for key, known in _rollups(connection, list(rollups)):
        rollups[key].merge(known)
    _set(connection, rollups)


def _rollups(connection: sa.Connection, wanted: Sequence[Key]) -> Iterator[tuple[Key, Rollup]]:
    """Those of the rollups that there are."""
    keys = [(*key.scope, key.hour) for key in wanted]
    for start in range(0, len(keys), KEYS_PER_QUERY):
        for row in connection.execute(_ROLLUPS, {"keys": keys[start : start + KEYS_PER_QUERY]}):
            yield Key(Scope(row.kind, row.application, row.name), row.hour), Rollup.load(row.content)


def _set(connection: sa.Connection, rollups: Mapping[Key, Rollup]) -> None:
    rows = [{**key.scope._asdict(), "hour": key.hour, "content": each.dump()} for key, each in rollups.items()]
    if rows:
        connection.execute(_set_rollup(connection.dialect.name), rows)


@lru_cache
def _mark(dialect: str) -> sa.Update:
    return sa.update(job_trigger).where(among(dialect, _t.trigger_id, "counted")).values(counted=sa.true())


@lru_cache
def _mark_flips(dialect: str) -> sa.Update:
    return sa.update(job_trigger).where(among(dialect, _t.trigger_id, "flips")).values(is_flip=sa.true())


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


def _feel_pulse(connection: sa.Connection, rows: Sequence[Any]) -> set[str]:
    """Bring the pulses of the jobs of these triggers up to date; the ids of those that flipped their job's outcome."""
    told = [(row, State(row.state)) for row in rows if row.state in _OUTCOMES]
    jobs = sorted({(row.application, row.job_name) for row, _ in told})
    pulses: dict[tuple[str, str], dict[str, Any]] = {}
    for start in range(0, len(jobs), KEYS_PER_QUERY):
        for row in connection.execute(_PULSES, {"jobs": jobs[start : start + KEYS_PER_QUERY]}):
            pulses[row.application, row.job_name] = row._asdict()
    flips = set()
    for row, state in told:
        pulse = pulses.setdefault((row.application, row.job_name), dict(_NO_PULSE))
        outcome = "success" if state is State.SUCCEEDED else "failure"
        if is_flip(pulse["streak"], state):
            flips.add(row.trigger_id)
        pulse["streak"] = streak(pulse["streak"], state)
        pulse[f"last_{outcome}_id"], pulse[f"last_{outcome}_at"] = row.trigger_id, row.finished_at
    if jobs:
        connection.execute(
            _set_pulse(connection.dialect.name),
            [{**pulses[key], "application": key[0], "job_name": key[1]} for key in jobs],
        )
    return flips


class Statistics:
    """Rollups, written in batches and read by window."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.on_counted: Callable[[Sequence[Ending]], None] = lambda endings: None
        """Is told of what was counted here, once it is on disk."""

    async def count(self) -> int:
        """Count a batch of what concluded, if nobody else does; returns how many, at most `COUNT_MAX`."""
        return await self._count(waits=False)

    async def count_all(self) -> None:
        """Count all that has concluded by now; what somebody else is counting is counted when this returns."""
        while await self._count(waits=True) == COUNT_MAX:
            pass

    async def _count(self, *, waits: bool) -> int:
        endings = await self._database.write(lambda c: count(c, COUNT_MAX, waits=waits))
        if endings:
            self.on_counted(endings)
        return len(endings)

    async def rollups(self, scope: Scope, since: datetime, until: datetime) -> list[tuple[datetime, Rollup]]:
        """A scope's rollups of all hours that begin in [since, until), oldest first, with what just concluded."""
        await self.count_all()
        return await self._database.read(lambda c: rollups_of(c, scope, since, until))

    async def window(
        self,
        scope: Scope,
        since: datetime,
        until: datetime,
        dividing: Sequence[datetime] = (),
        within: Collection[str] | None = None,
    ) -> Counted:
        """What happened in [since, until) up to now, hours divided at the instants `dividing` if they can be.

        `within` some applications, or everywhere. A group is then the jobs that are in it now.
        """
        await self.count_all()
        return await self._database.read(lambda c: window_of(c, scope, since, until, dividing, within))

    async def ranking(
        self, rank: Rank, filters: Mapping[str, Any], since: datetime, until: datetime, most: int
    ) -> list[tuple[Job, Rollup]] | None:
        """The first `most` of the jobs whose columns equal `filters`, the worst first, each with its sums.

        By the hours that begin in the window; None if there are more than `OUTLINES_MAX` of them.
        """
        await self.count_all()
        return await self._database.read(lambda c: ranking_of(c, rank, filters, since, until, most))

    async def grid(
        self, figure: Figure, filters: Mapping[str, Any], since: datetime, until: datetime, limit: int
    ) -> list[tuple[Job, list[tuple[datetime, Rollup]]]] | None:
        """The jobs with most of a figure, each with its hours that begin in the window.

        None if there are more than `OUTLINES_MAX` of them.
        """
        await self.count_all()
        return await self._database.read(lambda c: grid_of(c, figure, filters, since, until, limit))

    async def nodes(
        self, applications: Collection[str] | None, since: datetime, until: datetime
    ) -> dict[str, list[tuple[datetime, Rollup]]] | None:
        """Each machine that ran anything, with its hours that begin in the window, of all applications or of these.

        None if there are too many machines, or hours of them.
        """
        await self.count_all()
        return await self._database.read(lambda c: nodes_of(c, applications, since, until))

    async def ends(
        self, since: datetime, until: datetime, limit: int, within: Collection[str] | None = None
    ) -> list[tuple[datetime, str, int]]:
        """When triggers ended in the window, in which state, and how many times each stands for; newest first.

        `within` some applications, or everywhere.
        """
        await self.count_all()
        return await self._database.read(lambda c: ends_of(c, since, until, limit, within))

    async def triggers_of(self, trigger_ids: Collection[str]) -> dict[str, Trigger]:
        """Those of the triggers that are still kept, without their attempts, by id."""
        query = sa.select(job_trigger).where(_t.trigger_id.in_(sorted(trigger_ids)))
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {row.trigger_id: trigger_of(row) for row in rows}

    async def pulse(self, application: str, job_name: str) -> Mapping[str, Any] | None:
        """Streak, last success and last failure of a job (columns of `job_pulse`), if it ever ended."""
        await self.count_all()
        query = sa.select(job_pulse).where(job_pulse.c.application == application, job_pulse.c.job_name == job_name)
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        return None if row is None else row._asdict()

    async def live_counts(self, filters: Mapping[str, Any]) -> tuple[int, int]:
        """How many triggers are queued, and how many start or run; `filters` are columns of the trigger."""
        meant = equal(job_trigger, filters)
        if "group_name" in filters:  # else an index by group or by application is walked, with all that is over
            others = [unled(_t[name], value) for name, value in filters.items() if name != "group_name"]
            meant = [filters["group_name"] == UNLED_GROUP, *others]
        query = sa.select(_t.state, sa.func.count().label("here")).where(UNFINISHED_ROWS, *meant).group_by(_t.state)
        counts = {State(row.state): row.here for row in await self._database.read(lambda c: c.execute(query).all())}
        return counts.get(State.QUEUED, 0), sum(counts.get(state, 0) for state in LIVE)

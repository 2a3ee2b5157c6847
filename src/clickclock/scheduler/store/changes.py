"""The log of changes: written in the transaction that makes the change, read in an order in which none is missed.

Never read by the engine, and never in its way: noting a batch is one statement. Invariants: what is rolled back was
never noted; a position that was sent has no earlier one that comes later, although on PostgreSQL transactions commit
in another order than they take their positions: a gap is passed only when whoever could have filled it has ended.

>>> tail = await store.changes.tail()     # doctest: +SKIP
>>> await tail.read(500)                  # doctest: +SKIP
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.insight.event import EVERYTHING, Change, Wanted
from clickclock.scheduler.insight.run_trace import Ended
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.history_page import Asked, Found, walk
from clickclock.scheduler.store.prepared import Among, Prepared
from clickclock.scheduler.store.rows import among
from clickclock.scheduler.store.schema import attempt, job_trigger, schedule
from clickclock.scheduler.store.schema_alarms import change

PRUNE_MAX = 5000
"""Changes removed in one transaction."""
_t, _c = job_trigger.c, change.c


def _of_triggers(**instead: sa.ColumnElement[Any]) -> tuple[list[str], sa.Select[Any]]:
    """The columns of the log and what they hold of a trigger as its row stands, but for what is given `instead`."""
    copied: dict[str, sa.ColumnElement[Any]] = {
        "at": sa.func.coalesce(_t.finished_at, sa.bindparam("at", type_=_c.at.type)),
        "about": sa.literal_column("'trigger'"),
        "state": _t.state,
        "subject": _t.trigger_id,
        "retry_at": sa.case((_t.state == sa.literal_column(f"'{State.QUEUED}'"), _t.ready_at), else_=None),
        "reason": sa.func.coalesce(_t.skip_reason, _t.stop_reason),
        **{
            name: _t[name]
            for name in (
                *("application", "job_name", "group_name", "schedule_id", "attempt", "nominal_time"),
                *("started_at", "finished_at", "exit_code", "signal", "message", "due_time"),
            )
        },
        **instead,
    }
    return list(copied), sa.select(*(value.label(f"c_{name}") for name, value in copied.items()))


def _noting(names: list[str], found: sa.Select[Any]) -> sa.Insert:
    return sa.insert(change).from_select(names, found)


_NOTE = Among(
    _t.trigger_id,
    lambda these: _noting((parts := _of_triggers())[0], parts[1].where(these).order_by(_t.trigger_id)),
)
_step = sa.union_all(
    *(sa.select(sa.literal_column(number, sa.Integer).label("number")) for number in ("0", "1"))
).subquery("step")
_is_taken = _step.c.number == sa.literal_column("1")


def _noting_taken(these: sa.ColumnElement[bool]) -> sa.sql.dml.ReturningInsert[Any]:
    names, found = _of_triggers(
        state=sa.case((_is_taken, _t.state), else_=sa.literal_column(f"'{State.QUEUED}'")),
        attempt=sa.case((_is_taken, _t.attempt), else_=sa.literal_column("0")),
        retry_at=sa.case((_is_taken, sa.null()), else_=_t.ready_at),
    )
    found = found.select_from(job_trigger.join(_step, sa.true())).where(these)
    return _noting(names, found.order_by(_t.trigger_id, _step.c.number)).returning(_c.subject)


_NOTE_TAKEN = Among(_t.trigger_id, _noting_taken)
_NOTE_RUNNING = Prepared(
    lambda _: _noting(
        (
            parts := _of_triggers(
                at=sa.bindparam("started_at", type_=_c.at.type),
                state=sa.literal_column(f"'{State.RUNNING}'"),
                started_at=sa.bindparam("started_at", type_=_c.started_at.type),
            )
        )[0],
        parts[1]
        .where(
            _t.trigger_id == sa.bindparam("b_id"),
            _t.attempt == sa.bindparam("b_attempt"),
            _t.lease_id == sa.bindparam("b_lease"),
            _t.state == State.STARTING,
        )
        .with_for_update(),
    )
)
_NOTE_ATTEMPT = Prepared(
    sa.insert(change).from_select(
        [
            *("at", "about", "state", "application", "job_name", "group_name", "subject", "schedule_id", "attempt"),
            *("nominal_time", "started_at", "finished_at", "exit_code", "signal", "message", "due_time"),
        ],
        sa.select(
            attempt.c.finished_at.label("c_at"),
            sa.literal_column("'attempt'"),
            attempt.c.state,
            _t.application,
            _t.job_name,
            _t.group_name,
            _t.trigger_id,
            _t.schedule_id,
            attempt.c.attempt,
            _t.nominal_time,
            attempt.c.started_at,
            attempt.c.finished_at,
            attempt.c.exit_code,
            attempt.c.signal,
            attempt.c.message,
            _t.due_time,
        )
        .select_from(attempt.join(job_trigger, attempt.c.trigger_id == _t.trigger_id))
        .where(attempt.c.trigger_id == sa.bindparam("b_id"), attempt.c.attempt == sa.bindparam("b_attempt")),
    )
)


_NOTE_SCHEDULES = Prepared(
    lambda dialect: sa.insert(change).from_select(
        ["at", "about", "state", "application", "job_name", "subject"],
        sa.select(
            sa.bindparam("at", type_=_c.at.type).label("c_at"),
            sa.literal_column("'schedule'").label("c_about"),
            sa.cast(sa.bindparam("state"), sa.Text).label("c_state"),
            schedule.c.application,
            schedule.c.job_name,
            schedule.c.schedule_id,
        )
        .where(among(dialect, schedule.c.schedule_id, "ids"))
        .order_by(schedule.c.schedule_id),
    )
)


def note_triggers(connection: sa.Connection, trigger_ids: Sequence[str], at: datetime) -> None:
    """These triggers have just become what their rows say."""
    if trigger_ids:
        _NOTE.rows(connection, trigger_ids, at=at)


def note_taken(connection: sa.Connection, trigger_ids: Sequence[str], at: datetime) -> set[str]:
    """Those of these triggers that are there have just been queued, and taken in the same moment; which are they?"""
    return {row.subject for row in _NOTE_TAKEN.rows(connection, trigger_ids, at=at)}


def note_running(connection: sa.Connection, rows: Sequence[dict[str, Any]]) -> None:
    """These attempts (as `Queue.mark_running` names them) are about to be marked as running, where they are ours."""
    _NOTE_RUNNING.run(connection, rows)


def note_attempts(connection: sa.Connection, ended: Sequence[tuple[str, int]]) -> None:
    """These attempts have ended, and their triggers have not."""
    if ended:
        _NOTE_ATTEMPT.run(connection, [{"b_id": trigger_id, "b_attempt": number} for trigger_id, number in ended])


def note_cancelled(connection: sa.Connection, queued: sa.ColumnElement[bool], at: datetime, **told: str) -> None:
    """The queued triggers that meet this condition are about to be cancelled; `told` are `reason` and `message`."""
    names, found = _of_triggers(
        at=sa.literal(at, _c.at.type),
        state=sa.literal_column(f"'{State.CANCELLED}'"),
        started_at=sa.null(),
        finished_at=sa.literal(at, _c.at.type),
        retry_at=sa.null(),
        **{name: sa.literal(text) for name, text in told.items()},
    )
    connection.execute(_noting(names, found.where(queued).with_for_update()))


def note_schedules(connection: sa.Connection, state: str, schedule_ids: Sequence[str], at: datetime) -> None:
    """These schedules have just become that, or are about to."""
    if schedule_ids:
        _NOTE_SCHEDULES.run(connection, [{"ids": list(schedule_ids), "state": state, "at": at}])


def note_backfill(connection: sa.Connection, state: str, row: Any, at: datetime, message: str | None = None) -> None:
    """The backfill of `row` has just become that."""
    names = ("application", "job_name", "schedule_id")
    told = {name: getattr(row, name) for name in names} | {"subject": row.backfill_id, "message": message}
    note(connection, "backfill", state, at, [told])


def note(connection: sa.Connection, about: str, state: str, at: datetime, of: Sequence[dict[str, Any]]) -> None:
    """These (a job, a calendar, an alarm, …) have changed; each has the columns of the log that it knows."""
    if of:
        connection.execute(sa.insert(change), [{"at": at, "about": about, "state": state, **each} for each in of])


class Changes:
    """What changed, in order."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tail(self) -> "Tail":
        """The position after all present changes."""
        newest = sa.select(sa.func.coalesce(sa.func.max(_c.position), 0))
        position = await self._database.read(lambda c: c.execute(newest).scalar_one())
        return Tail(self._database, position)

    async def read(self, after: int, through: int, wanted: Wanted, limit: int) -> list[Change]:
        """Changes at positions in (`after`, `through`], oldest first; `through` is one that a tail has passed."""
        query = sa.select(change).where(_c.position > after, _c.position <= through, *_conditions(wanted))
        query = query.order_by(_c.position).limit(limit)
        return [_as_change(row) for row in await self._database.read(lambda c: c.execute(query).all())]

    async def recent(self, before: int | None, wanted: Wanted, limit: int) -> Found[Change]:
        """Changes before a position, newest first."""
        conditions = {str(number): each for number, each in enumerate(_conditions(wanted))}
        asked = Asked(sa.select(change), _c.position, conditions, ())
        found = await self._database.read(lambda c: walk(c, asked, before, limit))
        return found.shown(_as_change)

    async def ended(self, trigger_ids: Collection[str], node: str) -> list[Ended]:
        """Those of these triggers that have ended and ran last on a node, with their attempts."""
        runs = sa.select(job_trigger).where(
            _t.trigger_id.in_(trigger_ids), _t.node == node, _t.finished_at.is_not(None)
        )
        tries = sa.select(attempt).where(attempt.c.trigger_id.in_(trigger_ids)).order_by(attempt.c.attempt)

        def look(connection: sa.Connection) -> list[Ended]:
            attempts: dict[str, list[Any]] = {}
            for each in connection.execute(tries):
                attempts.setdefault(each.trigger_id, []).append(each)
            return [Ended(row, attempts.get(row.trigger_id, ())) for row in connection.execute(runs)]

        return await self._database.read(look)

    async def oldest(self) -> int:
        """The first position that is still there; 0 if there is none."""
        query = sa.select(sa.func.coalesce(sa.func.min(_c.position), 0))
        return await self._database.read(lambda c: c.execute(query).scalar_one())

    async def prune(self, before: datetime, most: int) -> int:
        """Remove some of what is older, or more than `most` behind the newest; returns how many, at most `PRUNE_MAX`.

        The newest always stays: from it SQLite takes the next position.
        """

        def work(connection: sa.Connection) -> int:
            newest = connection.execute(sa.select(sa.func.max(_c.position))).scalar()
            if newest is None:
                return 0
            oldest = sa.select(_c.position, _c.at).order_by(_c.position).limit(PRUNE_MAX).subquery()
            old = sa.select(sa.func.max(oldest.c.position)).where(
                sa.or_(oldest.c.at < before, oldest.c.position <= newest - most), oldest.c.position < newest
            )
            through = connection.execute(old).scalar()
            if through is None:
                return 0
            return connection.execute(sa.delete(change).where(_c.position <= through)).rowcount

        return await self._database.write(work)


class Tail:
    """A place in the log that moves on over what is settled."""

    def __init__(self, database: Database, position: int) -> None:
        self._database = database
        self._doubt: tuple[int, int] | None = None
        self.position = position
        query = sa.select(change).order_by(_c.position)
        if not database.is_sqlite:
            query = query.add_columns(*_horizon())
        self._query = query

    async def settle(self) -> bool:
        """Whether nothing can come any more at or before its position: asked until it is so, before it is read."""
        if self._database.is_sqlite:
            return True
        low, high = await self._database.read(lambda c: c.execute(sa.select(*_horizon())).one())
        if self._doubt is None:
            self._doubt = (self.position, high)
        if low < self._doubt[1]:
            return False
        self._doubt = None
        return True

    async def read(self, limit: int) -> list[Change]:
        """What came, at most `limit`; nothing behind a gap that somebody may still fill."""
        query = self._query.where(_c.position > self.position).limit(limit)
        rows = await self._database.read(lambda c: c.execute(query).all())
        if rows and not self._database.is_sqlite:
            rows = rows[: self._settled(rows)]
        if rows:
            self.position = rows[-1].position
        return [_as_change(row) for row in rows]

    def _settled(self, rows: Sequence[Any]) -> int:
        """How many of these may be told.

        Who took a position before the last of these did so in a transaction that had begun when this was read, so it is
        one below `high`; once no transaction below that runs any more, what is missing was taken back.
        """
        settled_through = 0
        if self._doubt is not None and rows[0].low >= self._doubt[1]:
            settled_through, self._doubt = self._doubt[0], None
        expected = self.position + 1
        for place, row in enumerate(rows):
            if row.position != expected and row.position > settled_through:
                self._doubt = self._doubt or (rows[-1].position, row.high)
                return place
            expected = row.position + 1
        return len(rows)


def _horizon() -> tuple[sa.ColumnElement[int], sa.ColumnElement[int]]:
    """The first transaction that still runs, and the first that has not begun, as PostgreSQL's snapshot has them."""
    snapshot = sa.func.pg_current_snapshot()

    def number(kind: sa.ColumnElement[Any], name: str) -> sa.ColumnElement[int]:
        return sa.cast(sa.cast(kind, sa.Text), sa.BigInteger).label(name)

    return number(sa.func.pg_snapshot_xmin(snapshot), "low"), number(sa.func.pg_snapshot_xmax(snapshot), "high")


def _conditions(wanted: Wanted) -> list[sa.ColumnElement[bool]]:
    conditions = [
        _c[name] == value
        for name in ("application", "job_name", "group_name")
        if (value := getattr(wanted, name)) is not None
    ]
    if wanted.within is not None:
        conditions.append(sa.or_(_c.application.is_(None), _c.application.in_(sorted(wanted.within))))
    if wanted is not EVERYTHING and wanted.types:
        conditions.append(sa.or_(_c.about.in_(wanted.types), (_c.about + "." + _c.state).in_(wanted.types)))
    return conditions


def _as_change(row: Any) -> Change:
    return Change(*row[: len(change.c)])

"""Backfills in the store: made, read, paused, changed, cancelled; `backfill_progress.py` leads them further.

Never decides which times there are: they are counted before. Invariants: a backfill keeps its schedule and calendar as
they were when it was made; one that is over is not changed any more.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from pydantic_core import from_json

from clickclock.foundation.ids import new_id
from clickclock.scheduler.access.audit import Resource, Said
from clickclock.scheduler.errors import BackfillIsOver, BackfillNotFound, ScheduleNotFound
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store.auditing import audited
from clickclock.scheduler.store.backfill_progress import Led, lead
from clickclock.scheduler.store.changes import note_backfill
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.history_page import Asked, Found, led, unled, walk
from clickclock.scheduler.store.rows import definition_of, refuse_stale, stored_backfill
from clickclock.scheduler.store.schema import (
    backfill,
    calendar,
    job_trigger,
    schedule,
)
from clickclock.scheduler.store.triggers import cancel_rows
from clickclock.scheduler.times.backfill import (
    OVER,
    Backfill,
    BackfillState,
    Counted,
    StoredBackfill,
    progress,
)

_t = job_trigger.c
_b = backfill.c


class Backfills:
    """Create, read, change, cancel, lead further."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def already_triggered(self, schedule_id: str, since: datetime, until: datetime) -> int:
        """How many of a schedule's nominal times in the range have a trigger."""
        query = sa.select(sa.func.count()).where(
            _t.schedule_id == schedule_id,
            _t.nominal_time >= since,
            _t.nominal_time <= until,
            _t.state != State.SKIPPED,
        )
        return await self._database.read(lambda c: c.execute(query).scalar_one())

    async def create(self, new: Backfill, counted: Counted, now: datetime) -> StoredBackfill:
        """Keep it, with its schedule and calendar as they are. Raises `ScheduleNotFound`."""

        def work(connection: sa.Connection) -> StoredBackfill:
            query = sa.select(schedule, calendar.c.definition.label("calendar_definition"))
            query = query.select_from(schedule.outerjoin(calendar)).where(schedule.c.schedule_id == new.schedule_id)
            of = connection.execute(query).one_or_none()
            if of is None:
                raise ScheduleNotFound
            row = {
                "backfill_id": new_id(),
                "application": of.application,
                "job_name": of.job_name,
                "schedule_id": new.schedule_id,
                "state": BackfillState.RUNNING,
                "definition": definition_of(new),
                "schedule_definition": of.definition,
                "calendar_definition": of.calendar_definition,
                "anchor": of.created_at,
                "settled_through": new.since - timedelta(milliseconds=1),
                "next_at": now,
                "max_concurrent": new.max_concurrent_triggers,
                "per_second": new.max_triggers_per_second,
                "total": counted.total,
                "excluded": counted.excluded,
                "triggered": 0,
                "skipped": 0,
                "version": 1,
                "created_at": now,
                "updated_at": now,
            }
            connection.execute(sa.insert(backfill).values(row))
            shown = _shown(connection, _b.backfill_id == row["backfill_id"])[0]
            note_backfill(connection, "created", shown, now)
            _audited(row, None, {"scheduleId": new.schedule_id, **from_json(row["definition"])})
            return shown

        return await self._database.write(work)

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> Found[StoredBackfill]:
        """Backfills whose columns equal `filters` (backfill_id, application, …, state), newest first."""
        conditions = {name: unled(backfill.c[name], value) for name, value in filters.items()}
        asked = Asked(sa.select(_b.backfill_id), _b.backfill_id, conditions, led(_b, filters, "backfill_id"))

        def work(connection: sa.Connection) -> Found[StoredBackfill]:
            found = walk(connection, asked, after and after[0], limit)
            return Found(_shown(connection, _b.backfill_id.in_([row.backfill_id for row in found])), found.reached)

        return await self._database.read(work)

    async def change(
        self, backfill_id: str, now: datetime, *, paused: bool | None, pace: Mapping[str, Any],
        if_version: int | None = None,
    ) -> StoredBackfill:  # fmt: skip
        """Pause or resume it, or change its pace. Raises `BackfillNotFound`, `BackfillIsOver`, `StaleVersion`."""
        values: dict[str, Any] = dict(pace)
        told = "changed"
        if paused is not None:
            told = "paused" if paused else "resumed"
            values |= {"state": BackfillState.PAUSED if paused else BackfillState.RUNNING, "message": None}
        return await self._database.write(
            lambda c: _changed(c, backfill_id, told, {**values, "next_at": now}, now, if_version)
        )

    async def cancel(self, backfill_id: str, now: datetime, if_version: int | None = None) -> StoredBackfill:
        """End it with its unfinished triggers. Raises `BackfillNotFound`, `BackfillIsOver`, `StaleVersion`."""

        def work(connection: sa.Connection) -> StoredBackfill:
            values = {"state": BackfillState.CANCELLED, "ended_at": now}
            stored = _changed(connection, backfill_id, "cancelled", values, now, if_version)
            cancel_rows(connection, _t.backfill_id == backfill_id, now, "Its backfill was cancelled.")
            return _shown(connection, _b.backfill_id == stored.backfill_id)[0]

        return await self._database.write(work)

    async def lead(self, now: datetime) -> Led:
        """Lead the backfills that may go on one step further."""
        return await self._database.write_triggers(lambda c: lead(c, now), queues=lambda led: led.triggers > 0)


def _shown(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[StoredBackfill]:
    rows = connection.execute(sa.select(backfill).where(condition).order_by(_b.backfill_id.desc())).all()
    counted = [row.backfill_id for row in rows if row.outcome is None]
    by_state = _states(connection, counted)
    return [stored_backfill(row, row.outcome or progress(by_state.get(row.backfill_id, {}))) for row in rows]


def _states(connection: sa.Connection, ids: Sequence[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    query = sa.select(_t.backfill_id, _t.state, sa.func.count().label("number")).where(_t.backfill_id.in_(ids))
    for row in connection.execute(query.group_by(_t.backfill_id, _t.state)):
        found.setdefault(row.backfill_id, {})[row.state] = row.number
    return found


def _audited(row: Mapping[str, Any], before: Said, after: Said) -> None:
    its = {"application": row["application"], "job_name": row["job_name"]}
    audited(Resource.BACKFILL, row["backfill_id"], before, after, its)


def _standing(row: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody may change of a backfill."""
    names = {"state": "state", "maxConcurrentTriggers": "max_concurrent", "maxTriggersPerSecond": "per_second"}
    return {shown: row[name] for shown, name in names.items()}


def _changed(
    connection: sa.Connection, backfill_id: str, told: str, values: Mapping[str, Any], now: datetime,
    if_version: int | None,
) -> StoredBackfill:  # fmt: skip
    mine = _b.backfill_id == backfill_id
    old = connection.execute(sa.select(backfill).where(mine).with_for_update()).one_or_none()
    if old is None:
        raise BackfillNotFound
    refuse_stale(old.version, if_version)
    if BackfillState(old.state) in OVER:
        raise BackfillIsOver(f"The backfill is {old.state} already; create another with POST backfill.")
    connection.execute(sa.update(backfill).where(mine).values(**values, version=old.version + 1, updated_at=now))
    note_backfill(connection, told, old, now)
    was = old._asdict()
    _audited(was, _standing(was), _standing({**was, **values}))
    return _shown(connection, mine)[0]

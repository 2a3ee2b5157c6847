"""Schedules whose triggers fail again and again are paused, as somebody would do it by hand.

Never ends anything that runs. Invariants: only times after the schedule's last change count, so whoever resumes it
begins anew; what succeeds ends the row, and what was skipped or cancelled does neither; a schedule is looked at again
under its lock before it is paused, so no change in between is lost.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.insight.finding import PAUSED_AFTER
from clickclock.scheduler.insight.statistics import FAILURES
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store.changes import note_schedules
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import definition_of, planned_schedule
from clickclock.scheduler.store.schedules import amended
from clickclock.scheduler.store.schema import job_trigger, schedule

LOOKED_AT_MAX = 2000
"""The last triggers of a schedule that are looked at: what was skipped between failures is in no row's way for ever."""
_t, _s = job_trigger.c, schedule.c


class Pausing:
    """Find and pause."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def failing(self, among: Collection[str]) -> list[str]:
        """Those of these schedules that are to be paused."""
        return await self._database.read(lambda c: _failing(c, _s.schedule_id.in_(sorted(among)), len(among))[0])

    async def failing_after(self, after: str, limit: int) -> tuple[list[str], str | None]:
        """Schedules to be paused among the next `limit` by id; and where to go on, None at the end."""
        found, seen = await self._database.read(lambda c: _failing(c, _s.schedule_id > after, limit))
        return found, seen[-1] if len(seen) == limit else None

    async def pause(self, schedule_id: str, now: datetime) -> str | None:
        """Pause one that still is to be paused; the reason, or None."""

        def work(connection: sa.Connection) -> str | None:
            mine = _s.schedule_id == schedule_id
            row = connection.execute(sa.select(schedule).where(mine).with_for_update()).one_or_none()
            newest = None if row is None else _last_of_row(connection, row)
            if row is None or newest is None:
                return None
            reason = f"{PAUSED_AFTER}{row.pause_after} failures in a row, the last of them trigger {newest}."
            paused = planned_schedule(row.definition).model_copy(update={"paused": True, "pause_reason": reason})
            values = {
                "definition": definition_of(paused),
                "version": row.version + 1,
                "updated_at": now,
                "updated_by": None,
            }
            values |= amended(connection, row, paused, now)
            connection.execute(sa.update(schedule).where(mine).values(values))
            note_schedules(connection, "changed", [schedule_id], now)
            return reason

        return await self._database.write(work)


def _failing(
    connection: sa.Connection, condition: sa.ColumnElement[bool], limit: int
) -> tuple[list[str], Sequence[str]]:
    query = sa.select(schedule).where(_s.pause_after.is_not(None), condition).order_by(_s.schedule_id).limit(limit)
    rows = connection.execute(query).all()
    return [row.schedule_id for row in rows if _last_of_row(connection, row)], [row.schedule_id for row in rows]


def _last_of_row(connection: sa.Connection, row: Any) -> str | None:
    """The newest of a schedule's failures, if there are enough of them in a row, and it is not paused yet."""
    if row.pause_after is None or planned_schedule(row.definition).paused:
        return None
    newest = (
        sa.select(_t.trigger_id, _t.state)
        .where(_t.schedule_id == row.schedule_id, _t.nominal_time > row.updated_at, _t.backfill_id.is_(None))
        .order_by(_t.nominal_time.desc())
        .limit(LOOKED_AT_MAX)
    )
    failed: list[str] = []
    for each in connection.execute(newest):
        if each.state in FAILURES:
            failed.append(each.trigger_id)
        if each.state == State.SUCCEEDED or len(failed) == row.pause_after:
            break
    return failed[0] if len(failed) == row.pause_after else None

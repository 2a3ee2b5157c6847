"""Triggers as their users see them: asked for, listed, cancelled, pruned.

Never starts or concludes an attempt (`queue.py`). Invariants: one trigger per idempotency key; a finished trigger
never changes again.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.instant import ms_of
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.access.audit import Resource
from clickclock.scheduler.errors import JobIsDisabled, JobNotFound, TriggerIsFinished, TriggerNotFound, no_job
from clickclock.scheduler.jobs.dependency import run_of
from clickclock.scheduler.jobs.trigger import (
    FINISHED,
    LIVE,
    UNFINISHED,
    Attempt,
    Kind,
    NewTrigger,
    State,
    StopReason,
    Trigger,
)
from clickclock.scheduler.jobs.waiting import Facts
from clickclock.scheduler.store.auditing import audited
from clickclock.scheduler.store.awaited import facts_of
from clickclock.scheduler.store.changes import note_cancelled, note_triggers
from clickclock.scheduler.store.conditions import IS_AWAITED, NOT_STOPPING, has_dependents
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.history_page import Asked, Found, Lead, led, one_of, unled, walk
from clickclock.scheduler.store.prepared import Prepared
from clickclock.scheduler.store.rows import effective_job, insert_of, trigger_of
from clickclock.scheduler.store.schema import (
    ANY_CLUSTER,
    UNFINISHED_ROWS,
    UNHAPPY_ROWS,
    attempt,
    backfill,
    job,
    job_group,
    job_trigger,
    replica,
    rollup,
)

_t = job_trigger.c
APART_MS_MAX = 3_600_000
"""How far the time in an id may be from that of its record: decisions are recorded ahead, and clocks are set."""


def cancel_rows(
    connection: sa.Connection,
    condition: sa.ColumnElement[bool],
    now: datetime,
    message: str,
    reason: StopReason = StopReason.CANCELLED,
) -> None:
    """End the queued triggers that meet `condition`, and ask for the live ones to be stopped."""
    is_queued = job_trigger.c.state == State.QUEUED
    # A preempted trigger would come back; a cancelled one does not.
    meant = sa.and_(condition, UNFINISHED_ROWS, NOT_STOPPING)
    note_cancelled(connection, sa.and_(meant, is_queued), now, reason=reason, message=message)
    # One statement: between two, a trigger could be claimed or queued again, and be met by neither.
    connection.execute(
        sa.update(job_trigger)
        .where(meant)
        .values(
            stop_reason=reason,
            state=sa.case((is_queued, State.CANCELLED), else_=job_trigger.c.state),
            # A retry that waited: how long its last attempt ran is in that attempt's own row.
            started_at=sa.case((is_queued, None), else_=job_trigger.c.started_at),
            finished_at=sa.case((is_queued, sa.literal(now, job_trigger.c.finished_at.type)), else_=None),
            message=sa.case((is_queued, message), else_=job_trigger.c.message),
            waits=None,
            unfollowed=sa.case((sa.and_(is_queued, IS_AWAITED), True), else_=None),
        )
    )


# Statements are made once: making one costs more than running it.
_ITS_JOB = Prepared(
    sa.select(
        job.c.definition,
        job.c.group_name,
        job_group.c.definition.label("grouped"),
        has_dependents(job.c.application, job.c.job_name).label("is_awaited"),
    )
    .select_from(job.outerjoin(job_group))
    .where(job.c.application == sa.bindparam("application"), job.c.job_name == sa.bindparam("job_name"))
    # The job may not go before its trigger is there: nobody would cancel it, and nobody could start it.
    .with_for_update(of=job, read=True, key_share=True)
)


def _insert_manual(dialect: str) -> Any:
    constants = {
        "kind": sa.literal_column(f"'{Kind.MANUAL}'"),
        "state": sa.literal_column(f"'{State.QUEUED}'"),
        "serial": sa.false(),
        "attempt": sa.literal_column("0"),
        "preemption_count": sa.literal_column("0"),
    }
    return insert_of(dialect, job_trigger).values(constants).on_conflict_do_nothing().returning(job_trigger)


_MANUAL = Prepared(_insert_manual)


class Mark(NamedTuple):
    """A trigger as a mark on a time line."""

    trigger_id: str
    application: str
    job_name: str
    state: str
    due_time: datetime
    started_at: datetime | None
    finished_at: datetime | None
    lag_ms: int | None


_MARKS = sa.select(*(_t[name] for name in Mark._fields))


class Triggers:
    """Ask for runs, look at them, cancel them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewTrigger, now: datetime) -> tuple[Trigger, bool]:
        """Queue a run; the second value is False when the idempotency key brought back an earlier trigger.

        Raises `JobNotFound`, `JobIsDisabled`, `Invalid` (parameters).
        """

        def work(connection: sa.Connection) -> tuple[Trigger, bool]:
            if new.idempotency_key is not None and (earlier := _by_key(connection, new)) is not None:
                return earlier, False
            key = {"application": new.application, "job_name": new.job_name}
            its_row = _ITS_JOB.rows(connection, **key)
            if not its_row:
                raise JobNotFound(
                    no_job((new.application, new.job_name)),
                    [Fault("jobName", f"There is no job {new.job_name!r} in application {new.application!r}.")],
                )
            found = its_row[0]
            its_job = effective_job(found.definition, found.grouped)
            if not its_job.enabled:
                raise JobIsDisabled
            due = max(new.run_at or now, now)
            run_id = None
            if new.dependents and (found.is_awaited or new.nominal_time is not None):
                run_id = new.trigger_id if new.nominal_time is None else run_of(new.nominal_time)
            fields = key | {
                "trigger_id": new.trigger_id,
                "group_name": found.group_name,
                "cluster": its_job.cluster or ANY_CLUSTER,
                "due_time": due,
                "ready_at": due,
                "queued_at": now,
                "priority": its_job.priority if new.priority is None else new.priority,
                "max_attempts": 1 + its_job.max_retries,
                "parameters": its_job.fill_parameters(new.parameters),
                "requested_by": new.requested_by,
                "reason": new.reason,
                "idempotency_key": new.idempotency_key,
                "nominal_time": new.nominal_time,
                "run_id": run_id,
                "traceparent": new.trace and new.trace.parent,
                "tracestate": new.trace and new.trace.state,
            }
            if rows := _MANUAL.inserted(connection, fields):
                note_triggers(connection, [new.trigger_id], now)
                audited(Resource.TRIGGER, new.trigger_id, None, _asked_for(new), key)
                return trigger_of(rows[0]), True
            earlier = _by_key(connection, new)  # another replica was first with this key
            if earlier is None:
                raise Invalid("The trigger could not be recorded; send it again.")
            return earlier, False

        return await self._database.write_triggers(work, queues=itemgetter(1))

    async def get(self, trigger_id: str) -> Trigger:
        """One trigger with its attempts. Raises `TriggerNotFound`."""

        def work(connection: sa.Connection) -> Trigger:
            mine = job_trigger.c.trigger_id == trigger_id
            row = connection.execute(sa.select(job_trigger).where(mine)).one_or_none()
            if row is None:
                raise TriggerNotFound
            tries = connection.execute(
                sa.select(attempt).where(attempt.c.trigger_id == trigger_id).order_by(attempt.c.attempt)
            )
            attempts = [Attempt(**{name: each._mapping[name] for name in Attempt.model_fields}) for each in tries]
            if State(row.state) in LIVE:
                attempts.append(
                    Attempt(
                        attempt=row.attempt,
                        state=row.state,
                        started_at=row.started_at,
                        cluster=row.cluster,
                        node=row.node,
                    )
                )
            told = trigger_of(row, attempts)
            waits = _waiting(connection, row)
            return told.model_copy(update=waits) if waits else told

        return await self._database.read(work)

    async def circumstances(self, trigger_id: str, now: datetime, default_cluster: str) -> Facts | None:
        """The facts around a queued trigger; None if it is not queued."""
        return await self._database.read(lambda c: facts_of(c, trigger_id, now, default_cluster))

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> Found[Trigger]:
        """Triggers whose columns equal `filters`, newest first; `states`, and `since` and `until` of queued_at, too."""
        asked = _asked(filters)
        found = await self._database.read(lambda c: walk(c, asked, after and after[0], limit))
        return found.shown(trigger_of)

    async def marks(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> Found[Mark]:
        """As `find`, of each trigger only what a mark on a time line needs."""
        asked = _asked(filters)._replace(rows=_MARKS)
        found = await self._database.read(lambda c: walk(c, asked, after and after[0], limit))
        return found.shown(lambda row: Mark(*row))

    async def cancel(self, trigger_id: str, now: datetime) -> Trigger:
        """Cancel: at once when queued, by stopping it when it runs. Raises `TriggerNotFound`, `TriggerIsFinished`."""

        def work(connection: sa.Connection) -> Trigger:
            mine = job_trigger.c.trigger_id == trigger_id
            row = connection.execute(sa.select(job_trigger).where(mine).with_for_update()).one_or_none()
            if row is None:
                raise TriggerNotFound
            if State(row.state) in FINISHED:
                raise TriggerIsFinished(f"The trigger is over already ({row.state}); there is nothing to cancel.")
            cancel_rows(connection, mine, now, "Cancelled before it started.")
            its = {"application": row.application, "job_name": row.job_name}
            cancelled = {"stopReason": StopReason.CANCELLED.value}
            audited(Resource.TRIGGER, trigger_id, {"stopReason": row.stop_reason}, cancelled, its)
            return trigger_of(connection.execute(sa.select(job_trigger).where(mine)).one())

        return await self._database.write(work)

    async def prunable(
        self, before: Mapping[tuple[str, str], datetime], otherwise: datetime, limit: int
    ) -> list[tuple[str, int]]:
        """Finished triggers older than their job's limit, each with its number of attempts.

        `otherwise` is the limit of jobs that are gone.
        """

        def work(connection: sa.Connection) -> list[tuple[str, int]]:
            names = sa.select(job_trigger.c.application, job_trigger.c.job_name).distinct()
            found: list[tuple[str, int]] = []
            for application, job_name in connection.execute(names).all():
                limit_at = before.get((application, job_name), otherwise)
                query = (
                    sa.select(job_trigger.c.trigger_id, job_trigger.c.attempt)
                    .where(
                        job_trigger.c.application == application,
                        job_trigger.c.job_name == job_name,
                        job_trigger.c.trigger_id < first_id_at(limit_at),
                        job_trigger.c.finished_at < limit_at,
                        job_trigger.c.counted,
                        job_trigger.c.unfollowed.is_(None),
                    )
                    .order_by(job_trigger.c.trigger_id)
                    .limit(limit - len(found))
                )
                found.extend(connection.execute(query))
                if len(found) >= limit:
                    break
            return found

        return await self._database.read(work)

    async def prune(self, trigger_ids: Sequence[str], rollups_before: datetime) -> None:
        """Remove finished triggers with their attempts, and rollups, backfills and replicas of long ago."""

        def work(connection: sa.Connection) -> None:
            finished = job_trigger.c.state.not_in(sorted(UNFINISHED))
            connection.execute(sa.delete(attempt).where(attempt.c.trigger_id.in_(trigger_ids)))
            connection.execute(sa.delete(job_trigger).where(job_trigger.c.trigger_id.in_(trigger_ids), finished))
            connection.execute(sa.delete(rollup).where(rollup.c.hour < rollups_before))
            connection.execute(sa.delete(backfill).where(backfill.c.ended_at < rollups_before))
            connection.execute(sa.delete(replica).where(replica.c.heartbeat_at < rollups_before))

        await self._database.write(work)


def _waiting(connection: sa.Connection, row: Any) -> dict[str, str]:
    """What a queued trigger waits for beside room and its upstreams; of its last attempt that says what it said."""
    if row.state != State.QUEUED or row.waits:
        return {}
    its_job = sa.select(job.c.enabled, job_group.c.paused).select_from(job.outerjoin(job_group))
    found = connection.execute(its_job.where(job.c.application == row.application, job.c.job_name == row.job_name))
    for is_enabled, is_paused in found:
        if not is_enabled and row.backfill_id is None:
            moment = rfc3339(row.ready_at)
            return {"message": f"Its job is disabled: it is skipped unless that is enabled before {moment}."}
        if not is_enabled:
            return {"message": "Waits until its job is enabled."}
        if is_paused:
            return {"message": f"Waits until its group {row.group_name} is resumed."}
    return {}


def _asked_for(new: NewTrigger) -> dict[str, Any]:
    """What the audit trail has of a request to run."""
    said = {
        "parameters": dict(new.parameters),
        "priority": new.priority,
        "runAt": new.run_at and rfc3339(new.run_at),
        "nominalTime": new.nominal_time and rfc3339(new.nominal_time),
        "reason": new.reason,
    }
    return {name: value for name, value in said.items() if value}


def _by_key(connection: sa.Connection, new: NewTrigger) -> Trigger | None:
    row = connection.execute(
        sa.select(job_trigger).where(
            job_trigger.c.application == new.application,
            job_trigger.c.job_name == new.job_name,
            job_trigger.c.idempotency_key == new.idempotency_key,
        )
    ).one_or_none()
    return None if row is None else trigger_of(row)


def _asked(filters: Mapping[str, Any]) -> Asked:
    """Ids are in the order of time, so a span of time is one of ids, in whatever index is walked."""
    conditions: dict[str, sa.ColumnElement[bool]] = {}
    low: list[sa.ColumnElement[bool]] = []
    high: list[sa.ColumnElement[bool]] = []
    for name, value in filters.items():
        if name == "states":
            conditions[name] = _t.state.concat("").in_(sorted(value))
        elif name == "since":
            conditions[name] = _t.queued_at >= value
            low.append(_t.trigger_id >= first_id_at(value, -APART_MS_MAX))
        elif name == "until":
            conditions[name] = _t.queued_at < value
            high.append(_t.trigger_id < first_id_at(value, APART_MS_MAX))
        else:
            conditions[name] = unled(_t[name], value)
    return Asked(sa.select(job_trigger), _t.trigger_id, conditions, _leads(filters), low=low, high=high)


def _leads(filters: Mapping[str, Any]) -> list[Lead]:
    """The indexes that these filters may be looked for in; the first is preferred where several have few rows."""
    is_ = {name: one_of(_t[name], value) for name, value in filters.items() if name in _t}
    states = frozenset(filters.get("states", ()))
    its_job = ("application", "job_name") if is_.keys() >= {"application", "job_name"} else ()
    alone = (("trigger_id",), ("idempotency_key",), ("schedule_id",), ("application", "job_name"), ("job_name",))
    leads = [lead for names in alone for lead in led(_t, filters, *names)]
    if "backfill_id" in is_:
        leads.append(Lead(frozenset({"backfill_id"}), is_["backfill_id"]))
    if states and states <= UNFINISHED:
        unfinished = sa.and_(UNFINISHED_ROWS, _t.state.in_(sorted(states)), *(is_[name] for name in its_job))
        leads.append(Lead(frozenset({"states", *its_job}), unfinished))
    if states and states <= FINISHED - {State.SUCCEEDED}:
        # The partial index knows its states as literals.
        ways = tuple(sa.and_(UNHAPPY_ROWS, _t.state == each) for each in sorted(states))
        leads.append(Lead(frozenset({"states"}), sa.and_(UNHAPPY_ROWS, _t.state.in_(sorted(states))), ways))
    return leads + [lead for name in ("group_name", "application", "kind") for lead in led(_t, filters, name)]


def first_id_at(instant: datetime, later_ms: int = 0) -> str:
    """The smallest UUID version 7 of that millisecond, or so much later: ids sort by the time of their making."""
    digits = f"{max(ms_of(instant) + later_ms, 0):012x}"
    return f"{digits[:8]}-{digits[8:]}"

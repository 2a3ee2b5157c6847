"""Ended triggers and their dependents: these run, are skipped, or wait on.

Never decides (`dependency.judge` does) and never concludes anything. Invariants: a trigger whose end nobody has
evaluated is marked so in the transaction that concluded it, and the mark goes in the transaction that tells; a job runs
once after its upstreams in one run, by the schema. So reading first and writing later is safe, on any number of
replicas: whoever concludes last is read after all others were concluded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.foundation.errors import Invalid
from clickclock.foundation.ids import new_id
from clickclock.scheduler.jobs.dependency import Fate, Key, Verdict, judge, parameters_for, run_of
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import BY_UPSTREAM, Kind, SkipReason, State
from clickclock.scheduler.store.changes import note_triggers
from clickclock.scheduler.store.conditions import IS_AWAITED, has_dependents
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.dependencies import dependents_of
from clickclock.scheduler.store.rows import effective_job, upsert
from clickclock.scheduler.store.schema import (
    ANY_CLUSTER,
    QUEUED_ROWS,
    UNFOLLOWED_ROWS,
    WAITING_ROWS,
    job,
    job_group,
    job_trigger,
)
from clickclock.scheduler.store.upstream_status import COLUMNS, Run, load, needs_of, run_of_row, was_missed

_t = job_trigger.c


_FOLLOWED = (
    sa.update(job_trigger)
    .where(_t.trigger_id == sa.bindparam("b_id"))
    .values(unfollowed=None, run_id=sa.bindparam("b_run"))
)


class Told(msgspec.Struct, frozen=True):
    """What one round did. `last` is where to go on; `fires`: something may start; `skips`: others may depend on it."""

    seen: int
    fires: int
    skips: int
    last: str | None = None


class _New(msgspec.Struct, frozen=True):
    """A trigger that a dependent is to get in a run."""

    job: Key
    run_id: str
    nominal: datetime
    verdict: Verdict
    parameters: dict[str, dict[str, str]]
    """Those of the upstreams' triggers, by id."""
    due: datetime | None = None
    """That of the cause, where its time was missed: so was this one's."""
    skipped_count: int | None = None
    skipped_through: datetime | None = None


@dataclass(slots=True)
class _Round:
    """What one transaction is going to write."""

    followed: dict[str, Run] = field(default_factory=dict)
    """Ended triggers, with their runs: by these they are found when other upstreams end, whatever their schedule."""
    new: dict[tuple[Key, str], _New] = field(default_factory=dict)
    settled: dict[str, Verdict] = field(default_factory=dict)


class Chains:
    """Follow what ended; look at what waits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def follow(self, now: datetime, limit: int) -> Told:
        """Tell the dependents of at most `limit` ended triggers."""
        planned = await self._database.read(lambda c: _follow(c, limit))
        return await self._write(planned, now, len(planned.followed))

    async def look(self, now: datetime, limit: int, after: str = "", *, fresh: bool = False) -> Told:
        """Look at triggers that wait for upstreams, by id; with `fresh` at those that nobody looked at yet."""
        condition = _t.upstream.is_(sa.null()) if fresh else sa.true()
        query = (
            sa.select(*COLUMNS, _t.message, _t.upstream)
            .where(WAITING_ROWS, _t.trigger_id > after, condition)
            .order_by(_t.trigger_id)
            .limit(limit)
        )
        seen: list[str] = []

        def work(connection: sa.Connection) -> _Round:
            planned = _Round()
            for row in connection.execute(query).all():
                seen.append(row.trigger_id)
                run = Run(run_of(row.nominal_time), row.nominal_time)
                needs, _ = needs_of(connection, (row.application, row.job_name), run)
                verdict = judge(needs, has_own_time=True)
                if verdict.fate is not Fate.WAIT or (row.message, row.upstream) != (
                    verdict.message,
                    _upstream(verdict),
                ):
                    planned.settled[row.trigger_id] = verdict
            return planned

        return await self._write(await self._database.read(work), now, len(seen), max(seen, default=None))

    async def _write(self, planned: _Round, now: datetime, seen: int, last: str | None = None) -> Told:
        if not (planned.followed or planned.settled):
            return Told(seen, 0, 0, last)
        fires, skips = await self._database.write_triggers(
            lambda c: _write(c, planned, now), queues=lambda made: made[0] > 0
        )
        return Told(seen, fires, skips, last)


def _follow(connection: sa.Connection, limit: int) -> _Round:
    planned = _Round()
    query = sa.select(*COLUMNS).where(UNFOLLOWED_ROWS).order_by(_t.trigger_id).limit(limit)
    rows = connection.execute(query).all()
    planned.followed = {row.trigger_id: run_of_row(connection, row) for row in rows}
    for row in rows:
        run = planned.followed[row.trigger_id]
        in_run = [each for each in rows if planned.followed[each.trigger_id].run_id == run.run_id]
        key = (row.application, row.job_name)
        for dependent in dependents_of(connection, [key]).get(key, ()):
            if (dependent, run.run_id) not in planned.new:
                _settle(connection, planned, dependent, row, in_run)
    return planned


def _settle(connection: sa.Connection, planned: _Round, dependent: Key, cause: Any, ended: Sequence[Any]) -> None:
    """What the end of `cause` means for one dependent; `ended` is all that is followed of its run."""
    run = planned.followed[cause.trigger_id]
    own = load(connection, [dependent], run)[dependent]
    needs, rows = needs_of(connection, dependent, run, ended)
    waiting = [row for row in own.rows.values() if row.waits]
    if waiting:
        planned.settled |= {row.trigger_id: judge(needs, has_own_time=True) for row in waiting}
    if any(row.skip_reason not in BY_UPSTREAM for row in own.rows.values()):
        return  # it has run, it is about to, or it was skipped for a reason of its own
    if own.has_schedule and not own.rows:
        return  # its own schedule decides when it is due
    verdict = judge(needs, has_own_time=own.has_schedule)
    if verdict.fate is Fate.RUN or (verdict.fate is Fate.SKIP and not own.rows):
        is_skip = verdict.fate is Fate.SKIP
        planned.new[dependent, run.run_id] = _New(
            dependent,
            run.run_id,
            cause.nominal_time or cause.due_time,
            verdict,
            {trigger_id: row.parameters for trigger_id, row in rows.items()},
            cause.due_time if is_skip and was_missed(cause) else None,
            cause.skipped_count if is_skip else None,
            cause.skipped_through if is_skip else None,
        )


def _upstream(verdict: Verdict) -> list[dict[str, Any]]:
    """The upstreams that were looked at, as a trigger shows them."""
    shown = []
    for need in verdict.needs:
        trigger_id, state = need.decisive or (None, None)
        application, job_name = need.job
        shown.append(
            {
                "application": application,
                "jobName": job_name,
                "triggerId": trigger_id,
                "state": state,
                "when": need.condition.when,
            }
        )
    return shown


def _write(connection: sa.Connection, planned: _Round, now: datetime) -> tuple[int, int]:
    rows = _rows(connection, list(planned.new.values()), now)
    if rows:
        # The unique index decides: whoever else follows the same ends comes to the same rows.
        connection.execute(upsert(connection, job_trigger).on_conflict_do_nothing(), rows)
    skipped = [
        trigger_id
        for trigger_id, verdict in sorted(planned.settled.items())
        if _settle_waiting(connection, trigger_id, verdict, now) and verdict.fate is Fate.SKIP
    ]
    # Where somebody else was first, our id has no row, and nothing is noted of it.
    note_triggers(connection, [*(row["trigger_id"] for row in rows), *skipped], now)
    if planned.followed:
        runs = [{"b_id": trigger_id, "b_run": run.run_id} for trigger_id, run in sorted(planned.followed.items())]
        connection.execute(_FOLLOWED, runs)
    fates = [each.fate for each in planned.settled.values()]
    fires = sum(row["state"] == State.QUEUED for row in rows) + fates.count(Fate.RUN)
    return fires, len(rows) - sum(row["state"] == State.QUEUED for row in rows) + fates.count(Fate.SKIP)


def _settle_waiting(connection: sa.Connection, trigger_id: str, verdict: Verdict, now: datetime) -> bool:
    """Write what became of a trigger that waits; whether it still waited."""
    values: dict[str, Any] = {"message": verdict.message, "upstream": _upstream(verdict)}
    if verdict.fate is Fate.RUN:
        # From now on it is late, if it does not start: not from when it began to wait.
        moment = sa.literal(now, _t.due_time.type)
        values |= {name: sa.case((_t[name] < now, moment), else_=_t[name]) for name in ("due_time", "ready_at")}
        values |= {"waits": None}
    elif verdict.fate is Fate.SKIP:
        values |= {
            "state": State.SKIPPED,
            "skip_reason": verdict.reason,
            "finished_at": now,
            "waits": None,
            "unfollowed": sa.case((IS_AWAITED, True), else_=None),
        }
    waits = (_t.trigger_id == trigger_id, WAITING_ROWS, QUEUED_ROWS)
    return connection.execute(sa.update(job_trigger).where(*waits).values(values)).rowcount > 0


def _rows(connection: sa.Connection, new: Sequence[_New], now: datetime) -> list[dict[str, Any]]:
    """The triggers that dependents get; those of jobs that are gone by now, none."""
    if not new:
        return []
    found = connection.execute(
        sa.select(
            job.c.application,
            job.c.job_name,
            job.c.definition,
            job.c.group_name,
            job_group.c.definition.label("grouped"),
            job_group.c.paused,
            has_dependents(job.c.application, job.c.job_name).label("is_awaited"),
        )
        .select_from(job.outerjoin(job_group))
        .where(sa.tuple_(job.c.application, job.c.job_name).in_(sorted({each.job for each in new})))
        .order_by(job.c.application, job.c.job_name)
        # The job may not go before its trigger is there: nobody would cancel it, and nobody could start it.
        .with_for_update(of=job, read=True, key_share=True)
    )
    jobs = {(row.application, row.job_name): row for row in found}
    ordered = sorted(new, key=lambda each: (each.job, each.run_id))
    return [_row(jobs[each.job], each, now) for each in ordered if each.job in jobs]


def _row(row: Any, new: _New, now: datetime) -> dict[str, Any]:
    its_job = effective_job(row.definition, row.grouped)
    state, reason, message, parameters = _beginning(its_job, bool(row.paused), new)
    is_queued = state is State.QUEUED
    return {
        "trigger_id": new_id(),
        "kind": Kind.DEPENDENCY,
        "application": row.application,
        "job_name": row.job_name,
        "group_name": row.group_name,
        "cluster": its_job.cluster or ANY_CLUSTER,
        "state": state,
        "skip_reason": reason,
        "skipped_count": new.skipped_count,
        "skipped_through": new.skipped_through,
        "nominal_time": new.nominal,
        "due_time": new.due or now,
        "ready_at": now,
        "queued_at": now,
        "finished_at": None if is_queued else now,
        "serial": False,
        "priority": its_job.priority,
        "attempt": 0,
        "max_attempts": 1 + its_job.max_retries if is_queued else 0,
        "message": message,
        "parameters": parameters,
        "preemption_count": 0,
        "run_id": new.run_id,
        "upstream": _upstream(new.verdict),
        "unfollowed": True if row.is_awaited and not is_queued else None,
    }


def _beginning(
    its_job: Job, group_paused: bool, new: _New
) -> tuple[State, SkipReason | None, str | None, dict[str, str]]:
    """The state in which a dependent's trigger begins, why, and its parameters."""
    if new.verdict.fate is Fate.SKIP:
        return State.SKIPPED, new.verdict.reason, new.verdict.message, {}
    if not its_job.enabled:
        return State.SKIPPED, SkipReason.JOB_DISABLED, None, {}
    if group_paused:
        return State.SKIPPED, SkipReason.GROUP_PAUSED, None, {}
    decisive = {need.job: need.decisive[0] for need in new.verdict.needs if need.decisive is not None}
    given = [new.parameters[decisive[up.key]] for up in its_job.depends_on if up.key in decisive]
    try:
        parameters = its_job.fill_parameters(parameters_for(its_job.parameters, given))
    except Invalid as invalid:
        return State.FAILED, None, " ".join(fault.message for fault in invalid.faults), {}
    return State.QUEUED, None, None, parameters

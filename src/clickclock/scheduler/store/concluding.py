"""Exits conclude attempts.

Never judges: `trigger.conclude` does. Invariant: an attempt that is no longer ours is not touched.
"""

from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from clickclock.scheduler.insight.statistics import FAILURES
from clickclock.scheduler.jobs.retry import RetryRule
from clickclock.scheduler.jobs.trigger import (
    Conclusion,
    Exit,
    State,
    StopReason,
    attempt_name,
    conclude,
    parse_attempt_name,
)
from clickclock.scheduler.store.changes import note_attempts, note_triggers
from clickclock.scheduler.store.conditions import IS_AWAITED
from clickclock.scheduler.store.prepared import Among, Inserting, Prepared
from clickclock.scheduler.store.rows import effective_job
from clickclock.scheduler.store.schema import LIVE_ROWS, attempt, job, job_group, job_trigger

_t = job_trigger.c


_NEEDED = (
    "trigger_id", "schedule_id", "backfill_id", "application", "job_name", "cluster", "node", "attempt",
    "max_attempts", "preemption_count",
    "stop_reason", "due_time", "ready_at", "started_at", "lag_ms", "cpu_seconds", "max_memory_bytes", "preempted_by",
)  # fmt: skip
_ENDED = Among(
    _t.trigger_id,
    lambda these: (
        sa.select(
            *(_t[name] for name in _NEEDED),
            job.c.definition,
            job_group.c.definition.label("grouped"),
            IS_AWAITED.label("is_awaited"),
        )
        .select_from(
            job_trigger.outerjoin(
                job, sa.and_(_t.application == job.c.application, _t.job_name == job.c.job_name)
            ).outerjoin(job_group, job.c.group_name == job_group.c.group_name)
        )
        .where(
            these,
            _t.lease_id == sa.bindparam("lease_id"),
            LIVE_ROWS,
        )
        .with_for_update(of=job_trigger)
    ),
)
_CHANGED = (
    "state", "started_at", "finished_at", "ready_at", "lag_ms", "lease_id", "exit_code", "signal", "message",
    "stop_reason", "cpu_seconds", "max_memory_bytes", "preemption_count", "node", "preempted_by", "unfollowed",
)  # fmt: skip
_CONCLUDE = Prepared(
    sa.update(job_trigger)
    .where(_t.trigger_id == sa.bindparam("b_trigger_id"))
    .values({name: sa.bindparam(f"b_{name}", type_=_t[name].type) for name in _CHANGED})
)
_RECORD = Inserting(attempt)


def finish(
    connection: sa.Connection, lease_id: str, exits: Mapping[str, Exit], fraction: Callable[[], float]
) -> dict[str, Conclusion]:
    """Judge, write, count; see `Queue.finish`."""
    ids = [parse_attempt_name(name)[0] for name in exits]
    rows = _ENDED.rows(connection, ids, lease_id=lease_id)
    conclusions: dict[str, Conclusion] = {}
    attempts: list[dict[str, Any]] = []
    updates: list[dict[str, Any]] = []
    for row in rows:
        name = attempt_name(row.trigger_id, row.attempt)
        if name not in exits:
            continue
        conclusion = _conclude_row(row, exits[name], fraction())
        update = _concluded(row, exits[name], conclusion)
        conclusions[name] = conclusion
        attempts.append(_attempt_row(row, exits[name], conclusion, update))
        updates.append(update)
    if updates:
        _CONCLUDE.run(connection, updates)
        _RECORD.run(connection, attempts)
        note_attempts(
            connection, [parse_attempt_name(name) for name, each in conclusions.items() if each.retry_at is not None]
        )
        ended = [update["b_trigger_id"] for update in updates]
        note_triggers(connection, ended, max(each["finished_at"] for each in attempts))
    return conclusions


def _conclude_row(row: Any, exit_: Exit, fraction: float) -> Conclusion:
    its_job = None if row.definition is None else effective_job(row.definition, row.grouped)
    conclusion = conclude(
        exit_,
        attempt=row.attempt - row.preemption_count,
        max_attempts=row.max_attempts if its_job is not None else 0,
        stop_reason=row.stop_reason and StopReason(row.stop_reason),
        rule=its_job.retry_rule if its_job is not None else RetryRule(),
        fraction=fraction,
        preemption_count=row.preemption_count,
    )
    if conclusion.retry_at is not None:
        return conclusion
    if row.schedule_id is not None and row.backfill_id is None and conclusion.state in FAILURES:
        conclusion = replace(conclusion, failed_schedule=row.schedule_id)
    return replace(conclusion, is_awaited=True) if row.is_awaited else conclusion


def _concluded(row: Any, exit_: Exit, conclusion: Conclusion) -> dict[str, Any]:
    started_at = exit_.started_at or row.started_at
    lag_ms = row.lag_ms
    if lag_ms is None and started_at is not None:
        lag_ms = round((started_at - row.due_time).total_seconds() * 1000)
    again = conclusion.retry_at is not None
    cpu = [each for each in (row.cpu_seconds, exit_.cpu_seconds) if each is not None]
    preemptions = row.preemption_count + (not conclusion.uses_up_retry)
    memory = [each for each in (row.max_memory_bytes, exit_.max_memory_bytes) if each is not None]
    return {
        "b_trigger_id": row.trigger_id,
        "b_state": State.QUEUED if again else conclusion.state,
        "b_started_at": started_at,
        "b_finished_at": None if again else exit_.finished_at,
        # What ended before its time, which was held for it, does not come sooner.
        "b_ready_at": row.ready_at if conclusion.retry_at is None else max(conclusion.retry_at, row.due_time),
        "b_lag_ms": lag_ms,
        "b_lease_id": None,
        "b_exit_code": exit_.code,
        "b_signal": exit_.signal,
        "b_message": conclusion.message,
        "b_stop_reason": None if again else row.stop_reason,
        "b_cpu_seconds": sum(cpu) if cpu else None,
        "b_max_memory_bytes": max(memory, default=None),
        "b_preemption_count": preemptions,
        "b_node": exit_.node or row.node,
        # It may have ended by itself before the signal came.
        "b_preempted_by": row.preempted_by if preemptions else None,
        # If we die after this, `chainer.step` finds it again.
        "b_unfollowed": conclusion.is_awaited or None,
    }


def _attempt_row(row: Any, exit_: Exit, conclusion: Conclusion, update: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "trigger_id": row.trigger_id,
        "attempt": row.attempt,
        "state": conclusion.state,
        "started_at": update["b_started_at"],
        "finished_at": exit_.finished_at,
        "exit_code": exit_.code,
        "signal": exit_.signal,
        "message": conclusion.message,
        "cluster": row.cluster,
        "node": update["b_node"],
        "cpu_seconds": exit_.cpu_seconds,
        "max_memory_bytes": exit_.max_memory_bytes,
        "preempted_by": None if conclusion.uses_up_retry else row.preempted_by,
        "kept_on": row.node if exit_.node is not None else None,
    }

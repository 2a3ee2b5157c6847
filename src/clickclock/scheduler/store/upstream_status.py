"""Where the upstreams of a job stand in one run, and whether those that are not there yet will come.

Never writes, and never judges (`dependency.judge` does). Invariants: what is looked at is found by index, however long
history is; a job has a nominal time if it has a row for it, or a schedule that has not come to it yet, or, without
schedules of its own, if all its upstreams have it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.foundation.errors import Invalid
from clickclock.foundation.instant import MILLISECOND
from clickclock.scheduler.jobs.dependency import LATE_S, Key, Need, comes, run_of
from clickclock.scheduler.jobs.trigger import SkipReason, State, When
from clickclock.scheduler.store.dependencies import KEYS_PER_QUERY, all_below, conditions_of
from clickclock.scheduler.store.rows import planned_schedule
from clickclock.scheduler.store.schema import UNFINISHED_ROWS, job_trigger, schedule

_t = job_trigger.c
_its_job = sa.tuple_(_t.application, _t.job_name)
COLUMNS = (
    _t.trigger_id, _t.kind, _t.application, _t.job_name, _t.state, _t.skip_reason, _t.nominal_time, _t.due_time,
    _t.run_id, _t.waits, _t.parameters, _t.skipped_count, _t.skipped_through, _t.finished_at,
)  # fmt: skip


class Run(msgspec.Struct, frozen=True):
    """What triggers of several jobs have in common: a nominal time, or the call that began it (then `members`)."""

    run_id: str
    nominal: datetime | None = None
    members: frozenset[Key] = frozenset()


@dataclass(slots=True)
class InRun:
    """One job in one run: its triggers by id, if it has schedules, and if one of them has yet to get there."""

    rows: dict[str, Any] = field(default_factory=dict)
    has_schedule: bool = False
    is_scheduled: bool = False


def was_missed(row: Any) -> bool:
    """Whether a trigger was skipped so late that its time was missed; those below it have its due time."""
    return row.state == State.SKIPPED and bool(row.finished_at - row.due_time > timedelta(seconds=LATE_S))


def run_of_row(connection: sa.Connection, row: Any) -> Run:
    """The run that a trigger belongs to."""
    if row.nominal_time is not None and row.run_id in {None, run_of(row.nominal_time)}:
        return Run(run_of(row.nominal_time), row.nominal_time)
    root = connection.execute(sa.select(_t.application, _t.job_name).where(_t.trigger_id == row.run_id)).one_or_none()
    return Run(row.run_id, None, frozenset() if root is None else frozenset(all_below(connection, tuple(root))))


def load(connection: sa.Connection, jobs: Collection[Key], run: Run) -> dict[Key, InRun]:
    """These jobs in a run."""
    found = {key: InRun() for key in jobs}
    keys = sorted(found)
    for start in range(0, len(keys), KEYS_PER_QUERY):
        chunk = keys[start : start + KEYS_PER_QUERY]
        _add(found, connection.execute(sa.select(*COLUMNS).where(_its_job.in_(chunk), _t.run_id == run.run_id)))
        if run.nominal is None:
            continue
        at_that_time = sa.and_(UNFINISHED_ROWS, _t.nominal_time == run.nominal, _t.schedule_id.is_not(None))
        _add(found, connection.execute(sa.select(*COLUMNS).where(_its_job.in_(chunk), at_that_time)))
        of_jobs = sa.tuple_(schedule.c.application, schedule.c.job_name).in_(chunk)
        for each in connection.execute(sa.select(schedule).where(of_jobs)):
            _add_schedule(connection, found[each.application, each.job_name], each, run.nominal)
    return found


def _add(found: dict[Key, InRun], rows: Iterable[Any]) -> None:
    for row in rows:
        found[row.application, row.job_name].rows[row.trigger_id] = row


def _add_schedule(connection: sa.Connection, in_run: InRun, of: Any, nominal: datetime) -> None:
    in_run.has_schedule = True
    last = connection.execute(
        sa.select(*COLUMNS)
        .where(_t.schedule_id == of.schedule_id, _t.nominal_time <= nominal)
        .order_by(_t.nominal_time.desc())
        .limit(1)
    ).one_or_none()
    # A row of many skips stands for all times up to its last.
    if last is not None and (last.skipped_through or last.nominal_time) >= nominal:
        in_run.rows[last.trigger_id] = last
    elif of.high_water < nominal:
        in_run.is_scheduled = in_run.is_scheduled or _has_time(of, nominal)


def _has_time(of: Any, nominal: datetime) -> bool:
    try:
        following = planned_schedule(of.definition).timetable(of.created_at).after(nominal - MILLISECOND)
    except Invalid:  # its zone is gone from this machine: the planner says so
        return False
    return following is not None and timedelta(0) <= following.at - nominal < MILLISECOND


def needs_of(
    connection: sa.Connection, dependent: Key, run: Run, ended: Iterable[Any] = ()
) -> tuple[list[Need], dict[str, Any]]:
    """The upstreams of a job in a run, and all their triggers by id. For a call, only those that it carries along.

    `ended` are triggers of this run that are known to have ended: their schedules may be gone.
    """
    upstreams = conditions_of(connection, [dependent]).get(dependent, {})
    found = load(connection, upstreams, run)
    _add(found, (row for row in ended if (row.application, row.job_name) in found))
    absent = {key for key, each in found.items() if not each.rows}
    coming = {key: key in run.members for key in absent} if run.nominal is None else _coming(connection, absent, run)
    needs = [
        Need(
            key,
            tuple((row.trigger_id, State(row.state)) for _, row in sorted(each.rows.items())),
            coming.get(key, False),
            upstreams[key],
            any(was_missed(row) for row in each.rows.values()),
            frozenset(row.trigger_id for row in each.rows.values() if row.skip_reason == SkipReason.UPSTREAM_FAILED),
        )
        for key, each in found.items()
        if run.nominal is not None or each.rows or coming[key]
    ]
    return needs, {trigger_id: row for each in found.values() for trigger_id, row in each.rows.items()}


def _coming(connection: sa.Connection, absent: Collection[Key], run: Run) -> dict[Key, bool]:
    known: dict[Key, bool] = {}
    above: dict[Key, Collection[Key]] = {}
    any_of: dict[Key, Collection[Key]] = {}
    fresh = set(absent)
    while fresh:
        unclear: set[Key] = set()
        for key, each in load(connection, fresh, run).items():
            if each.has_schedule or each.rows:
                known[key] = bool(each.rows) or each.is_scheduled
            else:
                unclear.add(key)
        edges = conditions_of(connection, unclear)
        above |= {key: edges.get(key, ()) for key in unclear}
        any_of |= {
            key: [up for up, condition in conditions.items() if condition.when is When.ANY_SUCCEEDED]
            for key, conditions in edges.items()
        }
        fresh = {key for keys in edges.values() for key in keys}.difference(known, above)
    return comes(known, above, any_of)

"""Conditions that several statements have, each with its reason.

The ground floor, beside the tables: it imports no other room of the store, and whoever writes a statement may use it.
What an index has as well (`QUEUED_ROWS` and the like) stands with the tables.

>>> str(NOT_STOPPING)
'job_trigger.stop_reason IS NULL OR job_trigger.stop_reason = :stop_reason_1'
"""

import sqlalchemy as sa

from clickclock.scheduler.jobs.trigger import Kind, State, StopReason
from clickclock.scheduler.store.schema import LIVE_ROWS, job, job_dependency, job_trigger, unfinished_rows

_t = job_trigger.c

OF_ITS_JOB = sa.and_(_t.application == job.c.application, _t.job_name == job.c.job_name)
"""A trigger's job."""
HERE = _t.cluster.in_([sa.bindparam("cluster"), sa.bindparam("or_cluster")])
"""A trigger that this cluster may run: its own, or one that says none."""
HELD = sa.and_(LIVE_ROWS, _t.cluster == sa.bindparam("cluster"), _t.lease_id == sa.bindparam("lease_id"))
"""An attempt that a lease holds."""
_retry = job_trigger.alias("retry").c
IN_TURN = sa.or_(
    sa.not_(_t.serial),
    sa.not_(
        sa.exists().where(
            unfinished_rows(_retry),
            _retry.schedule_id == _t.schedule_id,
            _retry.state == sa.literal_column(f"'{State.QUEUED}'"),
            _retry.attempt > 0,
            _retry.kind == _t.kind,
            _retry.nominal_time < _t.nominal_time,
        )
    ),
)
"""Triggers of one schedule wait for each other: this one is behind no earlier one that is to be tried again."""
NOT_BEHIND_A_FULL_JOB = (
    sa.tuple_(_t.application, _t.job_name).not_in(
        sa.select(job.c.application, job.c.job_name)
        .select_from(job_trigger.join(job, OF_ITS_JOB))
        .where(LIVE_ROWS, job.c.max_concurrent.is_not(None))
        .group_by(job.c.application, job.c.job_name)
        .having(sa.func.count() >= job.c.max_concurrent)
        .correlate(None)
    ),
    sa.or_(
        sa.not_(_t.serial),
        _t.schedule_id.not_in(
            sa.select(_t.schedule_id)
            .where(LIVE_ROWS, _t.schedule_id.is_not(None), _t.backfill_id.is_(None))
            .correlate(None)
        ),
    ),
)
"""Past whatever only the end of its own job's attempts can let start."""
NOT_STOPPING = sa.or_(_t.stop_reason.is_(None), _t.stop_reason == StopReason.PREEMPTED)
"""An attempt that was asked to stop is not asked again, unless it was only to make room."""


def has_dependents(
    application: sa.ColumnElement[str] = job_trigger.c.application,
    job_name: sa.ColumnElement[str] = job_trigger.c.job_name,
) -> sa.ColumnElement[bool]:
    """Whether other jobs depend on the job in these columns."""
    return sa.exists().where(
        job_dependency.c.upstream_application == application, job_dependency.c.upstream_job_name == job_name
    )


IS_AWAITED = sa.and_(has_dependents(), sa.or_(_t.kind != sa.literal_column(f"'{Kind.MANUAL}'"), _t.run_id.is_not(None)))
"""Whether other jobs are to hear of a trigger's end."""

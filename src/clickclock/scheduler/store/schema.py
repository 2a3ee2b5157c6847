"""The tables. SQLAlchemy Core, one definition for SQLite and PostgreSQL.

Never holds logic; `migrations/` brings an existing database to this shape, and a contract test compares the two.
Invariants in the schema: one row per (schedule, nominal time); one trigger per idempotency key; a schedule has its
job. The hot rows have partial indexes of their own, so that history never slows the present.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from clickclock.foundation.instant import EPOCH, MILLISECOND
from clickclock.scheduler.jobs.trigger import FINISHED, LIVE, UNFINISHED, Kind, State


class InstantMs(TypeDecorator[datetime]):
    """An aware UTC datetime, kept as whole milliseconds since 1970."""

    impl = sa.BigInteger
    cache_ok = True

    # There are some thirty of them for each trigger: so the conversions themselves, without a wrapper around each.
    def bind_processor(self, dialect: Dialect) -> Callable[[datetime | None], int | None]:
        return _to_ms

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[int | None], datetime | None]:
        return _from_ms


def _to_ms(value: datetime | None) -> int | None:
    return None if value is None else (value - EPOCH) // MILLISECOND


def _from_ms(value: int | None) -> datetime | None:
    return None if value is None else EPOCH + timedelta(milliseconds=value)


ANY_CLUSTER = ""
"""The cluster of a trigger whose job names none: whichever is the default takes it."""

Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _instant(name: str, nullable: bool = False) -> sa.Column[datetime]:
    return sa.Column(name, InstantMs, nullable=nullable)


def _versioned(*more: sa.Column[Any]) -> list[sa.Column[Any]]:
    return [sa.Column("version", sa.Integer, nullable=False), _instant("created_at"), _instant("updated_at"), *more]


job_group = sa.Table(
    "job_group",
    metadata,
    sa.Column("group_name", sa.Text, primary_key=True),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("paused", sa.Boolean, nullable=False),
    _instant("resumed_at", nullable=True),
    sa.Column("max_concurrent", sa.Integer),
    *_versioned(),
)

job = sa.Table(
    "job",
    metadata,
    sa.Column("application", sa.Text, primary_key=True),
    sa.Column("job_name", sa.Text, primary_key=True),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("group_name", sa.Text, sa.ForeignKey("job_group.group_name")),
    sa.Column("enabled", sa.Boolean, nullable=False),
    _instant("enabled_since", nullable=True),
    sa.Column("max_concurrent", sa.Integer),
    sa.Column("expected_within_ms", sa.BigInteger),
    sa.Column("node", sa.Text),
    *_versioned(sa.Column("updated_by", sa.Text)),
    sa.Index(None, "group_name", sqlite_where=sa.text("group_name IS NOT NULL")),
)
sa.Index(
    "ix_job_expected",
    job.c.application,
    job.c.job_name,
    sqlite_where=job.c.expected_within_ms.is_not(None),
    postgresql_where=job.c.expected_within_ms.is_not(None),
)

calendar = sa.Table(
    "calendar",
    metadata,
    sa.Column("calendar_name", sa.Text, primary_key=True),
    sa.Column("definition", sa.Text, nullable=False),
    *_versioned(),
)

schedule = sa.Table(
    "schedule",
    metadata,
    sa.Column("schedule_id", sa.Text, primary_key=True),
    sa.Column("application", sa.Text, nullable=False),
    sa.Column("job_name", sa.Text, nullable=False),
    sa.Column("schedule_name", sa.Text, nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    _instant("high_water"),
    _instant("next_due", nullable=True),
    _instant("last_fire", nullable=True),
    *_versioned(sa.Column("updated_by", sa.Text)),
    sa.Column("calendar_name", sa.Text, sa.ForeignKey("calendar.calendar_name")),
    sa.Column("pause_after", sa.Integer, index=True),
    sa.UniqueConstraint("application", "job_name", "schedule_name"),
    sa.ForeignKeyConstraint(["application", "job_name"], ["job.application", "job.job_name"]),
    sa.Index(None, "next_due"),
    sa.Index(
        None,
        "calendar_name",
        sqlite_where=sa.text("calendar_name IS NOT NULL"),
        postgresql_where=sa.text("calendar_name IS NOT NULL"),
    ),
)


def _states(column: sa.Column[str], states: frozenset[State]) -> sa.ColumnElement[bool]:
    return column.in_([sa.literal_column(f"'{state}'") for state in sorted(states)])


_state: sa.Column[str] = sa.Column("state", sa.Text, nullable=False)
_schedule_id: sa.Column[str] = sa.Column("schedule_id", sa.Text)
_idempotency_key: sa.Column[str] = sa.Column("idempotency_key", sa.Text)
_finished_at = _instant("finished_at", nullable=True)
_counted: sa.Column[bool] = sa.Column("counted", sa.Boolean)
_stop_reason: sa.Column[str] = sa.Column("stop_reason", sa.Text)
_backfill_id: sa.Column[str] = sa.Column("backfill_id", sa.Text)
_group_name: sa.Column[str] = sa.Column("group_name", sa.Text)
_kind: sa.Column[str] = sa.Column("kind", sa.Text, nullable=False)
_run_id: sa.Column[str] = sa.Column("run_id", sa.Text)
_waits: sa.Column[bool] = sa.Column("waits", sa.Boolean)
_unfollowed: sa.Column[bool] = sa.Column("unfollowed", sa.Boolean)
_preemptible: sa.Column[bool] = sa.Column("preemptible", sa.Boolean)

job_trigger = sa.Table(
    "job_trigger",
    metadata,
    sa.Column("trigger_id", sa.Text, primary_key=True),
    _kind,
    sa.Column("application", sa.Text, nullable=False),
    sa.Column("job_name", sa.Text, nullable=False),
    _schedule_id,
    _group_name,
    sa.Column("cluster", sa.Text, nullable=False),
    _state,
    sa.Column("skip_reason", sa.Text),
    sa.Column("skipped_count", sa.Integer),
    _instant("skipped_through", nullable=True),
    _instant("nominal_time", nullable=True),
    _instant("due_time"),
    _instant("ready_at"),
    _instant("queued_at"),
    _instant("started_at", nullable=True),
    _finished_at,
    sa.Column("lag_ms", sa.BigInteger),
    _counted,
    sa.Column("serial", sa.Boolean, nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("max_attempts", sa.Integer, nullable=False),
    sa.Column("lease_id", sa.Text),
    _stop_reason,
    sa.Column("exit_code", sa.Integer),
    sa.Column("signal", sa.Integer),
    sa.Column("message", sa.Text),
    sa.Column("node", sa.Text),
    sa.Column("image", sa.Text),
    sa.Column("resolved_command", Json),
    sa.Column("parameters", Json, nullable=False),
    sa.Column("cpu_seconds", sa.Float),
    sa.Column("max_memory_bytes", sa.BigInteger),
    sa.Column("preemption_count", sa.Integer, nullable=False),
    sa.Column("preempted_by", sa.Text),
    sa.Column("requested_by", sa.Text),
    sa.Column("reason", sa.Text),
    _idempotency_key,
    _backfill_id,
    _run_id,
    sa.Column("upstream", Json),
    _waits,
    _unfollowed,
    _preemptible,
    sa.Column("is_flip", sa.Boolean),
    *(sa.Column(name, sa.Text) for name in ("traceparent", "tracestate")),
)


def _partial(
    name: str, *columns: str | sa.ColumnElement[Any], where: sa.ColumnElement[bool], unique: bool = False
) -> sa.Index:
    return sa.Index(
        name,
        *(job_trigger.c[column] if isinstance(column, str) else column for column in columns),
        unique=unique,
        sqlite_where=where,
        postgresql_where=where,
    )


LIVE_ROWS = _states(_state, LIVE)
UNFINISHED_ROWS = _states(_state, UNFINISHED)
UNHAPPY_ROWS = _states(_state, FINISHED - {State.SUCCEEDED})
UNCOUNTED_ROWS = sa.and_(_finished_at.is_not(None), _counted.is_(None))
"""Concluded triggers that are in no rollup yet."""
COUNTED_ROWS = _counted.is_not(None)


def unfinished_rows(of: sa.ColumnCollection[str, sa.Column[Any]]) -> sa.ColumnElement[bool]:
    """The same as `UNFINISHED_ROWS`, of an alias: word for word, so that SQLite finds the partial index."""
    return _states(of.state, UNFINISHED)


QUEUED_ROWS = _states(_state, frozenset({State.QUEUED}))
WAITING_ROWS = _waits.is_not(None)
"""Queued triggers whose upstream jobs have not all succeeded. These marks are true or null."""
UNFOLLOWED_ROWS = _unfollowed.is_not(None)
"""Concluded triggers of jobs that others depend on, who have not been told."""
PREEMPTIBLE_ROWS = sa.and_(_preemptible.is_not(None), LIVE_ROWS)
UNLED_GROUP = sa.func.coalesce(_group_name, "")
"""A trigger's group, where few rows are counted by it: SQLite would walk the index by group, and all that is over."""
_OF_DEPENDENCY = _kind == sa.literal_column(f"'{Kind.DEPENDENCY}'")
_SKIPPED = _state == sa.literal_column(f"'{State.SKIPPED}'")
_partial(
    "uq_job_trigger_schedule_nominal",
    "schedule_id",
    "nominal_time",
    where=_schedule_id.is_not(None),
    unique=True,
)
_partial(
    "uq_job_trigger_idempotency_key",
    "application",
    "job_name",
    "idempotency_key",
    where=_idempotency_key.is_not(None),
    unique=True,
)
_partial("ix_job_trigger_queue", job_trigger.c.priority.desc(), "ready_at", "trigger_id", where=QUEUED_ROWS)
_partial("ix_job_trigger_ready", "ready_at", where=QUEUED_ROWS)
_partial("ix_job_trigger_live", "cluster", "lease_id", "trigger_id", where=LIVE_ROWS)
_partial("ix_job_trigger_unfinished_job", "application", "job_name", "state", where=UNFINISHED_ROWS)
# With the state, or SQLite takes the unique index, and reads all that a schedule ever triggered.
_partial("ix_job_trigger_unfinished_schedule", "schedule_id", "state", where=UNFINISHED_ROWS)
_partial("ix_job_trigger_stopping", "trigger_id", where=sa.and_(_stop_reason.is_not(None), LIVE_ROWS))
_partial("ix_job_trigger_unhappy", "state", "trigger_id", where=UNHAPPY_ROWS)
_partial("ix_job_trigger_uncounted", "finished_at", "trigger_id", where=UNCOUNTED_ROWS)
_partial("ix_job_trigger_counted", "finished_at", "application", "job_name", where=COUNTED_ROWS)
_partial("ix_job_trigger_backfill", "backfill_id", "state", where=_backfill_id.is_not(None))
# A job runs once after its upstreams in one run; what was skipped may run later, if an upstream succeeds by hand.
_RUN = ("application", "job_name", "run_id")
_partial("uq_job_trigger_dependency_run", *_RUN, where=sa.and_(_OF_DEPENDENCY, sa.not_(_SKIPPED)), unique=True)
_partial("uq_job_trigger_dependency_skip", *_RUN, where=sa.and_(_OF_DEPENDENCY, _SKIPPED), unique=True)
_partial("ix_job_trigger_run", *_RUN, where=_run_id.is_not(None))
_partial("ix_job_trigger_waits", "trigger_id", where=WAITING_ROWS)
_partial("ix_job_trigger_unfollowed", "trigger_id", where=UNFOLLOWED_ROWS)
_partial("ix_job_trigger_preemptible", "priority", "trigger_id", where=PREEMPTIBLE_ROWS)
sa.Index("ix_job_trigger_application", job_trigger.c.application, job_trigger.c.trigger_id)
sa.Index("ix_job_trigger_job", job_trigger.c.application, job_trigger.c.job_name, job_trigger.c.trigger_id)
# What a list may be asked by alone, newest first.
sa.Index("ix_job_trigger_job_name", job_trigger.c.job_name, job_trigger.c.trigger_id)
sa.Index("ix_job_trigger_kind", job_trigger.c.kind, job_trigger.c.trigger_id)
_partial("ix_job_trigger_schedule", "schedule_id", "trigger_id", where=_schedule_id.is_not(None))
_partial("ix_job_trigger_group", "group_name", "trigger_id", where=_group_name.is_not(None))
_partial("ix_job_trigger_key", "idempotency_key", "trigger_id", where=_idempotency_key.is_not(None))

backfill = sa.Table(
    "backfill",
    metadata,
    sa.Column("backfill_id", sa.Text, primary_key=True),
    sa.Column("application", sa.Text, nullable=False),
    sa.Column("job_name", sa.Text, nullable=False),
    sa.Column("schedule_id", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    # The schedule and its calendar as they were: what is to run was counted by them.
    sa.Column("schedule_definition", sa.Text, nullable=False),
    sa.Column("calendar_definition", sa.Text),
    _instant("anchor"),
    _instant("settled_through"),
    _instant("next_at"),
    sa.Column("max_concurrent", sa.Integer, nullable=False),
    sa.Column("per_second", sa.Float, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("excluded", sa.Integer, nullable=False),
    sa.Column("triggered", sa.Integer, nullable=False),
    sa.Column("skipped", sa.Integer, nullable=False),
    sa.Column("outcome", Json),
    sa.Column("message", sa.Text),
    _instant("ended_at", nullable=True),
    *_versioned(),
    sa.Index(
        "ix_backfill_running",
        "next_at",
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    ),
)

attempt = sa.Table(
    "attempt",
    metadata,
    sa.Column("trigger_id", sa.Text, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    _instant("started_at", nullable=True),
    _instant("finished_at"),
    sa.Column("exit_code", sa.Integer),
    sa.Column("signal", sa.Integer),
    sa.Column("message", sa.Text),
    sa.Column("cluster", sa.Text),
    sa.Column("node", sa.Text),
    sa.Column("cpu_seconds", sa.Float),
    sa.Column("max_memory_bytes", sa.BigInteger),
    sa.Column("preempted_by", sa.Text),
    sa.Column("kept_on", sa.Text),
)

job_dependency = sa.Table(
    "job_dependency",
    metadata,
    sa.Column("application", sa.Text, primary_key=True),
    sa.Column("job_name", sa.Text, primary_key=True),
    sa.Column("upstream_application", sa.Text, primary_key=True),
    sa.Column("upstream_job_name", sa.Text, primary_key=True),
    sa.Column("awaited_end", sa.Text),
    sa.Column("if_skipped", sa.Text),
    sa.ForeignKeyConstraint(["application", "job_name"], ["job.application", "job.job_name"]),
    sa.Index("ix_job_dependency_upstream", "upstream_application", "upstream_job_name"),
)

rollup = sa.Table(
    "rollup",
    metadata,
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("application", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("hour", InstantMs, primary_key=True),
    sa.Column("content", sa.Text, nullable=False),
)

job_pulse = sa.Table(
    "job_pulse",
    metadata,
    sa.Column("application", sa.Text, primary_key=True),
    sa.Column("job_name", sa.Text, primary_key=True),
    sa.Column("streak", sa.Integer, nullable=False),
    sa.Column("last_success_id", sa.Text),
    _instant("last_success_at", nullable=True),
    sa.Column("last_failure_id", sa.Text),
    _instant("last_failure_at", nullable=True),
)

image_mapping = sa.Table(
    "image_mapping",
    metadata,
    sa.Column("prefix", sa.Text, primary_key=True),
    sa.Column("definition", sa.Text, nullable=False),
    *_versioned(),
)

replica = sa.Table(
    "replica",
    metadata,
    sa.Column("replica_id", sa.Text, primary_key=True),
    sa.Column("node", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    _instant("started_at"),
    _instant("heartbeat_at"),
    _instant("lease_until"),
    sa.Column("clusters", Json, nullable=False),
    sa.Column("loops", Json, nullable=False),
    sa.Column("clock_skew_ms", sa.Float),
    sa.Column("url", sa.Text),
)

installation = sa.Table(
    "installation",
    metadata,
    sa.Column("installation_id", sa.Text, primary_key=True),
    _instant("created_at"),
    sa.Column("needs_revision", sa.Text, nullable=False),
)
"""One row: whose database this is, and the oldest migration that a program must know to work with it."""

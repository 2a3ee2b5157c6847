"""The tables of notifications: the log of changes, alarms, silences, and notifications on their way.

Never holds logic. Invariants in the schema: a job has one open alarm of a kind; a change has one place in the log.
"""

from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.store.schema import InstantMs, metadata

__all__ = ["alarm", "application", "change", "metadata", "notification", "silence"]

PENDING = "pending"

change = sa.Table(
    "change",
    metadata,
    sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("at", InstantMs, nullable=False),
    sa.Column("about", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("application", sa.Text),
    sa.Column("job_name", sa.Text),
    sa.Column("group_name", sa.Text),
    sa.Column("subject", sa.Text),
    sa.Column("schedule_id", sa.Text),
    sa.Column("attempt", sa.Integer),
    sa.Column("nominal_time", InstantMs),
    sa.Column("started_at", InstantMs),
    sa.Column("finished_at", InstantMs),
    sa.Column("retry_at", InstantMs),
    sa.Column("exit_code", sa.Integer),
    sa.Column("signal", sa.Integer),
    sa.Column("reason", sa.Text),
    sa.Column("message", sa.Text),
    sa.Column("due_time", InstantMs),
)
"""What changed, in the order of its writing: read by who listens, and nowhere else, so it has no further index."""

application = sa.Table(
    "application",
    metadata,
    sa.Column("application", sa.Text, primary_key=True),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("updated_at", InstantMs, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, server_default="1"),
    sa.Column("created_at", InstantMs, nullable=False, server_default="0"),
)

_resolved_at: sa.Column[object] = sa.Column("resolved_at", InstantMs)

alarm = sa.Table(
    "alarm",
    metadata,
    sa.Column("alarm_id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("application", sa.Text, nullable=False),
    sa.Column("job_name", sa.Text, nullable=False),
    sa.Column("group_name", sa.Text),
    sa.Column("trigger_id", sa.Text),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("opened_at", InstantMs, nullable=False),
    sa.Column("updated_at", InstantMs, nullable=False),
    _resolved_at,
    sa.Column("resolution", sa.Text),
    sa.Column("notified_at", InstantMs),
    sa.Column("acknowledged_at", InstantMs),
    sa.Column("acknowledged_by", sa.Text),
    sa.Column("note", sa.Text),
)
OPEN_ALARMS = _resolved_at.is_(None)
sa.Index(
    "uq_alarm_open",
    alarm.c.application,
    alarm.c.job_name,
    alarm.c.kind,
    unique=True,
    sqlite_where=OPEN_ALARMS,
    postgresql_where=OPEN_ALARMS,
)
sa.Index("ix_alarm_job", alarm.c.application, alarm.c.job_name, alarm.c.alarm_id)

silence = sa.Table(
    "silence",
    metadata,
    sa.Column("application", sa.Text, primary_key=True),
    sa.Column("job_name", sa.Text, primary_key=True),
    sa.Column("group_name", sa.Text, primary_key=True),
    sa.Column("until", InstantMs, nullable=False),
    sa.Column("silenced_by", sa.Text, nullable=False),
    sa.Column("note", sa.Text),
    sa.Column("created_at", InstantMs, nullable=False),
)
"""For a job, an application (no job), or a group (neither); absent names are empty."""

_state: sa.Column[str] = sa.Column("state", sa.Text, nullable=False)

notification = sa.Table(
    "notification",
    metadata,
    sa.Column("notification_id", sa.Text, primary_key=True),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("alarm_id", sa.Text),
    sa.Column("application", sa.Text),
    sa.Column("job_name", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    _state,
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("next_at", InstantMs, nullable=False),
    sa.Column("lease_id", sa.Text),
    sa.Column("last_error", sa.Text),
    sa.Column("created_at", InstantMs, nullable=False),
    sa.Column("finished_at", InstantMs),
)
"""The outbox: `next_at` is when it is tried next, or until when whoever holds it may be trying."""
PENDING_ROWS = _state == sa.literal_column(f"'{PENDING}'")


def pending_rows(of: sa.ColumnCollection[str, sa.Column[Any]]) -> sa.ColumnElement[bool]:
    """The same, of an alias: word for word, so that SQLite finds the partial index."""
    return of.state == sa.literal_column(f"'{PENDING}'")


sa.Index(
    "ix_notification_pending",
    notification.c.target,
    notification.c.next_at,
    sqlite_where=PENDING_ROWS,
    postgresql_where=PENDING_ROWS,
)
sa.Index(
    "ix_notification_alarm",
    notification.c.alarm_id,
    notification.c.target,
    notification.c.notification_id,
    sqlite_where=PENDING_ROWS,
    postgresql_where=PENDING_ROWS,
)
sa.Index("ix_notification_state", notification.c.state, notification.c.notification_id)

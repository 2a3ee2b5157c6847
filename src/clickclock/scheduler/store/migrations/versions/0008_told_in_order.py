"""Notifications of one alarm, found by it: a target is told of it in order."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index."""
    pending = sa.text("state = 'pending'")
    op.create_index(
        "ix_notification_alarm",
        "notification",
        ["alarm_id", "target", "notification_id"],
        sqlite_where=pending,
        postgresql_where=pending,
    )

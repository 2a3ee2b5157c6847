"""Schedules that are paused after failures in a row are found by themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and its index; no schedule has said so yet."""
    op.add_column("schedule", sa.Column("pause_after", sa.Integer, nullable=True))
    op.create_index("ix_schedule_pause_after", "schedule", ["pause_after"])

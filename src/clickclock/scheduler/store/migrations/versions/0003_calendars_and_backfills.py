"""Calendars that schedules go by, and backfills."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both tables, and the columns that name them."""
    op.create_table(
        "calendar",
        sa.Column("calendar_name", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("calendar_name", name="pk_calendar"),
    )
    # Alembic would copy the table on SQLite, which can add such a column like any other.
    op.execute(
        "ALTER TABLE schedule ADD COLUMN calendar_name TEXT "
        "CONSTRAINT fk_schedule_calendar REFERENCES calendar (calendar_name)"
    )
    op.create_index(
        "ix_schedule_calendar_name",
        "schedule",
        ["calendar_name"],
        sqlite_where=sa.text("calendar_name IS NOT NULL"),
        postgresql_where=sa.text("calendar_name IS NOT NULL"),
    )
    op.create_table(
        "backfill",
        sa.Column("backfill_id", sa.Text(), nullable=False),
        sa.Column("application", sa.Text(), nullable=False),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("schedule_definition", sa.Text(), nullable=False),
        sa.Column("calendar_definition", sa.Text(), nullable=True),
        sa.Column("anchor", sa.BigInteger(), nullable=False),
        sa.Column("settled_through", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("max_concurrent", sa.Integer(), nullable=False),
        sa.Column("per_second", sa.Float(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("excluded", sa.Integer(), nullable=False),
        sa.Column("triggered", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("backfill_id", name="pk_backfill"),
    )
    op.create_index(
        "ix_backfill_running",
        "backfill",
        ["next_at"],
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.add_column("job_trigger", sa.Column("backfill_id", sa.Text(), nullable=True))
    op.create_index(
        "ix_job_trigger_backfill",
        "job_trigger",
        ["backfill_id", "state"],
        sqlite_where=sa.text("backfill_id IS NOT NULL"),
        postgresql_where=sa.text("backfill_id IS NOT NULL"),
    )

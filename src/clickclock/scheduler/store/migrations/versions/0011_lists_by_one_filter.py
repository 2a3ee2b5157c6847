"""Lists of triggers by a job's name, a kind, a schedule or a key alone have indexes."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the indexes."""
    op.create_index("ix_job_trigger_job_name", "job_trigger", ["job_name", "trigger_id"])
    op.create_index("ix_job_trigger_kind", "job_trigger", ["kind", "trigger_id"])
    for name, column in (("schedule", "schedule_id"), ("key", "idempotency_key")):
        there = sa.text(f"{column} IS NOT NULL")
        index = f"ix_job_trigger_{name}"
        op.create_index(index, "job_trigger", [column, "trigger_id"], sqlite_where=there, postgresql_where=there)

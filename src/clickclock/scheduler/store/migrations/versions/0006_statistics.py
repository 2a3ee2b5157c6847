"""What statistics of any window read: which triggers flipped their job's outcome, and those that ended in a time."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the index."""
    op.add_column("job_trigger", sa.Column("is_flip", sa.Boolean(), nullable=True))
    counted = sa.text("counted IS NOT NULL")
    op.create_index(
        "ix_job_trigger_counted",
        "job_trigger",
        ["finished_at", "application", "job_name"],
        sqlite_where=counted,
        postgresql_where=counted,
    )

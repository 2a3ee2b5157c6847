"""Lists of triggers by their group have an index."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index."""
    there = sa.text("group_name IS NOT NULL")
    op.create_index(
        "ix_job_trigger_group",
        "job_trigger",
        ["group_name", "trigger_id"],
        sqlite_where=there,
        postgresql_where=there,
    )

"""Changes of triggers say when they were due, so that an event can say how late a job began."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; the release before leaves it empty."""
    op.add_column("change", sa.Column("due_time", sa.BigInteger(), nullable=True))

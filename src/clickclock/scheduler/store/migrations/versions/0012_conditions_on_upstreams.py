"""How an upstream has to end before a dependent runs, and what a skipped one counts as."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; edges without them are plain: the upstream has to succeed."""
    for name in ("awaited_end", "if_skipped"):
        op.add_column("job_dependency", sa.Column(name, sa.Text, nullable=True))

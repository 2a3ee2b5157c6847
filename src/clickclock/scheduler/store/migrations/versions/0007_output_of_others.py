"""Output on other replicas: where each is reached, and which keeps an attempt's output if not the node that ran it."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them."""
    op.add_column("replica", sa.Column("url", sa.Text(), nullable=True))
    op.add_column("attempt", sa.Column("kept_on", sa.Text(), nullable=True))

"""Defaults of applications have versions, so that they can be kept in files like everything else."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; the release before writes neither."""
    op.add_column("application", sa.Column("version", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("application", sa.Column("created_at", sa.BigInteger(), nullable=False, server_default="0"))

"""Many replicas: whose database this is, the node that a job is bound to, how far clocks differ."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them; its row the installation gets from whoever opens the store first."""
    op.create_table(
        "installation",
        sa.Column("installation_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("needs_revision", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("installation_id", name="pk_installation"),
    )
    op.add_column("job", sa.Column("node", sa.Text(), nullable=True))
    op.add_column("replica", sa.Column("clock_skew_ms", sa.Float(), nullable=True))

"""Tokens, by which those who ask prove who they are."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "access_token",
        sa.Column("token_id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("grants", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("token_id", name="pk_access_token"),
        sa.UniqueConstraint("sha256", name="uq_access_token_sha256"),
    )
    there = sa.text("revoked_at IS NULL")
    op.create_index(
        "ix_access_token_name", "access_token", ["name"], unique=True, sqlite_where=there, postgresql_where=there
    )

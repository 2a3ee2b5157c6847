"""Sessions of browsers, and the keys that make one."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "browser_session",
        sa.Column("session_id", sa.Text, primary_key=True),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("principal_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("grants", sa.Text, nullable=False),
        sa.Column("token_sha256", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_browser_session"),
        sa.UniqueConstraint("sha256", name="uq_browser_session_sha256"),
    )
    op.create_index("ix_browser_session_principal", "browser_session", ["kind", "principal_id"])
    op.create_index("ix_browser_session_last_used", "browser_session", ["last_used_at"])
    op.create_table(
        "sign_in",
        sa.Column("sha256", sa.Text, primary_key=True),
        sa.Column("code", sa.Text),
        sa.Column("said", sa.Text),
        sa.Column("kind", sa.Text),
        sa.Column("principal_id", sa.Text),
        sa.Column("name", sa.Text),
        sa.Column("grants", sa.Text),
        sa.Column("token_sha256", sa.Text),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_sign_in"),
        sa.UniqueConstraint("code", name="uq_sign_in_code"),
    )
    op.create_index("ix_sign_in_expires_at", "sign_in", ["expires_at"])

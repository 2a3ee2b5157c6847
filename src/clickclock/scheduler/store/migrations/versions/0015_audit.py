"""The audit trail: its records, and the chains of hashes that they make."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "audit",
        sa.Column("audit_id", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("principal_id", sa.Text(), nullable=False),
        sa.Column("proof", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("permission", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("application", sa.Text(), nullable=True),
        sa.Column("job_name", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("changes", sa.Text(), nullable=True),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("audit_id", name="pk_audit"),
    )
    op.create_index("uq_audit_chain", "audit", ["chain", "position"], unique=True)
    op.create_index("ix_audit_principal", "audit", ["principal", "audit_id"])
    op.create_index("ix_audit_permission", "audit", ["permission", "audit_id"])
    op.create_index("ix_audit_resource", "audit", ["resource_id", "audit_id"])
    op.create_index("ix_audit_job", "audit", ["application", "job_name", "audit_id"])
    op.create_index("ix_audit_outcome", "audit", ["outcome", "audit_id"])
    op.create_table(
        "audit_chain",
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("removed_through", sa.BigInteger(), nullable=False),
        sa.Column("removed_hash", sa.Text(), nullable=False),
        sa.Column("removed_at", sa.BigInteger(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=True),
        sa.Column("signed_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("chain", name="pk_audit_chain"),
    )

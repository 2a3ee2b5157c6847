"""The audit trail has indexes of applications and of kinds of things."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the indexes."""
    op.create_index("ix_audit_application", "audit", ["application", "audit_id"])
    op.create_index("ix_audit_kind", "audit", ["resource", "audit_id"])

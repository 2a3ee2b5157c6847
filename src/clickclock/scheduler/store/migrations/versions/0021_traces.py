"""Triggers keep the trace that whoever asked for them is in."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    for name in ("traceparent", "tracestate"):
        op.add_column("job_trigger", sa.Column(name, sa.Text))

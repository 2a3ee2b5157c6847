"""Jobs and schedules say who changed them last."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    for table in ("job", "schedule"):
        op.add_column(table, sa.Column("updated_by", sa.Text(), nullable=True))

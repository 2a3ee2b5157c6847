"""Dependencies between jobs, and preemption."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql")
_RUN = ["application", "job_name", "run_id"]
_LIVE = "state IN ('running', 'starting')"


def _index(name: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(name, "job_trigger", columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def upgrade() -> None:
    """Add the columns, the edges, and their indexes."""
    for column in (
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("upstream", _JSON, nullable=True),
        sa.Column("waits", sa.Boolean(), nullable=True),
        sa.Column("unfollowed", sa.Boolean(), nullable=True),
        sa.Column("preemptible", sa.Boolean(), nullable=True),
    ):
        op.add_column("job_trigger", column)
    op.add_column("attempt", sa.Column("preempted_by", sa.Text(), nullable=True))
    op.create_table(
        "job_dependency",
        sa.Column("application", sa.Text(), nullable=False),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("upstream_application", sa.Text(), nullable=False),
        sa.Column("upstream_job_name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "application", "job_name", "upstream_application", "upstream_job_name", name="pk_job_dependency"
        ),
        sa.ForeignKeyConstraint(
            ["application", "job_name"], ["job.application", "job.job_name"], name="fk_job_dependency_job"
        ),
    )
    op.create_index(
        "ix_job_dependency_upstream", "job_dependency", ["upstream_application", "upstream_job_name"], unique=False
    )
    of_dependency = "kind = 'dependency'"
    _index("uq_job_trigger_dependency_run", _RUN, f"{of_dependency} AND state != 'skipped'", unique=True)
    _index("uq_job_trigger_dependency_skip", _RUN, f"{of_dependency} AND state = 'skipped'", unique=True)
    _index("ix_job_trigger_run", _RUN, "run_id IS NOT NULL")
    _index("ix_job_trigger_waits", ["trigger_id"], "waits IS NOT NULL")
    _index("ix_job_trigger_unfollowed", ["trigger_id"], "unfollowed IS NOT NULL")
    _index("ix_job_trigger_preemptible", ["priority", "trigger_id"], f"preemptible IS NOT NULL AND {_LIVE}")

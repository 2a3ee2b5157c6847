"""The first shape of the store."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "attempt",
        sa.Column("trigger_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("cluster", sa.Text(), nullable=True),
        sa.Column("node", sa.Text(), nullable=True),
        sa.Column("cpu_seconds", sa.Float(), nullable=True),
        sa.Column("max_memory_bytes", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("trigger_id", "attempt", name="pk_attempt"),
    )
    op.create_table(
        "image_mapping",
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("prefix", name="pk_image_mapping"),
    )
    op.create_table(
        "job_group",
        sa.Column("group_name", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("resumed_at", sa.BigInteger(), nullable=True),
        sa.Column("max_concurrent", sa.Integer(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("group_name", name="pk_job_group"),
    )
    op.create_table(
        "job_pulse",
        sa.Column("application", sa.Text(), nullable=False),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("streak", sa.Integer(), nullable=False),
        sa.Column("last_success_id", sa.Text(), nullable=True),
        sa.Column("last_success_at", sa.BigInteger(), nullable=True),
        sa.Column("last_failure_id", sa.Text(), nullable=True),
        sa.Column("last_failure_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("application", "job_name", name="pk_job_pulse"),
    )
    op.create_table(
        "job_trigger",
        sa.Column("trigger_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("application", sa.Text(), nullable=False),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("schedule_id", sa.Text(), nullable=True),
        sa.Column("group_name", sa.Text(), nullable=True),
        sa.Column("cluster", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("skip_reason", sa.Text(), nullable=True),
        sa.Column("skipped_count", sa.Integer(), nullable=True),
        sa.Column("skipped_through", sa.BigInteger(), nullable=True),
        sa.Column("nominal_time", sa.BigInteger(), nullable=True),
        sa.Column("due_time", sa.BigInteger(), nullable=False),
        sa.Column("ready_at", sa.BigInteger(), nullable=False),
        sa.Column("queued_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("lag_ms", sa.BigInteger(), nullable=True),
        sa.Column("counted", sa.Boolean(), nullable=True),
        sa.Column("serial", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("lease_id", sa.Text(), nullable=True),
        sa.Column("stop_reason", sa.Text(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("node", sa.Text(), nullable=True),
        sa.Column("image", sa.Text(), nullable=True),
        sa.Column("resolved_command", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=True),
        sa.Column("parameters", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("cpu_seconds", sa.Float(), nullable=True),
        sa.Column("max_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("preemption_count", sa.Integer(), nullable=False),
        sa.Column("preempted_by", sa.Text(), nullable=True),
        sa.Column("requested_by", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("trigger_id", name="pk_job_trigger"),
    )
    op.create_index("ix_job_trigger_application", "job_trigger", ["application", "trigger_id"], unique=False)
    op.create_index("ix_job_trigger_job", "job_trigger", ["application", "job_name", "trigger_id"], unique=False)
    op.create_index(
        "ix_job_trigger_live",
        "job_trigger",
        ["cluster", "lease_id", "trigger_id"],
        unique=False,
        sqlite_where=sa.text("state IN ('running', 'starting')"),
        postgresql_where=sa.text("state IN ('running', 'starting')"),
    )
    op.create_index(
        "ix_job_trigger_queue",
        "job_trigger",
        [sa.literal_column("priority DESC"), "ready_at", "trigger_id"],
        unique=False,
        sqlite_where=sa.text("state IN ('queued')"),
        postgresql_where=sa.text("state IN ('queued')"),
    )
    op.create_index(
        "ix_job_trigger_ready",
        "job_trigger",
        ["ready_at"],
        unique=False,
        sqlite_where=sa.text("state IN ('queued')"),
        postgresql_where=sa.text("state IN ('queued')"),
    )
    op.create_index(
        "ix_job_trigger_stopping",
        "job_trigger",
        ["trigger_id"],
        unique=False,
        sqlite_where=sa.text("stop_reason IS NOT NULL AND state IN ('running', 'starting')"),
        postgresql_where=sa.text("stop_reason IS NOT NULL AND state IN ('running', 'starting')"),
    )
    op.create_index(
        "ix_job_trigger_uncounted",
        "job_trigger",
        ["finished_at", "trigger_id"],
        unique=False,
        sqlite_where=sa.text("finished_at IS NOT NULL AND counted IS NULL"),
        postgresql_where=sa.text("finished_at IS NOT NULL AND counted IS NULL"),
    )
    op.create_index(
        "ix_job_trigger_unfinished_job",
        "job_trigger",
        ["application", "job_name", "state"],
        unique=False,
        sqlite_where=sa.text("state IN ('queued', 'running', 'starting')"),
        postgresql_where=sa.text("state IN ('queued', 'running', 'starting')"),
    )
    op.create_index(
        "ix_job_trigger_unfinished_schedule",
        "job_trigger",
        ["schedule_id", "state"],
        unique=False,
        sqlite_where=sa.text("state IN ('queued', 'running', 'starting')"),
        postgresql_where=sa.text("state IN ('queued', 'running', 'starting')"),
    )
    op.create_index(
        "ix_job_trigger_unhappy",
        "job_trigger",
        ["state", "trigger_id"],
        unique=False,
        sqlite_where=sa.text("state IN ('cancelled', 'failed', 'lost', 'skipped', 'timedOut')"),
        postgresql_where=sa.text("state IN ('cancelled', 'failed', 'lost', 'skipped', 'timedOut')"),
    )
    op.create_index(
        "uq_job_trigger_idempotency_key",
        "job_trigger",
        ["application", "job_name", "idempotency_key"],
        unique=True,
        sqlite_where=sa.text("idempotency_key IS NOT NULL"),
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_index(
        "uq_job_trigger_schedule_nominal",
        "job_trigger",
        ["schedule_id", "nominal_time"],
        unique=True,
        sqlite_where=sa.text("schedule_id IS NOT NULL"),
        postgresql_where=sa.text("schedule_id IS NOT NULL"),
    )
    op.create_table(
        "replica",
        sa.Column("replica_id", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_at", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("clusters", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("loops", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.PrimaryKeyConstraint("replica_id", name="pk_replica"),
    )
    op.create_table(
        "rollup",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("application", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hour", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "application", "name", "hour", name="pk_rollup"),
    )
    op.create_table(
        "job",
        sa.Column("application", sa.Text(), nullable=False),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("group_name", sa.Text(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("enabled_since", sa.BigInteger(), nullable=True),
        sa.Column("max_concurrent", sa.Integer(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["group_name"], ["job_group.group_name"], name="fk_job_job_group"),
        sa.PrimaryKeyConstraint("application", "job_name", name="pk_job"),
    )
    op.create_index(
        "ix_job_group_name", "job", ["group_name"], unique=False, sqlite_where=sa.text("group_name IS NOT NULL")
    )
    op.create_table(
        "schedule",
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("application", sa.Text(), nullable=False),
        sa.Column("job_name", sa.Text(), nullable=False),
        sa.Column("schedule_name", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("high_water", sa.BigInteger(), nullable=False),
        sa.Column("next_due", sa.BigInteger(), nullable=True),
        sa.Column("last_fire", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["application", "job_name"], ["job.application", "job.job_name"], name="fk_schedule_job"
        ),
        sa.PrimaryKeyConstraint("schedule_id", name="pk_schedule"),
        sa.UniqueConstraint(
            "application", "job_name", "schedule_name", name="uq_schedule_application_job_name_schedule_name"
        ),
    )
    op.create_index("ix_schedule_next_due", "schedule", ["next_due"], unique=False)

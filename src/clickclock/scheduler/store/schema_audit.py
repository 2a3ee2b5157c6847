"""The tables of the audit trail: its records, and the chains of hashes that they make.

Never holds logic. Invariants in the schema: a place in a chain is taken once. Records are found by whatever a list may
be asked by alone, newest first.
"""

import sqlalchemy as sa

from clickclock.scheduler.store.schema import InstantMs
from clickclock.scheduler.store.schema_alarms import metadata

__all__ = ["audit", "audit_chain", "metadata"]

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("audit_id", sa.Text, primary_key=True),
    sa.Column("at", InstantMs, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("principal_id", sa.Text, nullable=False),
    sa.Column("proof", sa.Text, nullable=False),
    sa.Column("address", sa.Text),
    sa.Column("request_id", sa.Text),
    sa.Column("operation", sa.Text, nullable=False),
    sa.Column("permission", sa.Text, nullable=False),
    sa.Column("resource", sa.Text, nullable=False),
    sa.Column("resource_id", sa.Text, nullable=False),
    sa.Column("application", sa.Text),
    sa.Column("job_name", sa.Text),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("changes", sa.Text),
    sa.Column("chain", sa.Text, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)
sa.Index("uq_audit_chain", audit.c.chain, audit.c.position, unique=True)
sa.Index("ix_audit_principal", audit.c.principal, audit.c.audit_id)
sa.Index("ix_audit_permission", audit.c.permission, audit.c.audit_id)
sa.Index("ix_audit_resource", audit.c.resource_id, audit.c.audit_id)
sa.Index("ix_audit_job", audit.c.application, audit.c.job_name, audit.c.audit_id)
sa.Index("ix_audit_application", audit.c.application, audit.c.audit_id)
sa.Index("ix_audit_kind", audit.c.resource, audit.c.audit_id)
sa.Index("ix_audit_outcome", audit.c.outcome, audit.c.audit_id)

audit_chain = sa.Table(
    "audit_chain",
    metadata,
    sa.Column("chain", sa.Text, primary_key=True),
    sa.Column("created_at", InstantMs, nullable=False),
    sa.Column("removed_through", sa.BigInteger, nullable=False),
    sa.Column("removed_hash", sa.Text, nullable=False),
    sa.Column("removed_at", InstantMs),
    sa.Column("signature", sa.Text),
    sa.Column("signed_by", sa.Text),
)
"""Each chain, and the signed head that retention left of it."""

"""The table of tokens.

Never holds logic, and never a token: only its digest. Invariants in the schema: a digest is one token's; no two tokens
that are not revoked share a name.
"""

import sqlalchemy as sa

from clickclock.scheduler.store.schema import InstantMs, metadata

access_token = sa.Table(
    "access_token",
    metadata,
    sa.Column("token_id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False, unique=True),
    sa.Column("grants", sa.Text, nullable=False),
    sa.Column("created_at", InstantMs, nullable=False),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("expires_at", InstantMs),
    sa.Column("last_used_at", InstantMs),
    sa.Column("revoked_at", InstantMs),
)
sa.Index(
    "ix_access_token_name",
    access_token.c.name,
    unique=True,
    sqlite_where=access_token.c.revoked_at.is_(None),
    postgresql_where=access_token.c.revoked_at.is_(None),
)

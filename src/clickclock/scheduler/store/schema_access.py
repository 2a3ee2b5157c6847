"""The tables of tokens, of sessions of browsers, and of what makes one of these.

Never holds logic, and never a secret: only its digest. Invariants in the schema: a digest is one token's, or one
session's; no two tokens that are not revoked share a name.
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
browser_session = sa.Table(
    "browser_session",
    metadata,
    sa.Column("session_id", sa.Text, primary_key=True),
    sa.Column("sha256", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("principal_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("grants", sa.Text, nullable=False),
    # The digest of the token that it rests on: after a rotation nothing has this digest any more.
    sa.Column("token_sha256", sa.Text),
    sa.Column("created_at", InstantMs, nullable=False),
    sa.Column("last_used_at", InstantMs, nullable=False),
)
sa.Index("ix_browser_session_principal", browser_session.c.kind, browser_session.c.principal_id)
sa.Index("ix_browser_session_last_used", browser_session.c.last_used_at)

# A link that signs a browser in, or a command line that waits for a person to let it in: used once, and short-lived.
sign_in = sa.Table(
    "sign_in",
    metadata,
    sa.Column("sha256", sa.Text, primary_key=True),
    # What the person reads off the command line; null for a link.
    sa.Column("code", sa.Text, unique=True),
    # What the command line says of itself.
    sa.Column("said", sa.Text),
    # The principal; null until somebody approves it.
    sa.Column("kind", sa.Text),
    sa.Column("principal_id", sa.Text),
    sa.Column("name", sa.Text),
    sa.Column("grants", sa.Text),
    sa.Column("token_sha256", sa.Text),
    sa.Column("expires_at", InstantMs, nullable=False),
)
sa.Index("ix_sign_in_expires_at", sign_in.c.expires_at)

# What an attempt gets whose job asks for a token; its trigger's row says how long it is valid.
attempt_token = sa.Table(
    "attempt_token",
    metadata,
    sa.Column("sha256", sa.Text, primary_key=True),
    sa.Column("trigger_id", sa.Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("created_at", InstantMs, nullable=False),
)

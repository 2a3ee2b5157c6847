"""Tokens of attempts, by their digests: each is valid while its attempt starts or runs, and never again.

Never sees a token. Invariants: whether one is valid is read from its trigger's row, so that an attempt's end is its
token's end, whoever ends it and however; handing an attempt over again may give it another token, and both are its own.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
import sqlalchemy as sa

from clickclock.foundation.permission import Role
from clickclock.foundation.principal import Grant, Kind, Principal, Proof
from clickclock.scheduler.jobs.trigger import LIVE, attempt_name
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.schema import job_trigger
from clickclock.scheduler.store.schema_access import attempt_token

_a, _t = attempt_token.c, job_trigger.c
_LIVES = sa.and_(
    _t.trigger_id == _a.trigger_id, _t.attempt == _a.attempt, _t.state.in_(sorted(each.value for each in LIVE))
)


class AttemptToken(msgspec.Struct, frozen=True):
    """A token that an attempt gets: its digest, and the role that it has in its job's application."""

    sha256: str
    trigger_id: str
    attempt: int
    role: str


class AttemptTokens:
    """Issue, find by digest, forget."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def issue(self, tokens: Sequence[AttemptToken], now: datetime) -> None:
        """Keep these, before their attempts are started."""
        rows: list[Mapping[str, object]] = [
            {
                "sha256": each.sha256,
                "trigger_id": each.trigger_id,
                "attempt": each.attempt,
                "role": each.role,
                "created_at": now,
            }
            for each in tokens
        ]
        await self._database.write(lambda c: c.execute(sa.insert(attempt_token), rows))

    async def by_digest(self, sha256: str) -> Principal | None:
        """The attempt whose token has this digest, while it starts or runs."""
        query = (
            sa.select(_a.role, _a.trigger_id, _a.attempt, _t.application, _t.job_name)
            .join(job_trigger, _LIVES)
            .where(_a.sha256 == sha256)
        )
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        if row is None:
            return None
        is_known = row.role in set(Role)  # of a role that this release does not know, nothing is granted
        grants = (Grant(Role(row.role), frozenset({row.application}), frozenset()),) if is_known else ()
        name = f"{row.application}/{row.job_name}"
        identity = attempt_name(row.trigger_id, row.attempt)
        return Principal(Kind.ATTEMPT, identity, name, Proof.TOKEN, grants, token_sha256=sha256)

    async def prune(self) -> None:
        """Remove those whose attempts have ended."""
        over = sa.not_(sa.exists().where(_LIVES).correlate(attempt_token))
        await self._database.write(lambda c: c.execute(sa.delete(attempt_token).where(over)))

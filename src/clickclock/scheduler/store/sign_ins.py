"""What leads to a session or a token, once: links that sign a browser in, and command lines that wait to be let in.

Never sees a secret: only its digest. Invariants: what was taken is not there any more, whichever replica took it; what
is over is as good as not there; at most `WAITING_MAX` command lines wait, whatever strangers do.
"""

from datetime import datetime

import sqlalchemy as sa

from clickclock.foundation.principal import Principal
from clickclock.scheduler.access.audit import Resource
from clickclock.scheduler.access.browser_session import Waiting
from clickclock.scheduler.errors import SignInNotFound, TooManySignIns
from clickclock.scheduler.store.auditing import audited
from clickclock.scheduler.store.browser_sessions import columns_of, principal_of
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.schema_access import sign_in

WAITING_MAX = 200

_s = sign_in.c


class SignIns:
    """Offer a link, wait to be let in, let in, take."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def offer(self, principal: Principal, sha256: str, expires_at: datetime) -> None:
        """Until then, the secret of this digest is this principal."""
        row = columns_of(principal) | {"sha256": sha256, "expires_at": expires_at}
        await self._database.write(lambda c: c.execute(sa.insert(sign_in).values(row)))

    async def wait(self, waiting: Waiting, sha256: str, now: datetime) -> None:
        """Let the holder of this digest's secret wait for the code's approval. Raises `TooManySignIns`."""
        row = {"sha256": sha256, "code": waiting.code, "said": waiting.said, "expires_at": waiting.expires_at}
        waits = sa.select(sa.func.count()).where(_s.code.is_not(None), _s.expires_at > now)

        def work(connection: sa.Connection) -> None:
            if connection.execute(waits).scalar_one() >= WAITING_MAX:
                raise TooManySignIns
            connection.execute(sa.insert(sign_in).values(row))

        await self._database.write(work)

    async def waiting(self, code: str, now: datetime) -> Waiting:
        """The sign-in that waits under a code. Raises `SignInNotFound`."""
        query = sa.select(sign_in).where(_waits(code, now))
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        if row is None:
            raise SignInNotFound
        return Waiting(row.code, row.said, row.expires_at)

    async def let_in(self, code: str, principal: Principal, now: datetime) -> None:
        """Approve the sign-in that waits under a code, as this principal. Raises `SignInNotFound`."""
        change = sa.update(sign_in).where(_waits(code, now)).values(columns_of(principal)).returning(_s.said)

        def work(connection: sa.Connection) -> None:
            row = connection.execute(change).one_or_none()
            if row is None:
                raise SignInNotFound
            audited(Resource.SESSION, principal.id, None, {"letIn": row.said})

        await self._database.write(work)

    async def take(self, sha256: str, now: datetime) -> Principal | None:
        """Whose digest it is, this once; None if nobody let it in yet. Raises `SignInNotFound`."""

        def work(connection: sa.Connection) -> Principal | None:
            mine = sa.and_(_s.sha256 == sha256, _s.expires_at > now)
            row = connection.execute(sa.delete(sign_in).where(mine, _s.kind.is_not(None)).returning(sign_in)).first()
            if row is not None:
                return principal_of(row)
            if connection.execute(sa.select(_s.sha256).where(mine)).first() is None:
                raise SignInNotFound
            return None

        return await self._database.write(work)

    async def prune(self, now: datetime) -> None:
        """Remove what is over."""
        await self._database.write(lambda c: c.execute(sa.delete(sign_in).where(_s.expires_at <= now)))


def _waits(code: str, now: datetime) -> sa.ColumnElement[bool]:
    return sa.and_(_s.code == code, _s.kind.is_(None), _s.expires_at > now)

"""Sessions of browsers in the store, by their digests.

Never sees a session's secret, and never decides whether one is over (`browser_session.py` does). Invariants: a digest
is one session's; what was ended is not there any more, so that no clock brings it back.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.ids import new_id
from clickclock.foundation.principal import Grant, Kind, Principal, Proof
from clickclock.scheduler.access.access_token import Token
from clickclock.scheduler.access.audit import Resource
from clickclock.scheduler.access.browser_session import IDLE, LONGEST, Session, grants_of, read_grants
from clickclock.scheduler.store.auditing import audited
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import equal, page
from clickclock.scheduler.store.schema_access import access_token, browser_session
from clickclock.scheduler.store.tokens import token_of

_s = browser_session.c


class BrowserSessions:
    """Begin, find, note that one is used, end."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(self, principal: Principal, sha256: str, now: datetime) -> None:
        """A session of this principal, with its grants, found by this digest."""
        row = {"session_id": new_id(), "sha256": sha256, "created_at": now, "last_used_at": now}

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.insert(browser_session).values(row | columns_of(principal)))
            audited(Resource.SESSION, principal.id, None, None)

        await self._database.write(work)

    async def by_digest(self, sha256: str) -> Session | None:
        """The session with this digest, over or not."""
        query = sa.select(browser_session).where(_s.sha256 == sha256)

        def work(connection: sa.Connection) -> Session | None:
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            rests_on = sa.select(access_token).where(access_token.c.sha256 == row.token_sha256)
            kept = None if row.token_sha256 is None else connection.execute(rests_on).one_or_none()
            return _session_of(row, None if kept is None else token_of(kept))

        return await self._database.read(work)

    async def find(
        self, now: datetime, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int
    ) -> list[Session]:
        """Sessions that are not over by their time, whose columns equal `filters` (name), as they began."""
        lasting = sa.and_(_s.created_at > now - LONGEST, _s.last_used_at > now - IDLE)
        query = sa.select(browser_session).where(lasting, *equal(browser_session, filters))

        def work(connection: sa.Connection) -> list[Session]:
            rows = connection.execute(page(query, [_s.session_id], after, limit)).all()
            rest_on = sa.select(access_token).where(access_token.c.sha256.in_({row.token_sha256 for row in rows}))
            tokens = {row.sha256: token_of(row) for row in connection.execute(rest_on)}
            return [_session_of(row, tokens.get(row.token_sha256)) for row in rows]

        return await self._database.read(work)

    async def used(self, session_id: str, now: datetime) -> None:
        """Note when a session was used."""
        noted = sa.update(browser_session).where(_s.session_id == session_id).values(last_used_at=now)
        await self._database.write(lambda c: c.execute(noted))

    async def end(self, sha256: str) -> None:
        """End the session with this digest, if there is one."""
        await self._remove(_s.sha256 == sha256)

    async def end_those(self, name: str, session_id: str | None) -> int:
        """End all sessions of principals of this name, or the one of this id; gives how many there were."""
        its = sa.true() if session_id is None else _s.session_id == session_id
        return await self._remove(sa.and_(_s.name == name, its))

    async def end_of(self, kind: Kind, principal_id: str) -> None:
        """End all sessions of a principal, as when its grants change."""
        await self._remove(sa.and_(_s.kind == kind.value, _s.principal_id == principal_id))

    async def end_outdated(self, principal: Principal) -> None:
        """End the sessions of a principal that have other grants than it has now."""
        its = columns_of(principal)
        mine = sa.and_(_s.kind == its["kind"], _s.principal_id == its["principal_id"])
        await self._remove(sa.and_(mine, _s.grants != its["grants"]))

    async def end_beyond(self, grants: Collection[Grant]) -> None:
        """End the sessions of people that have a grant which nobody can have by a provider (any more)."""

        def work(connection: sa.Connection) -> None:
            people = sa.select(browser_session).where(_s.kind == Kind.PERSON.value)
            beyond = [
                row.session_id for row in connection.execute(people) if not set(principal_of(row).grants) <= set(grants)
            ]
            connection.execute(sa.delete(browser_session).where(_s.session_id.in_(beyond)))

        await self._database.write(work)

    async def prune(self, now: datetime) -> None:
        """Remove what is over by its time."""
        over = sa.or_(_s.created_at < now - LONGEST, _s.last_used_at < now - IDLE)
        await self._database.write(lambda c: c.execute(sa.delete(browser_session).where(over)))

    async def _remove(self, which: sa.ColumnElement[bool]) -> int:
        def work(connection: sa.Connection) -> int:
            gone = connection.execute(sa.delete(browser_session).where(which).returning(_s.principal_id)).all()
            for (principal_id,) in gone:
                audited(Resource.SESSION, principal_id, {"session": "open"}, {"session": "ended"})
            return len(gone)

        return await self._database.write(work)


def _session_of(row: Any, token: Token | None) -> Session:
    return Session(row.session_id, principal_of(row), row.created_at, row.last_used_at, token)


def columns_of(principal: Principal) -> dict[str, Any]:
    """A principal as the columns that both sessions and what leads to them have."""
    return {
        "kind": principal.kind.value,
        "principal_id": principal.id,
        "name": principal.name,
        "grants": json.dumps(grants_of(principal.grants)),
        "token_sha256": principal.token_sha256,
    }


def principal_of(row: Any) -> Principal:
    """The principal of such columns."""
    grants = read_grants(json.loads(row.grants))
    kind = Kind(row.kind)
    return Principal(kind, row.principal_id, row.name, Proof.SESSION, grants, token_sha256=row.token_sha256)

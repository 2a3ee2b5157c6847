"""Tokens in the store, by their digests.

Never sees a token, and never decides what one allows. Invariants: two that are valid never share a name; what was
revoked stays so, and its digest finds it, so that it can be said why it is refused.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.errors import Fault
from clickclock.foundation.ids import new_id
from clickclock.foundation.permission import Role
from clickclock.scheduler.access.access_token import NewToken, Token
from clickclock.scheduler.access.audit import Resource
from clickclock.scheduler.errors import TokenExists, TokenIsRevoked, TokenNotFound
from clickclock.scheduler.store.auditing import audited
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import equal, page
from clickclock.scheduler.store.schema_access import access_token

_t = access_token.c


class Tokens:
    """Create, list, rotate, revoke; and find by digest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewToken, sha256: str, created_by: str, now: datetime) -> Token:
        """Raises `TokenExists` if a valid token has the name."""
        row = {
            "token_id": new_id(),
            "name": new.name,
            "sha256": sha256,
            "grants": json.dumps([each.wire() for each in new.grants]),
            "created_at": now,
            "created_by": created_by,
            "expires_at": new.expires_at,
        }

        def work(connection: sa.Connection) -> Token:
            if connection.execute(sa.select(_t.token_id).where(_named(new.name))).first() is not None:
                sentence = f"There is a token {new.name!r} already; revoke it first, or give another name."
                raise TokenExists(faults=[Fault("name", sentence)])
            connection.execute(sa.insert(access_token).values(row))
            audited(Resource.TOKEN, new.name, None, new.model_dump_json(by_alias=True))
            return token_of(connection.execute(sa.select(access_token).where(_t.sha256 == sha256)).one())

        return await self._database.write(work)

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> list[Token]:
        """Tokens whose columns equal `filters` (name), in the order in which they were made."""
        query = page(sa.select(access_token).where(*equal(access_token, filters)), [_t.token_id], after, limit)
        return await self._database.read(lambda c: [token_of(row) for row in c.execute(query)])

    async def of_role(self, role: Role) -> list[tuple[Token, str]]:
        """Tokens with a role in some grant, revoked ones too, in the order of their making; each with its digest."""
        query = sa.select(access_token).where(_t.grants.contains(f'"{role}"', autoescape=True)).order_by(_t.token_id)
        rows = await self._database.read(lambda c: c.execute(query).all())
        found = ((token_of(row), row.sha256) for row in rows)
        return [(token, sha256) for token, sha256 in found if any(each.role is role for each in token.grants)]

    async def by_digest(self, sha256: str) -> Token | None:
        """The token with this digest, valid or not."""
        query = sa.select(access_token).where(_t.sha256 == sha256)
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        return None if row is None else token_of(row)

    async def rotate(self, name: str, sha256: str) -> Token:
        """The valid token of that name has this digest from now on. Raises `TokenNotFound`, `TokenIsRevoked`."""
        return await self._change(name, "rotated", {"sha256": sha256, "last_used_at": None})

    async def revoke(self, name: str, now: datetime) -> Token:
        """Raises `TokenNotFound`, `TokenIsRevoked`."""
        return await self._change(name, "revoked", {"revoked_at": now})

    async def _change(self, name: str, what: str, values: Mapping[str, Any]) -> Token:
        def work(connection: sa.Connection) -> Token:
            change = sa.update(access_token).where(_named(name)).values(values).returning(_t.token_id)
            token_id = connection.execute(change).scalar()
            if token_id is None:
                gone = sa.select(sa.func.max(_t.revoked_at)).where(_t.name == name)
                raise TokenNotFound if connection.execute(gone).scalar() is None else TokenIsRevoked
            changed = token_of(connection.execute(sa.select(access_token).where(_t.token_id == token_id)).one())
            audited(Resource.TOKEN, name, {"change": ""}, {"change": what})
            return changed

        return await self._database.write(work)

    async def used(self, token_id: str, now: datetime) -> None:
        """Note when a token was used."""
        noted = sa.update(access_token).where(_t.token_id == token_id).values(last_used_at=now)
        await self._database.write(lambda c: c.execute(noted))


def _named(name: str) -> sa.ColumnElement[bool]:
    return sa.and_(_t.name == name, _t.revoked_at.is_(None))


def token_of(row: Any) -> Token:
    """A token, of its row. A grant of a role that this release does not know is left out."""
    known = {name: value for name, value in row._mapping.items() if name not in {"grants", "sha256"}}
    grants = [each for each in json.loads(row.grants) if each["role"] in set(Role)]
    return Token.model_validate({**known, "grants": grants})

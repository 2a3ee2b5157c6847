"""Tokens in every store: names that are free again, digests that find them, and what is never kept."""

import pytest

from clickclock.foundation.permission import Role
from clickclock.scheduler.access.access_token import NewToken, TokenGrant
from clickclock.scheduler.errors import TokenExists, TokenIsRevoked, TokenNotFound
from clickclock.scheduler.store import Store
from tests.stores import NOW, at


def token(name: str = "deploy", **fields: object) -> NewToken:
    return NewToken(name=name, grants=[TokenGrant(role=Role.EDITOR, applications=["shop"], clients=[])], **fields)  # type: ignore[arg-type]


async def test_a_token_is_found_by_its_digest_as_it_was_given(store: Store, second: Store) -> None:
    made = await store.tokens.create(token(expires_at=at(60)), "digest-1", "local", NOW)
    assert (made.name, made.created_by, made.created_at, made.expires_at) == ("deploy", "local", NOW, at(60))
    assert made.grants == token().grants
    assert await second.tokens.by_digest("digest-1") == made
    assert await store.tokens.by_digest("digest-2") is None
    assert await store.tokens.find({"name": "deploy"}, None, 10) == [made]
    await store.tokens.used(made.token_id, at(5))
    (used,) = await store.tokens.find({}, None, 10)
    assert used.last_used_at == at(5)


async def test_a_name_is_free_again_when_its_token_is_revoked(store: Store) -> None:
    await store.tokens.create(token(), "digest-1", "local", NOW)
    with pytest.raises(TokenExists):
        await store.tokens.create(token(), "digest-2", "local", NOW)
    assert (await store.tokens.revoke("deploy", at(1))).revoked_at == at(1)
    with pytest.raises(TokenIsRevoked):
        await store.tokens.revoke("deploy", at(2))
    second = await store.tokens.create(token(), "digest-2", "local", at(3))
    first, again = await store.tokens.find({}, None, 10)
    assert (first.revoked_at, again) == (at(1), second)
    assert [each.token_id for each in await store.tokens.find({}, [first.token_id], 10)] == [second.token_id]
    with pytest.raises(TokenNotFound):
        await store.tokens.revoke("unknown", at(2))


async def test_a_rotated_token_is_found_by_its_new_digest_alone(store: Store) -> None:
    made = await store.tokens.create(token(), "digest-1", "local", NOW)
    assert (await store.tokens.rotate("deploy", "digest-2")).token_id == made.token_id
    assert await store.tokens.by_digest("digest-1") is None
    assert await store.tokens.by_digest("digest-2") is not None
    await store.tokens.revoke("deploy", at(1))
    with pytest.raises(TokenIsRevoked):
        await store.tokens.rotate("deploy", "digest-3")

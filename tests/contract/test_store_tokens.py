"""Tokens in every store: names that are free again, digests that find them, and what is never kept."""

import pytest
import sqlalchemy as sa

from clickclock.foundation.permission import Permission, Role
from clickclock.foundation.principal import Kind
from clickclock.scheduler.access.access_token import NewToken, TokenGrant
from clickclock.scheduler.errors import TokenExists, TokenIsRevoked, TokenNotFound
from clickclock.scheduler.store import AttemptToken, Store
from clickclock.scheduler.store.schema import job
from clickclock.scheduler.store.schema_access import access_token, attempt_token
from tests.stores import LEASE, NODE, NOW, add_job, at, claim, ended, engine_of, finish, queue


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


async def test_a_token_of_an_attempt_is_its_own_while_that_starts_or_runs_and_never_again(
    store: Store, second: Store
) -> None:
    await add_job(store, max_retries=1)
    trigger_id = await queue(store)
    (launch,) = (await claim(store)).launches
    await store.attempt_tokens.issue([AttemptToken("digest-1", trigger_id, 1, "operator")], NOW)
    await store.attempt_tokens.issue([AttemptToken("digest-2", trigger_id, 1, "operator")], NOW)  # handed over again
    for digest in ("digest-1", "digest-2"):
        who = await second.attempt_tokens.by_digest(digest)
        assert who is not None
        assert (who.kind, who.id, who.name) == (Kind.ATTEMPT, launch.name, "shop/export")
        assert who.may(Permission.TRIGGER_CREATE, application="shop")
        assert not who.may(Permission.JOB_WRITE, application="shop")
        assert not who.may(Permission.TRIGGER_READ, application="crm")
    await store.queue.mark_running(LEASE, [(launch.name, NODE, NOW)])
    assert await store.attempt_tokens.by_digest("digest-1") is not None
    await store.attempt_tokens.prune()
    assert await store.attempt_tokens.by_digest("digest-1") is not None
    await finish(store, launch.name, ended(code=1))
    assert await second.attempt_tokens.by_digest("digest-1") is None
    (again,) = (await claim(store, at(3600))).launches
    assert again.name == f"{trigger_id}-2"  # the next attempt's is another one
    assert await store.attempt_tokens.by_digest("digest-1") is None
    await store.attempt_tokens.prune()
    with engine_of(store).connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(attempt_token)).scalar_one() == 0


async def test_tokens_of_a_role_are_found_with_their_digests_revoked_or_not(store: Store) -> None:
    for name, role in (("shop", Role.INGEST), ("deploy", Role.EDITOR), ("old", Role.INGEST)):
        grants = [TokenGrant(role=role, applications=[], clients=["shop-1"])]
        await store.tokens.create(NewToken(name=name, grants=grants), f"digest-{name}", "local", NOW)
    await store.tokens.revoke("old", at(1))
    found = {token.name: (sha256, token.revoked_at) for token, sha256 in await store.tokens.of_role(Role.INGEST)}
    assert found == {"shop": ("digest-shop", None), "old": ("digest-old", at(1))}


async def test_a_role_that_this_release_does_not_know_grants_nothing_and_stops_nobody(store: Store) -> None:
    """Another release wrote it."""
    await store.tokens.create(token(), "digest-1", "local", NOW)
    await store.tokens.create(token("other"), "digest-2", "local", NOW)
    await add_job(store, token="operator")
    trigger_id = await queue(store)
    await claim(store)
    await store.attempt_tokens.issue([AttemptToken("digest-3", trigger_id, 1, "operator")], NOW)
    with engine_of(store).begin() as connection:
        renamed = sa.func.replace(access_token.c.grants, "editor", "ghost")
        connection.execute(sa.update(access_token).where(access_token.c.name == "deploy").values(grants=renamed))
        connection.execute(sa.update(attempt_token).values(role="ghost"))
        connection.execute(sa.update(job).values(definition=sa.func.replace(job.c.definition, "operator", "ghost")))
    assert [(each.name, len(each.grants)) for each in await store.tokens.find({}, None, 10)] == [
        ("deploy", 0),
        ("other", 1),
    ]
    found = await store.tokens.by_digest("digest-1")
    assert found is not None
    assert found.grants == []
    attempt = await store.attempt_tokens.by_digest("digest-3")
    assert attempt is not None
    assert (attempt.kind, attempt.grants) == (Kind.ATTEMPT, ())
    (listed,) = await store.jobs.find({}, None, 10)
    assert listed.token is None
    await finish(store, f"{trigger_id}-1", ended())
    await queue(store)
    (launch,) = (await claim(store, at(1))).launches
    assert launch.token_role is None
    assert (await store.tokens.revoke("deploy", at(1))).revoked_at == at(1)

"""Tokens → principals: what is kept for a moment, what is never used after its time, and what is asked when."""

import asyncio
from datetime import timedelta

import pytest

from clickclock.foundation.bearer import digest
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.permission import Permission, Role
from clickclock.foundation.principal import Kind, Principal
from clickclock.scheduler.access.access_token import NewToken, Token, TokenGrant
from clickclock.scheduler.agents.authenticator import FRESH_S, STALE_S, Authenticator, mint
from clickclock.scheduler.store import Store
from tests.stores import NOW

SECRET = mint()


class Counted:
    """A store's tokens, with how often they were looked up."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads = 0
        by_digest = store.tokens.by_digest

        async def counting(sha256: str) -> Token | None:
            self.reads += 1
            return await by_digest(sha256)

        monkeypatch.setattr(store.tokens, "by_digest", counting)


@pytest.fixture
def counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(store, monkeypatch)


@pytest.fixture
def authenticator(store: Store, clock: ManualClock) -> Authenticator:
    return Authenticator(store, clock)


async def make(store: Store, name: str = "deploy", secret: str = SECRET, **fields: object) -> None:
    new = NewToken(name=name, grants=[TokenGrant(role=Role.EDITOR)], **fields)  # type: ignore[arg-type]
    await store.tokens.create(new, digest(secret), "local", NOW)


def allowed(principal: Principal) -> bool:
    return principal.kind is Kind.TOKEN and principal.may(Permission.JOB_WRITE)


async def settled() -> None:
    """What was begun beside the requests is done."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others)


async def test_a_token_in_use_is_never_looked_up_on_the_path_of_a_request(
    store: Store, clock: ManualClock, authenticator: Authenticator, counted: Counted
) -> None:
    await make(store)
    assert allowed(await authenticator.principal_of(SECRET))
    assert counted.reads == 1
    for _ in range(10):
        clock.advance(FRESH_S)
        answered = authenticator.principal_of(SECRET).send
        with pytest.raises(StopIteration) as done:  # it waits for nothing
            answered(None)
        assert allowed(done.value.value)
        await settled()
    assert counted.reads == 11
    clock.advance(STALE_S)
    assert allowed(await authenticator.principal_of(SECRET))
    assert counted.reads == 12


async def test_what_another_replica_revoked_is_refused_within_two_seconds(
    store: Store, clock: ManualClock, authenticator: Authenticator
) -> None:
    await make(store)
    assert allowed(await authenticator.principal_of(SECRET))
    await store.tokens.revoke("deploy", clock.now())
    clock.advance(STALE_S)
    refused = await authenticator.principal_of(SECRET)
    assert refused.refusal == "The token deploy was revoked at 2026-11-20T10:00:00.000Z; ask an admin for another."


async def test_what_is_revoked_here_is_refused_at_once_and_so_is_what_was_on_its_way(
    store: Store, clock: ManualClock, authenticator: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(store)
    by_digest, found, go_on = store.tokens.by_digest, asyncio.Event(), asyncio.Event()

    async def slow(sha256: str) -> Token | None:
        token = await by_digest(sha256)
        found.set()
        await go_on.wait()
        return token

    monkeypatch.setattr(store.tokens, "by_digest", slow)
    early = asyncio.create_task(authenticator.principal_of(SECRET))
    await found.wait()
    await store.tokens.revoke("deploy", clock.now())
    authenticator.changed()
    go_on.set()
    assert allowed(await early), "it was asked before"
    assert (await authenticator.principal_of(SECRET)).kind is Kind.NOBODY


async def test_a_token_ends_at_its_time_although_it_is_known(
    store: Store, clock: ManualClock, authenticator: Authenticator
) -> None:
    await make(store, expires_at=NOW + timedelta(milliseconds=500))
    assert allowed(await authenticator.principal_of(SECRET))
    clock.advance(0.5)
    assert "expired at 2026-11-20T10:00:00.500Z" in ((await authenticator.principal_of(SECRET)).refusal or "")
    clock.advance(STALE_S)
    assert "expired at" in ((await authenticator.principal_of(SECRET)).refusal or "")


async def test_use_is_noted_once_a_minute(store: Store, clock: ManualClock, authenticator: Authenticator) -> None:
    await make(store)
    for after_s, noted in ((0, 0), (59, 0), (2, 61)):
        clock.advance(after_s)
        await authenticator.principal_of(SECRET)
        await settled()
        (token,) = await store.tokens.find({}, None, 10)
        assert token.last_used_at == NOW + timedelta(seconds=noted)


async def test_an_unknown_token_and_the_services_own(authenticator: Authenticator, counted: Counted) -> None:
    assert (await authenticator.principal_of(SECRET)).kind is Kind.NOBODY
    assert counted.reads == 1
    assert (await authenticator.principal_of(authenticator.own_token)).kind is Kind.SERVICE
    assert counted.reads == 1

"""Sessions of browsers, and what leads to one, in every store: used once, ended for all, and bounded."""

import pytest
from msgspec.structs import replace

from clickclock.foundation.permission import Role
from clickclock.foundation.principal import Grant, Kind, Principal, Proof
from clickclock.scheduler.access.access_token import NewToken, TokenGrant
from clickclock.scheduler.access.browser_session import IDLE, LONGEST, Waiting, grants_of
from clickclock.scheduler.errors import SignInNotFound, TooManySignIns
from clickclock.scheduler.store import Store
from clickclock.scheduler.store.sign_ins import WAITING_MAX
from tests.stores import NOW, at

ANNA = Principal(
    Kind.PERSON,
    "anna",
    "Anna",
    Proof.SESSION,
    (Grant(Role.VIEWER), Grant(Role.EDITOR, frozenset({"shop", "crm"}), frozenset())),
)


def waiting(code: str = "BCDFGHJK") -> Waiting:
    return Waiting(code, "anna@laptop", at(600))


async def test_a_session_is_its_principals_on_every_replica_until_it_is_ended(store: Store, second: Store) -> None:
    await store.browser_sessions.begin(ANNA, "digest-1", NOW)
    await store.browser_sessions.begin(ANNA, "digest-2", NOW)
    found = await second.browser_sessions.by_digest("digest-1")
    assert found is not None
    told = found.principal_at(at(1))
    assert (told.kind, told.id, told.name, told.proof) == (Kind.PERSON, "anna", "Anna", Proof.SESSION)
    assert grants_of(told.grants) == grants_of(ANNA.grants)
    await second.browser_sessions.end("digest-1")
    assert await store.browser_sessions.by_digest("digest-1") is None
    assert await store.browser_sessions.by_digest("digest-2") is not None
    await store.browser_sessions.begin(replace(ANNA, id="bert"), "digest-3", NOW)
    await second.browser_sessions.end_of(Kind.PERSON, "anna")
    assert await store.browser_sessions.by_digest("digest-2") is None
    assert await store.browser_sessions.by_digest("digest-3") is not None


async def test_open_sessions_are_listed_as_they_began_and_ended_by_their_principals_name(store: Store) -> None:
    bert = replace(ANNA, id="bert", name="Bert")
    token = await store.tokens.create(NewToken(name="t", grants=[TokenGrant(role=Role.VIEWER)]), "of t", "x", NOW)
    by_token = replace(ANNA, kind=Kind.TOKEN, id="t", name="t", grants=token.principal_grants(), token_sha256="of t")
    for number, who in enumerate([ANNA, bert, by_token, ANNA]):
        await store.browser_sessions.begin(who, f"digest-{number}", NOW)
    await store.browser_sessions.begin(ANNA, "over", NOW - LONGEST)
    one, two = await store.browser_sessions.find(at(1), {}, None, 2)
    rest = await store.browser_sessions.find(at(1), {}, [two.session_id], 9)
    assert [each.principal.name for each in (one, two, *rest)] == ["Anna", "Bert", "t", "Anna"]
    assert [each.token and each.token.name for each in rest] == ["t", None]
    assert await store.browser_sessions.find(NOW + IDLE, {}, None, 9) == []
    (found,) = await store.browser_sessions.find(at(1), {"name": "Bert"}, None, 9)
    assert found.session_id == two.session_id
    assert await store.browser_sessions.end_those("Bert", one.session_id) == 0
    assert await store.browser_sessions.end_those("Anna", one.session_id) == 1
    assert await store.browser_sessions.by_digest("digest-0") is None
    assert await store.browser_sessions.by_digest("digest-3") is not None
    assert await store.browser_sessions.end_those("Bert", None) == 1
    assert [each.principal.name for each in await store.browser_sessions.find(at(1), {}, None, 9)] == ["t", "Anna"]


async def test_a_session_ends_when_its_browser_rests_and_in_any_case_after_a_week(store: Store) -> None:
    await store.browser_sessions.begin(ANNA, "digest", NOW)
    found = await store.browser_sessions.by_digest("digest")
    assert found is not None
    assert found.principal_at(NOW + IDLE).kind is Kind.NOBODY
    await store.browser_sessions.used(found.session_id, NOW + IDLE / 2)
    await store.browser_sessions.prune(NOW + IDLE)
    found = await store.browser_sessions.by_digest("digest")
    assert found is not None
    assert found.principal_at(NOW + IDLE).kind is Kind.PERSON
    assert "Sign in again" in (found.principal_at(NOW + IDLE * 1.5).refusal or "")
    await store.browser_sessions.used(found.session_id, NOW + LONGEST - IDLE / 2)
    found = await store.browser_sessions.by_digest("digest")
    assert found is not None
    assert (found.expires_at, found.principal_at(NOW + LONGEST).kind) == (NOW + LONGEST, Kind.NOBODY)
    await store.browser_sessions.prune(NOW + LONGEST + IDLE)
    assert await store.browser_sessions.by_digest("digest") is None


async def test_a_session_that_rests_on_a_token_ends_with_it(store: Store) -> None:
    new = NewToken(name="anna", grants=[TokenGrant(role=Role.EDITOR)], expires_at=at(600))
    await store.tokens.create(new, "token-digest", "local", NOW)
    who = replace(ANNA, kind=Kind.TOKEN, grants=new.principal_grants(), token_sha256="token-digest")
    await store.browser_sessions.begin(who, "digest", NOW)
    await store.browser_sessions.begin(replace(who, grants=ANNA.grants), "other", NOW)

    async def told(sha256: str, seconds: float) -> Principal:
        found = await store.browser_sessions.by_digest(sha256)
        assert found is not None
        assert found.expires_at <= at(600)
        return found.principal_at(at(seconds))

    assert (await told("digest", 1)).kind is Kind.TOKEN
    assert "grants something else now" in ((await told("other", 1)).refusal or "")
    assert "expired at" in ((await told("digest", 600)).refusal or "")
    await store.tokens.rotate("anna", "token-digest-2")
    found = await store.browser_sessions.by_digest("digest")
    assert found is not None
    assert "was rotated" in (found.principal_at(at(1)).refusal or "")
    await store.tokens.rotate("anna", "token-digest")
    await store.tokens.revoke("anna", at(2))
    assert "was revoked" in ((await told("digest", 3)).refusal or "")


async def test_a_link_is_taken_once_by_whichever_replica_and_not_after_its_time(store: Store, second: Store) -> None:
    await store.sign_ins.offer(ANNA, "link", at(60))
    await store.sign_ins.offer(ANNA, "late", at(60))
    taken = await second.sign_ins.take("link", at(1))
    assert taken is not None
    assert (taken.name, grants_of(taken.grants)) == ("Anna", grants_of(ANNA.grants))
    for sha256, seconds in (("link", 2), ("late", 60), ("never", 1)):
        with pytest.raises(SignInNotFound):
            await store.sign_ins.take(sha256, at(seconds))
    await store.sign_ins.prune(at(60))


async def test_a_command_line_waits_until_somebody_lets_it_in_and_is_let_in_once(store: Store, second: Store) -> None:
    await store.sign_ins.wait(waiting(), "key", NOW)
    assert await store.sign_ins.take("key", at(1)) is None
    assert await second.sign_ins.waiting("BCDFGHJK", at(1)) == waiting()
    await second.sign_ins.let_in("BCDFGHJK", ANNA, at(2))
    with pytest.raises(SignInNotFound):
        await store.sign_ins.let_in("BCDFGHJK", replace(ANNA, id="mallory"), at(3))
    with pytest.raises(SignInNotFound):
        await store.sign_ins.waiting("BCDFGHJK", at(3))
    taken = await store.sign_ins.take("key", at(4))
    assert taken is not None
    assert taken.id == "anna"
    with pytest.raises(SignInNotFound):
        await store.sign_ins.take("key", at(5))


async def test_strangers_cannot_have_more_command_lines_wait_than_so_many(store: Store) -> None:
    for number in range(WAITING_MAX):
        await store.sign_ins.wait(waiting(f"CODE{number}"), f"key-{number}", NOW)
    with pytest.raises(TooManySignIns):
        await store.sign_ins.wait(waiting("OTHER"), "other", at(1))
    await store.sign_ins.wait(waiting("OTHER"), "other", at(600))

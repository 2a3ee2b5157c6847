"""People sign in by an identity provider: a real one, and all that may go wrong on the way."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from clickclock.foundation.access import Access, Mode
from clickclock.foundation.clock import Clock, ManualClock, SystemClock
from clickclock.foundation.oidc_config import OidcConfig, OidcGrant
from clickclock.foundation.permission import Role
from clickclock.foundation.principal import Grant, Kind
from clickclock.scheduler import identity_provider
from clickclock.scheduler.access.person import Rules, groups_in, is_elsewhere, person
from clickclock.scheduler.api import create_app
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.identity_provider import CALLBACK, IdentityProvider, ProviderUnreachable, SignInRefused
from tests.api.conftest import JOB, NOW
from tests.identity import consent, provider, said
from tests.ports import free_port

HERE = "http://127.0.0.1"
MANY = [f"group-{number:05}-of-a-large-company" for number in range(10_000)]
USERS: list[dict[str, Any]] = [
    {"sub": "anna", "preferred_username": "anna@example.com", "groups": [*MANY[:5], "ops"]},
    {"sub": "many", "groups": [*MANY, "ops"]},
    {"sub": "bob", "name": "<b>Bob</b>", "groups": ["sales"]},
]
GRANTS = (OidcGrant(group="ops", role=Role.OPERATOR, applications=("shop",), clients=()),)


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with provider(USERS) as address:
        yield address


def config(issuer: str, **more: Any) -> OidcConfig:
    usual = {"client_id": "clickclock", "public_url": HERE, "name": "Example ID", "ask": "the platform team"}
    return OidcConfig(issuer=issuer, **{**usual, "grants": GRANTS, **more})


@asynccontextmanager
async def browser(
    engine: Engine, settings: OidcConfig | None, clock: Clock | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A browser before a service with this provider; it follows nothing by itself."""
    known = None if settings is None else IdentityProvider(settings, "hush", clock or SystemClock())
    app = create_app(engine, access=Access(Mode.TOKENS, engine.authenticator), provider=known)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HERE) as client:
        yield client


async def begun(client: httpx.AsyncClient) -> str:
    answer = await client.get("/signIn/provider")
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def test_a_person_signs_in_and_may_do_what_its_groups_may(engine: Engine, issuer: str) -> None:
    async with browser(engine, config(issuer)) as anna:
        assert (await anna.get("/signIn")).json()["provider"] == {"name": "Example ID", "url": "/signIn/provider"}
        where = await begun(anna)
        asked = said(where)
        assert (asked["code_challenge_method"], asked["redirect_uri"]) == ("S256", HERE + CALLBACK)
        back = await consent(where, "anna")
        answer = await anna.get(back)
        assert (answer.status_code, 'content="0;url=/"' in answer.text) == (200, True), answer.text
        who = (await anna.get("/schedulerService/whoami")).json()["whoami"]
        assert (who["kind"], who["name"], who["proof"]) == ("person", "anna@example.com", "session")
        assert who["grants"] == [{"role": "operator", "applications": ["shop"], "clients": []}]
        assert (await anna.get("/schedulerService/job")).status_code == 200
        headers = {"x-session-token": who["sessionToken"]}
        assert (await anna.put("/schedulerService/job", json=JOB, headers=headers)).status_code == 403
        (record, *_) = await engine.store.audit.find({"resource": "session"}, None, 5)
        assert (record.principal, record.operation) == ("anna@example.com", "GET signIn")
        replayed = await anna.get(back)  # its cookie is gone, and so is the state
        assert (replayed.status_code, "used already" in replayed.text) == (401, True)


async def test_a_state_works_once_in_the_browser_that_began_with_it(engine: Engine, issuer: str) -> None:
    async with browser(engine, config(issuer)) as mine, browser(engine, config(issuer)) as other:
        back = await consent(await begun(mine), "anna")
        kept = dict(mine.cookies)
        stolen = await other.get(back)
        assert (stolen.status_code, "another browser" in stolen.text) == (401, True)
        await begun(other)
        mixed = await other.get(back)  # of another sign-in than its cookie
        assert mixed.status_code == 401
        assert (await mine.get(back)).status_code == 200
        for name, value in kept.items():
            other.cookies.set(name, value)
        replayed = await other.get(back)  # with the very cookie
        assert (replayed.status_code, "used already" in replayed.text) == (401, True)


async def test_a_person_without_a_grant_sees_whom_to_ask_and_gets_no_session(engine: Engine, issuer: str) -> None:
    async with browser(engine, config(issuer)) as bob:
        answer = await bob.get(await consent(await begun(bob), "bob"))
        assert answer.status_code == 403
        assert "Ask the platform team" in answer.text
        assert "&lt;b&gt;Bob&lt;/b&gt;" in answer.text
        assert "<b>" not in answer.text
        assert (await bob.get("/schedulerService/whoami")).status_code == 401


async def test_a_claim_of_ten_thousand_groups_is_read_and_one_of_them_counts(engine: Engine, issuer: str) -> None:
    async with browser(engine, config(issuer)) as many:
        answer = await many.get(await consent(await begun(many), "many"))
        assert answer.status_code == 200, answer.text
        who = (await many.get("/schedulerService/whoami")).json()["whoami"]
        assert who["grants"] == [{"role": "operator", "applications": ["shop"], "clients": []}]


async def test_other_grants_at_the_next_sign_in_end_the_sessions_before(engine: Engine, issuer: str) -> None:
    wider = config(issuer, grants=(OidcGrant(group="ops", role=Role.EDITOR),))
    async with browser(engine, config(issuer)) as first, browser(engine, wider) as second:
        await first.get(await consent(await begun(first), "anna"))
        assert (await first.get("/schedulerService/job")).status_code == 200
        await second.get(await consent(await begun(second), "anna"))
        assert (await second.get("/schedulerService/job")).status_code == 200
        assert (await first.get("/schedulerService/job")).status_code == 401
    await engine.store.browser_sessions.end_beyond([GRANTS[0].grant()])  # as a start with other settings does
    engine.authenticator.forget()
    assert (await second_of(engine, second)) == 401


async def second_of(engine: Engine, client: httpx.AsyncClient) -> int:
    async with browser(engine, None) as again:
        again.cookies.update(client.cookies)
        return (await again.get("/schedulerService/job")).status_code


async def test_what_a_provider_is_down_for_or_does_not_believe_are_two_errors(issuer: str) -> None:
    down = IdentityProvider(config(f"http://127.0.0.1:{free_port()}"), "hush", SystemClock())
    with pytest.raises(ProviderUnreachable, match="does not answer"):
        await down.begin()
    with pytest.raises(SignInRefused, match="did not take the code"):
        await IdentityProvider(config(issuer), "hush", SystemClock()).finish("nonsense", nonce="n", verifier="v" * 43)


async def test_a_provider_that_is_down_is_named_and_tokens_go_on(engine: Engine) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    async with browser(engine, config(nowhere)) as client:
        answer = await client.get("/signIn/provider")
        assert answer.status_code == 503
        assert f"Example ID ({nowhere}) does not answer" in answer.text
        headers = {"authorization": f"Bearer {engine.authenticator.own_token}"}
        assert (await client.get("/schedulerService/job", headers=headers)).status_code == 200


async def test_clocks_that_are_apart_are_told(engine: Engine, issuer: str) -> None:
    async with browser(engine, config(issuer), ManualClock(NOW.replace(year=2040))) as late:
        answer = await late.get(await consent(await begun(late), "anna"))
        assert (answer.status_code, "compare the clocks" in answer.text) == (401, True), answer.text


async def test_what_the_provider_refuses_and_what_is_too_long_is_told(
    engine: Engine, issuer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with browser(engine, config(issuer)) as client:
        state = said(await begun(client))["state"]
        refused = await client.get(f"{CALLBACK}?state={state}&error=access_denied&error_description=<i>No</i>")
        assert (refused.status_code, "&lt;i&gt;No&lt;/i&gt;" in refused.text) == (401, True)
        where = await begun(client)
        made_up = await client.get(f"{CALLBACK}?state={said(where)['state']}&code=nonsense")
        assert (made_up.status_code, "did not take the code" in made_up.text) == (401, True)
        monkeypatch.setattr(identity_provider, "ANSWER_BYTES_MAX", 10)
        assert (await client.get(await consent(await begun(client), "anna"))).status_code == 503


async def test_without_a_provider_there_is_none(engine: Engine) -> None:
    async with browser(engine, None) as client:
        assert (await client.get("/signIn")).json()["provider"] is None
        for path in ("/signIn/provider", CALLBACK):
            assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize("issuer", ["http://id.example.com", "id.example.com", "https://a:b@id.example.com", "ftp://x"])
def test_an_issuer_is_asked_over_tls(issuer: str) -> None:
    with pytest.raises(ValueError, match="begins with https://"):
        config(issuer)


def test_groups_are_found_where_providers_put_them() -> None:
    assert groups_in({"groups": "ops"}, "groups") == {"ops"}
    assert groups_in({"https://example.com/groups": ["a"]}, "https://example.com/groups") == {"a"}
    assert groups_in({"realm_access": {"roles": ["a", "b"]}}, "realm_access.roles") == {"a", "b"}
    assert groups_in({"realm_access": "no object"}, "realm_access.roles") == frozenset()
    assert is_elsewhere({"_claim_names": {"groups": "src1"}}, "groups")
    rules = Rules("https://id", "groups", "nick", (("*", Grant(Role.VIEWER)), ("a", Grant(Role.VIEWER))))
    who = person({"sub": "1", "nick": "a\nb"}, rules)
    assert (who.kind, who.id, who.name, who.grants) == (Kind.PERSON, "https://id 1", "ab", (Grant(Role.VIEWER),))


async def test_a_provider_that_is_down_and_a_code_that_is_none_are_errors_of_their_own(issuer: str) -> None:
    with pytest.raises(ProviderUnreachable, match="Tokens go on working"):
        await IdentityProvider(config(f"http://127.0.0.1:{free_port()}"), None, SystemClock()).begin()
    with pytest.raises(SignInRefused, match="did not take the code"):
        await IdentityProvider(config(issuer), "hush", SystemClock()).finish("none", nonce="n", verifier="v")

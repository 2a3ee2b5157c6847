"""Sessions over HTTP: begun by a token or a link, changed by pages of this service alone, ended everywhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from clickclock.foundation.access import CERTIFICATE, Access, Mode
from clickclock.foundation.bearer import digest, session_token
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.permission import Role
from clickclock.foundation.principal import Grant
from clickclock.foundation.problem import status_of
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.agents.authenticator import STALE_S, mint
from clickclock.scheduler.api import create_app
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.identity_provider import ProviderUnreachable, SignInRefused
from tests.api.conftest import BASE, JOB
from tests.api.test_token import asking, made

COOKIE = "clickclock"


@asynccontextmanager
async def signed_in(engine: Engine, token: str) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that has signed in by a token, and keeps to what pages of the service send."""
    async with asking(engine) as browser:
        begun = await browser.post("session", headers={"authorization": f"Bearer {token}"})
        assert begun.status_code == 200
        browser.headers["x-session-token"] = begun.json()["whoami"]["sessionToken"]
        yield browser


@pytest.fixture
async def admin(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with asking(engine, engine.authenticator.own_token) as client:
        yield client


async def test_a_session_is_worth_its_token_and_is_not_the_token(engine: Engine, admin: httpx.AsyncClient) -> None:
    token = await made(admin, "anna", Role.OPERATOR)
    async with signed_in(engine, token) as browser:
        session = browser.cookies[COOKIE]
        assert token not in session
        who = (await browser.get("whoami")).json()["whoami"]
        assert (who["name"], who["proof"], who["sessionToken"]) == ("anna", "session", session_token(session))
        assert (await browser.post("job", json=JOB)).json()["code"] == "forbidden"
        as_bearer = {"authorization": f"Bearer {session}"}
        async with asking(engine) as other:
            assert (await other.get("job", headers=as_bearer)).status_code == 401
        both = {"authorization": f"Bearer {engine.authenticator.own_token}"}
        assert (await browser.get("whoami", headers=both)).json()["whoami"]["name"] == "the service"
    records = (await admin.get("audit", params={"resource": "session"})).json()["records"]
    assert [(each["principal"], each["operation"]) for each in records] == [("anna", "POST session")]


async def test_a_change_needs_the_sessions_token_and_a_question_does_not(
    engine: Engine, admin: httpx.AsyncClient
) -> None:
    async with signed_in(engine, await made(admin, "anna", Role.EDITOR)) as browser:
        ours = browser.headers.pop("x-session-token")
        assert (await browser.get("job")).status_code == 200
        for given in ({}, {"x-session-token": "x"}, {"x-session-token": ours[::-1]}):
            refused = await browser.post("job", json=JOB, headers=given)
            assert (refused.status_code, refused.json()["code"]) == (403, "noSessionToken")
        foreign = {"x-session-token": ours, "origin": "https://evil.example"}
        assert (await browser.post("job", json=JOB, headers=foreign)).json()["code"] == "foreignOrigin"
        assert (await browser.post("job", json=JOB, headers={"x-session-token": ours})).status_code == 201


async def test_a_session_ends_by_sign_out_and_with_its_token(
    engine: Engine, admin: httpx.AsyncClient, clock: ManualClock
) -> None:
    token = await made(admin, "anna", Role.VIEWER)
    async with signed_in(engine, token) as browser:
        copy = browser.cookies[COOKIE]
        gone = await browser.delete("session")
        assert "Max-Age=0" in gone.headers["set-cookie"]
        browser.cookies.set(COOKIE, copy)
        refused = await browser.get("job")
        assert (refused.status_code, "was ended" in refused.json()["message"]) == (401, True)
    async with signed_in(engine, token) as browser:
        await admin.put("token", json={"name": "anna"})
        assert "was rotated" in (await browser.get("job")).json()["message"]
    token = (await admin.put("token", json={"name": "anna"})).json()["secret"]
    async with signed_in(engine, token) as browser:
        await admin.delete("token", params={"name": "anna"})
        assert "was revoked" in (await browser.get("job")).json()["message"]
    async with signed_in(engine, await made(admin, "bert", Role.VIEWER)) as browser:
        clock.advance(timedelta(hours=11).total_seconds())
        assert (await browser.get("job")).status_code == 200
        clock.advance(timedelta(hours=12).total_seconds() + STALE_S)
        assert "This session ended at" in (await browser.get("job")).json()["message"]


@pytest.mark.parametrize(
    ("address", "name"), [("http://127.0.0.1", "clickclock"), ("https://clock.localhost", "__Host-clickclock")]
)
async def test_under_tls_the_cookie_is_one_that_no_other_host_can_set(engine: Engine, address: str, name: str) -> None:
    async with asking(engine, engine.authenticator.own_token) as browser:
        begun = await browser.post(f"{address}/schedulerService/session")
        kept = begun.headers["set-cookie"]
        assert kept.startswith(f"{name}=ccs_")
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(kept.split("; "))
        assert ("Secure" in kept.split("; ")) is (name != COOKIE)
        assert ("strict-transport-security" in begun.headers) is (name != COOKIE)


async def test_an_admin_sees_who_is_signed_in_and_signs_one_out_everywhere(
    engine: Engine, admin: httpx.AsyncClient
) -> None:
    anna, bert = [await made(admin, name, Role.OPERATOR) for name in ("anna", "bert")]
    async with signed_in(engine, anna) as desk, signed_in(engine, anna) as phone, signed_in(engine, bert) as other:
        assert (await desk.get("sessions")).status_code == 403
        assert (await desk.delete("sessions", params={"name": "bert"})).status_code == 403
        told = (await admin.get("sessions")).json()["sessions"]
        assert [(each["name"], each["kind"], each["token"]) for each in told] == [
            ("anna", "token", "anna"), ("anna", "token", "anna"), ("bert", "token", "bert")
        ]  # fmt: skip
        assert not any(browser.cookies[COOKIE] in str(told) for browser in (desk, phone, other))
        one = {"name": "anna", "sessionId": told[1]["sessionId"]}
        assert (await admin.delete("sessions", params=one)).json()["ended"] == 1
        assert [(await each.get("job")).status_code for each in (desk, phone, other)] == [200, 401, 200]
        assert (await admin.delete("sessions", params=one)).json()["code"] == "sessionNotFound"
        assert (await admin.delete("sessions", params={"name": "anna"})).json()["ended"] == 1
        assert [(await each.get("job")).status_code for each in (desk, other)] == [401, 200]
        await admin.delete("token", params={"name": "bert"})
        assert (await admin.get("sessions")).json()["sessions"] == []
    records = (await admin.get("audit", params={"resource": "session"})).json()["records"]
    assert [each["operation"] for each in records].count("DELETE sessions") == 2


async def test_a_link_signs_one_browser_in_once_within_a_minute(
    engine: Engine, admin: httpx.AsyncClient, clock: ManualClock
) -> None:
    async with asking(engine, await made(admin, "anna", Role.OPERATOR)) as anna:
        link = (await anna.post("signInLink")).json()["secret"]
        late = (await anna.post("signInLink")).json()["secret"]
    async with asking(engine) as browser:
        begun = await browser.post("session", json={"link": link})
        assert begun.json()["whoami"]["name"] == "anna"
        assert begun.json()["whoami"]["grants"][0]["role"] == "operator"
        assert (await browser.get("job")).status_code == 200
    async with asking(engine) as thief:
        again = await thief.post("session", json={"link": link})
        assert (again.status_code, again.json()["code"]) == (404, "signInNotFound")
        clock.advance(60)
        assert (await thief.post("session", json={"link": late})).status_code == 404
        assert (await thief.post("session", json={"link": "x"})).status_code == 422
        assert (await thief.post("session", json={})).status_code == 401
        assert (await thief.post("session")).status_code == 401
        assert (await thief.get("signInLink")).status_code == 405
        assert (await thief.post("signInLink")).status_code == 401
        assert (await thief.get(f"session?link={link}")).status_code == 405
        assert "addresses are logged" in (await thief.get(f"job?link={link}")).json()["message"]


async def test_a_command_line_is_let_in_by_a_person_with_that_persons_grants_or_less(
    engine: Engine, admin: httpx.AsyncClient, clock: ManualClock
) -> None:
    async with signed_in(engine, await made(admin, "anna", Role.OPERATOR)) as anna, asking(engine) as laptop:
        begun = (await laptop.post("login", json={"said": "anna@laptop\u202e\n"})).json()
        waiting = {"loginKey": begun["loginKey"]}
        assert (await laptop.put("login", json=waiting)).json()["secret"] is None
        assert (await laptop.get("loginApproval", params={"code": begun["code"]})).status_code == 401
        typed = begun["code"].lower().replace("-", " ")
        assert (await anna.get("loginApproval", params={"code": typed})).json()["login"]["said"] == "anna@laptop"
        greedy = {"code": typed, "grants": [{"role": "viewer"}, {"role": "editor"}]}
        refused = await anna.put("loginApproval", json=greedy)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (403, "grants[1]")
        less = {"code": typed, "grants": [{"role": "viewer", "applications": ["shop"], "clients": []}]}
        assert (await anna.put("loginApproval", json=less)).status_code == 200
        got = (await laptop.put("login", json=waiting)).json()
        assert (got["token"]["createdBy"], got["token"]["grants"]) == ("anna", less["grants"])
        assert (await laptop.put("login", json=waiting)).json()["code"] == "signInNotFound"
        async with asking(engine, got["secret"]) as viewer:
            assert (await viewer.get("job")).status_code == 200
            assert (await viewer.post("jobTrigger", json={"application": "shop", "jobName": "x"})).status_code == 403
        assert (await anna.put("loginApproval", json={"code": "nothing"})).status_code == 404
        never = (await laptop.post("login")).json()
        clock.advance(600)
        assert (await laptop.put("login", json={"loginKey": never["loginKey"]})).status_code == 404


async def test_nothing_outlives_the_token_that_it_rests_on(
    engine: Engine, admin: httpx.AsyncClient, clock: ManualClock
) -> None:
    grants = [{"role": Role.VIEWER, "applications": ["*"], "clients": ["*"]}]
    ends_at = rfc3339(clock.now() + timedelta(hours=1))
    for name in ("brief", "revoked"):
        brief = (await admin.post("token", json={"name": name, "grants": grants, "expiresAt": ends_at})).json()
        async with asking(engine, brief["secret"]) as person, asking(engine) as laptop:
            assert "Max-Age=3600;" in (await person.post("session")).headers["set-cookie"]
            begun = (await laptop.post("login")).json()
            assert (await person.put("loginApproval", json={"code": begun["code"]})).status_code == 200
            if name == "revoked":
                assert (await admin.delete("token", params={"name": name})).status_code == 200
            got = await laptop.put("login", json={"loginKey": begun["loginKey"]})
            if name == "revoked":
                assert (got.status_code, got.json()["code"]) == (404, "signInNotFound")
            else:
                assert got.json()["token"]["expiresAt"] == ends_at


async def test_no_secret_of_a_sign_in_is_in_the_store(engine: Engine, admin: httpx.AsyncClient) -> None:
    async with signed_in(engine, await made(admin, "anna", Role.VIEWER)) as browser:
        session = browser.cookies[COOKIE]
        link = (await browser.post("signInLink")).json()["secret"]
        login = (await browser.post("login")).json()
    database = Path(str(engine.store._database.url.database))
    kept = b"".join(file.read_bytes() for file in database.parent.glob(f"{database.name}*"))
    for secret in (session, link, login["loginKey"], session_token(session)):
        assert secret[4:].encode() not in kept
    assert digest(session).encode() in kept


async def test_an_address_with_too_many_failed_keys_waits_and_those_in_use_there_go_on(
    engine: Engine, admin: httpx.AsyncClient, clock: ManualClock
) -> None:
    good, other = await made(admin, "good", Role.VIEWER), await made(admin, "other", Role.VIEWER)
    async with asking(engine) as client:

        async def told(key: str | None) -> httpx.Response:
            return await client.get("job", headers={} if key is None else {"authorization": key})

        assert (await told(f"Bearer {good}")).status_code == 200
        wrong = [f"Bearer {mint()}", "Basic x", "Bearer cck_", "Bearer    "] * 3
        assert [(await told(each)).status_code for each in wrong] == [401] * 10 + [429] * 2
        refused = await told(f"Bearer {other}")
        assert (refused.status_code, refused.json()["code"]) == (429, "tooManyFailedKeys")
        assert refused.headers["retry-after"] == "60"
        assert (await told(f"Bearer {good}")).status_code == 200
        assert (await told(None)).status_code == 401
        clock.advance(60)
        assert (await told(f"Bearer {other}")).status_code == 200


async def test_behind_a_proxy_the_public_address_is_the_services_own(engine: Engine) -> None:
    access = Access(Mode.TOKENS, engine.authenticator, public_url="https://jobs.example.com")
    app = create_app(engine, access=access, allowed_hosts=["jobs.example.com"])
    key = {"authorization": f"Bearer {engine.authenticator.own_token}", "host": "jobs.example.com"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE, headers=key) as client:
        begun = await client.post("session", headers={"origin": "https://jobs.example.com"})
        assert begun.headers["set-cookie"].startswith("__Host-clickclock=")
        assert "strict-transport-security" in begun.headers
        for host, origin, status in (
            ("127.0.0.1", "https://jobs.example.com", 200),  # the proxy passes on no host
            ("jobs.example.com", "https://jobs.example.com", 200),
            ("jobs.example.com", "https://jobs.example.com.evil", 403),
            ("jobs.example.com", "null", 403),
        ):
            sent = key | {"host": host, "origin": origin}
            assert (await client.post("session", headers=sent)).status_code == status


async def test_a_certificate_is_who_the_configuration_says_and_a_token_counts_more(engine: Engine) -> None:
    grants = {"anna": (Grant(Role.VIEWER),)}
    app = create_app(engine, access=Access(Mode.TOKENS, engine.authenticator, grants))

    def having(*names: str) -> httpx.AsyncClient:
        async def certified(scope: dict[str, object], receive: object, send: object) -> None:
            await app({**scope, CERTIFICATE: names}, receive, send)  # type: ignore[arg-type]

        return httpx.AsyncClient(transport=httpx.ASGITransport(certified), base_url=BASE)  # type: ignore[arg-type]

    async with having("x", "anna") as anna, having("bert") as bert, having() as nobody:
        who = (await anna.get("whoami")).json()["whoami"]
        assert (who["kind"], who["name"], who["proof"]) == ("certificate", "anna", "certificate")
        assert (await anna.post("job", json=JOB)).status_code == 403
        ours = {"authorization": f"Bearer {engine.authenticator.own_token}"}
        assert (await anna.post("job", json=JOB, headers=ours)).status_code == 201
        assert "none of its names has a grant here: bert" in (await bert.get("job")).json()["message"]
        assert (await nobody.get("job")).status_code == 401


def test_a_provider_that_is_away_may_be_back_and_one_that_refuses_knows_nobody() -> None:
    assert (status_of(ProviderUnreachable), status_of(SignInRefused)) == (503, 401)

"""Tokens over HTTP: made once, refused when they end, and a role for every route."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from clickclock.foundation.access import SAME_USER, Access, Mode
from clickclock.foundation.permission import Role
from clickclock.scheduler.api import TABLE, create_app
from clickclock.scheduler.engine import Engine
from tests.api.conftest import BASE, JOB, SCHEDULE

ROUTES = [(path, operation) for path, operations in TABLE.items() for operation in operations]


@asynccontextmanager
async def asking(
    engine: Engine, token: str | None = None, mode: Mode = Mode.TOKENS
) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who sends a token, or none."""
    app = create_app(engine, access=Access(mode, engine.authenticator))
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE, headers=headers) as client:
        yield client


@pytest.fixture
async def admin(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    async with asking(engine, engine.authenticator.own_token) as client:
        yield client


async def made(admin: httpx.AsyncClient, name: str, *roles: Role, **scope: object) -> str:
    body = {"name": name, "grants": [{"role": role, **scope} for role in roles]}
    secret: str = (await admin.post("token", json=body)).raise_for_status().json()["secret"]
    return secret


async def test_a_token_is_told_once_and_used_rotated_and_revoked(engine: Engine, admin: httpx.AsyncClient) -> None:
    secret = await made(admin, "deploy", Role.EDITOR)
    listed = await admin.get("token")
    assert secret not in listed.text
    assert listed.json()["tokens"][0]["grants"] == [{"role": "editor", "applications": ["*"], "clients": ["*"]}]
    async with asking(engine, secret) as deploy:
        who = (await deploy.get("whoami")).json()["whoami"]
        assert (who["kind"], who["name"], who["proof"]) == ("token", "deploy", "token")
        assert (await deploy.post("job", json=JOB)).status_code == 201
        again = (await admin.put("token", json={"name": "deploy"})).json()["secret"]
        assert (await deploy.get("job")).status_code == 401
        async with asking(engine, again) as rotated:
            assert (await rotated.get("job")).status_code == 200
            assert (await admin.delete("token", params={"name": "deploy"})).status_code == 200
            refused = await rotated.get("job")
    assert refused.status_code == 401
    assert "was revoked at" in refused.json()["message"]
    assert (await admin.delete("token", params={"name": "deploy"})).json()["code"] == "tokenIsRevoked"
    assert (await admin.put("token", json={"name": "none"})).json()["code"] == "tokenNotFound"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"name", "grants"}),
        ({"name": "x", "grants": []}, {"grants"}),
        ({"name": "x", "grants": [{"role": "king"}]}, {"grants[0].role"}),
        ({"name": "x", "grants": [{"role": "viewer", "applications": [], "clients": []}]}, {"grants[0]"}),
        ({"name": "x", "grants": [{"role": "viewer"}], "expiresAt": "2020-01-01T00:00:00Z"}, {"expiresAt"}),
    ],
)
async def test_what_makes_no_token_is_refused_with_every_fault(
    admin: httpx.AsyncClient, body: dict[str, object], fields: set[str]
) -> None:
    refused = await admin.post("token", json=body)
    assert refused.status_code == 422
    assert {each["field"] for each in refused.json()["errors"]} == fields


async def test_who_sends_no_key_learns_the_health_and_nothing_else(engine: Engine, admin: httpx.AsyncClient) -> None:
    await admin.post("job", json=JOB)
    async with asking(engine) as stranger:
        health = await stranger.get("jobTrigger")
        assert health.json() == {"status": "success"}
        assert (await stranger.get("jobTrigger", params={"application": "shop"})).status_code == 401
        assert (await stranger.get("jobTrigger", headers={"authorization": "Basic x"})).status_code == 401
        for path, operation in ROUTES:
            if operation.keyless is None and not operation.keyless_too:
                refused = await stranger.request(operation.method, f"http://127.0.0.1{path}")
                assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer"), path
        assert (await stranger.get("http://127.0.0.1/openapi.json")).status_code == 401
        assert (await stranger.get("http://127.0.0.1/metrics")).status_code == 401
        assert (await stranger.get("http://127.0.0.1/docs")).status_code == 200


async def test_on_its_own_machine_the_same_user_needs_no_key_and_a_token_counts_all_the_same(
    engine: Engine, admin: httpx.AsyncClient
) -> None:
    app = create_app(engine, access=Access(Mode.SAME_USER, engine.authenticator))

    async def as_same_user(scope: dict[str, object], receive: object, send: object) -> None:
        await app({**scope, SAME_USER: True}, receive, send)  # type: ignore[arg-type]

    secret = await made(admin, "watch", Role.VIEWER)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(as_same_user), base_url=BASE) as client:  # type: ignore[arg-type]
        assert (await client.get("whoami")).json()["whoami"]["proof"] == "same-user"
        for_a_proxy = {"authorization": "Bearer of-the-proxy"}
        assert (await client.get("whoami", headers=for_a_proxy)).json()["whoami"]["proof"] == "same-user"
        ours = {"authorization": f"Bearer {secret}"}
        assert (await client.get("whoami", headers=ours)).json()["whoami"]["name"] == "watch"
        assert (await client.post("job", json=JOB, headers=ours)).status_code == 403
        assert (await client.get("job", headers={"authorization": f"Bearer {secret[:-1]}"})).status_code == 401
    async with asking(engine, None, Mode.SAME_USER) as other, asking(engine, secret, Mode.SAME_USER) as guest:
        assert "you are another user" in (await other.get("job")).json()["message"]
        assert (await guest.get("job")).status_code == 200


async def test_an_operator_pauses_and_an_editor_writes_no_group(engine: Engine, admin: httpx.AsyncClient) -> None:
    await admin.post("job", json=JOB)
    await admin.post("schedules", json=SCHEDULE | {"scheduleId": "s"})
    async with asking(engine, await made(admin, "night", Role.OPERATOR)) as operator:
        assert (await operator.put("schedules", json={"scheduleId": "s", "paused": True})).status_code == 200
        refused = await operator.put("schedules", json={"scheduleId": "s", "expression": "0 3 * * *"})
        assert (refused.status_code, "schedule.write" in refused.json()["message"]) == (403, True)
    async with asking(engine, await made(admin, "deploy", Role.EDITOR)) as editor:
        files = {"jobs": [JOB | {"jobName": "from-files"}]}
        assert (await editor.put("declaration", json=files)).status_code == 200
        refused = await editor.put("declaration", json=files | {"groups": [{"groupName": "exports"}]})
        assert (refused.status_code, "group.write" in refused.json()["message"]) == (403, True)

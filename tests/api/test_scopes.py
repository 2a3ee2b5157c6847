"""Every route, asked with every role in every scope, on both stores; and what a token of one application gets to see.

What is right is read from the page of the reference. What belongs to the other application has `hidden` in its name.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from clickclock.attribution.api import application as attribution_api
from clickclock.attribution.api import check, stream
from clickclock.attribution.api.questions import READERS
from clickclock.foundation.access import Access, Mode
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.permission import Permission, Role
from clickclock.scheduler.agents.authenticator import mint
from clickclock.scheduler.api import TABLE, create_app
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.executors.process import ProcessExecutor
from clickclock.scheduler.store import Store
from tests.agents.scripted import ScriptedTarget
from tests.api.conftest import BASE, JOB, NOW, SCHEDULE

PAGE = (Path(__file__).parents[2] / "docs/reference/access.md").read_text(encoding="utf-8")
ORIGIN = "http://127.0.0.1"
SHOP: Mapping[str, Any] = {"applications": ["shop"], "clients": ["shop-1"]}
SCOPES: Mapping[str, Mapping[str, Any]] = {
    "everything": {},
    "shop": {"applications": ["shop"], "clients": []},
    "client": {"applications": [], "clients": ["shop-1"]},
}
ROUTES = sorted(
    [
        *(f"{each.method} {path}" for path, operations in TABLE.items() for each in operations),
        *(f"GET /attribution/{name}" for name in READERS),
        *("GET /attribution/check", "POST /attribution/check", "GET /attribution/clicks/stream"),
        *("GET /attribution/openapi.json", "GET /openapi.json", "GET /metrics"),
    ]
)
PERMISSIONS = dict(re.findall(r"^\| `(\w+ /\S+)` \| `([\w.]+)` \|$", PAGE, re.MULTILINE))
ROLES = {
    permission: (reach, {role for role, mark in zip(Role, marks.split("|"), strict=False) if mark.strip()})
    for permission, reach, marks in re.findall(r"^\| `([\w.]+)` \| (\w+) \|((?: ✓? ?\|)+)$", PAGE, re.MULTILINE)
}


class Here(NamedTuple):
    """The service's own port over one store, and its engine."""

    app: ASGIApp
    engine: Engine
    clock: ManualClock

    def asking(self, token: str) -> httpx.AsyncClient:
        """Somebody who sends a token."""
        headers = {"authorization": f"Bearer {token}"}
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=BASE, headers=headers)

    @property
    def admin(self) -> httpx.AsyncClient:
        """Who may do everything."""
        return self.asking(self.engine.authenticator.own_token)

    async def token(self, name: str, *roles: Role, **scope: Any) -> str:
        """A new token."""
        body = {"name": name, "grants": [{"role": role, **scope} for role in roles]}
        async with self.admin as admin:
            secret: str = (await admin.post("token", json=body)).raise_for_status().json()["secret"]
        return secret


@pytest.fixture(params=["sqlite", "postgresql"])
async def here(request: pytest.FixtureRequest, tmp_path: Path, store_url: Callable[[str], str]) -> AsyncIterator[Here]:
    store, clock = await Store.open(store_url(request.param)), ManualClock(NOW)
    executor = ProcessExecutor(
        name="local",
        data_dir=tmp_path,
        node="node-1",
        slots=10,
        log_bytes_max=2**20,
        base_environment={"PATH": "/usr/bin:/bin"},
        clock=clock,
    )
    engine = Engine(
        store, clock, {"local": executor}, node="node-1", version="0.1.0", targets={"ops": ScriptedTarget()}
    )
    access = Access(Mode.TOKENS, engine.authenticator)
    scheduler = create_app(engine, access=access)
    attribution = attribution_api.create_app(tmp_path, desk=dict, access=access, refused=engine.auditor.count)

    async def both(scope: Scope, receive: Receive, send: Send) -> None:
        await (attribution if scope["path"].startswith("/attribution") else scheduler)(scope, receive, send)

    yield Here(both, engine, clock)
    await store.close()


def may(role: Role, scope: Mapping[str, Any], route: str) -> bool:
    """What the page says."""
    reach, roles = ROLES[PERMISSIONS[route]]
    if role not in roles:
        return False
    covers = {"application": "applications", "client": "clients"}
    return reach == "anywhere" or not scope or bool(reach in covers and scope[covers[reach]])


def test_every_route_has_its_row_in_the_table() -> None:
    assert sorted(PERMISSIONS) == ROUTES
    assert {check.PERMISSION, stream.PERMISSION} < set(Permission)


async def test_every_role_in_every_scope_gets_into_the_routes_of_its_row_and_no_other(here: Here) -> None:
    for role in Role:
        for name, scope in SCOPES.items():
            async with here.asking(await here.token(f"{role}-{name}", role, **scope)) as client:
                for route in ROUTES:
                    method, _, path = route.partition(" ")
                    answer = await client.request(method, f"{ORIGIN}{path}?nonsense=1", content=b"[")
                    told = answer.status_code != 403
                    assert told is may(role, scope, route), (role, name, route, answer.text)
                    assert told or PERMISSIONS[route] in answer.json()["message"], (route, answer.text)


async def test_who_checks_a_click_learns_the_rules_of_his_clients_alone(here: Here) -> None:
    async with here.asking(await here.token("analyst", Role.ANALYST, **SCOPES["client"])) as analyst:
        for client, status in (("shop-1", 200), ("shop-2", 403), ("*", 403)):
            for asked in (
                {"click": f"client_id={client}"},
                {"click": "https://shop.example/?gclid=1", "clientId": client},
            ):
                answer = await analyst.get(f"{ORIGIN}/attribution/check", params=asked)
                assert answer.status_code == status, answer.text


async def test_who_may_not_ask_attribution_is_in_the_audit_trail(here: Here) -> None:
    async with here.asking(await here.token("viewer", Role.VIEWER)) as viewer:
        for path in ("report", "check", "clicks/stream"):
            assert (await viewer.get(f"{ORIGIN}/attribution/{path}")).status_code == 403
    await here.engine.auditor.step()
    async with here.admin as admin:
        found = (await admin.get("audit", params={"outcome": "refused"})).json()["records"]
    told = {(each["principal"], each["operation"], each["permission"]) for each in found}
    assert told == {
        ("viewer", "GET attribution/report", "report.read"),
        ("viewer", "GET attribution/check", "click.check"),
        ("viewer", "GET attribution/clicks/stream", "click.read"),
    }


async def filled(here: Here) -> dict[str, dict[str, str]]:
    """A job in each of two applications, with all that belongs to one; the ids of it all, by application."""
    ids: dict[str, dict[str, str]] = {}
    async with here.admin as admin:
        await admin.post("group", json={"groupName": "both"})
        for application, name in (("shop", "export"), ("crm", "hidden-export")):
            key = {"application": application, "jobName": name}
            await admin.post("job", json=JOB | key | {"groupName": "both"})
            named = {"scheduleId": f"{name}-id", "scheduleName": f"{name}-times"}
            await admin.post("schedules", json=SCHEDULE | key | named)
            trigger = (await admin.post("jobTrigger", json=key)).json()["trigger"]["triggerId"]
            ended = (await admin.post("jobTrigger", json=key)).json()["trigger"]["triggerId"]
            await admin.delete("jobTrigger", params={"triggerId": ended})
            span = {"from": "2026-11-01T00:00:00Z", "to": "2026-11-03T00:00:00Z"}
            backfill = await admin.post("backfill", json={"scheduleId": named["scheduleId"], **span})
            silence = {**key, "seconds": 60, "note": name}
            await admin.put("silence", json=silence)
            await admin.put("application", json={"application": application, "notifications": {"targets": ["ops"]}})
            ids[application] = {
                **key,
                **named,
                "triggerId": trigger,
                "endedId": ended,
                "backfillId": backfill.json()["backfill"]["backfillId"],
            }
    here.clock.advance(60)
    return ids


QUESTIONS: Mapping[str, tuple[Mapping[str, str], ...]] = {
    "scheduleTimes": ({"scheduleId": "{scheduleId}"},),
    "jobDetail": ({"application": "{application}", "jobName": "{jobName}"},),
    "jobVersions": ({"application": "{application}", "jobName": "{jobName}"},),
    "jobLog": ({"triggerId": "{triggerId}"},),
    "jobLogSearch": ({"triggerId": "{triggerId}", "text": "x"},),
    "jobStat": ({}, {"rank": "slow"}, {"groupName": "both"}, {"application": "{application}"}),
    "events": ({"follow": "false"}, {"follow": "false", "application": "{application}"}),
    "search": ({"q": "e"}, {"q": "{triggerId}"}, {"q": "{jobName}"}),
    "schedulePreview": ({"kind": "cron", "expression": "0 0 * * *"},),
    "jobTrigger": ({}, {"triggerId": "{triggerId}"}, {"jobName": "{jobName}"}, {"state": "cancelled"}),
    "triggerMarks": ({}, {"triggerId": "{triggerId}"}, {"application": "{application}"}),
    "declaration": ({}, {"application": "{application}"}),
    "zoneChanges": ({"timeZone": "Europe/Berlin"},),
    "forecast": ({}, {"scheduleId": "{scheduleId}"}),
}
FILTERED = (
    "job",
    "schedules",
    "jobState",
    "alarm",
    "silence",
    "application",
    "backfill",
    "jobStatGrid",
    "nodeStatGrid",
    "cluster",
)
ALL_ALIKE = ("group", "calendar", "commandPrefixImageMapping", "whoami", "triggerCounts")


async def test_a_token_of_one_application_reads_nothing_of_another_one(here: Here) -> None:
    ids = await filled(here)
    nobody = dict.fromkeys(ids["crm"], "nothing") | {"application": "crm"}
    token = await here.token("shop", Role.EDITOR, Role.MONITOR, **SHOP)
    read = {path.rpartition("/")[2] for path, operations in TABLE.items() if any(e.method == "GET" for e in operations)}
    of_all = {"token", "sessions", "audit", "auditChain", "notification", "settings"}
    by_code = {"loginApproval"}
    assert read == {*QUESTIONS, *FILTERED, *ALL_ALIKE, *of_all, *by_code}
    async with here.asking(token) as shop, here.admin as admin:
        for path in (*FILTERED, *ALL_ALIKE):
            for params in ({}, {"application": "crm"}) if path in FILTERED[:-1] and path != "silence" else ({},):
                answer = await shop.get(path, params=params)
                assert (answer.status_code, "hidden" in answer.text) == (200, False), (path, params, answer.text)
        for path, questions in QUESTIONS.items():
            for question in questions:
                about = {
                    of: {name: value.format(**those) for name, value in question.items()} for of, those in ids.items()
                }
                seen = await shop.get(path, params=about["shop"])
                refused = await shop.get(path, params=about["crm"])
                of_nothing = {name: value.format(**nobody) for name, value in question.items()}
                absent = await shop.get(path, params=of_nothing)
                if question != {} and about["shop"] != about["crm"]:
                    assert seen.status_code != 403, (path, question, seen.text)
                    told = (refused.status_code, refused.json().get("code"))
                    assert told == (absent.status_code, absent.json().get("code")), (path, question, refused.text)
                text = refused.text.replace(about["crm"].get("scheduleId", "\0"), "")
                assert "hidden" not in text, (path, question, text)
                assert "hidden" not in seen.text, (path, question, seen.text)
        assert "hidden" in (await admin.get("declaration")).text
        counts = (await shop.get("triggerCounts")).json()["triggerCounts"]["minutes"]
        assert sum(sum(each["states"].values()) for each in counts) == 1
        (group,) = (await shop.get("group")).json()["groups"]
        assert (group["jobs"], group["queued"]) == (1, 1), group
        assert (await shop.get("cluster")).json()["cluster"]["totals"]["jobs"] == 1
        stat = (await shop.get("jobStat", params={"groupName": "both"})).json()["jobStat"]
        assert (stat["queued"], stat["buckets"][0]["cancelled"]) == (1, 1), stat


def changes(of: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every change of something of an application: method, path, body."""
    key = {"application": of["application"], "jobName": of["jobName"]}
    yield "POST", "commandPreview", key
    yield "PUT", "job", JOB | key
    yield "POST", "job", JOB | key | {"jobName": "other"}
    yield "POST", "job", JOB | {"jobName": "below", "dependsOn": [key]}
    yield "POST", "schedules", SCHEDULE | key | {"scheduleName": "other"}
    yield "PUT", "schedules", {"scheduleId": of["scheduleId"], "paused": True}
    yield "PUT", "schedules", {"scheduleId": of["scheduleId"], "expression": "0 3 * * *"}
    yield "POST", "jobTrigger", {**key, "priority": 1000}
    yield "POST", "jobTrigger", key
    yield "DELETE", "jobTrigger", {"triggerId": of["triggerId"]}
    yield "PUT", "backfill", {"backfillId": of["backfillId"], "paused": True}
    yield "DELETE", "backfill", {"backfillId": of["backfillId"]}
    yield (
        "POST",
        "backfill",
        {"scheduleId": of["scheduleId"], "from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z"},
    )
    yield "PUT", "silence", {**key, "seconds": 60}
    yield "DELETE", "silence", key
    yield "PUT", "application", {"application": of["application"]}
    yield "DELETE", "application", {"application": of["application"]}
    yield "PUT", "declaration", {"jobs": [JOB | key]}
    yield "DELETE", "schedules", {"scheduleId": of["scheduleId"]}
    yield "DELETE", "job", {**key, "force": True}


async def test_a_token_of_one_application_changes_nothing_of_another_one_and_learns_nothing(here: Here) -> None:
    ids = await filled(here)
    nobody = dict.fromkeys(ids["crm"], "nothing") | {"application": "crm"}
    async with here.asking(await here.token("shop", Role.EDITOR, **SHOP)) as shop, here.admin as admin:
        before = (await admin.get("declaration", params={"application": "crm"})).json()
        for (method, path, body), (_, _, of_nothing) in zip(changes(ids["crm"]), changes(nobody), strict=True):
            refused = await shop.request(method, path, json=body)
            absent = await shop.request(method, path, json=of_nothing)
            told = [(each.status_code, each.json()["code"]) for each in (refused, absent)]
            assert told[0] == told[1], (method, path, body, refused.text, absent.text)
            # A body that is refused for itself says nothing of what it names.
            assert told[0][0] in ({422} if body.get("priority") == 1000 else {403, 404}), (method, path, refused.text)
            assert "There is no job" not in absent.text, absent.text
        assert (await admin.get("declaration", params={"application": "crm"})).json() == before
        (waiting,) = (await admin.get("jobTrigger", params={"triggerId": ids["crm"]["triggerId"]})).json()["triggers"]
        assert waiting["state"] == "queued"
        for method, path, body in changes(ids["shop"]):
            assert (await shop.request(method, path, json=body)).status_code not in {401, 403, 404}, (method, path)


async def test_whoever_may_see_and_not_do_is_told_403_with_what_is_missing(here: Here) -> None:
    ids = await filled(here)
    body = {"name": "both", "grants": [
        {"role": "operator", "applications": ["shop"], "clients": []},
        {"role": "viewer", "applications": ["crm"], "clients": []},
    ]}  # fmt: skip
    async with here.admin as admin:
        secret = (await admin.post("token", json=body)).json()["secret"]
    async with here.asking(secret) as both:
        refused = await both.delete("jobTrigger", params={"triggerId": ids["crm"]["triggerId"]})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert "trigger.cancel of the application crm" in refused.json()["message"]
        bulk = await both.post("bulk", json={"action": "cancel", "filter": {"groupName": "both"}})
        told = {each["triggerId"]: each["done"] for each in bulk.json()["items"]}
        assert told == {ids["shop"]["triggerId"]: True, ids["crm"]["triggerId"]: False}


async def test_a_bulk_action_finds_what_its_caller_may_see(here: Here) -> None:
    ids = await filled(here)
    async with here.asking(await here.token("shop", Role.OPERATOR, **SHOP)) as shop:
        everything = {"action": "cancel", "filter": {"groupName": "both"}}
        assert (await shop.post("bulk", json=everything | {"dryRun": True})).json()["dryRun"]["states"] == {"queued": 1}
        bulk = await shop.post("bulk", json=everything)
        assert [each["triggerId"] for each in bulk.json()["items"]] == [ids["shop"]["triggerId"]]
        crm = await shop.post("bulk", json={"action": "pause", "filter": {"application": "crm"}})
        assert crm.json()["items"] == []


async def test_an_apply_names_every_refusal_before_anything_is_written(here: Here) -> None:
    await filled(here)
    files: list[dict[str, Any]] = [
        {"application": "shop", "jobs": [JOB | {"jobName": "new"}], "groups": [{"groupName": "mine"}]},
        {"jobs": [JOB | {"application": "crm", "jobName": "a"}, JOB | {"application": "crm", "jobName": "b"}]},
        {"jobs": [JOB | {"jobName": "c", "dependsOn": [{"application": "crm", "jobName": "hidden-export"}]}]},
    ]
    async with here.asking(await here.token("shop", Role.EDITOR, **SHOP)) as shop:
        refused = await shop.put("declaration", json=files)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        told = {each["field"]: each["message"] for each in refused.json()["errors"]}
        assert told == {
            "[0].groups[0]": "This needs the permission group.write.",
            "[1].jobs[0]": "This needs the permission job.write of the application crm.",
            "[1].jobs[1]": "This needs the permission job.write of the application crm.",
            "[2].jobs[0].dependsOn[0]": "This needs the permission job.read of the application crm.",
        }
        assert (await shop.get("job", params={"jobName": "new"})).json()["jobs"] == []
        assert (await shop.put("declaration", json=files[0] | {"groups": []})).status_code == 200


async def test_a_set_is_pruned_of_what_its_caller_may_see(here: Here) -> None:
    async with here.admin as admin, here.asking(await here.token("shop", Role.EDITOR, **SHOP)) as shop:
        jobs = [JOB | {"jobName": name, "application": of} for of, name in (("shop", "a"), ("shop", "b"), ("crm", "c"))]
        await admin.put("declaration", params={"set": "all"}, json={"jobs": jobs})
        pruned = await shop.put("declaration", params={"set": "all", "prune": "true"}, json={"jobs": jobs[:1]})
        assert [each["action"] for each in pruned.json()["alterations"]] == ["delete"], pruned.text
        assert {each["jobName"] for each in (await admin.get("job")).json()["jobs"]} == {"a", "c"}


@pytest.mark.parametrize("path", ["report", "order", "diff", "orders", "paths", "cohorts", "clicks/stream"])
async def test_who_analyses_one_client_asks_about_no_other(here: Here, path: str) -> None:
    url = f"{ORIGIN}/attribution/{path}?nonsense=1"
    async with here.asking(await here.token("ada", Role.ANALYST, applications=[], clients=["shop-1"])) as ada:
        for about in ("&clientId=shop-2", "&clientId=shop-1&clientId=shop-2"):
            refused = await ada.get(url + about)
            assert (refused.status_code, "of the client shop-2" in refused.json()["message"]) == (403, True), about
        assert (await ada.get(f"{url}&clientId=shop-1")).status_code == 400
        assert (await ada.get(url)).status_code == 400


async def test_a_token_that_nobody_made_is_refused_everywhere_but_where_one_gets_a_key(here: Here) -> None:
    (sentence,) = re.findall(r"^(`POST session` .* answer without a key), ", PAGE, re.MULTILINE)
    keyless = {f"{each.method} {path}" for path, those in TABLE.items() for each in those if each.keyless_too}
    told = [each.replace(" ", " /schedulerService/") for each in re.findall(r"`(\w+ \w+)`", sentence)]
    assert keyless == set(told)
    headers = {"authorization": f"Bearer {mint()}"}
    for number, route in enumerate(sorted(set(ROUTES) - keyless)):
        method, _, path = route.partition(" ")
        # From an address each: ten failed keys of one are as many as it may send.
        transport = httpx.ASGITransport(here.app, client=(f"192.0.2.{number}", 1))
        async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as stranger:
            assert (await stranger.request(method, f"{ORIGIN}{path}")).status_code == 401, route

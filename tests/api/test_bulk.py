"""The same done to many: a count before, an answer for each, and nothing half done."""

import json
from typing import Any

import httpx
import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.permission import Role
from clickclock.foundation.principal import Grant, Kind, Principal, Proof
from clickclock.scheduler.api import bulk
from clickclock.scheduler.api.operation import Call
from clickclock.scheduler.api.reading import Query
from clickclock.scheduler.engine import Engine
from tests.api.conftest import JOB, SCHEDULE
from tests.stores import LEASE, claim, ended, finish, queue


async def failed(engine: Engine, clock: ManualClock, job_name: str = "export", **fields: Any) -> str:
    trigger_id = await queue(engine.store, job_name, clock.now(), **fields)
    (launch,) = (await claim(engine.store, clock.now())).launches
    await engine.store.queue.mark_running(LEASE, [(launch.name, "n", clock.now())])
    await finish(engine.store, launch.name, ended(clock.now(), code=1))
    clock.advance(1)
    return trigger_id


async def act(http: httpx.AsyncClient, action: str, filter_: dict[str, Any], **fields: Any) -> dict[str, Any]:
    response = await http.post("bulk", json={"action": action, "filter": filter_, **fields})
    assert response.status_code == 200, response.text
    answer = response.json()
    assert isinstance(answer, dict)
    return answer


async def test_what_failed_runs_again_once_with_its_parameters_page_after_page(
    http: httpx.AsyncClient, engine: Engine, clock: ManualClock
) -> None:
    await http.post("job", json={**JOB, "parameters": {"day": None}})
    await http.post("job", json={**JOB, "jobName": "gone"})
    olds = [await failed(engine, clock, parameters={"day": str(n)}) for n in range(3)]
    gone = await failed(engine, clock, "gone")
    await http.put("job", json={**JOB, "jobName": "gone", "enabled": False})
    asked = {"application": "shop", "states": ["failed"]}
    assert (await act(http, "runAgain", asked, dryRun=True))["dryRun"] == {"states": {"failed": 4}, "isComplete": True}
    first = await act(http, "runAgain", asked, limit=2, bulkId="fix", reason="a fix")
    assert [(each["triggerId"], each["done"], each["code"]) for each in first["items"]] == [
        (gone, False, "jobIsDisabled"),
        (olds[2], True, None),
    ]
    rest = await act(http, "runAgain", asked, limit=2, bulkId="fix", reason="a fix", cursor=first["nextCursor"])
    assert ([each["triggerId"] for each in rest["items"]], rest["nextCursor"]) == ([olds[1], olds[0]], None)
    new = (await http.get("jobTrigger", params={"triggerId": rest["items"][0]["newTriggerId"]})).json()["triggers"][0]
    assert (new["parameters"], new["reason"], new["state"]) == ({"day": "1"}, "a fix", "queued")
    again = await act(http, "runAgain", asked, bulkId="fix")
    assert [each["newTriggerId"] for each in again["items"][2:]] == [each["newTriggerId"] for each in rest["items"]]
    assert len((await http.get("jobTrigger?state=queued")).json()["triggers"]) == 3, "each once"
    other = {"action": "cancel", "filter": {"application": "shop"}, "cursor": first["nextCursor"]}
    assert (await http.post("bulk", json=other)).json()["code"] == "badCursor"


async def test_what_is_queued_or_runs_is_cancelled(http: httpx.AsyncClient, engine: Engine, job: None) -> None:
    running = await queue(engine.store)
    await claim(engine.store)
    waiting = await queue(engine.store)
    count = await act(http, "cancel", {"jobName": "export"}, dryRun=True)
    assert count["dryRun"]["states"] == {"starting": 1, "queued": 1}
    items = (await act(http, "cancel", {"jobName": "export"}))["items"]
    assert [(each["triggerId"], each["done"]) for each in items] == [(waiting, True), (running, True)]
    states = [each["state"] for each in (await http.get("jobTrigger")).json()["triggers"]]
    assert states == ["cancelled", "starting"], "what runs is asked to end"


async def test_schedules_are_paused_and_resumed(http: httpx.AsyncClient, job: None) -> None:
    for name in ("a", "b"):
        await http.post("schedules", json={**SCHEDULE, "scheduleId": name, "paused": name == "b"})
    asked = {"application": "shop"}
    assert (await act(http, "pause", asked, dryRun=True))["dryRun"]["states"] == {"active": 1, "paused": 1}
    items = (await act(http, "pause", asked, reason="a freeze"))["items"]
    assert [(each["scheduleId"], each["done"]) for each in items] == [("a", True), ("b", True)]
    a, b = (await http.get("schedules")).json()["schedules"]
    assert (a["paused"], a["pauseReason"], b["paused"], b["version"]) == (True, "a freeze", True, 1)
    page = await act(http, "resume", asked, limit=1)
    await act(http, "resume", asked, limit=1, cursor=page["nextCursor"])
    assert not any(each["paused"] for each in (await http.get("schedules")).json()["schedules"])


async def test_a_count_ends_where_there_are_too_many(
    http: httpx.AsyncClient, engine: Engine, job: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        await queue(engine.store)
    monkeypatch.setattr(bulk, "PER_PAGE", 2)
    count = (await act(http, "cancel", {"application": "shop"}, dryRun=True))["dryRun"]
    assert count == {"states": {"queued": 5}, "isComplete": True}
    monkeypatch.setattr(bulk, "COUNTED_MAX", 4)
    count = (await act(http, "cancel", {"application": "shop"}, dryRun=True))["dryRun"]
    assert count == {"states": {"queued": 4}, "isComplete": False}


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"action": "cancel", "filter": {}}, ["filter"]),
        ({"action": "cancel", "filter": {"states": ["failed"]}}, ["filter.states"]),
        ({"action": "runAgain", "filter": {"states": ["queued", "gone"]}}, ["filter.states[1]"]),
        (
            {"action": "pause", "filter": {"groupName": "g", "from": "2026-11-20T00:00:00Z"}},
            ["filter.from", "filter.groupName"],
        ),
        ({"action": "explode", "limit": 101}, ["action", "filter", "limit"]),
        (
            {"action": "cancel", "filter": {"from": "2026-11-20T00:00:00Z", "to": "2026-11-19T00:00:00Z"}},
            ["filter.to"],
        ),
    ],
)
async def test_a_bulk_action_that_is_wrong_is_refused_with_every_fault(
    http: httpx.AsyncClient, body: dict[str, Any], fields: list[str]
) -> None:
    response = await http.post("bulk", json=body)
    assert response.status_code == 422, response.text
    assert sorted(each["field"] for each in response.json()["errors"]) == fields


async def test_what_the_caller_may_not_do_to_an_item_is_not_done_and_said(
    http: httpx.AsyncClient, engine: Engine, job: None
) -> None:
    await http.post("job", json={**JOB, "application": "crm"})
    ours, theirs = await queue(engine.store), await queue(engine.store, application="crm")
    of_shop = Grant(Role.OPERATOR, applications=frozenset({"shop"}))
    sees_crm = Grant(Role.VIEWER, applications=frozenset({"crm"}))
    deploy = Principal(Kind.TOKEN, "t-1", "deploy", Proof.TOKEN, (of_shop, sees_crm))
    body = b'{"action": "cancel", "filter": {"jobName": "export"}}'
    answer = json.loads(bytes((await bulk.act(Call(engine, deploy, Query(), {}, body))).body))
    done = {each["triggerId"]: (each["done"], each["code"]) for each in answer["items"]}
    assert done == {ours: (True, None), theirs: (False, "forbidden")}
    states = {each["triggerId"]: each["state"] for each in (await http.get("jobTrigger")).json()["triggers"]}
    assert states == {ours: "cancelled", theirs: "queued"}


async def test_chosen_triggers_alone_are_taken(http: httpx.AsyncClient, job: None) -> None:
    made = [
        (await http.post("jobTrigger", json={"application": JOB["application"], "jobName": JOB["jobName"]})).json()[
            "trigger"
        ]["triggerId"]
        for _ in range(3)
    ]
    asked = {"action": "cancel", "filter": {"triggerIds": [made[0], made[2], "none"]}}
    assert (await http.post("bulk", json={**asked, "dryRun": True})).json()["dryRun"]["states"] == {"queued": 2}
    told = (await http.post("bulk", json=asked)).json()
    assert sorted(each["triggerId"] for each in told["items"] if each["done"]) == sorted([made[0], made[2]])
    assert told["nextCursor"] is None

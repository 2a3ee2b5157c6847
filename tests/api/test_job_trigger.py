"""The health check to the letter, and runs that are asked for, listed and cancelled."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.ids import new_id
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.jobs.trigger import Trigger
from tests.api.conftest import JOB

CALL = {"application": "shop", "jobName": "export"}


async def _run(http: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    response = await http.post("jobTrigger", json={**CALL, **more})
    assert response.status_code == 201, response.text
    trigger: dict[str, Any] = response.json()["trigger"]
    return trigger


async def test_the_health_check_is_200_with_success_even_for_an_unknown_job(http: httpx.AsyncClient) -> None:
    response = await http.get("jobTrigger", params={"jsonQuery": '{"application":"no such","jobName":"ünknown"}'})
    assert response.status_code == 200
    assert response.json()["status"] == "success"
    assert response.json()["triggers"] == []


async def test_a_malformed_json_query_is_400(http: httpx.AsyncClient) -> None:
    assert (await http.get("jobTrigger?jsonQuery={application:x}")).status_code == 400


async def test_a_store_that_is_gone_is_503_and_named(http: httpx.AsyncClient, engine: Engine) -> None:
    @sa.event.listens_for(engine.store._database.engine, "begin")
    def gone(_connection: sa.Connection) -> None:
        raise sa.exc.OperationalError("BEGIN", {}, OSError("disk I/O error"))

    response = await http.get("jobTrigger")
    assert response.status_code == 503
    body = response.json()
    assert body["status"] == "error"
    assert body["code"] == "unhealthy"
    assert "The store does not answer: disk I/O error." in body["message"]
    assert response.headers["retry-after"]


async def test_a_call_makes_a_queued_trigger_and_says_where_it_is(http: httpx.AsyncClient, job: None) -> None:
    response = await http.post("jobTrigger", json={**CALL, "reason": "a test", "priority": 70})
    trigger = response.json()["trigger"]
    assert (trigger["state"], trigger["kind"], trigger["priority"]) == ("queued", "manual", 70)
    assert trigger["queuedAt"] == "2026-11-20T10:00:00.000Z"
    listed = (await http.get(f"http://127.0.0.1{response.headers['location']}")).json()["triggers"]
    assert [each["triggerId"] for each in listed] == [trigger["triggerId"]]
    assert listed[0]["attempts"] == []


async def test_a_call_for_an_unknown_job_is_404_and_a_disabled_one_409(http: httpx.AsyncClient) -> None:
    response = await http.post("jobTrigger", json=CALL)
    assert (response.status_code, response.json()["code"]) == (404, "jobNotFound")
    await http.post("job", json={**JOB, "enabled": False})
    response = await http.post("jobTrigger", json=CALL)
    assert (response.status_code, response.json()["code"]) == (409, "jobIsDisabled")


async def test_a_later_run_waits_for_its_time(http: httpx.AsyncClient, job: None) -> None:
    assert (await _run(http, runAt="2026-11-20T12:00:00+01:00"))["dueTime"] == "2026-11-20T11:00:00.000Z"


async def test_parameters_that_do_not_fit_and_a_job_that_is_not_there_are_named_beside_what_else_is_wrong(
    http: httpx.AsyncClient, job: None
) -> None:
    wrong = {**CALL, "priority": 101}
    for more, field in (({"parameters": {"day": "today"}}, "parameters.day"), ({"jobName": "none"}, "jobName")):
        response = await http.post("jobTrigger", json=wrong | more)
        assert response.status_code == 422
        assert {each["field"] for each in response.json()["errors"]} == {"priority", field}


async def test_parameters_that_do_not_fit_are_422(http: httpx.AsyncClient, job: None) -> None:
    response = await http.post("jobTrigger", json={**CALL, "parameters": {"day": "today"}})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "parameters.day"


@pytest.mark.parametrize("header", ["order-1", '"order-1"'])
async def test_the_same_key_brings_back_the_same_trigger(http: httpx.AsyncClient, job: None, header: str) -> None:
    first = await http.post("jobTrigger", json=CALL, headers={"idempotency-key": header})
    again = await http.post("jobTrigger", json={**CALL, "idempotencyKey": "order-1"})
    both = await http.post(
        "jobTrigger", json={**CALL, "idempotencyKey": "order-1"}, headers={"idempotency-key": header}
    )
    assert [each.status_code for each in (first, again, both)] == [201, 200, 200]
    assert len({each.json()["trigger"]["triggerId"] for each in (first, again, both)}) == 1
    assert len((await http.get("jobTrigger?idempotencyKey=order-1")).json()["triggers"]) == 1


@pytest.mark.parametrize("header", ["other", "", "x" * 257, "tab\there"])
async def test_a_key_that_contradicts_or_cannot_be_is_400(http: httpx.AsyncClient, job: None, header: str) -> None:
    body = {**CALL, "idempotencyKey": "order-1"} if header == "other" else CALL
    response = await http.post("jobTrigger", json=body, headers={"idempotency-key": header})
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == "Idempotency-Key"


async def test_triggers_are_listed_newest_first_and_by_every_filter(
    http: httpx.AsyncClient, job: None, clock: ManualClock
) -> None:
    # Ids carry the true time of their making, and a span of time is looked for among them.
    made = datetime.fromtimestamp(int(new_id().replace("-", "")[:12], 16) // 60_000 * 60, UTC)
    clock.step_to(made)
    first = await _run(http)
    clock.advance(60)
    second = await _run(http)
    minute = f"{made + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"
    await http.delete("jobTrigger", params={"triggerId": first["triggerId"]})

    async def ids(query: str) -> list[str]:
        response = await http.get(f"jobTrigger?{query}")
        assert response.status_code == 200, response.text
        return [each["triggerId"] for each in response.json()["triggers"]]

    both = [second["triggerId"], first["triggerId"]]
    assert await ids("") == await ids("state=queued,cancelled") == await ids("kind=manual") == both
    assert await ids("state=queued") == await ids(f"from={minute}") == both[:1]
    assert await ids(f"to={minute}") == await ids("state=cancelled") == both[1:]
    assert await ids("groupName=none") == await ids("kind=backfill") == await ids("scheduleId=x") == []
    assert await ids(f"triggerId={both[1]}&state=queued") == []
    page = (await http.get("jobTrigger?limit=1")).json()
    assert await ids(f"limit=1&cursor={page['nextCursor']}") == both[1:]
    assert await ids("from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z") == both
    assert (await http.get("jobTrigger?state=happy")).status_code == 400


async def test_a_cancelled_trigger_is_202_then_409_and_an_unknown_one_404(http: httpx.AsyncClient, job: None) -> None:
    trigger = await _run(http)
    response = await http.request("DELETE", "jobTrigger", json={"triggerId": trigger["triggerId"]})
    assert (response.status_code, response.json()["trigger"]["state"]) == (202, "cancelled")
    response = await http.delete("jobTrigger", params={"triggerId": trigger["triggerId"]})
    assert (response.status_code, response.json()["code"]) == (409, "triggerIsFinished")
    response = await http.delete("jobTrigger?triggerId=x")
    assert (response.status_code, response.json()["code"]) == (404, "triggerNotFound")
    assert (await http.delete("jobTrigger")).status_code == 400
    response = await http.request("DELETE", "jobTrigger?triggerId=a", json={"triggerId": "b"})
    assert response.status_code == 400
    assert (await http.request("DELETE", "jobTrigger", json={"triggerID": "b"})).status_code == 422


async def test_a_trigger_is_written_in_the_order_of_its_fields(http: httpx.AsyncClient, job: None) -> None:
    written = (await http.post("jobTrigger", json=CALL)).json()["trigger"]
    assert list(written) == [field.alias for field in Trigger.model_fields.values()]


async def test_a_call_may_name_its_time_and_leave_its_dependents_out(http: httpx.AsyncClient, job: None) -> None:
    below = {"application": "shop", "jobName": "below", "command": "true", "dependsOn": ["export"]}
    assert (await http.post("job", json=below)).status_code == 201
    asked = {"application": "shop", "jobName": "export"}
    made = [
        (await http.post("jobTrigger", json={**asked, **more})).json()["trigger"]
        for more in ({}, {"nominalTime": "2026-11-19T10:00:00Z"}, {"dependents": False})
    ]
    assert [each["runId"] for each in made] == [made[0]["triggerId"], "2026-11-19T10:00:00.000Z", None]
    assert made[1]["nominalTime"] == "2026-11-19T10:00:00.000Z"


async def test_a_queued_trigger_says_what_it_waits_for(http: httpx.AsyncClient, job: None, engine: Engine) -> None:
    later = {"application": "shop", "jobName": "export", "runAt": "2026-11-20T11:00:00Z"}
    trigger_id = (await http.post("jobTrigger", json=later)).json()["trigger"]["triggerId"]
    await http.put("job", json={**JOB, "enabled": False})
    asked = {"triggerId": trigger_id}
    waits = (await http.get("jobTrigger", params=asked)).json()["triggers"][0]["waitsFor"]
    assert [each["reason"] for each in waits] == ["notYet", "jobDisabled", "noReplica"]
    assert (waits[0]["until"], waits[0]["triggerIds"], waits[0]["ahead"]) == ("2026-11-20T11:00:00.000Z", [], None)
    await engine.beat()
    await http.put("job", json=JOB)
    waits = (await http.get("jobTrigger", params=asked)).json()["triggers"][0]["waitsFor"]
    # This replica beats, and nobody has started the supervisor of its cluster.
    assert [each["reason"] for each in waits] == ["notYet", "clusterDown"]
    assert (await http.get("jobTrigger")).json()["triggers"][0]["waitsFor"] is None, "not in lists"
    await http.delete("jobTrigger", params=asked)
    assert (await http.get("jobTrigger", params=asked)).json()["triggers"][0]["waitsFor"] is None

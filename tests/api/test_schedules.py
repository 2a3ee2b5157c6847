"""Schedules: created one by one or by the thousand, updated field by field, and never fired into the past."""

import asyncio
from typing import Any

import httpx
import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.engine import Engine
from tests.api.conftest import JOB, SCHEDULE


async def _create(http: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    response = await http.post("schedules", json={**SCHEDULE, **more})
    assert response.status_code == 201, response.text
    schedule: dict[str, Any] = response.json()["schedule"]
    return schedule


async def test_a_schedule_knows_when_it_is_due_next(http: httpx.AsyncClient, job: None) -> None:
    schedule = await _create(http, scheduleName="nightly")
    assert schedule["nextFireAt"] == "2026-11-21T01:30:00.000Z"
    assert (schedule["version"], schedule["scheduleName"]) == (1, "nightly")
    response = await http.get("schedules", params={"scheduleId": schedule["scheduleId"]})
    assert response.headers["etag"] == '"1"'
    assert response.json()["schedules"] == [schedule]


@pytest.mark.parametrize(
    ("kind", "expression", "more"),
    [
        ("once", "2026-11-20T09:00:00Z", {}),
        ("cron", "0 0 31 2 *", {}),
        ("cron", "30 2 * * *", {"endAt": "2026-11-20T12:00:00Z"}),
    ],
)
async def test_a_schedule_that_would_never_fire_is_422(
    http: httpx.AsyncClient, job: None, kind: str, expression: str, more: dict[str, str]
) -> None:
    response = await http.post("schedules", json={**SCHEDULE, "kind": kind, "expression": expression, **more})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "expression"
    schedule = await _create(http)
    response = await http.put(
        "schedules", json={"scheduleId": schedule["scheduleId"], "kind": kind, "expression": expression, **more}
    )
    assert response.status_code == 422


async def test_all_faults_of_an_update_are_told_together(http: httpx.AsyncClient, job: None) -> None:
    schedule = await _create(http)
    wrong = {
        "application": "other",
        "expression": "61 * * * *",
        "bogus": None,
        "paused": "soon",
        "calendarName": "none",
    }
    response = await http.put("schedules", json={"scheduleId": schedule["scheduleId"], **wrong})
    assert response.status_code == 422
    assert {fault["field"] for fault in response.json()["errors"]} == set(wrong)
    misfit = {"scheduleId": schedule["scheduleId"], "parameters": {"day": "1"}, "jitterSeconds": -1}
    response = await http.put("schedules", json=misfit)
    assert {fault["field"] for fault in response.json()["errors"]} == {"parameters.day", "jitterSeconds"}


@pytest.mark.parametrize("expression", ["1.0005", "PT0.0003H"])
async def test_an_interval_of_no_whole_milliseconds_misses_no_time(
    http: httpx.AsyncClient, engine: Engine, clock: ManualClock, job: None, expression: str
) -> None:
    schedule = await _create(http, kind="interval", expression=expression, overlapPolicy="allow")
    for _ in range(50):
        clock.advance(1)
        await engine.planner.step()
    found = (await http.get("jobTrigger", params={"scheduleId": schedule["scheduleId"], "limit": 1000})).json()
    period = 1.0005 if expression == "1.0005" else 1.08
    assert len(found["triggers"]) == int(50 / period)
    assert {each["state"] for each in found["triggers"]} == {"queued"}


async def test_a_schedule_without_its_job_is_422_and_a_taken_name_409(http: httpx.AsyncClient) -> None:
    response = await http.post("schedules", json=SCHEDULE)
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "jobName")
    await http.post("job", json=JOB)
    await _create(http, scheduleName="nightly")
    response = await http.post("schedules", json={**SCHEDULE, "scheduleName": "nightly"})
    assert (response.status_code, response.json()["code"]) == (409, "scheduleExists")


async def test_a_job_that_is_not_there_is_named_beside_what_else_is_wrong(http: httpx.AsyncClient, job: None) -> None:
    wrong = {"expression": "61 * * * *", "calendarName": "none"}
    fine = {**SCHEDULE, "jobName": "none"}
    response = await http.post("schedules", json=[{**SCHEDULE, **wrong}, {**fine, **wrong}, fine, {"jobName": "x"}])
    faults = [each["field"] for each in response.json()["errors"]]
    assert faults.count("[1].jobName") == faults.count("[2].jobName") == 1
    assert {"[0].expression", "[1].expression", "[3].application", "[3].expression"} < set(faults)
    assert not {"[0].jobName", "[3].jobName"} & set(faults)


async def test_parameters_that_do_not_fit_are_named_beside_what_else_is_wrong(
    http: httpx.AsyncClient, job: None
) -> None:
    misfit = {**SCHEDULE, "parameters": {"day": "1"}}
    response = await http.post("schedules", json=[misfit, {**misfit, "calendarName": "none"}, SCHEDULE])
    faults = [each["field"] for each in response.json()["errors"]]
    assert sorted(faults) == ["[0].parameters.day", "[1].calendarName", "[1].parameters.day"]
    response = await http.post("schedules", json={**misfit, "parameters": {"day": 1, "night": "1"}})
    assert sorted(each["field"] for each in response.json()["errors"]) == ["parameters.day", "parameters.night"]


async def test_ten_thousand_schedules_go_in_at_once_or_not_at_all(http: httpx.AsyncClient, job: None) -> None:
    many = [{**SCHEDULE, "scheduleName": f"s-{number}"} for number in range(10_000)]
    response = await http.post("schedules", json=[*many[:-1], {**SCHEDULE, "timeZone": "Nowhere/Land"}])
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "[9999].timeZone"
    assert (await http.get("schedules")).json()["schedules"] == []
    response = await http.post("schedules", json=many)
    assert response.status_code == 201
    assert [each["scheduleName"] for each in response.json()["schedules"]] == [each["scheduleName"] for each in many]


async def test_an_update_changes_what_it_names_and_nothing_else(http: httpx.AsyncClient, job: None) -> None:
    schedule = await _create(http, scheduleName="nightly", endAt="2030-01-01T00:00:00Z", jitterSeconds=5)
    named = {"scheduleId": schedule["scheduleId"]}
    response = await http.put("schedules", params=named, json={"expression": "0 4 * * *", "endAt": None})
    assert response.status_code == 200, response.text
    assert response.headers["etag"] == '"2"'
    changed = response.json()["schedule"]
    assert (changed["expression"], changed["endAt"], changed["jitterSeconds"]) == ("0 4 * * *", None, 5)
    assert changed["timeZone"] == "Europe/Berlin"
    response = await http.put("schedules", json={**changed, "description": "sent back whole"})
    assert (response.status_code, response.json()["schedule"]["version"]) == (200, 3)


async def test_pausing_and_resuming_never_fires_what_is_past(
    http: httpx.AsyncClient, job: None, clock: ManualClock
) -> None:
    named = {"scheduleId": (await _create(http))["scheduleId"]}
    paused = (await http.put("schedules", json={**named, "paused": True, "pauseReason": "why"})).json()["schedule"]
    assert (paused["paused"], paused["pauseReason"]) == (True, "why")
    clock.advance(3 * 86_400)
    resumed = (await http.put("schedules", json={**named, "paused": False})).json()["schedule"]
    assert (resumed["paused"], resumed["pauseReason"]) == (False, None)
    assert resumed["nextFireAt"] == "2026-11-24T01:30:00.000Z"


async def test_a_schedule_that_has_had_its_last_time_can_still_be_edited(
    http: httpx.AsyncClient, job: None, clock: ManualClock
) -> None:
    schedule = await _create(http, kind="once", expression="2026-11-20T11:00:00Z")
    clock.advance(7200)
    named = {"scheduleId": schedule["scheduleId"]}
    assert (await http.put("schedules", json={**named, "description": "done"})).status_code == 200
    assert (await http.put("schedules", json={**named, "expression": "2026-11-20T11:30:00Z"})).status_code == 422


async def test_a_stale_update_is_409_and_racing_ones_lose_nothing(http: httpx.AsyncClient, job: None) -> None:
    named = {"scheduleId": (await _create(http))["scheduleId"]}
    one, other = await asyncio.gather(
        http.put("schedules", json={**named, "description": "one"}),
        http.put("schedules", json={**named, "jitterSeconds": 7}),
    )
    assert (one.status_code, other.status_code) == (200, 200)
    (schedule,) = (await http.get("schedules", params=named)).json()["schedules"]
    assert (schedule["description"], schedule["jitterSeconds"], schedule["version"]) == ("one", 7, 3)
    many = [http.put("schedules", json={**named, "description": str(n)}) for n in range(30)]
    assert {each.status_code for each in await asyncio.gather(*many)} == {200}
    response = await http.put("schedules", json={**named, "paused": True}, headers={"if-match": '"1"'})
    assert (response.status_code, response.json()["code"]) == (409, "staleVersion")
    assert (await http.put("schedules", json=named, headers={"if-match": '"33"'})).status_code == 200
    assert (await http.delete("schedules", params=named, headers={"if-match": '"33"'})).status_code == 409


async def test_an_update_needs_one_schedule_that_is_there_and_keeps_its_job(http: httpx.AsyncClient, job: None) -> None:
    schedule_id = (await _create(http))["scheduleId"]
    for params, body, status, field in (
        ({}, {"paused": True}, 422, "scheduleId"),
        ({}, {"scheduleId": 5}, 422, "scheduleId"),
        ({"scheduleId": "a"}, {"scheduleId": "b"}, 400, "scheduleId"),
        ({}, {"scheduleId": schedule_id, "jobName": "other"}, 422, "jobName"),
        ({}, {"scheduleId": schedule_id, "pausd": True}, 422, "pausd"),
        ({}, {"scheduleId": schedule_id, "expression": None}, 422, "expression"),
    ):
        response = await http.put("schedules", params=params, json=body)
        assert response.status_code == status, response.text
        assert response.json()["errors"][0]["field"] == field
    response = await http.put("schedules", json={"scheduleId": "none", "paused": True})
    assert (response.status_code, response.json()["code"]) == (404, "scheduleNotFound")


async def test_a_deleted_schedule_is_gone(http: httpx.AsyncClient, job: None) -> None:
    named = {"scheduleId": (await _create(http))["scheduleId"]}
    assert (await http.request("DELETE", "schedules", json=named)).status_code == 200
    assert (await http.delete("schedules", params=named)).status_code == 404


async def test_a_step_that_is_too_long_is_refused_with_what_was_meant(http: httpx.AsyncClient) -> None:
    schedule = {"application": "shop", "jobName": "nightly", "expression": "*/90 * * * *"}
    answers = [
        await http.post("schedules", json=schedule),
        await http.get("schedulePreview", params={"expression": "*/90 * * * *"}),
    ]
    for answer in answers:
        assert answer.status_code == 422
        assert "PT90M" in answer.text

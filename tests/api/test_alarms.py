"""Alarms, silences, notifications and applications' defaults over HTTP."""

import httpx
import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.engine import Engine
from tests.api.conftest import JOB

NAMED = {"application": "shop", "jobName": "late"}


@pytest.fixture
async def missed(http: httpx.AsyncClient, engine: Engine, clock: ManualClock) -> str:
    """A job that did not run; the id of its alarm."""
    job = {**JOB, **NAMED, "expectedWithinSeconds": 60, "notifications": {"targets": ["ops"]}}
    assert (await http.post("job", json=job)).status_code == 201
    clock.advance(60)
    await engine.store.alarms.look(clock.now())
    (alarm,) = (await http.get("alarm")).json()["alarms"]
    alarm_id: str = alarm["alarmId"]
    return alarm_id


@pytest.mark.usefixtures("missed")
async def test_an_open_alarm_shows_in_the_list_in_the_job_and_in_the_cluster(http: httpx.AsyncClient) -> None:
    (alarm,) = (await http.get("alarm", params={"isOpen": True, "kind": "missed", **NAMED})).json()["alarms"]
    assert (alarm["kind"], alarm["count"], alarm["resolvedAt"]) == ("missed", 1, None)
    assert (await http.get("jobDetail", params=NAMED)).json()["jobDetail"]["alarms"] == [alarm]
    state = (await http.get("cluster")).json()["cluster"]["alarms"]
    assert state == {"open": 1, "targets": ["ops"], "pendingNotifications": 1, "deadNotifications": 0}
    assert (await http.get("alarm", params={"isOpen": False})).json()["alarms"] == []


async def test_an_alarm_is_acknowledged_by_somebody_with_a_note(http: httpx.AsyncClient, missed: str) -> None:
    body = {"alarmId": missed, "acknowledgedBy": "ada", "note": "I see."}
    alarm = (await http.put("alarm", json=body)).json()["alarm"]
    assert (alarm["acknowledgedBy"], alarm["note"]) == ("ada", "I see.")
    unknown = await http.put("alarm", json={**body, "alarmId": "none"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "alarmNotFound")
    nobody = await http.put("alarm", json={"alarmId": missed, "acknowledgedBy": ""})
    assert nobody.status_code == 422


async def test_a_silence_is_made_listed_and_ended(http: httpx.AsyncClient) -> None:
    made = await http.put("silence", json={**NAMED, "seconds": 60, "silencedBy": "ada"})
    assert made.json()["silence"]["until"] == "2026-11-20T10:01:00.000Z"
    assert (await http.get("silence")).json()["silences"] == [made.json()["silence"]]
    assert (await http.delete("silence", params=NAMED)).status_code == 200
    gone = await http.delete("silence", params=NAMED)
    assert (gone.status_code, gone.json()["code"]) == (404, "silenceNotFound")
    neither = await http.put("silence", json={"seconds": 60, "silencedBy": "ada"})
    assert [each["field"] for each in neither.json()["errors"]] == ["application"]


async def test_a_target_that_is_not_configured_is_refused_and_the_known_ones_are_named(http: httpx.AsyncClient) -> None:
    wanted = {"targets": ["ops", "opz"]}
    answers = {
        "notifications.targets": [
            await http.post("job", json={**JOB, "notifications": wanted}),
            await http.put("job", json={**JOB, "notifications": wanted}),
            await http.put("application", json={"application": "shop", "notifications": wanted}),
        ],
        "defaults.notifications.targets": [
            await http.post("group", json={"groupName": "g", "defaults": {"notifications": wanted}}),
            await http.put("group", json={"groupName": "g", "defaults": {"notifications": wanted}}),
        ],
        "target": [await http.post("notification", json={"target": "opz"})],
    }
    for field, responses in answers.items():
        for response in responses:
            (fault,) = response.json()["errors"]
            assert (response.status_code, fault["field"]) == (422, field)
            assert "There is no target opz; configured are: ops" in fault["message"]
    assert (await http.get("job")).json()["jobs"] == []


async def test_a_test_is_told_and_a_dead_one_is_tried_again(http: httpx.AsyncClient, engine: Engine) -> None:
    made = (await http.post("notification", json={"target": "ops"})).json()["notification"]
    assert (made["state"], made["type"]) == ("pending", "clickclock.test")
    await engine.notifier.step()
    await engine.notifier.settle()
    (sent,) = (await http.get("notification", params={"state": "sent"})).json()["notifications"]
    assert sent["notificationId"] == made["notificationId"]
    again = await http.put("notification", json={"notificationId": made["notificationId"]})
    assert (again.status_code, again.json()["code"]) == (409, "notificationIsSent")
    lost = (await engine.store.outbox.add_test("gone", engine.clock.now())).notification_id
    await engine.notifier.step()
    await engine.notifier.settle()
    (dead,) = (await http.get("notification", params={"state": "dead"})).json()["notifications"]
    assert (dead["notificationId"], dead["tries"]) == (lost, 1)
    assert "There is no target 'gone'" in dead["lastError"]
    fresh = (await http.put("notification", json={"notificationId": lost})).json()["notification"]
    assert (fresh["state"], fresh["tries"]) == ("pending", 0)


async def test_an_applications_defaults_are_set_listed_and_deleted(http: httpx.AsyncClient) -> None:
    body = {"application": "shop", "notifications": {"targets": ["ops"], "on": ["failure"], "longRunSeconds": 60}}
    kept = body | {"managedBy": None}
    assert (await http.put("application", json=body)).json()["application"] == kept
    assert (await http.get("application", params={"application": "shop"})).json()["applications"] == [kept]
    assert (await http.delete("application", params={"application": "shop"})).status_code == 200
    gone = await http.delete("application", params={"application": "shop"})
    assert (gone.status_code, gone.json()["code"]) == (404, "applicationNotFound")


async def test_a_job_keeps_what_it_expects_when_it_is_written_back(http: httpx.AsyncClient) -> None:
    job = {**JOB, "expectedWithinSeconds": 60, "notifications": {"targets": ["ops"]}}
    stored = (await http.post("job", json=job)).json()["job"]
    assert stored["notifications"] == {"targets": ["ops"], "on": None, "longRunSeconds": None}
    again = (await http.put("job", json=stored)).json()["job"]
    assert (again["expectedWithinSeconds"], again["notifications"]) == (60, stored["notifications"])

"""The audit trail over HTTP: every operation that changes something stands in it, and so does who reads it."""

from typing import Any

import httpx
import pytest

from clickclock.foundation.access import Access, Mode
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.hash_chain import fault_of
from clickclock.scheduler.api import TABLE, create_app
from clickclock.scheduler.api.operation import BASE
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.jobs.job import Job
from tests.api.conftest import BASE as BASE_URL
from tests.api.conftest import JOB, SCHEDULE

NAMED = {"application": "shop", "jobName": "export"}


async def trail(http: httpx.AsyncClient, **filters: object) -> list[dict[str, Any]]:
    """Records, oldest first, without those of reading them."""
    given = {name: str(value) for name, value in filters.items()}
    answer = (await http.get("audit", params={**given, "limit": "1000"})).json()
    return [each for each in reversed(answer["records"]) if each["resource"] != "audit"]


async def change_everything(http: httpx.AsyncClient, engine: Engine, clock: ManualClock) -> None:
    """Each operation that changes something, at least once."""

    async def ask(method: str, path: str, body: Any = None, **params: Any) -> dict[str, Any]:
        answer = await http.request(method, path, json=body, params=params)
        assert answer.status_code < 300, answer.text
        told: dict[str, Any] = answer.json()
        return told

    group, calendar = {"groupName": "g"}, {"calendarName": "c", "excludeDates": ["2026-12-25"]}
    mapping = {"prefix": "python", "image": "python:3.13"}
    for path, record in (("group", group), ("calendar", calendar), ("commandPrefixImageMapping", mapping)):
        await ask("POST", path, record)
        await ask("PUT", path, record)
        await ask("DELETE", path, **{next(iter(record)): next(iter(record.values()))})
    await ask("POST", "job", JOB | {"expectedWithinSeconds": 60})
    await ask("PUT", "job", JOB | {"expectedWithinSeconds": 60, "priority": 70})
    await ask("POST", "schedules", SCHEDULE | {"scheduleId": "s"})
    await ask("PUT", "schedules", {"scheduleId": "s", "paused": True, "pauseReason": "Stock."})
    trigger = (await ask("POST", "jobTrigger", NAMED))["trigger"]["triggerId"]
    await ask("DELETE", "jobTrigger", triggerId=trigger)
    again = {"action": "runAgain", "filter": {**NAMED, "states": ["cancelled"], "from": "2026-11-20T00:00:00Z"}}
    assert len((await ask("POST", "bulk", again))["items"]) == 1
    await ask("POST", "backfill", {"scheduleId": "s", "from": "2026-11-01T00:00:00Z", "to": "2026-11-05T12:00:00Z"})
    backfill = (await http.get("backfill")).json()["backfills"][0]["backfillId"]
    await ask("PUT", "backfill", {"backfillId": backfill, "paused": True})
    await ask("DELETE", "backfill", backfillId=backfill)
    await ask("PUT", "application", {"application": "shop", "notifications": {"targets": ["ops"]}})
    clock.advance(60)
    await engine.store.alarms.look(clock.now())
    alarm = (await http.get("alarm")).json()["alarms"][0]["alarmId"]
    await ask("PUT", "alarm", {"alarmId": alarm, "acknowledgedBy": "ada"})
    await ask("PUT", "silence", {**NAMED, "seconds": 60, "silencedBy": "ada"})
    await ask("DELETE", "silence", **NAMED)
    told = (await ask("POST", "notification", {"target": "ops"}))["notification"]["notificationId"]
    await ask("PUT", "notification", {"notificationId": told})
    await ask("DELETE", "application", application="shop")
    await ask("POST", "token", {"name": "deploy", "grants": [{"role": "editor"}]})
    await ask("PUT", "token", {"name": "deploy"})
    await ask("DELETE", "token", name="deploy")
    await ask("POST", "session")
    (session,) = (await http.get("sessions")).json()["sessions"]
    await ask("DELETE", "sessions", name=session["name"])
    timed = {**NAMED, "jobName": "from-file", "command": "true", "schedules": [{"expression": "0 0 * * *"}]}
    files = {"groups": [group], "calendars": [calendar], "commandPrefixImageMappings": [mapping], "jobs": [timed]}
    await ask("PUT", "declaration", files, set="files")
    await ask("PUT", "declaration", {**files, "jobs": []}, set="files", prune=True, allowEmpty=True)
    await ask("DELETE", "schedules", scheduleId="s")
    await ask("DELETE", "job", **NAMED, force=True)


SIGN_IN = {"POST login", "PUT login", "PUT loginApproval", "POST signInLink", "DELETE session"}
"""The steps of a sign-in, and its end: what they lead to, `POST session` or a token, is recorded."""


async def test_every_operation_that_changes_something_leaves_a_record(
    http: httpx.AsyncClient, engine: Engine, clock: ManualClock
) -> None:
    await change_everything(http, engine, clock)
    records = await trail(http)
    changing = {
        (f"{each.method} {path.removeprefix(f'{BASE}/')}")
        for path, operations in TABLE.items()
        for each in operations
        if each.method != "GET" and not each.permission.endswith(".read")
    } - SIGN_IN
    assert {each["operation"] for each in records} == changing
    assert {each["principal"] for each in records} == {"local"}
    assert {each["outcome"] for each in records} == {"done"}
    assert all(each["requestId"] and each["address"] for each in records)
    of_files = {(each["resource"], each["permission"]) for each in records if each["operation"] == "PUT declaration"}
    assert of_files == {
        ("job", "job.write"),
        ("schedule", "schedule.write"),
        ("group", "group.write"),
        ("calendar", "calendar.write"),
        ("commandPrefixImageMapping", "mapping.write"),
    }
    assert {each["permission"] for each in records if each["operation"] == "POST bulk"} == {"trigger.create"}
    # As it stands in the answers, the trail is one chain.
    (chain,) = (await http.get("auditChain")).json()["chains"]
    assert (chain["chain"], chain["removedThrough"], chain["isSigned"]) == ("node-1/0", 0, None)
    previous, position = chain["removedHash"], chain["removedThrough"]
    records = (await http.get("audit", params={"chain": chain["chain"], "limit": 1000})).json()["records"]
    for record in reversed(records):
        assert fault_of(previous, position, record) is None
        previous, position = record["hash"], record["position"]
    assert position == len(records) > len(changing)


async def test_a_record_says_what_changed_and_hides_passwords(http: httpx.AsyncClient, job: None) -> None:
    secret = {"environment": {"DB": "postgresql://me:hush@db/x"}, "secretRefs": [{"name": "PW", "file": "pw"}]}
    put = await http.put("job", json={**JOB, **secret, "priority": 70}, headers={"x-request-id": "mine"})
    assert put.status_code == 200, put.text
    created, changed = await trail(http, **NAMED)
    assert created["changes"]["command"] == {"after": JOB["command"]}
    assert (changed["operation"], changed["permission"], changed["requestId"]) == ("PUT job", "job.write", "mine")
    assert changed["changes"]["priority"] == {"after": 70}
    assert changed["changes"]["environment"] == {"after": {"DB": "postgresql://me:**********@db/x"}}
    assert await trail(http, **NAMED, principal="nobody") == []
    assert [each["auditId"] for each in await trail(http, auditId=changed["auditId"])] == [changed["auditId"]]


async def test_whoever_reads_the_trail_stands_in_it(http: httpx.AsyncClient) -> None:
    for _ in range(2):
        await http.get("audit", params={"principal": "ada", "outcome": "refused"})
    first = (await http.get("audit", params={"resource": "audit", "limit": 1})).json()
    assert first["records"][0]["resourceId"] == "principal=ada outcome=refused"
    assert (first["records"][0]["permission"], first["records"][0]["changes"]) == ("audit.read", None)
    further = {"resource": "audit", "limit": 1, "cursor": first["nextCursor"]}
    assert len((await http.get("audit", params=further)).json()["records"]) == 1
    # A further page is the same read.
    assert len((await http.get("audit", params={"resource": "audit"})).json()["records"]) == 3


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"outcome": "fine"}, "outcome"),
        ({"resource": "cat"}, "resource"),
        ({"chain": "node-1/0", "principal": "ada"}, "chain"),
        ({"from": "yesterday"}, "from"),
    ],
)
async def test_a_faulty_filter_is_named(http: httpx.AsyncClient, filters: dict[str, str], field: str) -> None:
    answer = await http.get("audit", params=filters)
    assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, [field])
    assert await trail(http) == []


async def test_a_job_and_its_schedules_say_who_changed_them(http: httpx.AsyncClient, engine: Engine) -> None:
    await engine.store.jobs.create([Job.model_validate(JOB)], engine.clock.now())
    (made,) = (await http.get("job")).json()["jobs"]
    assert made["updatedBy"] is None  # the service, of its own accord
    put = (await http.put("job", json={**made, "priority": 70})).json()["job"]
    timed = (await http.post("schedules", json=SCHEDULE | {"scheduleId": "s"})).json()["schedule"]
    await http.put("silence", json={**NAMED, "seconds": 60, "silencedBy": "ada"})
    await http.post("jobTrigger", json=NAMED)
    assert (put["updatedBy"], timed["updatedBy"]) == ("local", "local")
    detail = (await http.get("jobDetail", params=NAMED)).json()["jobDetail"]
    assert (detail["job"]["updatedBy"], detail["schedules"][0]["schedule"]["updatedBy"]) == ("local", "local")
    told = [(each["operation"], each["resourceId"], each["principal"]) for each in detail["changes"]]
    assert told == [
        ("PUT silence", "shop/export", "local"),
        ("POST schedules", "s", "local"),
        ("PUT job", "shop/export", "local"),
    ]
    assert detail["changes"][-1]["changes"] == {"priority": {"after": 70}}


async def test_a_refused_attempt_is_a_record(engine: Engine) -> None:
    access = Access(Mode.SAME_USER, engine.authenticator)
    stranger = httpx.ASGITransport(create_app(engine, access=access), client=("203.0.113.66", 5))
    async with httpx.AsyncClient(transport=stranger, base_url=BASE_URL) as http:
        for _ in range(3):
            assert (await http.post("job", json=JOB)).status_code == 401
    async with httpx.AsyncClient(transport=httpx.ASGITransport(create_app(engine)), base_url=BASE_URL) as http:
        assert (await http.post("job", json={"jobName": ""})).status_code == 422  # a fault, and no attempt
        await engine.auditor.step()
        (refused,) = await trail(http, outcome="refused")
    assert (refused["operation"], refused["permission"], refused["count"]) == ("POST job", "job.write", 3)
    assert (refused["address"], refused["resource"], refused["changes"]) == ("203.0.113.66", "request", None)

"""Values at the edge: of another type, outside of time, too small; each refused with a sentence, none with a 500."""

from typing import Any

import httpx
import pytest

from tests.api.conftest import JOB, SCHEDULE

DRAW = {"application": "shop", "jobName": "export"}
SILENCE = {"application": "shop", "seconds": 60, "silencedBy": "me"}
WHOLE, NUMBER, YES_OR_NO = "Give a whole number.", "Give a number.", "Give true or false."
TIME, DATE = "Give a time such as 2026-11-20T10:00:00Z.", "Give a date such as 2026-12-25."


def told(response: httpx.Response) -> dict[str, str]:
    return {fault["field"]: fault["message"] for fault in response.json()["errors"]}


@pytest.mark.parametrize(
    ("method", "path", "body", "field", "says"),
    [
        ("POST", "job", JOB | {"maxRetries": True}, "maxRetries", WHOLE),
        ("POST", "job", JOB | {"maxRetries": "5"}, "maxRetries", WHOLE),
        ("POST", "job", JOB | {"maxRetries": 1.5}, "maxRetries", WHOLE),
        ("POST", "job", JOB | {"timeoutSeconds": True}, "timeoutSeconds", NUMBER),
        ("POST", "job", JOB | {"timeoutSeconds": "60"}, "timeoutSeconds", NUMBER),
        ("POST", "job", JOB | {"successExitCodes": [0, True]}, "successExitCodes[1]", WHOLE),
        ("POST", "job", JOB | {"retryBackoff": {"multiplier": True}}, "retryBackoff.multiplier", NUMBER),
        ("POST", "job", JOB | {"resources": {"cpu": True}}, "resources.cpu", NUMBER),
        ("POST", "job", JOB | {"preemption": 1}, "preemption", YES_OR_NO),
        ("POST", "job", JOB | {"enabled": "yes"}, "enabled", YES_OR_NO),
        ("POST", "job", [JOB, JOB | {"jobName": "b", "priority": False}], "[1].priority", WHOLE),
        ("POST", "schedules", SCHEDULE | {"jitterSeconds": True}, "jitterSeconds", NUMBER),
        ("POST", "schedules", SCHEDULE | {"catchUp": {"maxTriggers": True}}, "catchUp.maxTriggers", WHOLE),
        ("POST", "schedules", SCHEDULE | {"startAt": 1700000000}, "startAt", TIME),
        ("POST", "schedules", SCHEDULE | {"endAt": "1700000000"}, "endAt", TIME),
        ("POST", "schedules", SCHEDULE | {"endAt": True}, "endAt", TIME),
        ("POST", "schedules", SCHEDULE | {"excludeDates": [86400]}, "excludeDates[0]", DATE),
        ("POST", "schedules", SCHEDULE | {"excludeDates": ["86400"]}, "excludeDates[0]", DATE),
        ("POST", "jobTrigger", DRAW | {"priority": True}, "priority", WHOLE),
        ("POST", "jobTrigger", DRAW | {"runAt": 1700000000.5}, "runAt", TIME),
        ("POST", "group", {"groupName": "g", "defaults": {"maxRetries": True}}, "defaults.maxRetries", WHOLE),
        ("POST", "calendar", {"calendarName": "c", "excludeDates": [0]}, "excludeDates[0]", DATE),
        ("PUT", "silence", SILENCE | {"seconds": True}, "seconds", NUMBER),
    ],
)
async def test_a_value_of_another_type_is_refused(
    http: httpx.AsyncClient, job: None, method: str, path: str, body: Any, field: str, says: str
) -> None:
    response = await http.request(method, path, json=body)
    assert response.status_code == 422, response.text
    assert told(response) == {field: says}


async def test_a_whole_number_may_be_written_with_a_point_since_json_has_one_kind_of_number(
    http: httpx.AsyncClient,
) -> None:
    raw = b'{"application": "shop", "jobName": "j", "command": "true", "maxRetries": 2.0, "timeoutSeconds": 1e2}'
    made = (await http.post("job", content=raw)).json()["job"]
    assert (made["maxRetries"], made["timeoutSeconds"]) == (2, 100.0)


@pytest.mark.parametrize(
    ("query", "field", "says"),
    [
        ('job?jsonQuery={"limit":true}', "limit", WHOLE),
        ('job?jsonQuery={"limit":5.5}', "limit", WHOLE),
        ("job?limit=5_0", "limit", WHOLE),
        ("job?limit=%2B5", "limit", WHOLE),
        ('jobLog?jsonQuery={"triggerId":"t","attempt":true}', "attempt", WHOLE),
        ("jobTrigger?from=1700000000", "from", TIME),
        ('jobTrigger?jsonQuery={"to":1700000000}', "to", TIME),
        ("schedulePreview?expression=@daily&excludeDates=86400", "excludeDates[0]", DATE),
    ],
)
async def test_a_filter_of_another_type_is_refused(http: httpx.AsyncClient, query: str, field: str, says: str) -> None:
    response = await http.get(query)
    assert response.status_code == 400, response.text
    assert told(response) == {field: says}


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize(
    ("kind", "expression"),
    [("cron", "30 2 * * *"), ("interval", "PT15M"), ("interval", "P3660D"), ("rrule", "FREQ=DAILY;BYHOUR=2")],
)
async def test_a_preview_from_the_ends_of_time_is_answered(
    http: httpx.AsyncClient, kind: str, expression: str, zone: str, moment: str
) -> None:
    asked = {"kind": kind, "expression": expression, "timeZone": zone, "count": "2"}
    for more in ({"from": moment}, {"from": moment, "startAt": moment}, {"startAt": moment}, {"endAt": moment}):
        response = await http.get("schedulePreview", params=asked | more)
        assert response.status_code == 200, response.text
        assert len(response.json()["times"]) in {0, 2}


async def test_a_backfill_from_before_time_began_is_refused(http: httpx.AsyncClient, job: None) -> None:
    await http.post("schedules", json=SCHEDULE | {"scheduleId": "s"})
    asked = {"scheduleId": "s", "from": "0001-01-01T00:00:00Z", "to": "2026-11-10T00:00:00Z"}
    response = await http.post("backfill", json=asked)
    assert (response.status_code, told(response)) == (422, {"from": "Nothing is due before 1900; give a later from."})


async def test_a_calendar_whose_only_day_is_the_last_of_all_leaves_nothing(http: httpx.AsyncClient, job: None) -> None:
    doomsday = {"calendarName": "doomsday", "businessDays": [], "includeDates": ["9999-12-31"]}
    assert (await http.post("calendar", json=doomsday)).status_code == 201
    response = await http.post("schedules", json=SCHEDULE | {"calendarName": "doomsday"})
    assert (response.status_code, [*told(response)]) == (422, ["calendarName"])


@pytest.mark.parametrize("memory", ["0", "1Ki", "15.9Mi"])
async def test_less_memory_than_it_takes_to_start_a_command_is_refused(http: httpx.AsyncClient, memory: str) -> None:
    response = await http.post("job", json=JOB | {"resources": {"memory": memory}})
    sentence = "Give at least 16Mi: what starts the command takes some 11 MB itself."
    assert (response.status_code, told(response)) == (422, {"resources.memory": sentence})
    response = await http.put("declaration", json={"jobs": [JOB | {"resources": {"memory": memory}}]})
    assert (response.status_code, [*told(response).values()]) == (422, [sentence])
    assert (await http.post("job", json=JOB | {"resources": {"memory": "16Mi"}})).status_code == 201


@pytest.mark.parametrize(
    ("body", "field", "begins"),
    [
        (JOB | {"environment": {"1A": "x"}}, "environment.1A", "Use up to 128 letters, digits and underscores"),
        (JOB | {"secretRefs": [{"name": "A", "file": "../b"}]}, "secretRefs[0].file", "Give a file's name alone"),
        (JOB | {"notifications": {"targets": ["a b"]}}, "notifications.targets[0]", "Use up to 63 letters"),
    ],
)
async def test_text_of_a_wrong_form_is_told_of_without_a_pattern(
    http: httpx.AsyncClient, body: Any, field: str, begins: str
) -> None:
    response = await http.post("job", json=body)
    assert response.status_code == 422
    assert told(response)[field].startswith(begins)


async def test_a_change_that_is_only_to_happen_where_nothing_is_is_refused_and_does_not_happen(
    http: httpx.AsyncClient, job: None
) -> None:
    response = await http.put("job", json=JOB | {"command": "other"}, headers={"If-None-Match": "*"})
    assert (response.status_code, [*told(response)]) == (400, ["If-None-Match"])
    assert (await http.get("job")).json()["jobs"][0]["command"] == JOB["command"]
    known = await http.get("job", params=DRAW, headers={"If-None-Match": '"1"'})
    assert (known.status_code, known.headers["etag"]) == (200, '"1"')


async def test_the_first_and_the_last_time_that_can_be_written_are_answered_by_everything_that_takes_times(
    http: httpx.AsyncClient,
) -> None:
    paths = (await http.get("http://127.0.0.1/openapi.json")).json()["paths"]
    first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
    asked = 0
    for path, methods in paths.items():
        names = {each["name"] for each in methods.get("get", {}).get("parameters", [])}
        for query in ({"to": first}, {"from": last}, {"from": first, "to": last}):
            if names >= query.keys() and "text/event-stream" not in str(methods["get"]["responses"]):
                response = await http.get(f"http://127.0.0.1{path}", params=query)
                assert response.status_code in {200, 400}, (path, query, response.text)
                asked += 1
    assert asked >= 12

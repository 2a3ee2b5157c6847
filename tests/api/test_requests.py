"""How any request is read: what is refused, with which status, and what the refusal says."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from clickclock.scheduler.api import create_app
from clickclock.scheduler.engine import Engine
from tests.api.conftest import BASE, JOB, SCHEDULE


async def _refused(http: httpx.AsyncClient, content: bytes, status: int) -> httpx.Response:
    response = await http.post("job", content=content)
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"status", "code", "message", "errors", "requestId"}
    assert body["status"] == "error"
    assert body["message"].endswith(".")
    return response


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no body"),
        (b"   ", "no body"),
        (b'{"jobName": "a",\n  oops}', "line 2, column 3"),
        (b'{"jobName": "a", "jobName": "b"}', "'jobName' twice"),
        (b'{"priority": NaN}', "NaN"),
        (b'{"priority": -Infinity}', "Infinity"),
        (b'{"jobName": "\xff"}', "byte 14"),
        (b"[" * 100_000, "too deeply"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "too deeply"),
        (b'{"priority": ' + b"9" * 5000 + b"}", "too long"),
    ],
)
async def test_a_body_that_is_not_json_is_400_and_says_where(
    http: httpx.AsyncClient, content: bytes, says: str
) -> None:
    response = await _refused(http, content, 400)
    assert response.json()["code"] == "malformed"
    assert says in response.json()["message"]


@pytest.mark.parametrize("content", [b"1", b'"text"', b"null", b"true", b"[1]", b"[[]]", b"[]"])
async def test_json_of_another_shape_is_422(http: httpx.AsyncClient, content: bytes) -> None:
    await _refused(http, content, 422)


async def test_all_faults_of_a_body_are_told_together_and_unknown_names_get_a_suggestion(
    http: httpx.AsyncClient,
) -> None:
    body = {"jobNam": "x", "command": "a | b", "maxRetries": "many", "retryBackoff": {"multiplyer": 2}, "cluster": "x"}
    response = await _refused(http, json.dumps(body).encode(), 422)
    told = {fault["field"]: fault["message"] for fault in response.json()["errors"]}
    assert told["application"] == "This is required; give it."
    assert told["jobNam"] == "There is no such field; did you mean jobName?"
    assert told["maxRetries"] == "Give a whole number."
    assert told["retryBackoff.multiplyer"] == "There is no such field; did you mean multiplier?"
    assert "unquoted |" in told["command"]


async def test_faults_in_an_array_name_their_item(http: httpx.AsyncClient, job: None) -> None:
    items = [
        {**JOB, "jobName": "good"},
        {**JOB, "jobName": "bad\0"},
        {**JOB, "jobName": "b", "command": "a > b", "cluster": "moon"},
    ]
    response = await _refused(http, json.dumps([items[0], items[2]]).encode(), 422)
    assert [fault["field"] for fault in response.json()["errors"]] == ["[1].command", "[1].cluster"]
    response = await _refused(http, json.dumps([items[0], {**items[2], "command": "a"}]).encode(), 422)
    assert [fault["field"] for fault in response.json()["errors"]] == ["[1].cluster"]
    response = await _refused(http, json.dumps(items[:2]).encode(), 422)
    assert [fault["field"] for fault in response.json()["errors"]] == ["[1].jobName"]
    assert len((await http.get("job")).json()["jobs"]) == 1


async def test_each_text_that_nobody_takes_is_named(http: httpx.AsyncClient) -> None:
    wrong = JOB | {"command": "a\0b", "owner": "\ud800", "environment": {"A": "\0", "B\0": "x"}, "labels": {"a": "b"}}
    for body, place in ((wrong, ""), ([JOB | {"jobName": "good"}, wrong], "[1].")):
        response = await _refused(http, json.dumps(body).encode(), 422)
        told = [fault["field"] for fault in response.json()["errors"]]
        assert told == [f"{place}{field}" for field in ("command", "owner", "environment.A", "environment.B")]


async def test_a_fault_in_an_array_of_one_names_its_item_whoever_finds_it(http: httpx.AsyncClient, job: None) -> None:
    for path, item, field in (
        ("job", JOB | {"command": "a > b"}, "[0].command"),
        ("job", JOB, "[0].jobName"),
        ("job", JOB | {"jobName": "b", "groupName": "none"}, "[0].groupName"),
        ("schedules", SCHEDULE | {"jobName": "none"}, "[0].jobName"),
    ):
        response = await http.post(path, json=[item])
        assert [fault["field"] for fault in response.json()["errors"]] == [field]


async def test_a_bad_command_hides_no_other_fault(http: httpx.AsyncClient) -> None:
    wrong = JOB | {"command": "a | b", "cluster": "moon", "notifications": {"targets": ["nobody"]}}
    for more in ({}, {"priority": 101}):
        response = await http.post("job", json=wrong | more)
        told = {fault["field"] for fault in response.json()["errors"]}
        assert told == {"command", "cluster", "notifications.targets", *more}


async def test_text_of_a_wrong_form_is_told_of_in_words(http: httpx.AsyncClient) -> None:
    await http.post("job", json=JOB)
    wrong = {"resources": {"memory": "lots"}, "workingDirectory": "shop"}
    told = (await http.post("job", json=JOB | wrong)).json()["errors"]
    told += (await http.get("jobTrigger", params={"state": "done"})).json()["errors"]
    told += (await http.post("schedules", json=SCHEDULE | {"scheduleId": "a/b"})).json()["errors"]
    call = {"application": JOB["application"], "jobName": JOB["jobName"], "idempotencyKey": "ü"}
    told += (await http.post("jobTrigger", json=call)).json()["errors"]
    told += (await http.post("job", json=JOB | {"timeoutSeconds": 1e9})).json()["errors"]
    assert {each["field"]: each["message"] for each in told} == {
        "resources.memory": "Give bytes as Kubernetes writes them, such as 256Mi or 1G.",
        "workingDirectory": "Give an absolute path, such as /srv/shop.",
        "scheduleId": "Use letters, digits and ._- alone.",
        "idempotencyKey": "Give printable ASCII characters.",
        "timeoutSeconds": "Give a number of at most 31536000.",
        "state": "Give one of queued, starting, running, succeeded, failed, timedOut, cancelled, lost, skipped, "
        "or several with commas between.",
    }


async def test_names_of_upstreams_are_told_as_they_are_and_read_whatever_else_is_wrong(http: httpx.AsyncClient) -> None:
    twice = await http.post("job", json=JOB | {"dependsOn": ["extract", "extract"]})
    assert twice.json()["errors"][0]["message"] == "Give each job once; given twice: shop/extract."
    wrong = await http.post("job", json=JOB | {"application": "", "dependsOn": ["extract"]})
    assert [each["field"] for each in wrong.json()["errors"]] == ["application"]


async def test_a_fault_within_a_list_is_told_of_its_place_there(http: httpx.AsyncClient) -> None:
    response = await http.post("job", json={**JOB, "secretRefs": [{"name": "A"}]})
    assert [fault["field"] for fault in response.json()["errors"]] == ["secretRefs[0]"]


async def test_calendar_faults_are_told_beside_the_others(http: httpx.AsyncClient, job: None) -> None:
    body = {**SCHEDULE, "expression": "61 * * * *", "timeZone": "Europe/Brlin", "jitterSeconds": -1, "nme": 1}
    response = await http.post("schedules", json=body)
    assert response.status_code == 422
    told = {fault["field"] for fault in response.json()["errors"]}
    assert told == {"expression", "timeZone", "jitterSeconds", "nme"}


async def test_a_thousand_faults_are_not_all_told(http: httpx.AsyncClient) -> None:
    response = await _refused(http, json.dumps([{}] * 10_000).encode(), 422)
    assert len(response.json()["errors"]) == 101
    assert response.json()["errors"][-1]["message"] == "And 1400 more; fix these first."


async def test_more_than_ten_thousand_items_are_refused(http: httpx.AsyncClient) -> None:
    response = await _refused(http, json.dumps([{}] * 10_001).encode(), 422)
    assert "10000" in response.json()["errors"][0]["message"]


async def test_a_compressed_body_is_415(http: httpx.AsyncClient) -> None:
    response = await http.post("job", content=b"x", headers={"content-encoding": "gzip"})
    assert (response.status_code, response.json()["code"]) == (415, "unsupportedMediaType")


@pytest.mark.parametrize(
    "given", ["text/plain", "application/json; charset=utf-8", "application/x-www-form-urlencoded"]
)
async def test_a_body_is_json_whatever_its_content_type_says(http: httpx.AsyncClient, given: str) -> None:
    response = await http.post("job", content=json.dumps(JOB), headers={"content-type": given})
    assert response.status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "body", "fields"),
    [
        ("PUT", "job", {**JOB, "environment": {"A": "\ud800"}}, "environment.A"),
        ("PUT", "job", {**JOB, "\udfff": "x"}, ""),
        ("POST", "job", [JOB, {**JOB, "description": "a\ud83d"}], "[1].description"),
        ("POST", "job", {"dependsOn": [{"jobName": "\ud800"}], "owner": "\udfff"}, "dependsOn[0].jobName owner"),
        ("POST", "schedules", {"application": "\ud800", "jobName": "\ud800"}, "application jobName"),
        ("PUT", "declaration", {"calendars": [{"calendarName": "\ud800"}]}, "calendars[0].calendarName"),
        ("POST", "schedules", {"calendarName": "\ud800"}, "calendarName"),
        ("PUT", "schedules", {"scheduleId": "\ud800"}, "scheduleId"),
        ("DELETE", "schedules", {"scheduleId": "\ud800"}, "scheduleId"),
    ],
)
async def test_half_of_a_surrogate_pair_is_422_wherever_it_stands(
    http: httpx.AsyncClient, method: str, path: str, body: object, fields: str
) -> None:
    response = await http.request(method, path, content=json.dumps(body))
    assert response.status_code == 422, response.text
    faults = response.json()["errors"]
    assert " ".join(fault["field"] for fault in faults) == fields
    assert all("surrogate" in fault["message"] for fault in faults)


@pytest.mark.parametrize("path", ["jobTrigger", "jobStat", "schedulePreview"])
async def test_half_of_a_surrogate_pair_as_the_name_of_a_filter_is_400(http: httpx.AsyncClient, path: str) -> None:
    response = await http.get(path, params={"jsonQuery": json.dumps({"\ud800": "x", "jobName": False})})
    assert response.status_code == 400, response.text
    assert any("surrogate" in fault["message"] for fault in response.json()["errors"])


async def test_whole_surrogate_pairs_are_text(http: httpx.AsyncClient) -> None:
    response = await http.post("job", content=json.dumps({**JOB, "environment": {"A": "\U0001f600"}}))
    assert (response.status_code, response.json()["job"]["environment"]) == (201, {"A": "\U0001f600"})


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_is_413_announced_or_not(engine: Engine, announced: bool) -> None:
    pulled = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal pulled
        for _ in range(100):
            pulled += 1
            yield b" " * 100

    app = create_app(engine, body_bytes_max=1024)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as http:
        response = await http.post("job", content=b" " * 10_000 if announced else pieces())
    assert response.status_code == 413
    assert response.json()["code"] == "tooLarge"
    assert "1024" in response.json()["message"]
    assert pulled < 20


@pytest.mark.parametrize(
    ("query", "field", "says"),
    [
        ("aplication=shop", "aplication", "did you mean application?"),
        ("limit=0", "limit", "at least 1"),
        ("limit=1001", "limit", "at most 1000"),
        ("limit=ten", "limit", "whole number"),
        ("enabled=perhaps", "enabled", "true or false"),
        ("jobName=a&jobName=b", "jobName", "twice"),
        ("jsonQuery=%7B", "jsonQuery", "not JSON"),
        ("jsonQuery=[]", "jsonQuery", "JSON object"),
        ("jsonQuery=5", "jsonQuery", "JSON object"),
        ('jsonQuery={"aplication":"x"}', "aplication", "did you mean application?"),
        ('jsonQuery={"application":5}', "application", "text"),
        ('application=a&jsonQuery={"application":"b"}', "application", "different values"),
        ("application=%FF", "", "UTF-8"),
        ("application=%00", "application", "NUL"),
    ],
)
async def test_a_filter_that_cannot_be_is_400_and_says_what_to_do(
    http: httpx.AsyncClient, query: str, field: str, says: str
) -> None:
    response = await http.get(f"job?{query}")
    assert response.status_code == 400, response.text
    (fault,) = response.json()["errors"]
    assert fault["field"] == field
    assert says in fault["message"]


@pytest.mark.parametrize(
    ("path", "query", "fields"),
    [
        ("job", "limit=0&jobName=a&jobName=b&x=1", ["jobName", "limit", "x"]),
        ("job", 'limit=0&application=a&x=1&jsonQuery={"application":"b"}', ["application", "limit", "x"]),
        ("job", "limit=0&x=1&jsonQuery=%7B", ["jsonQuery", "limit", "x"]),
        ("job", "limit=0&jsonQuery=[]", ["jsonQuery", "limit"]),
        ("job", "limit=0&limit=1", ["limit"]),
        ("jobDetail", "application=a&application=b", ["application", "jobName"]),
        ("jobDetail", "application=a&jsonQuery=%7B", ["jsonQuery"]),
        ("jobStat", "jobName=a&jsonQuery=%7B", ["jsonQuery"]),
        ("jobStat", "[x=1&[key]=1", ["", "[x"]),
        ("jobStat", "jobName=a&timeZone=Mars/X&bucket=day&bucket=hour", ["application", "bucket", "timeZone"]),
    ],
)
async def test_what_is_wrong_with_filters_is_told_together(
    http: httpx.AsyncClient, path: str, query: str, fields: list[str]
) -> None:
    response = await http.get(f"{path}?{query}")
    assert response.status_code == 400, response.text
    assert sorted(each["field"] for each in response.json()["errors"]) == fields


async def test_what_is_wrong_with_the_target_of_a_deletion_is_told_together(http: httpx.AsyncClient) -> None:
    target = {"application": 5, "jobName": "b"}
    response = await http.request("DELETE", "job", params={"jobName": "a", "x": "1"}, json=target)
    assert response.status_code == 400, response.text
    assert sorted(each["field"] for each in response.json()["errors"]) == ["application", "jobName", "x"]


async def test_names_in_a_fault_keep_their_case(http: httpx.AsyncClient) -> None:
    (fault,) = (await http.post("job", json=JOB | {"parameters": {"day": "1", "Day": "2"}})).json()["errors"]
    assert fault["message"].startswith("Rename day or Day:")


async def test_a_bound_is_told_with_all_its_digits(http: httpx.AsyncClient) -> None:
    response = await http.get(f"jobLog?triggerId=x&offset={10**17}")
    assert response.json()["errors"] == [{"field": "offset", "message": f"Give a number of at most {2**53}."}]


async def test_filters_may_stand_in_json_query_beside_it_or_in_both(http: httpx.AsyncClient, job: None) -> None:
    for params in (
        {"application": "shop", "enabled": "true"},
        {"jsonQuery": '{"application":"shop","enabled":true}'},
        {"jsonQuery": '{"application":"shop","limit":5}', "application": "shop", "limit": "5"},
    ):
        response = await http.get("job", params=params)
        assert [each["jobName"] for each in response.json()["jobs"]] == ["export"]
    assert (await http.get("job?jsonQuery={}&application=other")).json()["jobs"] == []


async def test_a_list_is_read_page_by_page_and_a_cursor_knows_its_list(http: httpx.AsyncClient) -> None:
    await http.post("job", json=[{**JOB, "jobName": f"job-{number}"} for number in range(5)])
    seen: list[str] = []
    params = {"application": "shop", "limit": "2"}
    while True:
        page = (await http.get("job", params=params)).json()
        seen += [each["jobName"] for each in page["jobs"]]
        if page["nextCursor"] is None:
            break
        params["cursor"] = page["nextCursor"]
    assert seen == [f"job-{number}" for number in range(5)]
    cursor = params["cursor"]
    for wrong in (
        f"job?cursor={cursor}",
        f"group?cursor={cursor}",
        f"job?application=shop&cursor={cursor[:-1]}",
        "job?cursor=nonsense",
        "job?cursor=%C3%A9",
    ):
        response = await http.get(wrong)
        assert response.status_code == 400
        assert response.json()["code"] == "badCursor"


async def test_a_filter_where_there_are_none_is_to_be_left_out(http: httpx.AsyncClient) -> None:
    (fault,) = (await http.get("cluster", params={"x": "1"})).json()["errors"]
    assert fault == {"field": "x", "message": "There is no such filter; leave it out."}


async def test_an_unknown_path_is_404_and_an_unknown_method_405_with_allow(http: httpx.AsyncClient) -> None:
    response = await http.get("jobs")
    assert response.status_code == 404
    assert response.json()["code"] == "unknownPath"
    response = await http.patch("job")
    assert (response.status_code, response.json()["code"]) == (405, "methodNotAllowed")
    assert response.headers["allow"] == "DELETE, GET, HEAD, POST, PUT"
    assert (await http.post("http://127.0.0.1/docs")).status_code == 405


async def test_a_trailing_slash_is_accepted(http: httpx.AsyncClient) -> None:
    assert (await http.get("jobTrigger/")).status_code == 200
    assert (await http.post("job/", json=JOB)).status_code == 201


async def test_head_is_answered_as_get(http: httpx.AsyncClient) -> None:
    assert (await http.head("jobTrigger")).status_code == 200

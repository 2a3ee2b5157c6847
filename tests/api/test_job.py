"""Jobs: created, listed, replaced, deleted; nothing lost between two writers."""

from typing import Any

import httpx
import pytest

from clickclock.scheduler.engine import Engine
from tests.api.conftest import JOB, SCHEDULE


async def test_the_four_fields_make_a_job(http: httpx.AsyncClient) -> None:
    response = await http.post("job", json=JOB)
    assert response.status_code == 201
    assert response.headers["etag"] == '"1"'
    body = response.json()
    assert body["status"] == "success"
    assert JOB.items() <= body["job"].items()
    assert body["job"]["createdAt"] == "2026-11-20T10:00:00.000Z"


async def test_a_job_that_exists_is_409(http: httpx.AsyncClient, job: None) -> None:
    response = await http.post("job", json=JOB)
    assert (response.status_code, response.json()["code"]) == (409, "jobExists")


async def test_an_array_is_all_or_nothing(http: httpx.AsyncClient, job: None) -> None:
    others = [{**JOB, "jobName": "a"}, {**JOB, "jobName": "b"}]
    response = await http.post("job", json=[*others, JOB])
    assert response.status_code == 409
    assert response.json()["errors"][0]["field"] == "[2].jobName"
    response = await http.post("job", json=others)
    assert [each["jobName"] for each in response.json()["jobs"]] == ["a", "b"]
    assert len((await http.get("job")).json()["jobs"]) == 3


async def test_a_cluster_that_is_not_configured_is_422(http: httpx.AsyncClient) -> None:
    response = await http.post("job", json={**JOB, "cluster": "moon"})
    assert response.status_code == 422
    assert response.json()["errors"] == [
        {"field": "cluster", "message": "There is no cluster 'moon' here; known are local."}
    ]


async def test_put_creates_then_replaces_and_takes_back_what_get_gave(http: httpx.AsyncClient) -> None:
    response = await http.put("job", json={**JOB, "maxRetries": 3})
    assert response.status_code == 201
    stored = response.json()["job"]
    response = await http.put("job", json={**stored, "description": "new"})
    assert response.status_code == 200
    assert response.headers["etag"] == '"2"'
    assert response.json()["job"]["maxRetries"] == 3
    response = await http.put("job", json=JOB)
    assert response.json()["job"]["maxRetries"] == 0


@pytest.mark.parametrize(
    ("if_match", "status", "code"),
    [('"1"', 200, None), ("*", 200, None), ('"2"', 409, "staleVersion"), ('"abc"', 409, "staleVersion"),
     ('W/"1"', 409, "staleVersion"), ("1", 400, "malformed"), ('"1", "2"', 400, "malformed")],
)  # fmt: skip
async def test_a_stale_update_is_409_and_nothing_is_lost(
    http: httpx.AsyncClient, job: None, if_match: str, status: int, code: str | None
) -> None:
    changed = {**JOB, "description": "changed"}
    response = await http.put("job", json=changed, headers={"if-match": if_match})
    assert (response.status_code, response.json().get("code")) == (status, code)
    listed = await http.get("job?application=shop&jobName=export")
    assert (listed.json()["jobs"][0]["description"] == "changed") is (status == 200)
    assert listed.headers["etag"] == ('"2"' if status == 200 else '"1"')


async def test_if_match_any_wants_something_to_be_there(http: httpx.AsyncClient) -> None:
    assert (await http.put("job", json=JOB, headers={"if-match": "*"})).status_code == 404
    assert (await http.put("job", json=JOB, headers={"if-match": '"1"'})).status_code == 409


async def test_a_job_goes_with_its_schedules_and_not_while_it_runs(http: httpx.AsyncClient, job: None) -> None:
    await http.post("schedules", json=SCHEDULE)
    trigger = (await http.post("jobTrigger", json={"application": "shop", "jobName": "export"})).json()["trigger"]
    named = {"application": "shop", "jobName": "export"}
    response = await http.delete("job", params=named)
    assert (response.status_code, response.json()["code"]) == (409, "jobIsRunning")
    assert (await http.delete("job", params=named, headers={"if-match": '"9"'})).status_code == 409
    assert (await http.request("DELETE", "job", json={**named, "force": True})).json() == {"status": "success"}
    assert (await http.get("schedules")).json()["schedules"] == []
    listed = (await http.get(f"jobTrigger?triggerId={trigger['triggerId']}")).json()["triggers"]
    assert listed[0]["state"] == "cancelled"
    assert (await http.delete("job", params=named)).status_code == 404


async def test_jobs_are_found_by_every_filter(http: httpx.AsyncClient) -> None:
    await http.post("group", json={"groupName": "exports"})
    await http.post("job", json=[{**JOB, "groupName": "exports"}, {**JOB, "jobName": "other", "enabled": False}])
    for query, names in (
        ("", ["export", "other"]),
        ("application=shop", ["export", "other"]),
        ("application=else", []),
        ("jobName=other", ["other"]),
        ("groupName=exports", ["export"]),
        ("enabled=false", ["other"]),
    ):
        found = (await http.get(f"job?{query}")).json()["jobs"]
        assert [each["jobName"] for each in found] == names


async def test_a_group_that_is_not_there_is_422(http: httpx.AsyncClient) -> None:
    response = await http.post("job", json={**JOB, "groupName": "none"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "groupName"


def named(job_name: str, *depends_on: Any) -> dict[str, Any]:
    return {"application": "shop", "jobName": job_name, "command": "true", "dependsOn": list(depends_on)}


async def test_jobs_that_depend_on_each_other_are_created_together_and_shown_side_by_side(
    http: httpx.AsyncClient,
) -> None:
    assert (await http.post("job", json=[named("load", "extract"), named("extract")])).status_code == 201
    listed = (await http.get("job?jobName=load")).json()["jobs"][0]
    assert listed["dependsOn"] == [{"application": "shop", "jobName": "extract"}]
    assert (await http.put("job", json=listed)).status_code == 200
    details = [
        (await http.get(f"jobDetail?application=shop&jobName={name}")).json()["jobDetail"]
        for name in ("load", "extract")
    ]
    shown = [[each["jobName"] for each in detail[way]] for detail in details for way in ("upstream", "dependents")]
    assert shown == [["extract"], [], [], ["load"]]


async def test_every_upstream_that_cannot_be_is_named_with_its_place(http: httpx.AsyncClient) -> None:
    await http.post("job", json=[named("a"), named("b", "a"), named("c", "b")])
    response = await http.put("job", json={**named("a", "c", "nowhere"), "groupName": "none"})
    assert response.status_code == 422
    faults = {each["field"]: each["message"] for each in response.json()["errors"]}
    assert faults.keys() == {"groupName", "dependsOn", "dependsOn[1]"}
    assert "shop/a → shop/b → shop/c → shop/a" in faults["dependsOn"]
    response = await http.put("job", json=named("a", "a"))
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "dependsOn")


async def test_what_is_not_there_is_named_beside_what_cannot_be_read(http: httpx.AsyncClient, job: None) -> None:
    wrong = {**named("a", JOB["jobName"], "none", {"jobName": 7}, {"application": "x", "jobName": "y"}), "timeout": 1}
    for send in (http.post, http.put):
        response = await send("job", json={**wrong, "groupName": "none"})
        assert (response.status_code, response.json()["code"]) == (422, "invalid")
        assert {each["field"]: each["message"] for each in response.json()["errors"]} == {
            "timeout": "There is no such field; did you mean timeoutSeconds?",
            "groupName": "There is no group 'none'; create it with POST group.",
            "dependsOn[1]": "There is no job shop/none; create it first, or together with this one.",
            "dependsOn[2].jobName": "Give text, in quotes.",
            "dependsOn[3]": "There is no job x/y; create it first, or together with this one.",
        }
    response = await http.post("job", json=[named("b", "c"), {**named("c", "d"), "command": ""}, 7, named("\0", "e")])
    assert "NUL" in response.json()["errors"][0]["message"]
    response = await http.post("job", json=[named("b", "c"), {**named("c", "d"), "command": ""}, 7, named("?", "e")])
    faults = [each["field"] for each in response.json()["errors"]]
    assert sorted(faults) == ["[1].command", "[1].dependsOn[0]", "[2]", "[3].dependsOn[0]", "[3].jobName"]


async def test_a_required_value_that_no_upstream_has_is_named_beside_what_cannot_be_read(
    http: httpx.AsyncClient,
) -> None:
    needs = {**named("b", "a", "z"), "parameters": {"day": None, "zone": "x"}}
    await http.post("job", json=named("z"))
    for wrong in ({}, {"timeoutSeconds": "long"}):
        for body in ([needs | wrong, named("a")], [named("a"), needs | wrong]):
            response = await http.post("job", json=body)
            faults = {each["field"].partition("].")[2] for each in response.json()["errors"]}
            assert (response.status_code, faults) == (422, {"parameters.day", *wrong})
    unreadable = [needs, {**named("a"), "parameters": 7}]
    unread = [each["field"] for each in (await http.post("job", json=unreadable)).json()["errors"]]
    assert unread == ["[1].parameters"]
    good = {**named("a"), "parameters": {"day": "today"}}
    assert (await http.post("job", json=[needs, good])).status_code == 201
    refused = await http.put("job", json=named("a"))
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "parameters")


async def test_a_user_is_refused_until_the_settings_name_it_and_the_cluster_has_it(
    http: httpx.AsyncClient, engine: Engine
) -> None:
    wanted = {**JOB, "user": "no-such-user"}
    (fault,) = (await http.put("job", json=wanted)).json()["errors"]
    assert (fault["field"], "job_users allows none" in fault["message"]) == ("user", True)
    engine.limits = engine.limits._replace(users=("no-such-user",))
    answer = (await http.put("job", json={**wanted, "priority": 101})).json()
    faults = {each["field"]: each["message"] for each in answer["errors"]}
    assert faults.keys() == {"user", "priority"}
    assert faults["user"] == "This machine has no user 'no-such-user'."
    assert (await http.put("job", json={**wanted, "node": "elsewhere"})).status_code == 201
    answer = (await http.put("job", json={**JOB, "user": "a b"})).json()
    assert "by name or number" in answer["errors"][0]["message"]


async def test_a_job_that_others_depend_on_goes_only_by_force(http: httpx.AsyncClient) -> None:
    await http.post("job", json=[named("a"), named("b", "a")])
    target = {"application": "shop", "jobName": "a"}
    response = await http.delete("job", params=target)
    assert (response.status_code, response.json()["code"]) == (409, "jobHasDependents")
    assert response.json()["errors"] == [{"field": "jobName", "message": "shop/b depends on it."}]
    assert (await http.delete("job", params={**target, "force": "true"})).status_code == 200
    detail = (await http.get("jobDetail?application=shop&jobName=b")).json()["jobDetail"]
    assert [each["exists"] for each in detail["upstream"]] == [False]


async def test_a_template_that_does_not_exist_is_refused_where_it_stands(http: httpx.AsyncClient) -> None:
    said = {"application": "shop", "jobName": "x", "command": "true", "parameters": {"day": "1"}}
    said |= {"workingDirectory": "/x/{{ nominaltime }}", "environment": {"A": "{{ parameters.dya }}", "B": "{{ row }}"}}
    answer = await http.post("job", json=said)
    assert answer.status_code == 422
    assert {each["field"]: each["message"] for each in answer.json()["errors"]} == {
        "environment.A": "There is no template {{ parameters.dya }}: did you mean parameters.day.",
        "workingDirectory": "There is no template {{ nominaltime }}: did you mean nominalTime.",
    }


async def test_a_bad_value_of_a_parameter_is_one_fault(http: httpx.AsyncClient) -> None:
    said = {"application": "shop", "jobName": "x", "command": "echo {{ parameters.day }}", "parameters": {"day": 5}}
    answer = await http.post("job", json=said)
    assert [each["field"] for each in answer.json()["errors"]] == ["parameters.day"]


async def test_the_versions_of_a_job_are_told_with_who_made_them_and_how_they_differ(http: httpx.AsyncClient) -> None:
    key = {"application": "shop", "jobName": "told"}
    await http.post("job", json={**key, "command": "echo a", "parameters": {"day": "1"}})
    await http.put("job", json={**key, "command": "echo b", "priority": 70})
    last = (await http.put("job", json={**key, "command": "echo c", "priority": 70})).json()["job"]
    told = (await http.get("jobVersions", params=key)).json()
    versions = told["versions"]
    assert [(each["version"], each["principal"], each["operation"]) for each in versions] == [
        (3, "local", "PUT job"),
        (2, "local", "PUT job"),
        (1, "local", "POST job"),
    ]
    assert versions[0]["definition"] == {**key, "command": "echo c", "priority": 70}
    assert versions[2]["definition"] == {**key, "command": "echo a", "parameters": {"day": "1"}}
    assert (versions[0]["at"], told["hasMore"], "difference" in told) == (last["updatedAt"], False, False)
    compared = (await http.get("jobVersions", params={**key, "from": 1, "limit": 1})).json()
    assert (len(compared["versions"]), compared["hasMore"]) == (1, True)
    assert compared["difference"] == {
        "command": {"before": "echo a", "after": "echo c"},
        "parameters": {"before": {"day": "1"}},
        "priority": {"after": 70},
    }
    refused = (await http.get("jobVersions", params={**key, "from": 9})).json()
    assert refused["errors"] == [{"field": "from", "message": "Version 9 is not known; there are 1 to 3."}]
    assert (await http.get("jobVersions", params={**key, "jobName": "none"})).status_code == 404

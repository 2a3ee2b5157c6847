"""Declarations over HTTP: all that files say, in one call, all or nothing."""

from typing import Any

import httpx
import pytest

from clickclock.foundation.clock import ManualClock

FILE: dict[str, Any] = {
    "application": "shop",
    "groups": [{"groupName": "exports", "maxConcurrentTriggers": 2}],
    "commandPrefixImageMappings": [{"prefix": "python -m etl", "image": "registry.example.com/etl:1.4"}],
    "jobs": [
        {
            "jobName": "export",
            "command": "python export.py",
            "groupName": "exports",
            "schedules": [{"expression": "30 2 * * *", "timeZone": "Europe/Berlin"}],
        },
        {"jobName": "report", "command": "python report.py"},
    ],
    "schedules": [{"jobName": "report", "scheduleName": "noon", "expression": "0 12 * * *"}],
}


async def put(http: httpx.AsyncClient, body: Any, status: int = 200, **terms: Any) -> Any:
    answer = await http.put("declaration", json=body, params=terms)
    assert answer.status_code == status, answer.text
    return answer.json()


async def told(http: httpx.AsyncClient, **filters: Any) -> Any:
    return (await http.get("declaration", params=filters)).json()["declaration"]


def actions(answer: Any) -> list[tuple[str, str, str]]:
    return [(each["action"], each["kind"], each["name"]) for each in answer["alterations"]]


ALL = [
    ("create", "group", "exports"),
    ("create", "commandPrefixImageMapping", "python -m etl"),
    ("create", "job", "shop/export"),
    ("create", "job", "shop/report"),
    ("create", "schedule", "shop/export/default"),
    ("create", "schedule", "shop/report/noon"),
]


async def test_a_declaration_makes_everything_and_then_nothing(http: httpx.AsyncClient) -> None:
    assert actions(await put(http, FILE)) == ALL
    again = await put(http, FILE)
    assert (again["alterations"], again["unchanged"]) == ([], 6)
    schedules = (await http.get("schedules", params={"application": "shop"})).json()["schedules"]
    assert {each["scheduleName"]: each["nextFireAt"] for each in schedules} == {
        "default": "2026-11-21T01:30:00.000Z",
        "noon": "2026-11-20T12:00:00.000Z",
    }


async def test_a_dry_run_tells_the_same_and_leaves_nothing(http: httpx.AsyncClient) -> None:
    assert actions(await put(http, [FILE], dryRun=True)) == ALL
    assert await told(http) == {}


async def test_what_is_told_can_be_sent_back_and_changes_nothing(http: httpx.AsyncClient) -> None:
    await put(http, FILE, set="repo")
    whole = await told(http)
    assert whole["jobs"] == [
        {**job, "application": "shop"} | ({} if job["jobName"] == "export" else {"schedules": [NOON]})
        for job in FILE["jobs"]
    ]
    answer = await put(http, whole, set="repo", prune=True)
    assert (answer["alterations"], answer["unchanged"]) == ([], 6)


NOON = {"scheduleName": "noon", "expression": "0 12 * * *"}


async def test_a_page_of_one_application_has_its_jobs_and_their_groups(http: httpx.AsyncClient) -> None:
    await put(http, [FILE, {"application": "other", "jobs": [{"jobName": "a", "command": "true"}]}])
    await put(http, {"groups": [{"groupName": "unused"}]})
    answer = (await http.get("declaration", params={"application": "shop", "limit": 1})).json()
    assert [each["jobName"] for each in answer["declaration"]["jobs"]] == ["export"]
    assert [each["groupName"] for each in answer["declaration"]["groups"]] == ["exports"]
    rest = (
        await http.get("declaration", params={"application": "shop", "limit": 1, "cursor": answer["nextCursor"]})
    ).json()
    assert rest["declaration"].keys() == {"jobs"}
    assert rest["nextCursor"] is None


async def test_an_update_says_what_was_and_what_will_be(http: httpx.AsyncClient) -> None:
    await put(http, FILE)
    changed = {"application": "shop", "jobs": [{"jobName": "report", "command": "python report.py", "priority": 70}]}
    (told_,) = (await put(http, changed))["alterations"]
    assert told_["before"] == {"application": "shop", "jobName": "report", "command": "python report.py"}
    assert told_["after"] == {**told_["before"], "priority": 70}
    job = (await http.get("job", params={"application": "shop", "jobName": "report"})).json()["jobs"][0]
    assert (job["priority"], job["version"]) == (70, 2)


async def test_a_switch_turned_by_hand_stays_where_the_files_do_not_say_it(http: httpx.AsyncClient) -> None:
    await put(http, FILE)
    schedule = (await http.get("schedules", params={"scheduleName": "noon"})).json()["schedules"][0]
    await http.put("schedules", json={"scheduleId": schedule["scheduleId"], "paused": True, "pauseReason": "Stock."})
    assert (await put(http, FILE))["alterations"] == []
    moved = {**FILE, "schedules": [{**FILE["schedules"][0], "expression": "0 13 * * *"}]}
    assert actions(await put(http, moved)) == [("update", "schedule", "shop/report/noon")]
    schedule = (await http.get("schedules", params={"scheduleName": "noon"})).json()["schedules"][0]
    assert (schedule["paused"], schedule["pauseReason"]) == (True, "Stock.")
    said = {**moved, "schedules": [{**moved["schedules"][0], "paused": False}]}
    await put(http, said)
    schedule = (await http.get("schedules", params={"scheduleName": "noon"})).json()["schedules"][0]
    assert schedule["paused"] is False


async def test_nothing_that_is_past_fires_when_times_change(http: httpx.AsyncClient, clock: ManualClock) -> None:
    await put(http, FILE)
    clock.advance(3600 * 5)
    await put(http, {**FILE, "schedules": [{**FILE["schedules"][0], "expression": "0 11 * * *"}]})
    schedule = (await http.get("schedules", params={"scheduleName": "noon"})).json()["schedules"][0]
    assert schedule["nextFireAt"] == "2026-11-21T11:00:00.000Z"


async def test_pruning_takes_what_the_set_made_and_nothing_else(http: httpx.AsyncClient) -> None:
    await http.post("job", json={"application": "shop", "jobName": "by-hand", "command": "true"})
    await put(http, FILE, set="repo")
    await put(http, {"application": "shop", "jobs": [{"jobName": "theirs", "command": "true"}]}, set="other")
    less = {"application": "shop", "jobs": [FILE["jobs"][1]]}
    answer = await put(http, less, set="repo", prune=True)
    assert actions(answer) == [
        ("delete", "schedule", "shop/export/default"),
        ("delete", "schedule", "shop/report/noon"),
        ("delete", "job", "shop/export"),
        ("delete", "commandPrefixImageMapping", "python -m etl"),
        ("delete", "group", "exports"),
    ]
    jobs = (await http.get("job")).json()["jobs"]
    assert [each["jobName"] for each in jobs] == ["by-hand", "report", "theirs"]
    assert (await put(http, less, set="repo", prune=True))["alterations"] == []


async def test_an_application_is_not_emptied_unless_that_is_said(http: httpx.AsyncClient) -> None:
    await put(http, FILE, set="repo")
    answer = await put(http, [], 409, set="repo", prune=True)
    assert answer["code"] == "wouldEmpty"
    assert answer["errors"][0]["message"].startswith("All jobs of 'shop' in this set (2) would be deleted")
    assert len((await put(http, [], set="repo", prune=True, allowEmpty=True))["alterations"]) == 6
    assert await told(http) == {}


async def test_pruning_without_a_set_is_refused(http: httpx.AsyncClient) -> None:
    answer = await put(http, FILE, 400, prune=True)
    assert [each["field"] for each in answer["errors"]] == ["set"]


async def test_what_another_set_holds_is_taken_over_only_when_that_is_said(http: httpx.AsyncClient) -> None:
    await put(http, FILE, set="repo")
    answer = await put(http, FILE, 409, set="other")
    assert answer["code"] == "heldElsewhere"
    assert answer["errors"][2] == {"field": "jobs[0]", "message": "The set 'repo' holds the job shop/export."}
    assert len((await put(http, FILE, set="other", adopt=True))["alterations"]) == 6
    # Without a set, what is there is changed and stays whose it is.
    assert (await put(http, FILE))["alterations"] == []


async def test_a_job_in_use_is_not_pruned_unless_forced(http: httpx.AsyncClient) -> None:
    await put(http, FILE, set="repo")
    await http.post("jobTrigger", json={"application": "shop", "jobName": "report"})
    await http.post("schedules", json={"application": "shop", "jobName": "export", "expression": "* * * * *"})
    less = {"groups": FILE["groups"]}
    answer = await put(http, less, 409, set="repo", prune=True, allowEmpty=True)
    assert answer["code"] == "jobIsRunning"
    assert len(answer["errors"]) == 2
    await put(http, less, set="repo", prune=True, allowEmpty=True, force=True)
    assert (await http.get("job")).json()["jobs"] == []


async def test_all_faults_are_told_together_by_their_places_and_nothing_is_applied(http: httpx.AsyncClient) -> None:
    wrong: dict[str, Any] = {
        "application": "shop",
        "job": [],
        "groups": [{"groupName": "imports", "maxConcurrentTriggers": 0}],
        "jobs": [
            {"jobName": "fine", "command": "true"},
            {"jobName": "wrong", "comand": "true", "command": 1},
            {"jobName": "other", "command": "true", "managedBy": "me", "schedules": [{"expression": "61 * * * *"}]},
            "export",
            {"jobName": "a", "command": "true", "schedules": [{"expression": "* * * * *"}, {"expression": "@daily"}]},
        ],
        "schedules": {"expression": "@daily"},
    }
    answer = await put(http, [FILE, wrong], 422)
    told_ = {each["field"]: each["message"] for each in answer["errors"]}
    assert told_.pop("[1].jobs[2].schedules[0].expression").startswith('The minute field "61"')
    assert told_ == {
        "[1].job": "There is no such field; did you mean jobs?",
        "[1].groups[0].maxConcurrentTriggers": "Give a number of at least 1.",
        "[1].jobs[1].comand": "There is no such field; did you mean command?",
        "[1].jobs[1].command": "Give text, in quotes.",
        "[1].jobs[2].managedBy": "The service sets this; leave it out.",
        "[1].jobs[3]": "Give an object.",
        "[1].schedules": "Give an array.",
        **{
            f"[1].jobs[4].schedules[{number}]": "The schedule shop/a/default is given 2 times; give it once."
            for number in (0, 1)
        },
    }
    assert await told(http) == {}


@pytest.mark.parametrize(
    ("body", "field", "part"),
    [
        (
            {"jobs": [{"application": "a", "jobName": "j", "command": "true", "groupName": "g"}]},
            "jobs[0].groupName",
            "g",
        ),
        (
            [{}, {"schedules": [{"application": "a", "jobName": "j", "expression": "@daily"}]}],
            "[1].schedules[0].jobName",
            "There is no job a/j",
        ),
        (
            {
                "application": "a",
                "jobs": [
                    {
                        "jobName": "j",
                        "command": "true",
                        "schedules": [{"kind": "once", "expression": "2020-01-01T00:00:00Z"}],
                    }
                ],
            },
            "jobs[0].schedules[0].expression",
            "never due",
        ),
        (
            {
                "application": "a",
                "jobs": [
                    {
                        "jobName": "j",
                        "command": "true",
                        "schedules": [{"expression": "@daily", "parameters": {"day": "x"}}],
                    }
                ],
            },
            "jobs[0].schedules[0].parameters.day",
            "day",
        ),
    ],
)
@pytest.mark.parametrize("dry_run", [True, False])
async def test_what_fits_nothing_that_is_there_is_refused_at_its_place(
    http: httpx.AsyncClient, body: Any, field: str, part: str, dry_run: bool
) -> None:
    answer = await put(http, body, 422, dryRun=dry_run)
    assert [each["field"] for each in answer["errors"]] == [field]
    assert part in answer["errors"][0]["message"]
    assert await told(http) == {}


async def test_calendars_and_parameters_that_are_not_there_are_told_beside_what_else_is_wrong(
    http: httpx.AsyncClient,
) -> None:
    await put(http, {"application": "shop", "jobs": [{"jobName": "there", "command": "true"}]})
    noon = {"jobName": "there", "expression": "@daily"}
    wrong: dict[str, Any] = {
        "application": "shop",
        "calendars": [{"calendarName": "ours"}],
        "jobs": [{"jobName": "new", "command": 1, "schedules": [{"expression": "@daily", "calendarName": "none"}]}],
        "schedules": [
            {**noon, "scheduleName": "a", "calendarName": "none", "parameters": {"day": "1"}},
            {**noon, "scheduleName": "b", "calendarName": "ours"},
        ],
    }
    assert sorted(each["field"] for each in (await put(http, wrong, 422))["errors"]) == [
        "jobs[0].command",
        "jobs[0].schedules[0].calendarName",
        "schedules[0].calendarName",
        "schedules[0].parameters.day",
    ]


async def test_faults_that_only_the_store_sees_are_told_together_at_their_places(http: httpx.AsyncClient) -> None:
    await put(http, {"application": "shop", "jobs": [{"jobName": "there", "command": "true"}]})
    once = {"kind": "once", "expression": "2020-01-01T00:00:00Z", "calendarName": "none"}
    wrong: dict[str, Any] = {
        "application": "shop",
        "jobs": [
            {"jobName": "a", "command": "true", "dependsOn": ["b"]},
            {"jobName": "b", "command": "true", "dependsOn": ["a", "gone"]},
            {"jobName": "c", "command": "true", "dependsOn": ["d"], "groupName": "none"},
            {"jobName": "d", "command": "true", "dependsOn": ["c"], "schedules": [once]},
            {"jobName": "e", "command": "true", "parameters": {"day": None}, "schedules": [{"expression": "@daily"}]},
        ],
        "schedules": [
            {"jobName": "there", "scheduleName": "x", "expression": "@daily", "parameters": {"day": "1"}},
            {"jobName": "there", "scheduleName": "y", "kind": "once", "expression": "2020-01-01T00:00:00Z"},
        ],
    }
    for dry_run in (True, False):
        answer = await put(http, wrong, 422, dryRun=dry_run)
        assert sorted(each["field"] for each in answer["errors"]) == [
            "jobs[0].dependsOn",
            "jobs[1].dependsOn[1]",
            "jobs[2].dependsOn",
            "jobs[2].groupName",
            "jobs[3].schedules[0].calendarName",
            "jobs[4].schedules[0].parameters.day",
            "schedules[0].parameters.day",
            "schedules[1].expression",
        ]
    assert [each["jobName"] for each in (await told(http))["jobs"]] == ["there"]


async def test_a_chains_required_parameters_fit_in_any_order_and_after_every_change(http: httpx.AsyncClient) -> None:
    below = {"jobName": "below", "command": "true", "dependsOn": ["above"], "parameters": {"day": None}}
    above = {"jobName": "above", "command": "true"}
    declares = {**above, "parameters": {"day": None}}
    for jobs, place in (([below, above], 0), ([above, below], 1)):
        answer = await put(http, {"application": "shop", "jobs": jobs}, 422)
        assert [each["field"] for each in answer["errors"]] == [f"jobs[{place}].parameters.day"]
    await put(http, {"application": "shop", "jobs": [below, declares]}, set="repo")
    answer = await put(http, {"application": "shop", "jobs": [above]}, 422, set="repo")
    assert [each["field"] for each in answer["errors"]] == ["jobs[0].parameters"]
    default = {**below, "parameters": {"day": "today"}}
    await put(http, {"application": "shop", "jobs": [above, default]}, set="repo")
    await put(http, {"application": "shop", "jobs": [declares, below]}, set="repo")
    await put(http, {"application": "shop", "jobs": [above]}, set="repo", prune=True)
    assert [each["jobName"] for each in (await told(http))["jobs"]] == ["above"]


async def test_what_is_not_there_is_named_beside_what_cannot_be_read(http: httpx.AsyncClient) -> None:
    wrong: dict[str, Any] = {
        "application": "shop",
        "groups": [{"groupName": "here", "maxConcurrentTriggers": 0}, {"groupName": ["x"]}],
        "jobs": [
            {"jobName": "a", "command": "true", "groupName": "here", "dependsOn": ["b", "c"]},
            {"jobName": "b", "command": 1, "groupName": "none"},
        ],
        "schedules": [{"jobName": "b", "expression": "@daily"}, {"jobName": "none", "expression": "@daily"}],
    }
    answer = await put(http, wrong, 422)
    assert sorted(each["field"] for each in answer["errors"]) == [
        "groups[0].maxConcurrentTriggers",
        "groups[1].groupName",
        "jobs[0].dependsOn[1]",
        "jobs[1].command",
        "jobs[1].groupName",
        "schedules[1].jobName",
    ]


async def test_an_applications_defaults_are_declared_with_its_jobs_and_told_with_them(http: httpx.AsyncClient) -> None:
    ours: dict[str, Any] = {"application": "shop", "notifications": {"targets": ["ops"], "on": ["failure"]}}
    file = {**FILE, "applications": [{"notifications": ours["notifications"]}]}
    assert ("create", "application", "shop") in actions(await put(http, file, set="repo"))
    kept = (await http.get("application")).json()["applications"]
    assert kept == [ours | {"notifications": ours["notifications"] | {"longRunSeconds": None}, "managedBy": "repo"}]
    assert (await told(http, application="shop"))["applications"] == [ours]
    assert "applications" not in await told(http, application="other")
    assert (await put(http, await told(http), set="repo", prune=True))["alterations"] == []
    await http.put("application", json={"application": "shop"})
    assert actions(await put(http, file, set="repo")) == [("update", "application", "shop")]
    assert actions(await put(http, FILE, set="repo", prune=True)) == [("delete", "application", "shop")]
    assert (await http.get("application")).json()["applications"] == []


async def test_a_target_that_is_not_configured_is_refused_in_files_as_everywhere(http: httpx.AsyncClient) -> None:
    told_of: dict[str, Any] = {"notifications": {"targets": ["nobody"]}}
    body = {
        "application": "a",
        "groups": [{"groupName": "g", "defaults": told_of}],
        "applications": [told_of],
        "jobs": [{"jobName": "j", "command": "true", **told_of}],
    }
    answer = await put(http, body, 422)
    assert [each["field"] for each in answer["errors"]] == [
        "groups[0].defaults.notifications.targets",
        "applications[0].notifications.targets",
        "jobs[0].notifications.targets",
    ]


async def test_an_id_given_to_several_schedules_is_told_at_each(http: httpx.AsyncClient) -> None:
    several = [{"scheduleName": name, "scheduleId": "s", "expression": "@daily"} for name in ("a", "b")]
    body = {"application": "x", "jobs": [{"jobName": "j", "command": "true", "schedules": several}]}
    response = await http.put("declaration", json=body)
    assert response.status_code == 422
    assert response.json()["errors"] == [
        {
            "field": f"jobs[0].schedules[{number}].scheduleId",
            "message": "The id 's' is given 2 times; give each schedule its own.",
        }
        for number in range(2)
    ]


async def test_a_chosen_id_stays_with_its_schedule(http: httpx.AsyncClient) -> None:
    body: dict[str, Any] = {
        "application": "a",
        "jobs": [{"jobName": "j", "command": "true", "schedules": [{"scheduleId": "s", "expression": "@daily"}]}],
    }
    await put(http, body)
    assert await told(http) == {"jobs": [{"application": "a", **body["jobs"][0]}]}
    assert (await put(http, body))["alterations"] == []
    body["jobs"][0]["schedules"][0]["scheduleId"] = "t"
    answer = await put(http, body, 422)
    assert [each["field"] for each in answer["errors"]] == ["jobs[0].schedules[0].scheduleId"]
    body["jobs"][0]["schedules"][0] |= {"scheduleId": "s", "scheduleName": "other"}
    answer = await put(http, body, 422)
    assert "a/j/default" in answer["errors"][0]["message"]


async def test_defaults_spelled_out_count_only_where_they_win_over_a_groups(http: httpx.AsyncClient) -> None:
    plain = {"application": "a", "jobName": "j", "command": "true"}
    await put(http, {"groups": [{"groupName": "g", "defaults": {"priority": 70}}], "jobs": [plain]})
    assert (await put(http, {"jobs": [plain | {"priority": 50, "maxRetries": 0}]}))["alterations"] == []
    grouped = plain | {"groupName": "g"}
    assert len((await put(http, {"jobs": [grouped]}))["alterations"]) == 1
    assert len((await put(http, {"jobs": [grouped | {"priority": 50}]}))["alterations"]) == 1
    assert (await told(http))["jobs"] == [grouped | {"priority": 50}]

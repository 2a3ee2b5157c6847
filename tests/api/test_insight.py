"""What is there to see: groups and mappings, statistics, one job's detail, the installation, previews."""

from datetime import timedelta

import httpx
import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.engine import Engine
from tests.api.conftest import JOB, SCHEDULE
from tests.stores import LEASE, claim, ended, finish, queue

CALL = {"application": "shop", "jobName": "export"}


async def test_a_group_is_created_replaced_counted_and_deleted(http: httpx.AsyncClient) -> None:
    response = await http.post("group", json={"groupName": "exports", "maxConcurrentTriggers": 2})
    assert (response.status_code, response.headers["etag"]) == (201, '"1"')
    response = await http.post("group", json={"groupName": "exports"})
    assert (response.status_code, response.json()["code"]) == (409, "groupExists")
    await http.post("job", json={**JOB, "groupName": "exports"})
    await http.post("jobTrigger", json=CALL)
    (group,) = (await http.get("group?groupName=exports")).json()["groups"]
    assert (group["jobs"], group["queued"], group["running"]) == (1, 1, 0)
    response = await http.put("group", json={**group, "paused": True}, headers={"if-match": '"1"'})
    assert (response.status_code, response.json()["group"]["paused"]) == (200, True)
    stale = await http.put("group", json={"groupName": "exports"}, headers={"if-match": '"1"'})
    assert (stale.status_code, stale.json()["code"]) == (409, "staleVersion")
    assert len((await http.get("group?paused=true")).json()["groups"]) == 1
    response = await http.delete("group?groupName=exports")
    assert (response.status_code, response.json()["code"]) == (409, "groupInUse")
    assert (await http.put("group", json={"groupName": "new"})).status_code == 201
    assert (await http.put("group", json={"groupName": "newer"}, headers={"if-match": "*"})).status_code == 404
    assert (await http.delete("group?groupName=new")).json() == {"status": "success"}
    assert (await http.delete("group?groupName=new")).json()["code"] == "groupNotFound"


async def test_the_mapping_says_which_image_a_command_gets_and_why(http: httpx.AsyncClient) -> None:
    for prefix, image in (("python", "python:3.13"), ("python -m etl", "etl:1")):
        response = await http.post("commandPrefixImageMapping", json={"prefix": prefix, "image": image})
        assert response.json()["commandPrefixImageMapping"]["prefix"] == prefix
    body = (await http.get("commandPrefixImageMapping", params={"command": "python -m etl load"})).json()
    assert body["choice"]["image"] == "etl:1"
    assert "`python -m etl`" in body["choice"]["reason"]
    assert [each["prefix"] for each in body["commandPrefixImageMappings"]] == ["python", "python -m etl"]
    assert (await http.get("commandPrefixImageMapping?command=python3")).json()["choice"]["image"] is None
    assert (await http.get("commandPrefixImageMapping", params={"command": "a | b"})).status_code == 422
    for tried in ({"command": "python a | b", "shell": "true"}, {"command": "python --day {{ parameters.day }}"}):
        choice = (await http.get("commandPrefixImageMapping", params=tried)).json()["choice"]
        assert choice["image"] == "python:3.13", "a job can have such a command"
    found = (await http.get("commandPrefixImageMapping", params={"prefix": "python   '-m' etl"})).json()
    assert [each["image"] for each in found["commandPrefixImageMappings"]] == ["etl:1"], "the same words"
    page = (await http.get("commandPrefixImageMapping?limit=1")).json()
    rest = (await http.get("commandPrefixImageMapping", params={"limit": 1, "cursor": page["nextCursor"]})).json()
    assert [each["prefix"] for each in rest["commandPrefixImageMappings"]] == ["python -m etl"]
    response = await http.post("commandPrefixImageMapping", json={"prefix": " python ", "image": "x"})
    assert (response.status_code, response.json()["code"]) == (409, "commandPrefixImageMappingExists")
    assert (await http.put("commandPrefixImageMapping", json={"prefix": "python", "image": "x"})).status_code == 200
    assert (await http.put("commandPrefixImageMapping", json={"prefix": "perl", "image": "x"})).status_code == 201
    assert (await http.delete("commandPrefixImageMapping", params={"prefix": " 'perl' "})).status_code == 200
    assert (await http.delete("commandPrefixImageMapping?prefix=perl")).status_code == 404


async def test_statistics_count_what_ended_by_day_and_hour(
    http: httpx.AsyncClient, job: None, clock: ManualClock
) -> None:
    for _ in range(3):
        trigger = (await http.post("jobTrigger", json=CALL)).json()["trigger"]
        await http.delete("jobTrigger", params={"triggerId": trigger["triggerId"]})
        clock.advance(3600)
    await http.post("jobTrigger", json=CALL)
    stat = (await http.get("jobStat", params=CALL)).json()["jobStat"]
    assert (stat["totalTriggers"], stat["cancelled"], stat["queued"], stat["currentStreak"]) == (3, 3, 1, None)
    assert [each["from"] for each in stat["buckets"]] == ["2026-11-20T00:00:00.000Z"]
    assert (stat["from"], stat["to"]) == ("2026-11-13T13:00:00.000Z", "2026-11-20T13:00:00.000Z")
    hours = {**CALL, "bucket": "hour", "from": "2026-11-20T11:00:00Z"}
    stat = (await http.get("jobStat", params=hours)).json()["jobStat"]
    assert [each["cancelled"] for each in stat["buckets"]] == [1, 1]
    assert (await http.get("jobStat")).json()["jobStat"]["totalTriggers"] == 3


async def test_a_window_may_begin_and_end_within_an_hour_and_a_day_is_one_of_the_callers_zone(
    http: httpx.AsyncClient, job: None, clock: ManualClock
) -> None:
    for _ in range(8):  # at 10:00, 10:20, …, 12:20
        trigger = (await http.post("jobTrigger", json=CALL)).json()["trigger"]
        await http.delete("jobTrigger", params={"triggerId": trigger["triggerId"]})
        clock.advance(1200)
    window = {**CALL, "from": "2026-11-20T10:20:00Z", "to": "2026-11-20T12:20:00Z"}
    stat = (await http.get("jobStat", params={**window, "bucket": "hour"})).json()["jobStat"]
    assert (stat["cancelled"], stat["undividedHours"]) == (6, 0)
    assert (stat["from"], stat["to"]) == ("2026-11-20T10:20:00.000Z", "2026-11-20T12:20:00.000Z")
    assert [each["cancelled"] for each in stat["buckets"]] == [2, 3, 1]
    # Midnight on the Chatham Islands.
    stat = (await http.get("jobStat", params={**CALL, "timeZone": "Pacific/Chatham"})).json()["jobStat"]
    assert [(each["from"], each["to"], each["cancelled"]) for each in stat["buckets"]] == [
        ("2026-11-19T10:15:00.000Z", "2026-11-20T10:15:00.000Z", 1),
        ("2026-11-20T10:15:00.000Z", "2026-11-21T10:15:00.000Z", 7),
    ]


async def test_the_ten_slowest_and_latest_and_the_ranking_name_triggers_and_jobs(
    http: httpx.AsyncClient, engine: Engine, clock: ManualClock
) -> None:
    store = engine.store
    jobs = [{**JOB, "jobName": name} for name in ("good", "bad")]
    assert (await http.post("job", json=jobs)).status_code == 201
    ids = {}
    for second, name in enumerate(["good", "bad", "good", "bad"]):
        now = clock.now() + timedelta(seconds=10 * second)
        ids[second] = await queue(store, name, now)
        (launch,) = (await claim(store, now + timedelta(seconds=second))).launches
        end = ended(now + timedelta(seconds=3 * second + 1), code=int(name == "bad" and second > 1))
        await store.queue.mark_running(LEASE, [(launch.name, "n", now + timedelta(seconds=second))])
        await finish(store, launch.name, end)
    clock.advance(60)
    stat = (await http.get("jobStat", params={"application": "shop", "rank": "failing"})).json()["jobStat"]
    assert [each["triggerId"] for each in stat["slowest"]] == [ids[3], ids[2], ids[1], ids[0]]
    assert [each["durationMs"] for each in stat["slowest"]] == [7000, 5000, 3000, 1000]
    assert [each["lagMs"] for each in stat["latest"]] == [3000, 2000, 1000, 0]
    assert (stat["slowest"][0]["jobName"], stat["slowest"][0]["state"]) == ("bad", "failed")
    assert stat["slowest"][0]["finishedAt"] > stat["slowest"][0]["startedAt"] > stat["slowest"][0]["dueTime"]
    assert [(each["jobName"], each["failed"], each["flips"], each["flakiness"]) for each in stat["jobs"]] == [
        ("bad", 1, 1, 0.5)
    ]
    assert (stat["flips"], stat["flakiness"]) == (1, 0.25)
    await store.triggers.prune(list(ids.values()), clock.now() - timedelta(days=1))
    stat = (await http.get("jobStat", params={"application": "shop"})).json()["jobStat"]
    assert stat["jobs"] is None
    gone = stat["slowest"][0]
    assert (gone["triggerId"], gone["jobName"], gone["durationMs"]) == (ids[3], "bad", 7000)
    assert (gone["state"], gone["lagMs"], gone["finishedAt"]) == (None, None, None)


async def test_all_that_is_wrong_with_a_question_is_told_together(http: httpx.AsyncClient, job: None) -> None:
    async def faults(**query: str) -> dict[str, str]:
        response = await http.get("jobStat", params=query)
        assert response.status_code == 400, response.text
        return {each["field"]: each["message"] for each in response.json()["errors"]}

    told = await faults(
        jobName="export", rank="worst", timeZone="Europe/Berlim", bucket="week", limit="0",
        **{"from": "2026-11-20T00:00:00Z", "to": "2026-11-19T00:00:00Z"},
    )  # fmt: skip
    assert set(told) == {"application", "rank", "timeZone", "bucket", "limit", "to"}
    assert 'did you mean "Europe/Berlin"?' in told["timeZone"]
    assert "'slowest', 'latest', 'flaky' or 'failing'" in told["rank"]
    assert "not after from" in told["to"]
    told = await faults(**{"from": "2025-01-01T00:00:00Z", "to": "2025-02-01T00:00:00Z"}, timeZone="x")
    assert set(told) == {"from", "to", "timeZone"}
    assert told["from"] == "Statistics are kept for 400 days; give a time after 2025-10-16T10:00:00.000Z."
    assert set(await faults(**CALL, rank="flaky")) == {"rank"}
    assert "at most 92 days" in (await faults(bucket="hour", **{"from": "2026-01-01T00:00:00Z"}))["to"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("application=shop&jobName=none", 404),
        ("groupName=none", 404),
        ("application=none", 200),
        ("jobName=export", 400),
        ("from=2026-11-21T00:00:00Z", 400),
        ("bucket=week", 400),
        ("bucket=hour&from=2026-01-01T00:00:00Z", 400),
        ("from=2026-01-01T00:00:00Z", 200),
        ("from=2026-01-01", 400),
        ("from=0001-01-01T00:00:00Z", 400),
        ("to=0001-01-01T00:00:00Z", 400),
        ("from=0001-01-01T00:00:00%2B14:00", 400),
        ("to=9999-12-31T23:59:59-12:00", 400),
        ("from=9999-12-31T00:00:00Z&to=9999-12-31T20:00:00Z&timeZone=Asia/Kathmandu", 200),
    ],
)
async def test_statistics_of_nothing(http: httpx.AsyncClient, job: None, query: str, status: int) -> None:
    response = await http.get(f"jobStat?{query}")
    assert response.status_code == status, response.text


async def test_one_jobs_detail_has_all_there_is(http: httpx.AsyncClient, job: None) -> None:
    await http.post("commandPrefixImageMapping", json={"prefix": "python", "image": "python:3.13"})
    await http.post("schedules", json=SCHEDULE)
    trigger = (await http.post("jobTrigger", json=CALL)).json()["trigger"]
    response = await http.get("jobDetail", params=CALL)
    assert (response.status_code, response.headers["etag"]) == (200, '"1"')
    detail = response.json()["jobDetail"]
    assert detail["command"]["argv"] == ["python", "export.py"]
    assert detail["command"]["image"]["image"] == "python:3.13"
    assert detail["command"]["cluster"] == "local"
    assert [each["time"] for each in detail["schedules"][0]["nextTimes"]][:2] == [
        "2026-11-21T01:30:00.000Z",
        "2026-11-22T01:30:00.000Z",
    ]
    assert len(detail["schedules"][0]["nextTimes"]) == 5
    assert [each["triggerId"] for each in detail["recent"]] == [trigger["triggerId"]]
    assert (detail["running"], detail["lastSuccess"], detail["lastFailure"]) == ([], None, None)
    assert (await http.get("jobDetail", params={**CALL, "jobName": "none"})).json()["code"] == "jobNotFound"
    assert (await http.get("jobDetail?application=shop")).status_code == 400


async def test_the_installation_tells_who_serves_and_that_all_is_well(
    http: httpx.AsyncClient, engine: Engine, job: None
) -> None:
    await engine.beat()
    await http.post("jobTrigger", json=CALL)
    cluster = (await http.get("cluster")).json()["cluster"]
    (replica,) = cluster["replicas"]
    assert (replica["replicaId"], replica["version"]) == (engine.replica_id, "0.1.0")
    assert {loop["name"] for loop in replica["loops"]} >= {"planner", "dispatcher", "watcher", "rescuer"}
    (local,) = cluster["clusters"]
    assert (local["cluster"], local["executor"], local["capacity"], local["queued"]) == ("local", "process", 10, 1)
    assert (local["reachable"], local["message"]) == (False, "The executor is not open.")
    assert cluster["store"]["kind"] == "sqlite"
    assert cluster["totals"] == {"jobs": 1, "schedules": 0, "queued": 1, "running": 0}
    assert cluster["invariants"] == {"overdueSchedules": 0, "stuckAttempts": 0}


async def test_a_schedule_that_should_have_fired_shows(http: httpx.AsyncClient, clock: ManualClock, job: None) -> None:
    await http.post("schedules", json=SCHEDULE)
    clock.advance(timedelta(days=1).total_seconds())
    cluster = (await http.get("cluster")).json()["cluster"]
    assert cluster["invariants"]["overdueSchedules"] == 1
    (found,) = [each for each in cluster["findings"] if each["code"] == "overdueSchedules"]
    assert (found["severity"], found["count"], len(found["ids"])) == ("fail", 1, 1)
    assert found["message"] in cluster["problems"]
    assert "planner" in found["remedy"]


async def test_metrics_tell_of_every_finding_once_the_scanner_has_looked(
    http: httpx.AsyncClient, engine: Engine, clock: ManualClock, job: None
) -> None:
    await http.post("schedules", json=SCHEDULE)
    before = await http.get("http://127.0.0.1/metrics")
    assert "clickclock_findings{" not in before.text
    assert 'clickclock_loop_overdue_seconds{loop="planner"}' in before.text
    await engine.scanner.step()
    clock.advance(timedelta(days=1).total_seconds())
    await engine.scanner.step()
    response = await http.get("http://127.0.0.1/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'clickclock_findings{code="overdueSchedules",severity="fail"} 1\n' in response.text
    assert 'clickclock_findings{code="stuckAttempts",severity="fail"} 0\n' in response.text
    assert f"clickclock_scan_timestamp_seconds {clock.now().timestamp():.0f}" in response.text
    assert (await http.post("http://127.0.0.1/metrics")).status_code == 405


async def test_a_preview_says_what_daylight_saving_does(http: httpx.AsyncClient) -> None:
    params = {"expression": "30 2 * * *", "timeZone": "Europe/Berlin", "from": "2026-03-28T00:00:00Z", "count": "2"}
    payload = (await http.get("schedulePreview", params=params)).json()
    first, second = payload["times"]
    assert payload["reading"] == []
    assert first == {
        "time": "2026-03-28T01:30:00.000Z",
        "localTime": "2026-03-28T02:30:00+01:00",
        "note": None,
        "skipReason": None,
    }
    assert second["localTime"] == "2026-03-29T03:00:00+02:00"
    assert "does not exist" in second["note"]
    skipped = (await http.get("schedulePreview", params={**params, "dstGapPolicy": "skip"})).json()["times"][1]
    assert skipped["skipReason"] == "dstGap"


async def test_a_preview_takes_every_field_that_says_when(http: httpx.AsyncClient) -> None:
    params = {"kind": "interval", "expression": "PT6H", "startAt": "2026-12-24T00:00:00Z", "count": "1000",
              "endAt": "2026-12-26T00:00:00Z", "excludeDates": "2026-12-25"}  # fmt: skip
    times = (await http.get("schedulePreview", params=params)).json()["times"]
    assert [each["skipReason"] for each in times] == [None] * 4 + ["excluded"] * 4 + [None]
    query = '{"expression":"0 0 * * *","count":3,"excludeDates":["2026-11-21","2026-11-22"]}'
    times = (await http.get("schedulePreview", params={"jsonQuery": query})).json()["times"]
    assert [each["skipReason"] for each in times] == ["excluded", "excluded", None]


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("", 400, "expression"),
        ("expression=0 0 * *", 422, "expression"),
        ("expression=0 0 * * *&timeZone=Mars/Olympus", 422, "timeZone"),
        ("expression=0 0 * * *&count=1001", 400, "count"),
        ("expression=0 0 * * *&kind=never", 400, "kind"),
        ("expression=0 0 * * *&excludeDates=tomorrow", 400, "excludeDates[0]"),
    ],
)
async def test_a_preview_of_what_cannot_be_says_why(
    http: httpx.AsyncClient, query: str, status: int, field: str
) -> None:
    response = await http.get(f"schedulePreview?{query}")
    assert (response.status_code, response.json()["errors"][0]["field"]) == (status, field)

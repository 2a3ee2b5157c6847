"""Many things at one look: what comes, what became of each time, where jobs stand, marks, and names."""

from datetime import timedelta

import httpx
import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.instant import ms_of
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.api import forecast, job_stat_grid
from clickclock.scheduler.engine import Engine
from tests.api.conftest import JOB, NOW, SCHEDULE
from tests.stores import LEASE, claim, ended, finish, plan, queue

CALL = {"application": "shop", "jobName": "export"}


async def schedule(http: httpx.AsyncClient, schedule_id: str, expression: str, **fields: object) -> None:
    said = {**SCHEDULE, "scheduleId": schedule_id, "expression": expression, **fields}
    assert (await http.post("schedules", json=said)).status_code == 201


async def run(engine: Engine, clock: ManualClock, code: int = 0) -> str:
    trigger_id = await queue(engine.store, "export", clock.now())
    (launch,) = (await claim(engine.store, clock.now())).launches
    await engine.store.queue.mark_running(LEASE, [(launch.name, "n", clock.now() + timedelta(milliseconds=4))])
    await finish(engine.store, launch.name, ended(clock.now() + timedelta(milliseconds=1254), code=code))
    clock.advance(2)
    return trigger_id


async def test_a_forecast_has_daylight_saving_calendars_jitter_and_what_is_skipped_as_things_stand(
    http: httpx.AsyncClient, job: None, clock: ManualClock
) -> None:
    await schedule(http, "gap", "30 2 * * *")
    await schedule(http, "dropped", "30 2 * * *", dstGapPolicy="skip")
    await schedule(http, "spread", "0 12 * * *", timeZone="UTC", jitterSeconds=600)
    await schedule(http, "holiday", "0 13 * * *", timeZone="UTC", excludeDates=["2027-03-28"])
    await schedule(http, "paused", "* * * * *", paused=True)
    window = {"from": "2027-03-27T12:00:00Z", "to": "2027-03-29T12:00:00Z"}
    answer = (await http.get("forecast", params=window)).json()["forecast"]
    lanes = {each["scheduleId"]: each for each in answer["lanes"]}
    assert (answer["from"], answer["to"], answer["truncated"]) == (
        "2027-03-27T12:00:00.000Z",
        "2027-03-29T12:00:00.000Z",
        False,
    )
    # 02:30 does not exist on the 28th: the first moment after the gap stands in for it, or nothing does.
    assert lanes["gap"]["timesMs"] == [1_806_195_600_000, 1_806_280_200_000]
    assert [each["note"] is not None for each in lanes["gap"]["remarks"]] == [True]
    assert lanes["dropped"]["timesMs"] == [1_806_280_200_000]
    assert [each["skipReason"] for each in lanes["dropped"]["remarks"]] == ["dstGap"]
    assert all(0 < each % 86_400_000 - 43_200_000 < 600_000 for each in lanes["spread"]["timesMs"])
    assert [each["skipReason"] for each in lanes["holiday"]["remarks"]] == ["excluded"]
    assert len(lanes["holiday"]["timesMs"]) == 1
    assert (lanes["paused"]["skipReason"], lanes["paused"]["timesMs"]) == ("paused", [])
    assert sum(each["count"] for each in answer["buckets"]) == sum(len(each["timesMs"]) for each in answer["lanes"])
    assert {each["from"] for each in answer["buckets"]} >= {"2027-03-28T01:00:00.000Z", "2027-03-29T00:00:00.000Z"}
    assert (await http.get("forecast", params={**window, "scheduleId": "gap"})).json()["forecast"]["lanes"] == [
        lanes["gap"]
    ]
    await http.put("job", json={**JOB, "enabled": False})
    reasons = {each["skipReason"] for each in (await http.get("forecast")).json()["forecast"]["lanes"]}
    assert reasons == {"paused", "jobDisabled"}


async def test_a_forecast_that_is_too_long_for_one_answer_goes_on_where_it_ended(
    http: httpx.AsyncClient, job: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "TIMES_MAX", 50)
    await schedule(http, "a", "*/7 * * * *")
    await schedule(http, "b", "*/5 * * * *")
    asked = {"to": rfc3339(NOW + timedelta(hours=5)), "bucket": "minute"}
    found: list[tuple[int, str]] = []
    since, answers = rfc3339(NOW), 0
    while since != asked["to"]:
        answer = (await http.get("forecast", params={**asked, "from": since})).json()["forecast"]
        assert answer["truncated"] == (answer["to"] != asked["to"])
        found += sorted((ms, lane["scheduleId"]) for lane in answer["lanes"] for ms in lane["timesMs"])
        since, answers = answer["to"], answers + 1
    minutes = range(1, 300)
    assert found == sorted(
        (ms_of(NOW + timedelta(minutes=each)), name)
        for each in minutes
        for name, step in (("a", 7), ("b", 5))
        if each % 60 % step == 0
    )
    assert answers == 3
    monkeypatch.setattr(forecast, "SCHEDULES_MAX", 1)
    one = (await http.get("forecast", params=asked)).json()["forecast"]
    assert (one["truncated"], len(one["lanes"])) == (True, 1)
    refused = await http.get("forecast", params={"from": rfc3339(NOW + timedelta(hours=1))})
    assert (refused.status_code, [each["field"] for each in refused.json()["errors"]]) == (400, ["from"])


@pytest.mark.parametrize(
    ("path", "params", "fields"),
    [
        ("forecast", {"from": "2026-11-21T00:00:00Z", "to": "2026-11-20T12:00:00Z"}, ["to"]),
        ("forecast", {"to": "2027-11-20T12:00:00Z", "bucket": "year"}, ["bucket", "to"]),
        ("forecast", {"to": "2026-11-20T09:00:00Z"}, ["to"]),
        ("scheduleTimes", {}, ["scheduleId"]),
        ("scheduleTimes", {"scheduleId": "a,b", "limit": 0, "from": "now"}, ["from", "limit"]),
        ("scheduleTimes", {"scheduleId": ",".join(map(str, range(50))), "limit": 201}, ["limit"]),
        ("scheduleTimes", {"scheduleId": ",".join(map(str, range(51)))}, ["scheduleId"]),
        ("jobState", {"limit": 1000, "recent": 6}, ["limit"]),
        ("triggerMarks", {"limit": 5001, "state": "gone"}, ["limit", "state"]),
        ("search", {"q": ""}, ["q"]),
        (
            "jobStatGrid",
            {"figure": "luck", "from": "2020-01-01T00:00:00Z", "timeZone": "Mars"},
            ["figure", "from", "timeZone", "to"],
        ),
        ("nodeStatGrid", {"figure": "much", "groupName": "g"}, ["figure", "groupName"]),
        ("jobStatGrid", {"bucket": "day", "from": "2026-07-01T00:00:00Z"}, ["to"]),
        ("triggerCounts", {"from": "2026-11-18T00:00:00Z"}, ["to"]),
        ("triggerCounts", {"to": "2026-11-18T00:00:00Z", "from": "2026-11-18T00:00:00Z"}, ["to"]),
        ("zoneChanges", {"timeZone": "Europe/Berln", "year": 2027}, ["timeZone"]),
        ("zoneChanges", {"year": 3000}, ["timeZone", "year"]),
        ("search", {"query": "x"}, ["q", "query"]),
    ],
)
async def test_a_question_that_is_wrong_is_refused_with_every_fault(
    http: httpx.AsyncClient, path: str, params: dict[str, str | int], fields: list[str]
) -> None:
    response = await http.get(path, params=params)
    assert response.status_code == 400, response.text
    assert sorted(each["field"] for each in response.json()["errors"]) == fields


async def test_each_nominal_time_says_what_became_of_it(
    http: httpx.AsyncClient, engine: Engine, job: None, clock: ManualClock
) -> None:
    await schedule(http, "s", "* * * * *", overlapPolicy="skip")
    for _ in range(3):
        clock.advance(60)
        await plan(engine.store, clock.now())
    clock.advance(86_400 * 2)
    await plan(engine.store, clock.now())
    both = (await http.get("scheduleTimes?scheduleId=s,gone&limit=200")).json()["schedules"]
    assert [(each["scheduleId"], each["hasMore"]) for each in both] == [("s", False), ("gone", False)]
    times = both[0]["times"]
    assert [each["nominalTime"] for each in times] == sorted((each["nominalTime"] for each in times), reverse=True)
    assert [(each["state"], each["skipReason"]) for each in times[-3:]] == [
        ("skipped", "overlap"),
        ("skipped", "overlap"),
        ("queued", None),
    ]
    several = next(each for each in times if each["skippedCount"])
    assert several["skippedThrough"] > several["nominalTime"]
    # A row that stands for times in the range is in it, though it begins before.
    inside = {"scheduleId": "s", "from": several["skippedThrough"], "limit": 200}
    found = (await http.get("scheduleTimes", params=inside)).json()["schedules"][0]["times"]
    assert found[-1]["triggerId"] == several["triggerId"]
    few = (await http.get("scheduleTimes?scheduleId=s&limit=2")).json()["schedules"][0]
    assert (few["times"], few["hasMore"]) == (times[:2], True)
    older = {"scheduleId": "s", "to": times[-2]["nominalTime"]}
    assert (await http.get("scheduleTimes", params=older)).json()["schedules"][0]["times"] == times[-1:]


async def test_jobs_say_where_they_stand_and_marks_are_columns(
    http: httpx.AsyncClient, engine: Engine, job: None, clock: ManualClock
) -> None:
    await http.post("job", json={**JOB, "jobName": "idle", "enabled": False})
    await schedule(http, "later", "0 12 * * *", timeZone="UTC")
    await schedule(http, "paused", "0 11 * * *", timeZone="UTC", paused=True)
    first, second = await run(engine, clock), await run(engine, clock, code=1)
    waiting = await queue(engine.store, "export", clock.now())
    await engine.store.statistics.count_all()
    answer = (await http.get("jobState?recent=2")).json()
    export, idle = answer["jobStates"]
    assert (answer["nextCursor"], idle["jobName"], idle["enabled"], idle["recent"]) == (None, "idle", False, [])
    assert (export["queued"], export["running"], export["currentStreak"]) == (1, 0, -1)
    assert (export["lastSuccessAt"] is None, export["nextFireAt"]) == (False, "2026-11-20T12:00:00.000Z")
    assert [(each["triggerId"], each["state"]) for each in export["recent"]] == [
        (waiting, "queued"),
        (second, "failed"),
    ]
    assert (export["recent"][1]["lagMs"], export["recent"][1]["durationMs"]) == (4, 1250)
    page = (await http.get("jobState?limit=1")).json()
    rest = (await http.get("jobState", params={"limit": 1, "cursor": page["nextCursor"]})).json()
    assert [each["jobName"] for each in rest["jobStates"]] == ["idle"]
    foreign = await http.get("job", params={"limit": 1, "cursor": page["nextCursor"]})
    assert foreign.json()["code"] == "badCursor"

    answer = (await http.get("triggerMarks")).json()
    marks = answer["triggerMarks"]
    assert (marks["triggerIds"], answer["nextCursor"]) == ([waiting, second, first], None)
    assert [marks["states"][each] for each in marks["stateIndexes"]] == ["queued", "failed", "succeeded"]
    assert [marks["jobs"][each]["jobName"] for each in marks["jobIndexes"]] == ["export"] * 3
    assert marks["startsMs"] == [None, ms_of(NOW) + 2004, ms_of(NOW) + 4]
    assert marks["endsMs"] == [None, ms_of(NOW) + 3254, ms_of(NOW) + 1254]
    assert (marks["lagsMs"], marks["dueTimesMs"][2]) == ([None, 4, 4], ms_of(NOW))
    some = (await http.get("triggerMarks", params={"state": "failed,succeeded", "limit": 1})).json()
    assert some["triggerMarks"]["triggerIds"] == [second]
    more = {"state": "failed,succeeded", "limit": 1, "cursor": some["nextCursor"]}
    assert (await http.get("triggerMarks", params=more)).json()["triggerMarks"]["triggerIds"] == [first]


async def test_a_part_of_a_name_finds_what_has_it(http: httpx.AsyncClient, engine: Engine, job: None) -> None:
    await http.post("job", json=[{**JOB, "jobName": "re-Export"}, {**JOB, "application": "export-app"}])
    await http.post("group", json={"groupName": "Exports"})
    await http.post("calendar", json={"calendarName": "no-exports"})
    await schedule(http, "id-1", "0 1 * * *", scheduleName="export nightly")
    trigger_id = await queue(engine.store, "export")
    found = (await http.get("search?q=EXPORT")).json()["matches"]
    assert [(each["kind"], each["name"], each["application"]) for each in found] == [
        ("application", "export-app", "export-app"),
        ("group", "Exports", None),
        ("job", "export", "export-app"),
        ("job", "export", "shop"),
        ("job", "re-Export", "shop"),
        ("schedule", "export nightly", "shop"),
        ("calendar", "no-exports", None),
    ]
    assert (found[5]["scheduleId"], found[5]["jobName"], found[4]["jobName"]) == ("id-1", "export", "re-Export")
    by_id = (await http.get("search", params={"q": trigger_id.upper()})).json()["matches"]
    assert [(each["kind"], each["name"], each["jobName"]) for each in by_id] == [("trigger", trigger_id, "export")]
    assert (await http.get("search", params={"q": "100%_"})).json()["matches"] == []
    assert len((await http.get("search?q=x&limit=1")).json()["matches"]) == 5


async def test_a_grid_has_jobs_and_hours_and_the_counts_have_minutes(
    http: httpx.AsyncClient, engine: Engine, job: None, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await http.post("job", json={**JOB, "jobName": "idle"})
    await run(engine, clock)
    clock.advance(3600)
    await run(engine, clock, code=1)
    await run(engine, clock, code=1)
    window = {"from": rfc3339(NOW - timedelta(hours=1)), "to": rfc3339(NOW + timedelta(hours=2))}
    grid = (await http.get("jobStatGrid", params={**window, "figure": "failed"})).json()["jobStatGrid"]
    assert grid["starts"] == [rfc3339(NOW + timedelta(hours=each)) for each in (-1, 0, 1)]
    assert grid["rows"] == [{"application": "shop", "jobName": "export", "values": [None, 0, 2]}]
    grid = (await http.get("jobStatGrid", params={**window, "application": "shop"})).json()["jobStatGrid"]
    assert (grid["figure"], grid["rows"][0]["values"]) == ("lagP95", [None, 4, 4])
    day = {"bucket": "day", "timeZone": "Asia/Kathmandu", "figure": "durationP50"}
    grid = (await http.get("jobStatGrid", params=day)).json()["jobStatGrid"]
    assert (grid["starts"][-1], len(grid["starts"])) == ("2026-11-19T18:15:00.000Z", 2)
    assert grid["rows"][0]["values"] == [None, pytest.approx(1250, rel=0.02)]
    assert (await http.get("jobStatGrid?groupName=none")).json()["jobStatGrid"]["rows"] == []
    nodes = (await http.get("nodeStatGrid", params={**window, "figure": "failed"})).json()["nodeStatGrid"]
    (machine,) = nodes["rows"]
    assert (nodes["figure"], len(nodes["starts"]), machine["values"]) == ("failed", 3, [None, 0, 2])
    nodes = (await http.get("nodeStatGrid", params={**window, "application": "shop"})).json()["nodeStatGrid"]
    assert nodes["rows"] == [{"node": machine["node"], "values": [None, 4, 4]}]
    assert (await http.get("nodeStatGrid?application=none")).json()["nodeStatGrid"]["rows"] == []
    asked = {**window, "from": rfc3339(NOW)}
    counts = (await http.get("triggerCounts", params=asked)).json()["triggerCounts"]
    assert [(each["from"], each["states"]) for each in counts["minutes"]] == [
        (rfc3339(NOW), {"succeeded": 1}),
        (rfc3339(NOW + timedelta(hours=1)), {"failed": 2}),
    ]
    monkeypatch.setattr(job_stat_grid, "ENDS_MAX", 2)
    counts = (await http.get("triggerCounts", params=asked)).json()["triggerCounts"]
    assert (counts["from"], len(counts["minutes"])) == (rfc3339(NOW + timedelta(minutes=1)), 1)


async def test_the_changes_of_a_zones_clocks_are_those_of_the_year(http: httpx.AsyncClient) -> None:
    changes = (await http.get("zoneChanges?timeZone=Europe/Berlin&year=2027")).json()["zoneChanges"]
    assert changes == [
        {
            "at": "2027-03-28T01:00:00.000Z",
            "localBefore": "2027-03-28T02:00:00",
            "localAfter": "2027-03-28T03:00:00",
            "minutes": 60,
        },
        {
            "at": "2027-10-31T01:00:00.000Z",
            "localBefore": "2027-10-31T03:00:00",
            "localAfter": "2027-10-31T02:00:00",
            "minutes": -60,
        },
    ]
    half = (await http.get("zoneChanges?timeZone=Australia/Lord_Howe")).json()["zoneChanges"]
    assert [(each["at"][:4], each["minutes"]) for each in half] == [("2026", -30), ("2026", 30)]
    assert (await http.get("zoneChanges?timeZone=Asia/Tokyo")).json()["zoneChanges"] == []


async def test_pages_that_do_not_change_are_sent_once(http: httpx.AsyncClient) -> None:
    for path in ("/docs", "/docs/docs.js", "/docs/docs.css", "/openapi.json"):
        first = await http.get(f"http://127.0.0.1{path}")
        assert (first.status_code, first.headers["cache-control"]) == (200, "no-cache")
        known = {"if-none-match": f'"other", {first.headers["etag"]}'}
        again = await http.get(f"http://127.0.0.1{path}", headers=known)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        assert (await http.get(f"http://127.0.0.1{path}", headers={"if-none-match": '"other"'})).status_code == 200

"""Calendars and rules over HTTP: what a schedule may name, what is refused, and what a preview says of it."""

import httpx
import pytest

from clickclock.scheduler.engine import Engine
from tests.api.conftest import SCHEDULE

SHOP = {
    "calendarName": "shop",
    "businessDays": ["monday", "tuesday", "wednesday", "thursday", "friday"],
    "excludeDates": ["2026-11-23"],
    "includeDates": ["2026-11-28"],
}
MONTH_END = "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=17;BYMINUTE=0;BYSECOND=0"


def told(response: httpx.Response) -> dict[str, str]:
    return {fault["field"]: fault["message"] for fault in response.json()["errors"]}


@pytest.fixture
async def calendar(http: httpx.AsyncClient) -> None:
    assert (await http.post("calendar", json=SHOP)).status_code == 201


async def test_a_calendar_is_made_read_changed_and_deleted(http: httpx.AsyncClient, calendar: None) -> None:
    read = await http.get("calendar", params={"calendarName": "shop"})
    (stored,) = read.json()["calendars"]
    assert {name: stored[name] for name in SHOP} == SHOP
    assert (stored["version"], stored["schedules"], read.headers["etag"]) == (1, 0, '"1"')
    assert (await http.post("calendar", json=SHOP)).json()["code"] == "calendarExists"
    put = await http.put("calendar", json=stored | {"timeZone": "Europe/Berlin"}, headers={"If-Match": '"1"'})
    assert (put.status_code, put.json()["calendar"]["version"]) == (200, 2)
    assert (await http.delete("calendar", params={"calendarName": "shop"})).status_code == 200
    assert (await http.put("calendar", json=SHOP, headers={"If-Match": "*"})).json()["code"] == "calendarNotFound"


async def test_a_calendar_that_excludes_everything_is_refused_with_its_other_faults(http: httpx.AsyncClient) -> None:
    wrong = {"calendarName": "none", "businessDays": [], "timeZone": "Europe/Berlim"}
    refused = await http.post("calendar", json=wrong)
    assert refused.status_code == 422
    assert "excludes every day" in told(refused)["businessDays"]
    assert 'did you mean "Europe/Berlin"?' in told(refused)["timeZone"]
    both = {"calendarName": "both", "excludeDates": ["2026-12-24"], "includeDates": ["2026-12-24"]}
    assert "leave it in one of them" in told(await http.post("calendar", json=both))["includeDates"]


async def test_a_schedule_whose_every_time_the_calendar_leaves_out_is_refused(
    http: httpx.AsyncClient, job: None, calendar: None
) -> None:
    on_sundays = SCHEDULE | {"calendarName": "shop", "expression": "0 9 * * SUN"}
    refused = await http.post("schedules", json=on_sundays)
    assert refused.status_code == 422
    assert "leaves out every time" in told(refused)["calendarName"]
    assert (await http.post("schedules", json=on_sundays | {"calendarRule": "otherDays"})).status_code == 201


async def test_a_schedule_that_names_no_calendar_that_there_is_is_refused(http: httpx.AsyncClient, job: None) -> None:
    refused = await http.post("schedules", json=[SCHEDULE, SCHEDULE | {"calendarName": "shop"}])
    assert refused.status_code == 422
    assert "create it first with POST calendar" in told(refused)["[1].calendarName"]
    made = (await http.post("schedules", json=SCHEDULE)).json()["schedule"]
    change = {"scheduleId": made["scheduleId"], "calendarName": "shop"}
    assert "calendarName" in told(await http.put("schedules", json=change))


async def test_a_calendar_in_use_is_kept_and_the_answer_names_the_schedules(
    http: httpx.AsyncClient, job: None, calendar: None
) -> None:
    made = (await http.post("schedules", json=SCHEDULE | {"calendarName": "shop"})).json()["schedule"]
    assert made["calendarName"] == "shop"
    refused = await http.delete("calendar", params={"calendarName": "shop"})
    assert (refused.status_code, refused.json()["code"]) == (409, "calendarInUse")
    assert made["scheduleId"] in told(refused)["calendarName"]
    freed = await http.put("schedules", json={"scheduleId": made["scheduleId"], "calendarName": None})
    assert freed.json()["schedule"]["calendarName"] is None
    assert (await http.delete("calendar", params={"calendarName": "shop"})).status_code == 200


async def test_a_preview_says_which_times_a_calendar_leaves_out(http: httpx.AsyncClient, calendar: None) -> None:
    query = {"expression": "0 9 * * *", "calendarName": "shop", "count": "9"}
    times = (await http.get("schedulePreview", params=query)).json()["times"]
    assert [each["time"][8:10] for each in times if each["skipReason"] == "excluded"] == ["21", "22", "23", "29"]
    assert times[0]["note"] == "2026-11-21 is not a business day of the calendar shop."


async def test_a_preview_names_a_calendar_that_is_not_there_beside_what_else_is_wrong(http: httpx.AsyncClient) -> None:
    query = {"expression": "61 9 * * *", "timeZone": "Mars", "calendarName": "none"}
    response = await http.get("schedulePreview", params=query)
    assert {each["field"] for each in response.json()["errors"]} == set(query)


async def test_the_days_of_a_calendar_with_a_zone_of_its_own_begin_there(http: httpx.AsyncClient) -> None:
    await http.post(
        "calendar", json={"calendarName": "tokyo", "timeZone": "Asia/Tokyo", "excludeDates": ["2026-11-21"]}
    )
    query = {"expression": "0 14,16 * * *", "calendarName": "tokyo", "count": "4"}
    times = (await http.get("schedulePreview", params=query)).json()["times"]
    assert [each["skipReason"] for each in times] == [None, "excluded", "excluded", None]


async def test_the_detail_of_a_job_shows_what_its_calendars_leave_out(
    http: httpx.AsyncClient, job: None, calendar: None
) -> None:
    await http.post("schedules", json=SCHEDULE | {"calendarName": "shop"})
    detail = await http.get("jobDetail", params={"application": "shop", "jobName": "export"})
    (schedule,) = detail.json()["jobDetail"]["schedules"]
    assert [each["skipReason"] for each in schedule["nextTimes"]] == ["excluded", "excluded", "excluded", None, None]


async def test_a_rule_is_previewed_and_planned_like_any_other_schedule(
    http: httpx.AsyncClient, job: None, engine: Engine
) -> None:
    query = {"kind": "rrule", "expression": MONTH_END, "timeZone": "Europe/Berlin", "count": "2"}
    times = (await http.get("schedulePreview", params=query)).json()["times"]
    assert [each["localTime"] for each in times] == ["2026-11-30T17:00:00+01:00", "2026-12-31T17:00:00+01:00"]
    made = await http.post("schedules", json=SCHEDULE | {"kind": "rrule", "expression": MONTH_END})
    assert made.json()["schedule"]["nextFireAt"] == "2026-11-30T16:00:00.000Z"


async def test_a_rule_that_never_comes_and_one_that_cannot_be_read_are_refused(
    http: httpx.AsyncClient, job: None
) -> None:
    rule = SCHEDULE | {"kind": "rrule"}
    never = await http.post("schedules", json=rule | {"expression": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31"})
    assert "never due" in told(never)["expression"]
    unread = await http.post("schedules", json=rule | {"expression": "FREQ=DAILY;BYHOUR=25;COUNT=3"})
    assert len(unread.json()["errors"]) == 2

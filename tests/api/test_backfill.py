"""Backfills over HTTP: looked at, started, watched, paused, cancelled, and refused with every fault."""

import httpx
import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.engine import Engine
from tests.api.conftest import SCHEDULE

RANGE = {"scheduleId": "s", "from": "2026-11-01T00:00:00Z", "to": "2026-11-10T23:59:59Z"}


def told(response: httpx.Response) -> dict[str, str]:
    return {fault["field"]: fault["message"] for fault in response.json()["errors"]}


@pytest.fixture
async def schedule(http: httpx.AsyncClient, job: None) -> None:
    made = await http.post("schedules", json=SCHEDULE | {"scheduleId": "s", "excludeDates": ["2026-11-05"]})
    assert made.status_code == 201


async def test_a_dry_run_says_what_would_run_and_runs_nothing(
    http: httpx.AsyncClient, schedule: None, engine: Engine
) -> None:
    looked = await http.post("backfill", json=RANGE | {"dryRun": True})
    told = looked.json()["dryRun"]
    assert looked.status_code == 200
    assert (told["total"], told["excluded"], told["alreadyTriggered"], len(told["times"])) == (9, 1, 0, 9)
    assert told["times"][0] == "2026-11-01T01:30:00.000Z"
    assert (await http.get("backfill")).json()["backfills"] == []


async def test_a_backfill_is_started_and_tells_how_far_it_is(
    http: httpx.AsyncClient, schedule: None, engine: Engine
) -> None:
    pace = {"maxConcurrentTriggers": 2, "maxTriggersPerSecond": 40}
    begun = await http.post("backfill", json=RANGE | pace | {"reason": "a fix"})
    assert begun.status_code == 201
    made = begun.json()["backfill"]
    assert (made["state"], made["total"], made["excluded"], made["done"]) == ("running", 9, 1, 0)
    await engine.backfiller.step()
    (now,) = (await http.get("backfill", params={"scheduleId": "s", "state": "running"})).json()["backfills"]
    assert (now["triggered"], now["queued"]) == (2, 2)
    triggers = (await http.get("jobTrigger", params={"backfillId": made["backfillId"]})).json()["triggers"]
    assert [(each["kind"], each["reason"]) for each in triggers] == [("backfill", "a fix")] * 2
    again = (await http.post("backfill", json=RANGE | {"dryRun": True})).json()["dryRun"]
    assert again["alreadyTriggered"] == 2


async def test_a_backfill_is_paused_resumed_paced_and_cancelled(
    http: httpx.AsyncClient, schedule: None, clock: ManualClock
) -> None:
    backfill_id = (await http.post("backfill", json=RANGE)).json()["backfill"]["backfillId"]
    change = {"backfillId": backfill_id}
    paused = await http.put("backfill", json=change | {"paused": True})
    assert paused.json()["backfill"]["state"] == "paused"
    faster = await http.put("backfill", json=change | {"paused": False, "maxConcurrentTriggers": 8})
    assert (faster.json()["backfill"]["state"], faster.json()["backfill"]["maxConcurrentTriggers"]) == ("running", 8)
    stale = await http.put("backfill", json=change | {"paused": True}, headers={"If-Match": '"1"'})
    assert stale.json()["code"] == "staleVersion"
    assert "" in told(await http.put("backfill", json=change))
    faulty = await http.put("backfill", json=change | {"maxConcurrentTriggers": 0})
    assert list(told(faulty)) == ["maxConcurrentTriggers"]
    over = await http.delete("backfill", params=change)
    assert (over.status_code, over.json()["backfill"]["state"]) == (202, "cancelled")
    assert (await http.put("backfill", json=change | {"paused": True})).json()["code"] == "backfillIsOver"
    assert (await http.delete("backfill", params={"backfillId": "none"})).json()["code"] == "backfillNotFound"


async def test_a_range_that_is_none_or_not_past_is_refused(http: httpx.AsyncClient, schedule: None) -> None:
    swapped = await http.post("backfill", json=RANGE | {"from": RANGE["to"], "to": RANGE["from"]})
    assert "before from" in told(swapped)["to"]
    future = await http.post("backfill", json=RANGE | {"to": "2026-12-01T00:00:00Z"})
    assert "in the future" in told(future)["to"]
    empty = await http.post("backfill", json=RANGE | {"from": "2026-11-05T00:00:00Z", "to": "2026-11-05T12:00:00Z"})
    assert "no time to run in this range; 1 are left out by day" in told(empty)["to"]
    assert (await http.post("backfill", json=RANGE | {"scheduleId": "none"})).json()["code"] == "scheduleNotFound"


async def test_a_backfill_of_a_million_times_is_refused_with_the_count(
    http: httpx.AsyncClient, schedule: None, engine: Engine
) -> None:
    await http.post("schedules", json=SCHEDULE | {"scheduleId": "often", "expression": "* * * * * *"})
    many = await http.post("backfill", json=RANGE | {"scheduleId": "often"})
    assert told(many)["to"].startswith("The range has about 864,000 times, and at most 10,000 are run by one backfill")
    assert (await http.get("backfill")).json()["backfills"] == []

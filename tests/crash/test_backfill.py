"""kill -9 of the service while a backfill runs: it goes on where it was, no time is lost, and none runs twice."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.clicking import until
from tests.acceptance.service import Service, running

TIMES = 60
FIRST = datetime(2026, 1, 5, tzinfo=UTC)
NOMINAL = [(FIRST + timedelta(minutes=minute)).strftime("%FT%T.000Z") for minute in range(TIMES)]


def call(service: Service, method: str, resource: str, **content: Any) -> Any:
    answer = httpx.request(method, f"{service.url}/schedulerService/{resource}", timeout=60, **content)
    assert answer.is_success, answer.text
    return answer.json()


def progress(service: Service) -> dict[str, Any]:
    (found,) = call(service, "GET", "backfill")["backfills"]
    return dict(found)


def has_done(service: Service, least: int) -> bool:
    return bool(progress(service)["done"] >= least)


def test_a_backfill_survives_every_kill_and_runs_each_of_its_times_once(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    of = {"application": "crash", "jobName": "past"}
    with running(tmp_path / "data") as service:
        command = f"echo {{{{ nominalTime }}}} >> {ran}"
        call(service, "POST", "job", json=of | {"command": command, "shell": True, "preemption": False})
        yearly = of | {"scheduleId": "past", "expression": "* * 5 1 *"}
        call(service, "POST", "schedules", json=yearly)
        asked = {"scheduleId": "past", "from": NOMINAL[0], "to": NOMINAL[-1], "maxConcurrentTriggers": 3}
        call(service, "POST", "backfill", json=asked)
        until(partial(has_done, service, TIMES // 6), "a sixth of the times ran")
        service.kill()
    for done in (TIMES // 3, TIMES // 2):
        with running(tmp_path / "data") as service:
            until(partial(has_done, service, done), f"{done} times ran")
            service.kill()
    with running(tmp_path / "data") as service:
        until(lambda: progress(service)["state"] == "done", "the backfill is done")
        told = progress(service)
        service.stop()
    assert (told["triggered"], told["done"], told["failed"], told["skipped"]) == (TIMES, TIMES, 0, 0)
    assert Counter(ran.read_text().split()) == Counter(NOMINAL)

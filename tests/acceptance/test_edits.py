"""An edit is answered when it is true: nothing starts any more by what was there before."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from tests.acceptance.service import Service, running

SCHEDULES = 12
EDITS = 5
"""Of each: more than fifty pauses, each at another moment of its second."""

Span = tuple[float, float]
Edit = Callable[[httpx.Client, int, bool], None]


def call(client: httpx.Client, method: str, path: str, **body: object) -> dict[str, Any]:
    answer = client.request(method, path, json=body or None)
    assert answer.is_success, answer.text
    result: dict[str, Any] = answer.json()
    return result


def job(number: int) -> dict[str, Any]:
    return {"application": "t", "jobName": f"j{number}", "command": "true", "groupName": f"g{number}"}


def pause_schedule(client: httpx.Client, number: int, paused: bool) -> None:
    call(client, "PUT", "schedules", scheduleId=f"s{number}", paused=paused)


def disable_job(client: httpx.Client, number: int, paused: bool) -> None:
    call(client, "PUT", "job", **job(number), enabled=not paused)


def pause_group(client: httpx.Client, number: int, paused: bool) -> None:
    call(client, "PUT", "group", groupName=f"g{number}", paused=paused)


def stamp(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()


def pause_again_and_again(service: Service, number: int, edit: Edit) -> list[Span]:
    """Between which moments it was paused, as far as its user knows."""
    dice = random.Random(number)
    spans: list[Span] = []
    with httpx.Client(base_url=f"{service.url}/schedulerService/", timeout=60) as client:
        for _ in range(EDITS):
            time.sleep(dice.uniform(0.5, 1.5))
            edit(client, number, True)
            since = time.time()
            time.sleep(dice.uniform(0.3, 1.1))
            spans.append((since, time.time()))
            edit(client, number, False)
    return spans


def test_after_the_answer_to_a_pause_nothing_starts_that_was_due_before(tmp_path: Path) -> None:
    edits: list[Edit] = [pause_schedule, disable_job, pause_group]
    with running(tmp_path) as service, httpx.Client(base_url=f"{service.url}/schedulerService/", timeout=60) as client:
        for number in range(SCHEDULES):
            call(client, "POST", "group", groupName=f"g{number}")
            call(client, "POST", "job", **job(number))
            of_job = {"application": "t", "jobName": f"j{number}", "scheduleId": f"s{number}"}
            call(client, "POST", "schedules", **of_job, kind="interval", expression="PT1S", overlapPolicy="allow")
            time.sleep(0.08)  # so that each has a phase of its own
        with ThreadPoolExecutor(SCHEDULES) as pool:
            asked = [pool.submit(pause_again_and_again, service, n, edits[n % len(edits)]) for n in range(SCHEDULES)]
            paused = [each.result() for each in asked]
        runs = 0
        for number, spans in enumerate(paused):
            triggers = call(client, "GET", f"jobTrigger?application=t&jobName=j{number}&limit=1000")["triggers"]
            starts = [stamp(each["startedAt"]) for each in triggers if each["startedAt"]]
            wrong = [(since, at) for at in starts for since, until in spans if since < at < until]
            told = [each for each in triggers if each["startedAt"] and stamp(each["startedAt"]) in dict(wrong).values()]
            assert not wrong, f"{number} was paused at {wrong}, and {told}"
            runs += len(starts)
        assert runs > SCHEDULES * EDITS / 2

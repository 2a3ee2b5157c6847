"""The pictures of the documentation, and the installation that they show: a shop that has run for a day.

Never needs anybody to prepare it: `python -m tests.acceptance.pictures` takes all of them anew, into `docs/images`.
Invariant: the same jobs, runs, orders and ads each time, up to the time of the day.
"""

import contextlib
import random
import re
import sqlite3
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import httpx
from playwright.sync_api import Browser, expect, sync_playwright

from clickclock.scheduler.jobs.trigger import State
from tests import parts
from tests.acceptance.dashboard import watched
from tests.acceptance.service import Service, running
from tests.acceptance.shop import fill
from tests.bench.history_rows import Past, insert, ran
from tests.house.tree import ROOT

FOLDER = ROOT / "docs/images"
SIZE = {"width": 1280, "height": 800}
LOW = {"chain": 320}
"""Heights of pages that have little to show."""
CHECKED = {"click": "https://shop.example/?utm_source=facebook&utm_campaign=spring&gclid=null", "clientId": "shop-1"}
PAGES = {
    "schedule": ("/schedules/shop.nightly-export", ".clock-day"),
    "chain": ("/chains/shop/load", ".chain"),
    "credit": ("/attribution", ".day-bar"),
    "proof": ("/attribution/orders/shop-1/A-2041", ".split"),
    "check": (f"/clicks?{urlencode(CHECKED)}", ".verdict"),
    "overview": ("/", ".strip-row .cell"),
    "overview-dark": ("/", ".strip-row .cell"),
}
"""By name: the address, and what is there when the page has what it shows."""

_EVERY: Final[Mapping[str, tuple[int, float, int]]] = {
    "shop/stock-levels": (5, 20.0, 0),
    "shop/send-mails": (10, 75.0, 9),
    "shop/import-orders": (15, 150.0, 0),
    "ads/import-costs": (30, 200.0, 0),
    "ops/rebuild-index": (20, 400.0, 0),
    "ops/certificate-check": (60, 2.0, 2),
}
"""Jobs by name: how many minutes from run to run, how many seconds they take, and that each n-th fails, unless 0."""
NIGHTS: Final = 14
BERLIN: Final = ZoneInfo("Europe/Berlin")
_CHAIN: Final = {"extract": [], "clean": ["extract"], "load": ["extract", "clean"]}


@contextlib.contextmanager
def stage(folder: Path) -> Iterator[Service]:
    """The shop's service, with a day behind it, and an index that is being rebuilt."""
    options = ("--clicks", "--click-port", "0", "--click-profile", "open")
    with running(folder / "data", *options) as service:
        with httpx.Client(base_url=f"{service.url}/schedulerService/") as ask:
            _declare(ask)
            _run_the_chain(ask)
        service.stop()
    (folder / "scratch").mkdir()
    _give_a_past(folder / "data/clickclock.db")
    with ThreadPoolExecutor(1) as thread:  # a browser's driver has a loop in this one
        thread.submit(fill, folder / "data/lake", folder / "scratch").result()
    with (
        running(folder / "data", *options) as service,
        httpx.Client(base_url=f"{service.url}/schedulerService/") as ask,
    ):
        asked = ask.post("jobTrigger", json={"application": "ops", "jobName": "rebuild-index"}).raise_for_status()
        _wait(ask, jobName="rebuild-index", state="running")
        yield service
        # What still runs would keep its supervisor for ten minutes.
        ask.delete("jobTrigger", params={"triggerId": asked.json()["trigger"]["triggerId"]}).raise_for_status()
        _wait(ask, jobName="rebuild-index", state="cancelled")


def _declare(ask: httpx.Client) -> None:
    jobs: list[dict[str, Any]] = [_job(name) for name in _EVERY]
    jobs[list(_EVERY).index("ops/rebuild-index")]["command"] = "sleep 600"
    jobs += [{**_job(f"shop/{name}"), "dependsOn": others} for name, others in _CHAIN.items()]
    jobs += [_job("shop/nightly-export"), _job("shop/close-the-books")]
    schedules = [
        _schedule(name, "0 * * * *" if every == 60 else f"*/{every} * * * *") for name, (every, _, _) in _EVERY.items()
    ]
    nightly = {"nightly-export": "30 2 * * *", "extract": "0 3 * * *", "close-the-books": "0 6 * * *"}
    schedules += [
        {**_schedule(f"shop/{name}", expression), "timeZone": "Europe/Berlin"} for name, expression in nightly.items()
    ]
    for path, things in (("job", jobs), ("schedules", schedules)):
        ask.post(path, json=things).raise_for_status()
    pause = {"scheduleId": "shop.close-the-books", "paused": True, "pauseReason": "Accounting has a holiday."}
    ask.put("schedules", json=pause).raise_for_status()


def _run_the_chain(ask: httpx.Client) -> None:
    ask.post("jobTrigger", json={"application": "shop", "jobName": "extract"}).raise_for_status()
    _wait(ask, jobName="load", state="succeeded")


def _wait(ask: httpx.Client, **filters: str) -> None:
    """Until there is such a trigger."""
    while not ask.get("jobTrigger", params=filters).raise_for_status().json()["triggers"]:
        pass


def _give_a_past(database: Path) -> None:
    """Write what ran up to now, and that the schedules are as old as that."""
    insert(database, _past(datetime.now(UTC)))
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "UPDATE schedule SET created_at = created_at - ? WHERE application <> 'attribution'",
            (timedelta(days=NIGHTS) // timedelta(milliseconds=1),),
        )


def _past(now: datetime) -> Iterator[Past]:
    """What ran in the day up to now, and in the nights before, at the times of the schedules."""
    chance = random.Random(1)
    night = now.astimezone(BERLIN).replace(hour=2, minute=30, second=0, microsecond=0)
    dues = {"shop/nightly-export": [night - timedelta(days=days) for days in range(NIGHTS)]}
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    for name, (every, _, _) in _EVERY.items():
        steps = range(timedelta(days=2) // timedelta(minutes=every))
        times = [midnight + timedelta(minutes=every) * number for number in steps]
        dues[name] = [due for due in times if due > now - timedelta(days=1)]
    for name, (_, takes_s, fails) in {**_EVERY, "shop/nightly-export": (0, 900.0, 6)}.items():
        application, job_name = name.split("/")
        for number, due in enumerate(dues[name]):
            lag_ms, duration_ms = chance.lognormvariate(1.5, 0.7), takes_s * 1000 * chance.uniform(0.8, 1.2)
            state = State.FAILED if fails and number % fails == 1 else State.SUCCEEDED
            past = ran(
                (application, job_name), state, due, lag_ms, duration_ms, chance.randrange(10**7, 10**8), until=now
            )
            if past.ending.finished_at < now:
                yield past


def _job(name: str) -> dict[str, Any]:
    application, job_name = name.split("/")
    return {"application": application, "jobName": job_name, "command": "true"}


def _schedule(name: str, expression: str) -> dict[str, Any]:
    application, job_name = name.split("/")
    given = {"scheduleId": f"{application}.{job_name}", "scheduleName": job_name, "expression": expression}
    return {**given, "application": application, "jobName": job_name}


def take(browser: Browser, url: str, folder: Path) -> None:
    """All pictures, as a reader would see the pages."""
    for name, (address, ready) in PAGES.items():
        theme = "dark" if name.endswith("-dark") else "light"
        size = {**SIZE, "height": LOW.get(name, SIZE["height"])}
        with watched(browser, url, viewport=size, color_scheme=theme) as page:
            page.add_init_script("localStorage.setItem('firstSteps', 'seen')")
            page.goto(address)
            page.locator(ready).first.wait_for()
            expect(page.get_by_text(re.compile("^(Counting|Looking) …$"))).to_have_count(0)
            if name == "check":
                page.locator(ready).scroll_into_view_if_needed()
            page.screenshot(path=folder / f"{name}.png", animations="disabled")


def main() -> None:
    """Take them for the documentation."""
    with (
        TemporaryDirectory() as scratch,
        stage(Path(scratch)) as service,
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=parts.browser(), args=["--no-sandbox"]) as browser,
    ):
        take(browser, service.url, FOLDER)


if __name__ == "__main__":
    main()

"""The dashboard's first view in headless Chromium, behind a long history, and while changes pour in.

`python -m tests.bench dashboard`. Without Chromium it says so and measures only the questions.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, Response, sync_playwright

from tests import parts
from tests.bench.history_rows import APPLICATIONS, JOBS, name_of, write
from tests.bench.machine import cpu_seconds
from tests.bench.report import Goal, Report, percentile
from tests.bench.service import BATCH, Service

CHANGES_PER_S = 50
READY = ".strip-row"
"""There when every question of the first view is answered and drawn."""
_LISTEN = """window.longTasks = [];
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((each) => each.duration)))
    .observe({ type: 'longtask', buffered: true });"""


def run(folder: Path, *, quick: bool) -> Report:
    """A million triggers and 10,000 jobs (--quick: 100,000 and 1,000)."""
    triggers, jobs, views, watched_s = (100_000, 1_000, 3, 4) if quick else (1_000_000, 10_000, 7, 15)
    report = Report(f"dashboard: its first view behind {triggers:,} triggers and {jobs:,} jobs", with_ratios=False)
    with Service(folder) as service:
        _fill(service, jobs, triggers)
        for name, answers_ms in _ask(service, views).items():
            report.add(name, "ms", percentile(answers_ms, 0.5), Goal(most=50), {"slowest": max(answers_ms)})
        path = parts.browser()
        if path is None:
            report.notes.append("There is no Chromium on this machine, so nothing was looked at.")
            return report
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            _look(browser, service, views, report)
            _watch(browser, service, watched_s, report)
            browser.close()
    return report


def _fill(service: Service, jobs: int, triggers: int) -> None:
    for n in range(APPLICATIONS * JOBS):
        application, job_name = name_of(n)
        job = {"application": application, "jobName": job_name, "command": "/usr/bin/true"}
        service.post("job", job)
        service.post("schedules", {"application": application, "jobName": job_name, "expression": f"{n % 60} * * * *"})
    more = [{"application": "more", "jobName": f"job-{n}", "command": "/usr/bin/true"} for n in range(jobs)]
    for start in range(0, jobs, BATCH):
        service.post("job", more[start : start + BATCH])
    service.post("job", {"application": "more", "jobName": "change", "command": "/usr/bin/true", "preemption": False})
    service.stop()
    write(service.data_dir / "clickclock.db", datetime.now(UTC), triggers)
    service.start()


def _ask(service: Service, rounds: int) -> dict[str, list[float]]:
    """What the questions of the first view take, after the first round."""
    now = datetime.now(UTC)
    ids = ",".join(".".join(name_of(n)) for n in range(16))
    questions: dict[str, tuple[str, dict[str, Any]]] = {
        "cluster": ("cluster", {}),
        "schedules": ("schedules", {"limit": 50}),
        "triggerMarks, 35 minutes": ("triggerMarks", {"from": _ago(now, minutes=35), "limit": 5000}),
        "jobTrigger, what is not over": ("jobTrigger", {"state": "queued,starting,running", "limit": 200}),
        "jobStat, a day": ("jobStat", {"bucket": "hour", "from": _ago(now, days=1), "rank": "slowest"}),
        "alarm, open": ("alarm", {"isOpen": True}),
        "forecast, an hour": ("forecast", {"to": (now + timedelta(hours=1)).isoformat(), "lanes": 40}),
        "scheduleTimes, 16 schedules": ("scheduleTimes", {"scheduleId": ids, "limit": 48}),
    }
    took: dict[str, list[float]] = {name: [] for name in questions}
    for _ in range(1 + rounds):
        for name, (resource, parameters) in questions.items():
            begun = time.perf_counter()
            service.get(resource, **parameters).raise_for_status()
            took[name].append(1000 * (time.perf_counter() - begun))
    return {name: answers_ms[1:] for name, answers_ms in took.items()}


def _ago(now: datetime, **span: int) -> str:
    return (now - timedelta(**span)).isoformat()


def _look(browser: Browser, service: Service, views: int, report: Report) -> None:
    """How much a browser that was never here loads, and how long that takes."""
    took_ms, sizes = [], []
    for _ in range(views):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        got: list[int] = []
        page.on("response", partial(_note, got))
        begun = time.perf_counter()
        page.goto(service.url)
        page.locator(READY).first.wait_for()
        took_ms.append(1000 * (time.perf_counter() - begun))
        sizes.append(sum(got) / 1000)
        page.close()
    report.add("loaded for the first view, answers included", "kB", max(sizes), Goal(most=100))
    report.add("first view, all of it", "ms", percentile(took_ms, 0.5), Goal(most=300), {"slowest": max(took_ms)})


def _note(sizes: list[int], answer: Response) -> None:
    sizes.append(int(answer.headers.get("content-length", 0)))


def _watch(browser: Browser, service: Service, watched_s: int, report: Report) -> None:
    """What an open dashboard costs: the service while nothing happens, the page while much does."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(_LISTEN)
    page.goto(service.url)
    page.locator(READY).first.wait_for()
    used_s = cpu_seconds(*service.pids())
    page.wait_for_timeout(1000 * watched_s)
    report.add("CPU of the service with one open", "% of a core", _share(service, used_s, watched_s), Goal(most=1.0))
    page.evaluate("longTasks.length = 0")
    with ThreadPoolExecutor(1) as thread:
        made = thread.submit(_change, service.url, watched_s)
        page.wait_for_timeout(1000 * watched_s)
        changes = made.result()
    report.add(f"longest task at {changes / watched_s:.0f} runs a second", "ms", _longest(page), Goal(most=50))
    page.close()


def _share(service: Service, since_s: float, watched_s: float) -> float:
    return 100 * (cpu_seconds(*service.pids()) - since_s) / watched_s


def _change(url: str, watched_s: int) -> int:
    """Runs that begin and end, each of which is three changes; returns how many."""
    runs = watched_s * CHANGES_PER_S // 3
    begun = time.monotonic()
    with httpx.Client(base_url=f"{url}/schedulerService/") as ask:
        for number in range(runs):
            ask.post("jobTrigger", json={"application": "more", "jobName": "change"}).raise_for_status()
            time.sleep(max(0.0, begun + 3 * (number + 1) / CHANGES_PER_S - time.monotonic()))
    return runs


def _longest(page: Page) -> float:
    found: float = page.evaluate("Math.max(0, ...longTasks)")
    return found

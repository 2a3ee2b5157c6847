"""A page asks and hears at once: an answer that comes late, from before the newest change, never hides that change."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from tests.acceptance.dashboard import watched
from tests.acceptance.service import Service, running

pytestmark = pytest.mark.needs("chromium")

_HEAR = """window.heard = [];
new BroadcastChannel('clickclock-live').onmessage = ({ data }) => Array.isArray(data) && heard.push(...data);"""
"""What the page's stream says, noted beside the page."""

MERGES = [("/", "triggerMarks"), ("/runs", "jobTrigger[?]"), ("/jobs", "jobState")]
"""Pages that put each change into what they show: the address, and the question whose answer comes late."""
ASKS_AGAIN = [
    ("/jobs/shop/slow", "jobDetail"),
    ("/chains/shop/slow", "jobDetail"),
    ("/schedules/{schedule}", "scheduleTimes"),
]
"""Pages that ask again at each change."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(Path(tmp_path_factory.mktemp("data"))) as standing:
        yield standing


@dataclass
class Slow:
    """A run of a schedule's one time. It ends when its file is there."""

    url: str
    file: Path
    schedule: str = ""
    run: str = ""

    def begin(self) -> None:
        job = {"application": "shop", "jobName": "slow"}
        command = f"sh -c 'until [ -e {self.file} ]; do sleep 0.05; done'"
        self.ask("POST", "job", json={**job, "preemption": False, "command": command})
        at = (datetime.now(UTC) + timedelta(seconds=1)).isoformat(timespec="milliseconds")
        made = self.ask("POST", "schedules", json={**job, "kind": "once", "expression": at})
        self.schedule = made["schedule"]["scheduleId"]
        self.until("running")

    def until(self, state: str) -> None:
        query = {"scheduleId": self.schedule, "state": state}
        for _ in range(600):
            if found := self.ask("GET", "jobTrigger", params=query)["triggers"]:
                self.run = found[0]["triggerId"]
                return
            threading.Event().wait(0.1)
        raise AssertionError(f"the run is not {state} after a minute")

    def end(self) -> None:
        self.file.touch()
        self.until("succeeded")

    def ask(self, method: str, name: str, **more: Any) -> dict[str, Any]:
        answer = httpx.request(method, f"{self.url}/schedulerService/{name}", timeout=60, **more)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
def slow(service: Service, tmp_path: Path) -> Iterator[Slow]:
    run = Slow(service.url, tmp_path / "go")
    run.begin()
    yield run
    run.end()
    run.ask("DELETE", "job", params={"application": "shop", "jobName": "slow"})


class Late:
    """The first answer to a question. It was given at once, and reaches the page when it is let go."""

    def __init__(self, page: Page, question: str) -> None:
        self._page, self._held = page, list[tuple[Route, APIResponse]]()
        self._pattern, self._is_first = re.compile(f"/schedulerService/{question}"), True
        page.route(self._pattern, self._hold)

    def _hold(self, route: Route) -> None:
        if not self._is_first:
            route.continue_()
            return
        self._is_first = False
        self._held.append((route, route.fetch()))

    def is_given(self) -> bool:
        self._page.evaluate("0")  # the browser's own messages come while it is asked
        return bool(self._held)

    def let_go(self) -> None:
        [(route, answer)] = self._held
        with self._page.expect_response(self._pattern):
            route.fulfill(response=answer)
        self._page.evaluate("new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")


def _ended_while_late(page: Page, slow: Slow, address: str, question: str) -> Late:
    page.add_init_script(_HEAR)
    late = Late(page, question)
    page.goto(address.format(schedule=slow.schedule, run=slow.run))
    page.wait_for_function("() => heard.some(({ state }) => state === 'live')")
    while not late.is_given():
        pass
    slow.end()
    said = "({ change }) => change?.data?.triggerId === run && change.data.state === 'succeeded'"
    page.wait_for_function(f"(run) => heard.some({said})", arg=slow.run)
    return late


def _shows_its_end(page: Page, slow: Slow) -> None:
    link = page.locator(f'a[href="/runs/{slow.run}"]').first
    expect(link).to_have_accessible_name(re.compile("succeeded"), timeout=20_000)


@pytest.mark.parametrize(("address", "question"), MERGES)
def test_a_change_that_comes_before_an_older_answer_stays(
    browser: Browser, service: Service, slow: Slow, address: str, question: str
) -> None:
    with watched(browser, service.url) as page:
        _ended_while_late(page, slow, address, question).let_go()
        _shows_its_end(page, slow)


@pytest.mark.parametrize(("address", "question"), ASKS_AGAIN)
def test_an_older_answer_that_comes_last_counts_for_nothing(
    browser: Browser, service: Service, slow: Slow, address: str, question: str
) -> None:
    with watched(browser, service.url) as page:
        late = _ended_while_late(page, slow, address, question)
        _shows_its_end(page, slow)
        late.let_go()
        _shows_its_end(page, slow)


def test_the_page_of_a_run_shows_its_end(browser: Browser, service: Service, slow: Slow) -> None:
    with watched(browser, service.url) as page:
        late = _ended_while_late(page, slow, "/runs/{run}", "jobTrigger[?]")
        head = page.get_by_role("main").locator(".page-head")
        expect(head).to_contain_text("succeeded", timeout=20_000)
        late.let_go()
        expect(head).to_contain_text("succeeded", timeout=20_000)


def test_events_that_came_before_an_older_answer_wait_behind_the_button(
    browser: Browser, service: Service, slow: Slow
) -> None:
    with watched(browser, service.url) as page:
        _ended_while_late(page, slow, "/events", "events[?](?!follow=true)").let_go()
        expect(page.get_by_role("button", name=re.compile(r"^\d+ new$"))).to_be_visible(timeout=20_000)


def test_what_somebody_types_into_a_filter_stays_while_the_page_changes(
    browser: Browser, service: Service, slow: Slow
) -> None:
    with watched(browser, service.url) as page:
        page.goto("/runs")
        field = page.get_by_role("searchbox").first
        field.press_sequentially("sho")
        slow.end()
        _shows_its_end(page, slow)
        expect(field).to_have_value("sho")
        field.press_sequentially("p")
        field.press("Enter")
        expect(page).to_have_url(re.compile("=shop"))
        page.go_back()
        expect(field).to_have_value("")

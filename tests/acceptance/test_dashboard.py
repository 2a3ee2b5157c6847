"""The dashboard in a real browser, on one service with jobs of its own."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from playwright.sync_api import Browser, Route, expect

from tests.acceptance.dashboard import look_in_both_themes, watched
from tests.acceptance.service import Service, running

pytestmark = pytest.mark.needs("chromium")

FIRST_VIEW_BYTES_MAX = 100_000
BERLIN = ZoneInfo("Europe/Berlin")
STRANGE = "a/../b: n@me.."
UNTAMED = '<script>alert(1)</script> "quotes" & שלום \u202eevil 🕰'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(Path(tmp_path_factory.mktemp("data"))) as standing:
        with httpx.Client(base_url=f"{standing.url}/schedulerService/") as ask:
            _fill(ask)
        yield standing


def _fill(ask: httpx.Client) -> None:
    """Jobs that succeed, fail, run on, and have names that pages must take as they are."""
    jobs: list[dict[str, object]] = [
        {"application": "shop", "jobName": "beat", "command": "echo tick"},
        {"application": "shop", "jobName": "broken", "command": "echo no stock; exit 3", "shell": True},
        {"application": "shop", "jobName": "long", "command": "sleep 300"},
        {"application": "shop", "jobName": STRANGE, "command": "true", "description": UNTAMED},
    ]
    assert ask.post("job", json=[{"preemption": False, **job} for job in jobs]).status_code == 201
    often = {"application": "shop", "jobName": "beat", "kind": "interval", "expression": "PT3S"}
    paused = {
        "application": "shop",
        "jobName": "long",
        "expression": "0 0 * * *",
        "paused": True,
        "pauseReason": UNTAMED,
    }
    assert ask.post("schedules", json=[often, paused]).status_code == 201
    for name in ("broken", "long"):
        assert ask.post("jobTrigger", json={"application": "shop", "jobName": name}).status_code == 201


def test_the_overview_shows_what_runs_what_comes_and_what_is_wrong(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        sizes: list[int] = []
        page.on(
            "response",
            lambda got: sizes.append(int(got.headers.get("content-length", 0))) if "/static/" in got.url else None,
        )
        page.goto("/")
        running_now = page.get_by_role("region", name="Running now")
        expect(running_now.get_by_role("link", name="shop/long")).to_be_visible()
        expect(page.get_by_role("region", name="Needs a look")).to_contain_text("shop/long is paused")
        expect(page.get_by_role("region", name="Needs a look")).to_contain_text(UNTAMED)
        expect(page.get_by_role("region", name="The hour ahead").get_by_role("link", name="shop/beat")).to_be_visible()
        expect(page.get_by_role("region", name="Just ended")).to_contain_text("shop/beat")
        assert sum(sizes) < FIRST_VIEW_BYTES_MAX
        assert look_in_both_themes(page) == []


def test_a_change_shows_without_a_question_and_in_every_tab(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/")
        expect(page.get_by_role("banner").get_by_text("Live")).to_be_visible()
        streams: list[str] = []
        other = page.context.new_page()
        other.on("request", lambda asked: streams.append(asked.url) if "/events" in asked.url else None)
        other.goto("/")
        expect(other.get_by_role("banner").get_by_text("Live")).to_be_visible()
        httpx.post(f"{service.url}/schedulerService/jobTrigger", json={"application": "shop", "jobName": STRANGE})
        for tab in (page, other):
            tab.bring_to_front()
            expect(tab.get_by_role("region", name="Just ended")).to_contain_text(STRANGE)
        assert streams == []


def test_a_question_that_hangs_or_fails_leaves_the_rest_and_says_so_in_its_own_place(
    browser: Browser, service: Service
) -> None:
    no = '{"status": "error", "code": "internalError", "message": "The store is full.", "requestId": "r-7"}'
    with watched(browser, service.url, is_quiet=False) as page:
        page.clock.install()
        page.route("**/jobStat?*", lambda _: None)
        page.route(re.compile("/(alarm|search)[?]"), lambda route: route.fulfill(status=503, body=no))
        page.goto("/")
        expect(page.get_by_role("region", name="Running now")).to_contain_text("shop/long")
        attention = page.get_by_role("region", name="Needs a look")
        expect(attention.get_by_role("alert")).to_contain_text("The store is full. Request r-7")
        expect(attention).to_contain_text("shop/long is paused")
        expect(page.get_by_text("not answered yet").first).to_be_visible()
        assert look_in_both_themes(page) == []
        page.clock.fast_forward(61_000)
        late = page.get_by_text("The service has not answered within 60 s. Look whether it is busy")
        expect(late.first).to_be_visible()
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Go to a page").fill("shop")
        page.clock.fast_forward(1_000)
        expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("The store is full.")


def test_a_fault_in_a_page_says_so_and_other_pages_work(browser: Browser, service: Service) -> None:
    broken = 'export const title = () => "Broken", enter = () => {}, view = () => { throw new Error("oh"); };'
    script = {"body": broken, "content_type": "text/javascript"}
    with watched(browser, service.url, is_quiet=False) as page:
        page.route("**/pages/groups.js", lambda route: route.fulfill(**script))
        page.goto("/groups")
        expect(page.get_by_role("alert")).to_contain_text("This page has a fault of its own")
        page.get_by_role("link", name="Jobs", exact=True).click()
        expect(page.get_by_role("region", name="Jobs")).to_contain_text("shop/beat")
        page.go_back()
        expect(page.get_by_role("alert")).to_contain_text("This page has a fault of its own")


def test_an_old_answer_does_not_undo_what_came_meanwhile(browser: Browser, service: Service) -> None:
    held: list[tuple[Route, dict[str, Any]]] = []

    def hold(route: Route) -> None:
        held.append((route, route.fetch().json()))

    with watched(browser, service.url) as page, httpx.Client(base_url=f"{service.url}/schedulerService/") as ask:
        page.goto("/")
        now, ended = (page.get_by_role("region", name=name) for name in ("Running now", "Just ended"))
        expect(now).to_contain_text("shop/long")
        page.route(re.compile("/jobTrigger[?]state"), hold)
        with page.expect_request(re.compile("/jobTrigger[?]state")):
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        (mine,) = ask.get("jobTrigger", params={"state": "running", "jobName": "long"}).json()["triggers"]
        ask.delete("jobTrigger", params={"triggerId": mine["triggerId"]}).raise_for_status()
        expect(ended).to_contain_text("shop/long")
        ((route, answer),) = held
        answer["triggers"].append({**mine, "triggerId": "t-new", "jobName": "only-in-the-answer"})
        route.fulfill(json=answer)
        expect(now).to_contain_text("only-in-the-answer")
        expect(now).not_to_contain_text("shop/long")


def test_over_http_from_another_host_where_browsers_have_no_locks_a_page_is_live_too(
    browser: Browser, service: Service
) -> None:
    with watched(browser, service.url) as page:
        page.add_init_script("delete Navigator.prototype.locks")
        page.goto("/")
        expect(page.get_by_role("banner").get_by_text("Live")).to_be_visible()
        httpx.post(f"{service.url}/schedulerService/jobTrigger", json={"application": "shop", "jobName": STRANGE})
        expect(page.get_by_role("region", name="Just ended")).to_contain_text(STRANGE)


def test_an_address_without_a_page_says_so_and_keys_lead_back(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/no/such/page?x=1")
        expect(page.get_by_role("heading", name="No such page")).to_be_visible()
        assert look_in_both_themes(page) == []
        page.keyboard.press("g")
        page.keyboard.press("o")
        expect(page).to_have_url(f"{service.url}/")
        expect(page).to_have_title("Overview · clickclock")
        page.go_back()
        expect(page.get_by_role("heading", name="No such page")).to_be_visible()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("Overview")


def test_the_theme_and_the_zone_are_the_readers_and_stay(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/")
        page.get_by_label("Time zone").select_option("UTC")
        page.get_by_role("button", name=re.compile("Theme")).click()
        page.reload()
        expect(page.get_by_label("Time zone")).to_have_value("UTC")
        expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
        expect(page.get_by_role("region", name="The hour ahead")).to_contain_text("UTC")


def test_a_browser_whose_clock_is_wrong_is_told_and_shown_the_services_time(browser: Browser, service: Service) -> None:
    again = {"application": "shop", "jobName": "long"}
    httpx.post(f"{service.url}/schedulerService/jobTrigger", json=again).raise_for_status()
    with watched(browser, service.url) as page:
        page.add_init_script("const now = Date.now; Date.now = () => now() + 600_000;")
        page.goto("/")
        expect(page.get_by_text(re.compile(r"This browser's clock is (9 m 59|10 m 0\d) s ahead of"))).to_be_visible()
        long = page.get_by_role("region", name="Running now").get_by_role("link", name="shop/long").first
        expect(long.locator(".run-time")).to_have_text(re.compile(r"^[1-9] m \d\d s$|^\d+(\.\d)? s$"))
        shown = page.get_by_role("region", name="Just ended").get_by_role("listitem").filter(has_text="beat").first
        ended_at = datetime.strptime(shown.locator("time").inner_text(), "%H:%M:%S")  # noqa: DTZ007 (a time of day)
        ago_s = (datetime.now(BERLIN).replace(tzinfo=None) - ended_at).seconds
        assert min(ago_s, 86_400 - ago_s) < 300
        page.goto("/runs?jobName=beat&from=-1h")
        expect(page.get_by_role("row").filter(has_text="shop/beat").first).to_be_visible()
        page.goto("/jobs?jobName=beat")
        expect(page.get_by_role("row").filter(has_text="shop/beat")).to_contain_text(re.compile(r"in \d\.\d s|due"))


def test_events_are_found_and_new_ones_wait(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/events?type=trigger&jobName=broken")
        rows = page.get_by_role("row").filter(has_text="shop/broken")
        expect(rows.first).to_contain_text("failed")
        httpx.post(f"{service.url}/schedulerService/jobTrigger", json={"application": "shop", "jobName": "broken"})
        page.get_by_role("button", name=re.compile(r"\d new")).click()
        expect(page.get_by_role("button", name=re.compile(r"\d new"))).to_have_count(0)
        assert look_in_both_themes(page) == []


def test_a_chain_is_a_picture_and_says_the_same_in_words(browser: Browser, service: Service) -> None:
    jobs: list[dict[str, object]] = [
        {"application": "chain", "jobName": "import", "command": "true"},
        {"application": "chain", "jobName": "report", "command": "true", "dependsOn": ["import"]},
        {
            "application": "chain",
            "jobName": "tell",
            "command": "true",
            "dependsOn": ["import", {"jobName": "report", "when": "failed"}],
        },
    ]
    for job in jobs:
        httpx.put(f"{service.url}/schedulerService/job", json={"preemption": False, **job}).raise_for_status()
    with watched(browser, service.url) as page:
        page.goto("/jobs/chain/report")
        page.get_by_role("link", name="The chain that it is part of").click()
        expect(page.get_by_role("region", name="The chain: 3 jobs, 3 dependencies")).to_be_visible()
        lowest = "(all) => Math.max(...all.map((each) => each.getBoundingClientRect().bottom))"
        boxes = page.locator(".chain-job").evaluate_all(lowest)
        assert page.locator(".chain-line").evaluate_all(lowest) > boxes, "an arrow is hidden behind a job"
        page.get_by_text("The same in words").click()
        expect(page.get_by_text("chain/tell runs after chain/report, if it fails")).to_be_visible()
        assert look_in_both_themes(page) == []


def test_a_page_goes_on_when_the_service_comes_back(browser: Browser, service: Service) -> None:
    """The last one: afterwards the file's service is gone."""
    with watched(browser, service.url, is_quiet=False) as page:
        page.goto("/")
        expect(page.get_by_role("banner").get_by_text("Live")).to_be_visible()
        service.kill()
        expect(page.get_by_role("banner").get_by_text("Reconnecting")).to_be_visible()
        with running(service.data_dir, port=int(service.url.rpartition(":")[2])):
            expect(page.get_by_role("banner").get_by_text("Live")).to_be_visible(timeout=30_000)
            httpx.post(f"{service.url}/schedulerService/jobTrigger", json={"application": "shop", "jobName": STRANGE})
            expect(page.get_by_role("region", name="Just ended")).to_contain_text(STRANGE)

"""The dashboard's pages of what comes and of what there is: calendar, heat map, groups, clusters, and the like."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.dashboard import look_in_both_themes, watched
from tests.acceptance.service import Service, running

pytestmark = pytest.mark.needs("chromium")

JOBS: list[dict[str, Any]] = [
    {"application": "shop", "jobName": "beat", "command": "true", "groupName": "exports"},
    {"application": "shop", "jobName": "slow", "command": "sleep 300", "groupName": "exports"},
    {"application": "shop", "jobName": "broken", "command": "exit 3", "shell": True},
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(Path(tmp_path_factory.mktemp("data"))) as standing:
        with _ask(standing) as ask:
            group = {"groupName": "exports", "maxConcurrentTriggers": 1, "description": "What leaves the house."}
            assert ask.post("group", json=group).status_code == 201
            germany = {"calendarName": "germany", "excludeDates": ["2026-12-25"], "businessDays": ["monday", "tuesday"]}
            assert ask.post("calendar", json=germany).status_code == 201
            assert ask.post("job", json=[{"preemption": False, **job} for job in JOBS]).status_code == 201
            schedules: list[dict[str, Any]] = [
                {
                    "application": "shop",
                    "jobName": "broken",
                    "scheduleId": f"s-{n}",
                    "expression": f"{n % 2 * 30} 3 * * *",
                }
                for n in range(8)
            ]
            schedules[7] |= {"paused": True}
            schedules[6] |= {"calendarName": "germany"}
            schedules.append(
                {"application": "shop", "jobName": "beat", "scheduleId": "beat", "expression": "0 0 1 1 *"}
            )
            assert ask.post("schedules", json=schedules).status_code == 201
            for image in ({"prefix": "python", "image": "python:3.13"}, {"prefix": "python -m etl", "image": "etl:1"}):
                assert ask.post("commandPrefixImageMapping", json=image).status_code == 201
            for name in ("broken", "slow", "beat"):
                assert ask.post("jobTrigger", json={"application": "shop", "jobName": name}).status_code == 201
            past = {"scheduleId": "s-1", "from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z"}
            started = ask.post("backfill", json={**past, "maxTriggersPerSecond": 0.01, "reason": "after a fix"})
            assert started.status_code == 201
        yield standing


def _ask(service: Service) -> httpx.Client:
    return httpx.Client(base_url=f"{service.url}/schedulerService/")


def _row(page: Page, text: str) -> Any:
    return page.get_by_role("row").filter(has_text=text)


def test_the_calendar_shows_what_comes_what_comes_together_and_one_hour_of_it(
    browser: Browser, service: Service
) -> None:
    with watched(browser, service.url, timezone_id="UTC") as page:
        page.goto("/calendar?colour=red")
        expect(page.get_by_text("This page does not know colour, and ignores it.")).to_be_visible()
        week = page.get_by_role("region", name="The next 7 days, hour by hour")
        busy = week.get_by_role("link", name=re.compile(r"03:00:00 UTC: [67] times"))
        expect(busy.first).to_be_visible()
        expect(page.get_by_role("region", name="Most at once")).to_contain_text("4 in one minute")
        expect(page.get_by_role("region", name="Not as usual")).to_contain_text("does not run: the schedule was paused")
        expect(page.get_by_role("region", name="Not as usual")).to_contain_text(
            "not a business day of the calendar germany"
        )
        assert look_in_both_themes(page) == []
        busy.nth(2).click()
        hour = page.get_by_role("region", name=re.compile("03:00:00 UTC"))
        expect(hour.get_by_role("link", name="s-1")).to_be_visible()
        page.reload()
        expect(hour.get_by_role("link", name="s-1")).to_be_visible()
        page.keyboard.press("ArrowDown")
        chosen = week.locator("a[tabindex='0']")
        expect(chosen).to_have_count(1)
        chosen.focus()
        page.keyboard.press("ArrowRight")
        expect(
            week.get_by_role("link", name=re.compile("04:00:00 UTC: 0 times")).and_(page.locator(":focus"))
        ).to_be_visible()
        hour.get_by_role("link", name="Close").click()
        expect(hour).to_have_count(0)
        page.go_back()
        expect(hour).to_be_visible()
        page.get_by_label("Application").fill("nobody")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Nothing comes in the next 7 days")).to_be_visible()


def test_the_heat_map_shows_a_figure_of_each_job_and_leads_to_its_runs(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/lag?figure=failed")
        cell = page.get_by_role("link", name=re.compile(r"shop.broken, .*: \d+$"))
        expect(cell).to_be_visible()
        cell.focus()
        expect(page.get_by_role("status").filter(has_text="shop/broken")).to_be_visible()
        assert look_in_both_themes(page) == []
        page.get_by_label("Figure").select_option("How late: half within")
        expect(page.get_by_role("link", name=re.compile(r"shop.broken, .*: \d+ ms$"))).to_be_visible()
        expect(page).to_have_url(re.compile("figure=lagP50"))
        page.get_by_label("Window").select_option("30 days")
        page.get_by_role("link", name=re.compile(r"shop.broken, .*: \d+ ms$")).click()
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        expect(_row(page, "shop/broken").first).to_be_visible()
        expect(_row(page, "shop/slow")).to_have_count(0)


def test_the_heat_map_of_machines_is_found_from_the_clusters_and_leads_to_an_hours_runs(
    browser: Browser, service: Service
) -> None:
    with watched(browser, service.url) as page, _ask(service) as ask:
        (node,) = (each["node"] for each in ask.get("nodeStatGrid").json()["nodeStatGrid"]["rows"])
        page.goto("/clusters")
        page.get_by_role("link", name="How late each machine starts").click()
        expect(page).to_have_url(re.compile(r"/lag\?by=node$"))
        cell = page.get_by_role("link", name=re.compile(rf"{re.escape(node)}, .*: \d+ ms$")).last
        expect(cell).to_be_visible()
        expect(page.get_by_label("Group")).to_have_count(0)
        assert look_in_both_themes(page) == []
        cell.click()
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        expect(_row(page, "shop/broken").first).to_be_visible()
        page.go_back()
        page.get_by_label("Rows").select_option("Jobs")
        expect(page.get_by_role("link", name=re.compile("shop.broken,")).last).to_be_visible()


def test_the_heat_map_is_asked_anew_each_minute_and_keeps_what_is_chosen(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page, _ask(service) as ask:

        def ended() -> int:
            (row,) = ask.get("jobStatGrid", params={"figure": "total", "bucket": "hour"}).json()["jobStatGrid"]["rows"]
            return int(sum(value or 0 for value in row["values"]))

        page.clock.install()
        page.goto("/lag?figure=total")
        page.get_by_role("link", name=re.compile(rf"shop.broken, .*: {ended()}$")).focus()
        told = page.get_by_role("status").filter(has_text="shop/broken")
        expect(told).to_be_visible()
        before = ended()
        assert ask.post("jobTrigger", json={"application": "shop", "jobName": "broken"}).status_code == 201
        while ended() == before:
            pass
        page.clock.fast_forward(60_000)
        expect(page.get_by_role("link", name=re.compile(rf"shop.broken, .*: {before + 1}$"))).to_be_visible()
        expect(told).to_be_visible()


def test_a_group_says_what_it_holds_and_is_paused_and_resumed(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page, _ask(service) as ask:
        page.goto("/groups")
        row = _row(page, "exports")
        expect(row).to_contain_text("1 of 1 run")
        expect(row).to_contain_text("1 wait")
        assert look_in_both_themes(page) == []
        page.get_by_role("button", name="Pause exports").click()
        expect(page.get_by_role("dialog")).to_contain_text("Nothing of exports, which has 2 jobs, starts")
        page.get_by_role("button", name="Pause", exact=True).click()
        expect(row).to_contain_text("paused")
        assert ask.get("group?groupName=exports").json()["groups"][0]["paused"] is True
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("button", name="Pause exports")).to_be_visible()
        assert ask.get("group?groupName=exports").json()["groups"][0]["paused"] is False


def test_clusters_calendars_and_mappings_say_what_there_is(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/clusters")
        expect(page.get_by_role("region", name="Clusters")).to_contain_text("1 of")
        expect(page.get_by_role("region", name="Who serves")).to_contain_text("loops run")
        assert look_in_both_themes(page) == []
        page.goto("/calendars")
        expect(_row(page, "germany")).to_contain_text("mon, tue")
        expect(_row(page, "germany")).to_contain_text("1 schedule")
        assert look_in_both_themes(page) == []
        page.goto("/mappings")
        expect(page.get_by_role("region", name="Prefixes", exact=True)).to_contain_text("python:3.13")
        page.keyboard.press("/")
        page.keyboard.type("python -m etl load")
        page.keyboard.press("Enter")
        expect(page.get_by_text("It runs in etl:1.")).to_be_visible()
        expect(page).to_have_url(f"{service.url}/mappings?command=python+-m+etl+load")
        assert look_in_both_themes(page) == []
    with watched(browser, service.url, is_quiet=False) as page:
        page.goto("/mappings?command=a+%7C+b")
        expect(page.get_by_role("alert")).to_contain_text("|")


def test_a_backfill_says_how_far_it_is_and_is_paced_paused_and_cancelled(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/backfills")
        row = _row(page, "shop/broken")
        expect(row).to_contain_text(re.compile("[01] of 2"))
        assert look_in_both_themes(page) == []
        page.get_by_role("button", name=re.compile("^Pause the backfill")).click()
        expect(row).to_contain_text("paused")
        page.get_by_role("button", name=re.compile("^Pace the backfill")).click()
        page.get_by_label("At once").fill("7")
        page.get_by_role("button", name="Change").click()
        expect(page.get_by_text("It goes at the new pace.")).to_be_visible()
        page.get_by_role("button", name=re.compile("^Cancel the backfill of")).click()
        page.get_by_role("button", name="Cancel the backfill", exact=True).click()
        expect(row).to_contain_text("cancelled")
        expect(page.get_by_role("button", name=re.compile("^Pause the backfill"))).to_have_count(0)
        page.goto("/backfills?state=done")
        expect(page.get_by_text("There is no backfill")).to_be_visible()

"""The dashboard's pages of schedules and alarms in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.dashboard import look_in_both_themes, watched
from tests.acceptance.service import Service, running

pytestmark = pytest.mark.needs("chromium")

NAMES = {"application": "shop", "jobName": "export"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(Path(tmp_path_factory.mktemp("data"))) as standing:
        with _ask(standing) as ask:
            job = {**NAMES, "command": "echo no stock; exit 3", "shell": True, "preemption": False}
            assert ask.post("job", json=job).status_code == 201
            nightly = {**NAMES, "scheduleId": "nightly", "expression": "30 2 * * *", "timeZone": "Europe/Berlin"}
            assert ask.post("schedules", json=nightly).status_code == 201
            assert ask.post("jobTrigger", json=NAMES).status_code == 201
        yield standing


def _ask(service: Service) -> httpx.Client:
    return httpx.Client(base_url=f"{service.url}/schedulerService/")


def test_a_schedule_shows_its_times_and_the_days_on_which_the_clock_is_changed(
    browser: Browser, service: Service
) -> None:
    with watched(browser, service.url) as page:
        page.goto("/schedules/nightly")
        expect(page.get_by_role("region", name="Next times").get_by_role("listitem")).to_have_count(10)
        changes = page.get_by_role("region", name="When the clock is changed")
        expect(changes.get_by_role("figure")).to_have_count(2)
        expect(changes).to_contain_text(
            re.compile("02:30 does not exist on .* runs at the first instant after the gap")
        )
        expect(changes).to_contain_text("01:59 → 03:00")
        page.get_by_label("A time that the clock jumps over").select_option("skip")
        expect(changes.locator(".fire.skipped")).to_have_count(1)
        expect(page.locator(".diff .come")).to_contain_text('"dstGapPolicy": "skip"')
        assert look_in_both_themes(page) == []


def test_two_who_edit_one_schedule_see_each_others_change(browser: Browser, service: Service) -> None:
    with watched(browser, service.url, is_quiet=False) as page, _ask(service) as ask:
        page.goto("/schedules/nightly")
        page.get_by_label("What it is for").fill("The books.")
        theirs = {"scheduleId": "nightly", "expression": "45 2 * * *"}
        assert ask.put("schedules", json=theirs).status_code == 200
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Somebody changed it meanwhile")).to_be_visible()
        expect(page.locator(".banner .diff .come")).to_contain_text("45 2 * * *")
        (kept,) = ask.get("schedules", params={"scheduleId": "nightly"}).json()["schedules"]
        assert (kept["expression"], kept["description"]) == ("45 2 * * *", None)


def test_a_schedule_is_made_with_its_faults_beside_their_fields(browser: Browser, service: Service) -> None:
    with watched(browser, service.url, is_quiet=False) as page:
        page.goto("/jobs/shop/export")
        page.get_by_role("link", name="Add a schedule").click()
        page.get_by_label("When", exact=True).fill("61 2 * * *")
        expect(page.get_by_label("When", exact=False).and_(page.locator("[aria-invalid]"))).to_be_visible()
        page.get_by_label("Time zone").last.fill("America/New_York")
        page.locator("[name=expression]").fill("15 6 * * MON-FRI")
        expect(page.get_by_role("region", name="Next times").get_by_role("listitem").first).to_contain_text(
            "06:15 in America/New_York"
        )
        page.get_by_role("button", name="Create").click()
        expect(page).to_have_url(re.compile("/schedules/[0-9a-f-]{36}$"))
        expect(page.get_by_role("heading", name="Schedule of shop/export")).to_be_visible()


def test_an_alarm_is_taken_on_and_its_job_silenced(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/alarms?isOpen=true")
        page.get_by_role("button", name="Acknowledge …").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Your name").fill("Kim")
        dialog.get_by_role("button", name="Acknowledge").click()
        expect(page.get_by_text("Kim takes care of it")).to_be_visible()
        page.get_by_role("button", name="Silence …").click()
        dialog.get_by_label("Your name").fill("Kim")
        dialog.get_by_role("button", name="Silence", exact=True).click()
        silenced = page.get_by_role("region", name="Silenced")
        expect(silenced).to_contain_text("shop/export")
        assert look_in_both_themes(page) == []
        silenced.get_by_role("button", name="End").click()
        expect(silenced).to_have_count(0)

"""The dashboard's pages of jobs and runs in a real browser: find, look, act."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.caller import Caller
from tests.acceptance.dashboard import look_in_both_themes, watched
from tests.acceptance.service import Service, running

pytestmark = pytest.mark.needs("chromium")

LINES = 200_000
NODES_MAX = 1_200
LONG_OUTPUT = f"""awk 'BEGIN {{ for (i = 1; i <= {LINES}; i++)
  if (i % 50000 == 7) printf "\\033[1;31mERROR\\033[0m row %d is <b>no</b> ISO 4217\\n", i
  else print "row " i }}'"""
SLOW = {"application": "shop", "jobName": "slow/er", "command": "sleep 300"}
JOBS: list[dict[str, Any]] = [
    {"application": "shop", "jobName": "import", "command": LONG_OUTPUT, "shell": True, "parameters": {"day": None}},
    {"application": "shop", "jobName": "broken", "command": "echo one; exit 3", "shell": True, "maxRetries": 1},
    SLOW,
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(Path(tmp_path_factory.mktemp("data"))) as standing:
        with _ask(standing) as ask:
            assert ask.post("job", json=[{"preemption": False, **job} for job in JOBS]).status_code == 201
            nightly = {**_names("broken"), "scheduleId": "nightly", "expression": "0 3 * * *"}
            assert ask.post("schedules", json=nightly).status_code == 201
            assert ask.post("jobTrigger", json=_names(str(SLOW["jobName"]))).status_code == 201
            failing = ask.post("jobTrigger", json=_names("broken"))
            Caller(standing).ended(failing.json()["trigger"]["triggerId"])
        yield standing


def _ask(service: Service) -> httpx.Client:
    return httpx.Client(base_url=f"{service.url}/schedulerService/")


def _names(job: str) -> dict[str, str]:
    return {"application": "shop", "jobName": job}


def _row(page: Page, text: str) -> Any:
    return page.get_by_role("row").filter(has_text=text)


def test_runs_are_found_by_filters_that_the_address_keeps_and_new_ones_wait(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page, _ask(service) as ask:
        page.goto("/runs?colour=red")
        expect(page.get_by_text("This page does not know colour, and ignores it.")).to_be_visible()
        expect(_row(page, "shop/broken")).to_contain_text("The command ended with exit code 3")
        page.get_by_label("State").select_option("went wrong")
        expect(_row(page, SLOW["jobName"])).to_have_count(0)
        page.reload()
        expect(page.get_by_label("State")).to_have_value("failed,timedOut,lost")
        expect(_row(page, "shop/broken")).to_have_count(1)
        assert look_in_both_themes(page) == []
        ask.post("jobTrigger", json=_names("broken"))
        page.get_by_role("button", name="1 new").click()
        expect(_row(page, "shop/broken")).to_have_count(2)
        page.go_back()
        expect(_row(page, SLOW["jobName"])).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/runs/[0-9a-f-]{36}$"))


def test_a_filter_that_is_refused_is_answered_in_the_services_words(browser: Browser, service: Service) -> None:
    with watched(browser, service.url, is_quiet=False) as page:
        page.goto("/runs?state=perhaps")
        expect(page.get_by_role("alert")).to_contain_text("state")
        expect(page.get_by_role("alert")).to_contain_text(re.compile("Request [0-9a-f-]{36}"))


def test_a_run_by_a_form_leads_to_its_output_of_200_000_lines(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/jobs/shop/import")
        page.get_by_role("button", name="Run …").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("day").fill("2026-11-24")
        dialog.get_by_label("Why").fill("asked by accounting")
        dialog.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_text("200,000 lines")).to_be_visible()
        expect(page.get_by_text("asked by accounting")).to_be_visible()
        expect(page.get_by_text("day=2026-11-24")).to_be_visible()
        page.get_by_label("Find in the output").last.fill("ISO 4217")
        expect(page.get_by_text("1 of 4 lines")).to_be_visible()
        expect(page.locator(".line.hit")).to_contain_text("ERROR row 7 is <b>no</b> ISO 4217")
        page.get_by_role("button", name="Next line that has it").click()
        expect(page.locator(".line.hit")).to_contain_text("row 50007")
        page.locator(".scroll").focus()
        page.keyboard.press("e")
        page.keyboard.press("e")
        expect(page.locator(".line.chosen")).to_contain_text("row 100007 ")
        page.get_by_role("spinbutton", name="Line").fill("123456")
        page.get_by_role("spinbutton", name="Line").press("Enter")
        expect(page.locator(".line.chosen")).to_contain_text("row 123456")
        assert page.locator("*").count() < NODES_MAX
        page.reload()
        expect(page).to_have_url(re.compile("q=ISO.*#L123456$"))
        expect(page.locator(".line.chosen")).to_contain_text("row 123456")
        assert look_in_both_themes(page) == []


def test_each_attempt_has_its_output_and_its_reason(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/jobs/shop/broken")
        _row(page, "failed").first.get_by_role("link").first.click()
        expect(page.get_by_text("The command ended with exit code 3.")).to_be_visible()
        page.get_by_role("button", name="failed 1").click()
        expect(page).to_have_url(re.compile("attempt=1"))
        expect(page.locator(".line")).to_contain_text("one")


def test_jobs_are_found_by_name_and_a_run_is_cancelled_with_a_word_of_warning(
    browser: Browser, service: Service
) -> None:
    with watched(browser, service.url) as page:
        page.goto("/jobs")
        expect(_row(page, "shop/broken")).to_contain_text("failed")
        expect(_row(page, SLOW["jobName"])).to_contain_text("running")
        assert look_in_both_themes(page) == []
        page.keyboard.press("Control+k")
        page.get_by_role("dialog").get_by_role("combobox").fill("slow")
        page.get_by_role("option", name="slow/er").first.click()
        expect(page).to_have_url(f"{service.url}/jobs/shop/slow%2Fer")
        page.get_by_role("region", name="Running now").get_by_role("link").click()
        page.get_by_role("button", name="Cancel …").click()
        expect(page.get_by_role("dialog")).to_contain_text("SIGTERM")
        page.get_by_role("button", name="Cancel the run").click()
        expect(page.locator(".page-head")).to_contain_text("cancelled")


def test_a_pause_says_why_and_can_be_taken_back(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page, _ask(service) as ask:
        page.goto("/jobs/shop/broken")
        page.get_by_role("button", name="Pause …").click()
        page.get_by_role("dialog").get_by_label("Why").fill("Accounting closes its books.")
        page.get_by_role("button", name="Pause", exact=True).click()
        expect(page.get_by_text("paused: Accounting closes its books.")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("button", name="Pause …")).to_be_visible()
        (schedule,) = ask.get("schedules", params={"scheduleId": "nightly"}).json()["schedules"]
        assert schedule["paused"] is False
        assert look_in_both_themes(page) == []


def test_an_edit_shows_what_changes_and_overwrites_nobody(browser: Browser, service: Service) -> None:
    with watched(browser, service.url, is_quiet=False) as page, _ask(service) as ask:
        page.goto("/jobs/shop/import")
        page.get_by_role("button", name="Edit …").click()
        text = page.get_by_label("Definition, as JSON")
        mine = text.input_value().replace('"shell": true', '"shell": true,\n  "owner": "me"')
        text.fill(mine)
        expect(page.locator(".diff .come")).to_contain_text('"owner": "me"')
        theirs = ask.get("job", params=_names("import")).json()["jobs"][0] | {"description": "Theirs."}
        assert ask.put("job", json=theirs).status_code == 200
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Somebody changed it meanwhile.")).to_be_visible()
        expect(page.locator(".diff .come").first).to_contain_text("Theirs.")
        assert ask.get("job", params=_names("import")).json()["jobs"][0]["description"] == "Theirs."
        text.fill(mine.replace('"owner"', '"description": "Theirs.",\n  "owner"'))
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Owner: me")).to_be_visible()
        assert ask.get("job", params=_names("import")).json()["jobs"][0]["description"] == "Theirs."


def test_all_that_match_are_counted_first_and_then_each_is_answered(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page, _ask(service) as ask:
        page.goto("/runs?jobName=broken&state=failed")
        page.get_by_role("button", name="All that match …").click()
        dialog = page.get_by_role("dialog")
        many = int(re.findall(r"Run them again \((\d+)\)", dialog.inner_text())[0])
        dialog.get_by_label("Why").fill("the stock is there")
        dialog.get_by_role("button", name="Do it").click()
        expect(dialog.get_by_text(f"{many} done, 0 refused")).to_be_visible()
        expect(dialog.get_by_role("listitem").filter(has_text="runs again as")).to_have_count(many)
        again = ask.get("jobTrigger", params={**_names("broken"), "kind": "manual"}).json()["triggers"]
        assert len([each for each in again if each["reason"] == "the stock is there"]) == many

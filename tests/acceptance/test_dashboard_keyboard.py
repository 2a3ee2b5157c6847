"""Five questions that people come with, each answered in a real browser without a mouse."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.acceptance.caller import Caller
from tests.acceptance.dashboard import watched
from tests.acceptance.service import Service, running
from tests.acceptance.shop import CLIENT, EVERY_FATE, fill

pytestmark = pytest.mark.needs("chromium")

expect.set_options(timeout=60_000)  # the process that answers begins with the first question
OPEN = ("--clicks", "--click-port", "0", "--click-profile", "open")
STOPS_MAX = 120
"""No page makes anybody press Tab more often than that."""
JOBS: list[dict[str, Any]] = [
    {"application": "shop", "jobName": "import", "command": "echo no stock; exit 3", "shell": True},
    {"application": "shop", "jobName": "export", "command": "true", "dependsOn": ["import"]},
    {"application": "shop", "jobName": "quick", "command": "true"},
    {"application": "shop", "jobName": "slow", "command": "sleep 2"},
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A night in which an import failed, and a shop whose orders are credited."""
    with running(Path(tmp_path_factory.mktemp("data")), *OPEN) as standing:
        scratch = Path(tmp_path_factory.mktemp("scratch"))
        with ThreadPoolExecutor(1) as thread:  # the browser's driver has a loop in this one
            filling = thread.submit(fill, standing.data_dir / "lake", scratch)
            with httpx.Client(base_url=f"{standing.url}/schedulerService/") as ask:
                assert ask.post("job", json=[{"preemption": False, **job} for job in JOBS]).status_code == 201
                runs = [
                    ask.post("jobTrigger", json={"application": "shop", "jobName": name}).json()["trigger"]
                    for name in ("import", "quick", "slow")
                ]
            for run in runs:
                Caller(standing).ended(run["triggerId"])
            filling.result()
        yield standing


def _tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until it has the focus."""
    expect(wanted).to_be_visible()
    for _ in range(STOPS_MAX):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the Tab key does not reach {wanted}")


def _go(page: Page, words: str, path: str) -> None:
    """Go to a page by its name."""
    page.keyboard.press("Control+k")
    box = page.get_by_role("dialog").get_by_role("combobox")
    expect(box).to_be_focused()
    page.keyboard.type(words)
    expect(page.get_by_role("dialog").get_by_role("option").first).to_contain_text(words)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(path))


def _jump(page: Page, key: str, heading: str) -> None:
    """From the overview to a page by its keys."""
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press(key)
    expect(page.get_by_role("heading", level=1, name=heading)).to_be_visible()


def test_why_a_job_did_not_run(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/")
        _go(page, "export", "/jobs/shop/export")
        why = page.get_by_role("link", name=re.compile("skipped")).first
        _tab_to(page, why)
        page.keyboard.press("Enter")
        expect(page.get_by_text("A job that it runs after did not succeed.")).to_be_visible()
        _tab_to(page, page.get_by_role("main").get_by_role("link", name=re.compile("shop.import")))
        page.keyboard.press("Enter")
        expect(page.get_by_text("The command ended with exit code 3.")).to_be_visible()


def test_which_job_is_the_slowest(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/")
        _go(page, "Heat map", "/lag")
        _tab_to(page, page.get_by_label("Figure"))
        page.keyboard.type("How long: 95")
        expect(page).to_have_url(re.compile("figure=durationP95"))
        # The map is one stop of the Tab key, on its first row: jobs with most of it come first.
        _tab_to(page, page.get_by_role("link", name=re.compile("^shop.slow, ")).first)
        status = page.get_by_role("status").filter(has_text="shop/slow")
        for _ in range(STOPS_MAX):
            if re.search(r"\d s", status.inner_text()):
                break
            page.keyboard.press("ArrowRight")
        expect(status).to_contain_text(re.compile(r"\d s"))


def test_which_campaign_earned_most_by_two_models(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        _jump(page, "c", "Credit")
        report = page.get_by_role("region", name="The report")
        _tab_to(page, report.get_by_role("link", name="meta", exact=True))
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="By campaign")).to_be_visible()
        shown = [_most(page)]
        model = page.get_by_role("combobox", name="Model")
        _tab_to(page, model)
        page.keyboard.type("first")
        expect(page).to_have_url(re.compile("model=first"))
        expect(model).to_have_value("first")
        shown.append(_most(page))
        assert shown == ["summer", "summer"]


def _most(page: Page) -> str:
    rows = page.get_by_role("region", name="The report").locator("tbody tr")
    expect(rows.first).to_be_visible()
    return rows.first.locator("th").inner_text()


def test_why_an_order_was_credited_as_it_was(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        _jump(page, "s", "Orders")
        wanted = page.get_by_role("link", name=EVERY_FATE)
        expect(wanted).to_be_visible()
        for _ in range(STOPS_MAX):
            page.keyboard.press("j")
            if wanted.evaluate("element => element.closest('tr').contains(document.activeElement)"):
                break
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name=f"Order {EVERY_FATE}")).to_be_visible()


def test_whether_a_landing_pages_parameters_are_right(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        _jump(page, "k", "Clicks")
        page.keyboard.press("/")
        expect(page.get_by_label("Address of a landing page")).to_be_focused()
        page.keyboard.type("https://shop.example/?utm_source=facebook&utm_campaign=spring")
        page.keyboard.press("Tab")
        page.keyboard.type(CLIENT)
        page.keyboard.press("Enter")
        expect(page.get_by_text("meta", exact=True).first).to_be_visible()

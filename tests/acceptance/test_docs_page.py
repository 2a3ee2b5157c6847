"""The page at /docs in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.acceptance.service import Service, running

pytestmark = pytest.mark.needs("chromium")

CONNECTIONS_MAX = 6
"""Of a browser, to one service."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(Path(tmp_path_factory.mktemp("data"))) as standing:
        yield standing


@pytest.fixture
def page(browser: Browser, service: Service) -> Iterator[Page]:
    """The page, in a tab that fails the test if a script throws."""
    tab = browser.new_page()
    thrown: list[str] = []
    tab.on("pageerror", lambda error: thrown.append(str(error)))
    tab.goto(f"{service.url}/docs")
    yield tab
    tab.close()
    assert thrown == []


def opened(page: Page, operation: str) -> Locator:
    section = page.locator(f"#{operation}")
    section.locator("summary").first.click()
    return section


def test_a_stream_ends_when_it_is_sent_again_and_leaves_room_for_others(page: Page) -> None:
    events, cluster = opened(page, "getEvents"), opened(page, "getCluster")
    for _ in range(CONNECTIONS_MAX + 1):
        events.get_by_role("button").click()
        expect(events.locator("[aria-live]")).to_contain_text("listening")
    cluster.get_by_role("button").click()
    expect(cluster.locator("[aria-live]")).to_contain_text("→ 200")


def test_an_answer_that_breaks_off_stays_as_far_as_it_came(page: Page, service: Service) -> None:
    events = opened(page, "getEvents")
    events.get_by_role("button").click()
    expect(events.locator("[aria-live]")).to_contain_text("listening")
    service.kill()
    expect(events.locator("[aria-live]")).to_contain_text(re.compile("listening.*The answer broke off", re.DOTALL))

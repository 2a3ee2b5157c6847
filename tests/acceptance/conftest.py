"""A real browser, for the tests that ask `needs("chromium")`."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests import parts


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a file; each opens pages of its own."""
    with sync_playwright() as driver:
        # Without a process for graphics: on a full machine it starts late, and until then no page draws a frame.
        options = ["--no-sandbox", "--disable-gpu", "--disable-gpu-watchdog"]
        running = driver.chromium.launch(executable_path=parts.browser(), args=options)
        yield running
        running.close()

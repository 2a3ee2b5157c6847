"""A real browser, for the tests that ask `needs("chromium")`."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a file; each opens pages of its own."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        # Without a process for graphics: on a full machine it starts late, and until then no page draws a frame.
        options = ["--no-sandbox", "--disable-gpu", "--disable-gpu-watchdog"]
        running = driver.chromium.launch(executable_path=path, args=options)
        yield running
        running.close()

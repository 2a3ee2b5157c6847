"""The pictures of the documentation, taken from a service that has run for a while.

Start `make run`, wait until the demo shop is credited and lanes have filled, then:

    python -m tests.acceptance.pictures http://127.0.0.1:8080
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.acceptance.dashboard import watched
from tests.house.tree import ROOT

FOLDER = ROOT / "docs/images"
SIZE = {"width": 1280, "height": 800}
PAGES = {
    "overview": ("/", ".strip-row .cell"),
    "overview-dark": ("/", ".strip-row .cell"),
    "schedule": ("/schedules/examples.nightly-report", ".clock-day"),
}
"""By name: the address, and what is there when the page has what it shows."""


def take(browser: Browser, url: str, folder: Path) -> None:
    """Every picture, as a reader would see the page."""
    folder.mkdir(exist_ok=True)
    for name, (address, ready) in PAGES.items():
        theme = "dark" if name.endswith("-dark") else "light"
        with watched(browser, url, viewport=SIZE, color_scheme=theme) as page:
            page.add_init_script("localStorage.setItem('firstSteps', 'seen')")
            page.goto(address)
            page.locator(ready).first.wait_for()
            page.screenshot(path=folder / f"{name}.png", animations="disabled")


def main() -> None:
    """Take them from the service at the address that is given."""
    (url,) = sys.argv[1:]
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        take(browser, url, FOLDER)
        browser.close()


if __name__ == "__main__":
    main()

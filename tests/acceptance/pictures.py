"""The pictures of the documentation, taken from a service that has run for a while.

Start `make run`, wait until the demo shop is credited and lanes have filled, then:

    python -m tests.acceptance.pictures http://127.0.0.1:8080 overview overview-dark schedule

`chain` shows the first example of `docs/how-to/chain-jobs.md`, after one run of `extract`. Those of attribution show
the shop of `shop.py`: `fill` the lake of a service started with `--click-profile open`, then take `credit`, `proof`
and `check`. Without names, all are taken.
"""

import sys
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, sync_playwright

from tests import parts
from tests.acceptance.dashboard import watched
from tests.house.tree import ROOT

FOLDER = ROOT / "docs/images"
SIZE = {"width": 1280, "height": 800}
LOW = {"chain": 320}
"""Heights of pages that have little to show."""
CHECKED = {"click": "https://shop.example/?utm_source=facebook&utm_campaign=spring&gclid=null", "clientId": "shop-1"}
PAGES = {
    "overview": ("/", ".strip-row .cell"),
    "overview-dark": ("/", ".strip-row .cell"),
    "schedule": ("/schedules/examples.nightly-report", ".clock-day"),
    "chain": ("/chains/shop/load", ".chain"),
    "credit": ("/attribution", ".day-bar"),
    "proof": ("/attribution/orders/shop-1/A-2041", ".split"),
    "check": (f"/clicks?{urlencode(CHECKED)}", ".verdict"),
}
"""By name: the address, and what is there when the page has what it shows."""


def take(browser: Browser, url: str, folder: Path, names: Collection[str] = tuple(PAGES)) -> None:
    """These pictures, as a reader would see the pages."""
    folder.mkdir(exist_ok=True)
    for name in names:
        address, ready = PAGES[name]
        theme = "dark" if name.endswith("-dark") else "light"
        with watched(
            browser, url, viewport={**SIZE, "height": LOW.get(name, SIZE["height"])}, color_scheme=theme
        ) as page:
            page.add_init_script("localStorage.setItem('firstSteps', 'seen')")
            page.goto(address)
            page.locator(ready).first.wait_for()
            page.screenshot(path=folder / f"{name}.png", animations="disabled")


def main() -> None:
    """Take them from the service at the address that is given."""
    url, *names = sys.argv[1:]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=parts.browser(), args=["--no-sandbox"])
        take(browser, url, FOLDER, names or tuple(PAGES))
        browser.close()


if __name__ == "__main__":
    main()

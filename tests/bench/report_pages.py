"""The dashboard's pages of attribution behind many clicks, in headless Chromium: `python -m tests.bench report_pages`.

A page is there when its rows are drawn. The first look computes; from the second on, what is the same is remembered,
the page's own files too, and a list of orders, which is about people, is read anew each time.
"""

import time
from pathlib import Path
from typing import Final

from playwright.sync_api import BrowserContext, sync_playwright

from clickclock.attribution.lake import Lake
from tests import parts
from tests.bench.attribution import command
from tests.bench.attribution_rows import World, fill
from tests.bench.report import Goal, Report, percentile
from tests.bench.service import Service

LOOKS: Final = 6
PAGES: Final = {
    "credit": ("/attribution", ".day-bar"),
    "credit by campaign": ("/attribution?by=campaign", ".day-bar"),
    "orders": ("/attribution/orders", "[data-row]"),
    "orders of a channel": ("/attribution/orders?channel=google", "[data-row]"),
    "paths": ("/attribution/paths", "[data-row]"),
    "versions": ("/attribution/versions", "[data-row]"),
}
"""By name: the address, and what is there when the page is."""


def run(folder: Path, *, quick: bool) -> Report:
    """Ten million clicks and 500,000 orders (--quick: a million and 50,000)."""
    clicks = 1_000_000 if quick else 10_000_000
    report = Report(f"report pages: behind {clicks:,} clicks and {clicks // 20:,} orders", with_ratios=False)
    path = parts.browser()
    if path is None:
        report.faults.append("There is no Chromium on this machine.")
        return report
    lake = folder / "data" / "lake"
    lake.mkdir(parents=True)
    fill(Lake(lake), World(clicks=clicks, orders=clicks // 20, days=30))
    command("attribution", "run", "--data-dir", str(folder / "data"))
    with Service(folder, "--clicks", "--click-port", "0") as service, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        visitor = browser.new_context(viewport={"width": 1440, "height": 900})
        for name, (address, ready) in PAGES.items():
            first_ms, *others_ms = [_look(visitor, service.url + address, ready) for _ in range(LOOKS)]
            report.add(name, "ms", percentile(others_ms, 0.5), Goal(most=300), {"at first": first_ms})
        browser.close()
    return report


def _look(visitor: BrowserContext, url: str, ready: str) -> float:
    page = visitor.new_page()
    page.set_default_timeout(120_000)
    begun = time.perf_counter()
    page.goto(url)
    page.locator(ready).first.wait_for()
    took_ms = 1000 * (time.perf_counter() - begun)
    page.close()
    return took_ms

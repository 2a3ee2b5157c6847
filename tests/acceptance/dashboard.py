"""A tab on the dashboard that fails the test if the page does what no page may.

Never looks at what a page shows: tests do. Invariants: a message on the console, a script that throws, a report of the
policy, or a request to another host fails the test that had the tab; so does anything that axe-core says of the page.

>>> with watched(browser, service.url) as page:   # doctest: +SKIP
...     page.goto("/jobs")
...     assert faults_for_readers(page) == []
"""

import contextlib
import functools
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize

DESKTOP: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_LISTEN = """addEventListener('securitypolicyviolation',
  (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));"""

_FAULTS = """async (asked) => {
  const only = {runOnly: asked, resultTypes: ['violations'], selectors: false};
  const {violations} = await axe.run(document, only);
  return violations.flatMap(({id, nodes}) => nodes.map((node) => `${id}: ${node.html} (${node.failureSummary})`));
}"""
"""Only what is wrong comes back: all that is right is thousands of elements, each with its own text."""


@contextlib.contextmanager
def watched(browser: Browser, url: str, *, is_quiet: bool = True, **options: Any) -> Iterator[Page]:
    """A tab in a browser that was never here, in Berlin unless told otherwise.

    With `is_quiet` false the console may speak: Chromium itself reports there each answer that is an error.
    """
    given = {"viewport": DESKTOP, "timezone_id": "Europe/Berlin", "base_url": url, **options}
    context = browser.new_context(**given)
    context.add_init_script(_LISTEN)
    page = context.new_page()
    page.set_default_timeout(60_000)
    said: list[str] = []
    page.on("console", lambda line: said.append(line.text))
    page.on("pageerror", lambda error: said.append(f"thrown: {error}"))
    elsewhere: list[str] = []
    page.on("request", lambda asked: None if asked.url.startswith(url) else elsewhere.append(asked.url))
    try:
        yield page
        assert elsewhere == []
        assert [line for line in said if is_quiet or line.startswith(("policy:", "thrown:"))] == []
    finally:
        context.close()


@functools.cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def faults_for_readers(page: Page, *rules: str) -> list[str]:
    """What keeps people with a screen reader, a keyboard or weak eyes from using the page as it stands."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    asked = {"type": "rule", "values": list(rules)} if rules else {"type": "tag", "values": TAGS}
    found: list[str] = page.evaluate(_FAULTS, asked)
    return found


def look_in_both_themes(page: Page) -> list[str]:
    """The same in light; in dark the colours, and on a phone the targets and whether it has to scroll sideways."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found = [f"light: {fault}" for fault in faults_for_readers(page)]
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found += [f"dark: {fault}" for fault in faults_for_readers(page, "color-contrast", "link-in-text-block")]
    page.set_viewport_size(PHONE)
    found += [f"phone: {fault}" for fault in faults_for_readers(page, "target-size", "scrollable-region-focusable")]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("phone: the page is wider than the screen")
    page.set_viewport_size(DESKTOP)
    return found

"""The tag in a real browser: what it sends, when, and what it leaves alone."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from clickclock.attribution.clicks.account import DEFAULT_CHANNEL_RULES
from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.crediting.policy import CLICK_ID_RULES, ID_CHANNEL_RULES, LAST_CHANNEL_RULES
from tests.acceptance.collecting import Collector, collecting
from tests.acceptance.tag_pages import Ear, Request, listening, shop
from tests.house.tag import BYTES_MAX, SERVED
from tests.house.tree import ROOT

pytestmark = pytest.mark.needs("chromium")

AD = "client_id=shop-1&seller_id=s-9&asvt=v%7C1%7C&atag=a+b%20c"


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that was never here before."""
    fresh = browser.new_context()
    yield fresh
    fresh.close()


@pytest.fixture
def ear() -> Iterator[Ear]:
    with listening(SERVED.read_bytes()) as standing:
        yield standing


@pytest.fixture
def page(context: BrowserContext, ear: Ear) -> Iterator[Page]:
    """A tab, which fails the test if the tag throws."""
    tab = context.new_page()
    thrown: list[str] = []
    tab.on("pageerror", lambda error: thrown.append(str(error)))
    yield tab
    assert thrown == []


@pytest.fixture
def console(page: Page) -> list[str]:
    """What the page's owner is told."""
    told: list[str] = []
    page.on("console", lambda line: told.append(line.text) if line.type == "warning" else None)
    return told


@pytest.fixture
def site(ear: Ear) -> Iterator[str]:
    tag = f'<script async src="{ear.url}/clickclock.js"></script>'
    pages = {
        "/": f"<p>welcome</p>{tag}",
        "/menu": f"<p>menu</p>{tag}",
        "/ours": tag.replace("async", 'data-client-id="shop &amp; co" data-id="ours/1"'),
        "/other": f'<script>{SERVED.read_text()}</script><script src="/clickclock.js" data-url="{ear.url}/"></script>',
        "/wait": tag.replace("async", "data-wait"),
        "/twice": tag.replace("async", "") * 2,
        "/named": tag.replace("async", 'id="clickclock"'),
        "/old": f"<script>fetch = undefined;</script>{tag}",
        "/bare": f"<script>fetch = navigator.sendBeacon = crypto.randomUUID = undefined;</script>{tag}",
        "/policy": f"<meta http-equiv=Content-Security-Policy content=\"connect-src 'none'\">{tag}",
        "/seller": tag.replace("async", 'data-client-id="c" data-seller-id="s &amp; 9" data-params="aff|partner"'),
        "/consent": _snippet("html", 2).replace("https://clicks.example.com", ear.url),
        "/early-consent": _snippet("html", 2).replace("https://clicks.example.com", ear.url)
        + "<script>consentGiven()</script>",
        "/landings": tag.replace("async", 'data-client-id="c" data-landings'),
        "/granted": tag.replace("async", 'data-consent="granted"'),
        "/customer": tag.replace("async", 'data-client-id="c" data-customer-id="7 &amp; 8"'),
        "/full": f"<script>fetch = 0; navigator.sendBeacon = function () {{ return false }};</script>{tag}",
    }
    with shop(pages) as url:
        yield url


@pytest.fixture(scope="module")
def shared_collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(tmp_path_factory.mktemp("clicks")) as running:
        yield running


@pytest.fixture
def collector(shared_collector: Collector) -> Collector:
    """One process for all; each test reads what comes from now on."""
    shared_collector.forget()
    return shared_collector


def _land(page: Page, url: str) -> None:
    """Go there, and come back when the tag has run."""
    page.goto(url, wait_until="load")


def _id(page: Page) -> str:
    value: str = page.evaluate("clickclock.id")
    return value


def _only(requests: list[Request]) -> Request:
    (request,) = requests
    return request


def test_the_tag_is_small_and_sets_no_cookie(page: Page, site: str, ear: Ear, context: BrowserContext) -> None:
    _land(page, f"{site}/?{AD}")
    ear.wait_for(1)
    assert len(SERVED.read_bytes()) <= BYTES_MAX
    assert context.cookies() == []


@pytest.mark.parametrize("path", ["/", "/old"])
def test_a_landing_is_registered_without_a_body_or_a_preflight(page: Page, site: str, ear: Ear, path: str) -> None:
    before = time.time_ns() // 1_000_000
    _land(page, f"{site}{path}?{AD}")
    request = _only(ear.wait_for(1))
    assert (request.method, request.path, request.body) == ("POST", "/aclick", b"")
    given = parse_qs(request.query)
    assert given["cli_ubid"] == [_id(page)]
    assert before <= int(given["event_time"][0]) <= time.time_ns() // 1_000_000
    assert len(given["event_time"][0]) == 13


@pytest.mark.parametrize(
    "query",
    [
        AD,
        "atag=a%7cb%7C%e2%82%ac+%2B&asvt=&client_id=c&x=%zz&device_id=d%20%00&=&&atag=again",
        "client_id=c&uclid=2|r9|0.004||{x}&utm_source=%C3%A9t%C3%A9",
        "gclid=EAItIQ-_w&client_id=c&event_time=1&cli_ubid=theirs&cli_ubid=undefined",
    ],
)
def test_what_came_goes_on_byte_for_byte_behind_our_own_values(page: Page, site: str, ear: Ear, query: str) -> None:
    _land(page, f"{site}/?{query}")
    sent = _only(ear.wait_for(1)).query
    ours, received = sent.split("&", 3)[:3], sent.split("&", 3)[3]
    assert received == query
    assert [each.partition("=")[0] for each in ours] == ["cli_ubid", "event_time", "landing_page"]
    assert parse_qs(sent)["landing_page"] == [site.removeprefix("http://") + "/"]
    assert page.evaluate("clickclock.params()") == query


def test_letters_beyond_ascii_go_on_as_the_browser_wrote_them(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/?client_id=c&atag=été 'x'")
    received = page.evaluate("location.search.slice(1)")
    assert received == "client_id=c&atag=%C3%A9t%C3%A9%20%27x%27"
    assert _only(ear.wait_for(1)).query.endswith(f"&{received}")


@pytest.mark.parametrize("path", ["/bare", "/full", "/policy"])
def test_an_image_carries_it_where_nothing_else_may(page: Page, site: str, ear: Ear, path: str) -> None:
    _land(page, f"{site}{path}?{AD}")
    request = _only(ear.wait_for(1))
    assert (request.method, request.headers["Sec-Fetch-Dest"]) == ("GET", "image")
    assert request.query == f"cli_ubid={_id(page)}&{'&'.join(request.query.split('&')[1:3])}&{AD}"


def test_a_visit_registers_an_ad_once_across_pages_reloads_and_the_way_back(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/?{AD}")
    visitor = _id(page)
    page.reload()
    _land(page, f"{site}/menu")
    assert page.evaluate("clickclock.params()") == AD
    assert _id(page) == visitor
    _land(page, f"{site}/?{AD}&second=1")
    page.go_back()
    page.go_back()
    assert page.url == f"{site}/?{AD}"
    assert page.evaluate("clickclock.params()") == f"{AD}&second=1"
    _land(page, f"{site}/?{AD}&last=1")
    sent = [request.query.split("&", 3)[3] for request in ear.wait_for(3)]
    assert sent == [AD, f"{AD}&second=1", f"{AD}&last=1"]


def test_a_later_visit_has_the_same_id_and_counts_the_same_ad_again(
    page: Page, site: str, ear: Ear, context: BrowserContext
) -> None:
    _land(page, f"{site}/?{AD}")
    visitor = _id(page)
    page.close()
    later = context.new_page()
    _land(later, f"{site}/?{AD}")
    assert _id(later) == visitor
    assert [request.query.split("&", 1)[0] for request in ear.wait_for(2)] == [f"cli_ubid={visitor}"] * 2


@pytest.mark.parametrize("query", ["", "?client_id=c", "?atag=a&asvt=v", "?client_id=&atag=a", "?client_id=c&atag="])
def test_what_no_ad_of_ours_led_to_is_no_click(page: Page, site: str, ear: Ear, query: str) -> None:
    _land(page, f"{site}/{query}")
    assert page.evaluate("clickclock.params()") == ""
    # Whatever had been sent would have come before this.
    _land(page, f"{site}/?{AD}")
    assert _only(ear.wait_for(1)).query.endswith(AD)


@pytest.mark.parametrize(
    ("referrer", "said"),
    [
        ("", "source=direct"),
        ("https://www.google.co.uk/", "source=organic&referrer=google.co.uk"),
        ("https://search.brave.com/search?q=shoes", "source=organic&referrer=search.brave.com"),
        ("https://www.blog.example.org/post?x=1#y", "source=referral&referrer=blog.example.org"),
        ("https://mail.google.com/mail/u/0", "source=referral&referrer=mail.google.com"),
        ("android-app://com.google.android.gm/", "source=referral&referrer=com.google.android.gm"),
        (
            "android-app://com.google.android.googlequicksearchbox/",
            "source=organic&referrer=com.google.android.googlequicksearchbox",
        ),
        ("https://mygoogle.example/", "source=referral&referrer=mygoogle.example"),
        ("android-app://com.example.mail/", "source=referral&referrer=com.example.mail"),
    ],
)
def test_a_visit_that_no_ad_led_to_is_registered_once_where_the_site_wants_it(
    page: Page, site: str, ear: Ear, referrer: str, said: str
) -> None:
    page.add_init_script(f"Object.defineProperty(document, 'referrer', {{value: {referrer!r}, configurable: true}})")
    _land(page, f"{site}/landings?page=2")
    page.reload()
    _land(page, f"{site}/landings?page=3")
    assert page.evaluate("clickclock.params()") == ""
    # A later ad of the same visit is an ad, and comes behind all that had been sent.
    _land(page, f"{site}/landings?utm_source=x")
    assert page.evaluate("clickclock.params()") == "utm_source=x"
    visit, ad = (request.query.split("&", 3)[3] for request in ear.wait_for(2))
    assert (visit, ad) == (f"client_id=c&{said}", "client_id=c&utm_source=x")


def test_neither_an_ads_visit_nor_the_way_from_page_to_page_is_a_visit_without_an_ad(
    page: Page, site: str, ear: Ear
) -> None:
    _land(page, f"{site}/landings?utm_source=x")
    _land(page, f"{site}/landings")
    page.evaluate("sessionStorage.clear()")
    # As a link that opens another tab: nothing is stored there, and the page before was ours.
    page.goto(f"{site}/landings", referer=f"{site}/menu")
    page.goto(f"{site}/", referer="https://blog.example.org/")
    _land(page, f"{site}/landings?utm_source=y")
    assert [request.query.split("&", 3)[3] for request in ear.wait_for(2)] == [
        "client_id=c&utm_source=x",
        "client_id=c&utm_source=y",
    ]


BY_ITSELF = {
    *("atag", "asvt", "source", "amp;utm_source"),
    *("utm_source", "utm_medium", "utm_campaign", "utm_content", "utm_term", "utm_id", "aff", "partner"),
    *(rule.parameter for rule in (*DEFAULT_CHANNEL_RULES, *ID_CHANNEL_RULES, *CLICK_ID_RULES, *LAST_CHANNEL_RULES)),
}


@pytest.mark.parametrize("name", sorted(BY_ITSELF))
def test_each_parameter_that_says_which_ad_it_was_is_enough_by_itself(
    page: Page, site: str, ear: Ear, name: str
) -> None:
    _land(page, f"{site}/seller?{name}=x")
    sent = _only(ear.wait_for(1)).query
    assert sent.split("&", 3)[3] == f"client_id=c&seller_id=s%20%26%209&{name}=x"


def test_the_seller_of_the_address_goes_before_that_of_the_tag(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/seller?utm_source=x&seller_id=theirs")
    _land(page, f"{site}/seller?utm_source=x&seller_id=")
    first, second = ear.wait_for(2)
    assert parse_qs(first.query)["seller_id"] == ["theirs"]
    assert parse_qs(second.query)["seller_id"] == ["s & 9"]


def test_the_console_is_told_once_that_nobody_says_whose_click_it_is(
    page: Page, site: str, ear: Ear, console: list[str]
) -> None:
    _land(page, f"{site}/?utm_source=x")
    page.evaluate("history.pushState(0, 0, '/?utm_source=y'); clickclock.start(); clickclock.start()")
    assert console == ["clickclock: no client_id: add data-client-id to the tag"]
    _land(page, f"{site}/")
    _land(page, f"{site}/?{AD}")
    assert _only(ear.wait_for(1)).query.endswith(AD)
    assert len(console) == 1


def test_blocked_storage_costs_the_memory_but_not_the_click(page: Page, site: str, ear: Ear) -> None:
    page.add_init_script(
        "for (const name of ['localStorage', 'sessionStorage'])"
        "  Object.defineProperty(window, name, {get() { throw new DOMException('no', 'SecurityError') }});"
    )
    _land(page, f"{site}/?{AD}")
    request = _only(ear.wait_for(1))
    assert request.query.startswith(f"cli_ubid={_id(page)}&")
    page.evaluate("clickclock.start()")
    assert page.evaluate("[clickclock.params(), clickclock.id]") == [AD, request.query.split("&")[0][9:]]
    _land(page, f"{site}/?{AD}&next=1")
    assert len(ear.wait_for(2)) == 2


def test_full_storage_is_as_good_as_none(page: Page, site: str, ear: Ear) -> None:
    page.add_init_script("localStorage.x = sessionStorage.x = 'x'.repeat(5242870);")
    _land(page, f"{site}/?{AD}")
    request = _only(ear.wait_for(1))
    assert request.query.startswith(f"cli_ubid={_id(page)}&")
    assert page.evaluate("clickclock.params()") == AD


def test_nothing_is_stored_or_sent_before_the_consent(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/wait?{AD}")
    landed = page.evaluate("Date.now()")
    page.evaluate("history.pushState(0, 0, '/wait')")
    assert page.evaluate("[localStorage.length, sessionStorage.length, clickclock.id]") == [0, 0, None]
    assert ear.heard == []
    page.evaluate("clickclock.start()")
    given = parse_qs(_only(ear.wait_for(1)).query)
    assert int(given["event_time"][0]) <= landed
    assert given["atag"] == ["a b c"]


def test_without_consent_the_ad_is_registered_and_nobody(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/wait?{AD}")
    page.evaluate("clickclock.start('denied'); clickclock.identify('c-7')")
    given = parse_qs(_only(ear.wait_for(1)).query)
    assert (given["consent"], given["atag"], "cli_ubid" in given) == (["denied"], ["a b c"], False)
    assert page.evaluate("[localStorage.length, sessionStorage.length, clickclock.id]") == [0, 0, ""]


def test_who_takes_the_consent_back_is_forgotten(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/granted?{AD}")
    page.evaluate("clickclock.identify('c-7')")
    assert parse_qs(ear.wait_for(2)[0].query)["consent"] == ["granted"]
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [1, 2]
    page.evaluate("clickclock.start('denied')")
    assert page.evaluate("[localStorage.length, sessionStorage.length, clickclock.id]") == [0, 0, ""]
    assert [request.path for request in ear.heard] == ["/aclick", "/identify"]


def test_a_page_that_is_made_in_advance_is_a_visit_only_when_it_is_shown(page: Page, site: str, ear: Ear) -> None:
    page.add_init_script("Object.defineProperty(document, 'prerendering', {value: true})")
    _land(page, f"{site}/?{AD}")
    assert page.evaluate("clickclock.id") is None
    assert ear.heard == []
    page.evaluate("document.dispatchEvent(new Event('prerenderingchange'))")
    assert _only(ear.wait_for(1)).query.endswith(AD)


def test_a_page_that_changes_its_own_address_says_when_to_look_again(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/?{AD}")
    page.evaluate("history.pushState(0, 0, '/?client_id=c&gclid=g')")
    page.evaluate("clickclock.start(); clickclock.start()")
    first, second = ear.wait_for(2)
    assert (first.query.split("&", 3)[3], second.query.split("&", 3)[3]) == (AD, "client_id=c&gclid=g")
    assert page.evaluate("clickclock.params()") == "client_id=c&gclid=g"


def test_the_site_may_name_the_client_and_the_visitor(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/ours?atag=a&asvt=v")
    _land(page, f"{site}/ours?atag=a&asvt=v&client_id=theirs")
    first, second = ear.wait_for(2)
    assert parse_qs(first.query)["client_id"] == ["shop & co"]
    assert parse_qs(second.query)["client_id"] == ["theirs"]
    assert parse_qs(first.query)["cli_ubid"] == ["ours/1"]


@pytest.mark.parametrize("path", ["/ours", "/bare", "/full", "/policy"])
def test_a_customer_is_told_with_the_visitor_once_in_a_visit(page: Page, site: str, ear: Ear, path: str) -> None:
    client = "shop & co" if path == "/ours" else "shop-1"
    _land(page, f"{site}{path}?{'' if path == '/ours' else AD}")
    before = time.time_ns() // 1_000_000
    page.evaluate("clickclock.identify('c 7&'); clickclock.identify('c 7&')")
    request = next(each for each in ear.wait_for(1 if path == "/ours" else 2) if each.path == "/identify")
    said = request.body.decode() or request.query
    assert (request.method, request.headers.get("Content-Type")) in [
        ("POST", "text/plain;charset=UTF-8"),
        ("GET", None),
    ]
    given = {name: value[0] for name, value in parse_qs(said).items()}
    assert before <= int(given.pop("event_time")) <= time.time_ns() // 1_000_000
    assert given == {"cli_ubid": _id(page), "customer_id": "c 7&", "client_id": client}
    page.reload()
    page.evaluate("clickclock.identify('c 7&'); clickclock.identify(null); clickclock.identify(8)")
    last = [each for each in ear.wait_for(2 if path == "/ours" else 3) if each.path == "/identify"][-1]
    assert parse_qs(last.body.decode() or last.query)["customer_id"] == ["8"]


def test_a_page_may_name_the_customer_in_its_tag(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/customer")
    _land(page, f"{site}/customer")
    _land(page, f"{site}/customer?gclid=g")
    first, second = ear.wait_for(2)
    assert parse_qs(first.body.decode())["customer_id"] == ["7 & 8"]
    assert second.path == "/aclick"


def test_no_customer_is_told_or_stored_before_the_consent(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/wait?{AD}")
    page.evaluate("clickclock.identify('c-7')")
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    assert ear.heard == []
    page.evaluate("clickclock.start()")
    assert {request.path for request in ear.wait_for(2)} == {"/aclick", "/identify"}


def test_the_console_is_told_that_nobody_says_whose_customer_it_is(
    page: Page, site: str, ear: Ear, console: list[str]
) -> None:
    _land(page, f"{site}/")
    page.evaluate("clickclock.identify('c-7')")
    assert console == ["clickclock: no client_id: add data-client-id to the tag"]
    assert ear.heard == []


@pytest.mark.parametrize("path", ["/twice", "/named"])
def test_a_tag_that_is_there_twice_or_has_its_own_name_as_id_works_once(
    page: Page, site: str, ear: Ear, path: str
) -> None:
    _land(page, f"{site}{path}?{AD}")
    _land(page, f"{site}{path}?{AD}&next=1")
    assert [request.query.split("&", 3)[3] for request in ear.wait_for(2)] == [AD, f"{AD}&next=1"]


def test_the_consent_of_the_guide_is_given_before_or_after_the_tag_is_there(page: Page, site: str, ear: Ear) -> None:
    _land(page, f"{site}/consent?{AD}")
    assert ear.heard == []
    page.evaluate("consentGiven()")
    assert _only(ear.wait_for(1)).query.endswith(AD)
    page.evaluate("sessionStorage.clear()")
    _land(page, f"{site}/early-consent?{AD}&early=1")
    assert ear.wait_for(2)[1].query.endswith("early=1")


def test_the_collector_has_on_disk_what_the_browser_was_told_is_registered(page: Page, collector: Collector) -> None:
    with shop({"/": f'<script async src="{collector.url}/clickclock.js"></script>'}) as site:
        before = collector.answered(204)
        _land(page, f"{site}/?{AD}&utm_source=%c3%a9|x")
        (entry,) = collector.entries(1)
        assert collector.answered(204, at_least=before + 1) == before + 1
        assert entry.kind is EntryKind.CLICK
        assert entry.raw.decode().endswith(f"&{AD}&utm_source=%c3%a9|x")
        assert entry.raw.decode().startswith(f"cli_ubid={_id(page)}&")
        assert entry.referer.decode() == f"{site}/"


def test_a_visit_without_an_ad_is_a_click_of_the_profile_open(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLICKCLOCK_CLICK_PROFILE", "open")
    with collecting(tmp_path) as collector:
        tag = f'<script async src="{collector.url}/clickclock.js" data-client-id="c" data-landings></script>'
        with shop({"/": tag}) as site:
            page.goto(site, referer="https://duckduckgo.com/")
            (entry,) = collector.entries(1)
    assert entry.kind is EntryKind.PLAIN_CLICK
    assert entry.raw.decode().endswith("&client_id=c&source=organic&referrer=duckduckgo.com")


def test_the_collector_has_on_disk_whom_the_browser_was_told_is_identified(page: Page, collector: Collector) -> None:
    tag = f'<script src="{collector.url}/clickclock.js" data-client-id="shop-1"></script>'
    plain = f"<script>fetch = navigator.sendBeacon = null</script>{tag}"
    with shop({"/": tag, "/image": plain}) as site:
        for number, path in enumerate(("/", "/image")):
            before = collector.answered(202)
            _land(page, f"{site}{path}")
            page.evaluate("number => clickclock.identify(number)", number + 7)
            assert collector.answered(202, at_least=before + 1) == before + 1
    entries = collector.entries(2)
    assert [(entry.kind, entry.detail) for entry in entries] == [(EntryKind.OTHER, b"identify")] * 2
    assert [parse_qs(entry.raw.decode())["customer_id"] for entry in entries] == [["7"], ["8"]]


def test_the_console_is_told_why_a_customer_was_refused(page: Page, collector: Collector, console: list[str]) -> None:
    tag = f'<script src="{collector.url}/clickclock.js" data-client-id="shop-1" data-customer-id="null"></script>'
    with shop({"/": tag}) as site, page.expect_console_message(lambda line: line.type == "warning"):
        _land(page, f"{site}/")
    assert console == ["clickclock: This is required, and `null` is as good as nothing; give it."]


def test_the_console_is_told_what_the_collector_refused_and_what_to_do(
    page: Page, collector: Collector, console: list[str]
) -> None:
    tag = f'<script async src="{collector.url}/clickclock.js" data-client-id="shop-1"></script>'
    with shop({"/": tag}) as site, page.expect_console_message(lambda line: line.type == "warning"):
        _land(page, f"{site}/?gclid=EAI")
    (said,) = console
    assert said.startswith("clickclock: seller_id is required; send it as it was received. asvt is required;")
    assert said.endswith("Give the tag data-client-id and data-seller-id, or the account another profile.")


def test_the_image_is_registered_too_and_what_is_wrong_is_kept(page: Page, collector: Collector) -> None:
    tag = f'<script async src="{collector.url}/clickclock.js"></script>'
    tag = f"<script>fetch = navigator.sendBeacon = null</script>{tag}"
    with shop({"/": tag}) as site:
        for query, status in ((AD, 204), ("client_id=c&gclid=g", 400)):
            before = collector.answered(status)
            _land(page, f"{site}/?{query}")
            assert collector.answered(status, at_least=before + 1) == before + 1
        first, second = collector.entries(2)
        assert (first.kind, second.kind) == (EntryKind.PLAIN_CLICK, EntryKind.REJECTION)
        assert second.raw.decode().endswith("&client_id=c&gclid=g")


def test_the_functions_of_the_guide_register_what_a_server_received(page: Page, collector: Collector) -> None:
    python, javascript = (
        _snippet(language, number).replace("127.0.0.1", "localhost").replace("localhost:8081", collector.host)
        for language, number in (("python", 1), ("javascript", 0))
    )
    python = python.replace('"localhost", 8081', repr(collector.host))
    names: dict[str, Any] = {}
    exec(python, names)  # noqa: S102 (what the guide tells people to run)
    names["register_click"](AD, "visitor 1", "203.0.113.7", {"User-Agent": "Safari", "Sec-Purpose": "prefetch"})
    with pytest.raises(RuntimeError, match=r"400.*seller_id"):
        names["register_click"]("client_id=c", "visitor 1", "203.0.113.7", {})
    with shop({"/": f"<script>{javascript}</script>"}) as site:
        _land(page, site)
        page.evaluate("received => registerClick(received, 'visitor 1', '203.0.113.7', {'user-agent': 'Safari'})", AD)
    entries = collector.entries(3)
    assert len({entry.address for entry in entries} - {""}) == 1
    assert (entries[0].agent, entries[0].detail) == (b"Safari", b"strict prefetch")
    assert [entry.raw.decode().split("&", 2)[0] for entry in entries] == ["cli_ubid=visitor+1"] * 3
    assert entries[0].raw.decode().endswith(AD)
    assert entries[2].raw.decode().endswith(AD)


def _snippet(language: str, number: int = 0) -> str:
    """An example of the guide."""
    page = (ROOT / "docs/how-to/register-clicks.md").read_text(encoding="utf-8")
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return found[number]

"""Attribution's pages in a real browser, on one service: first empty, then with a shop that is credited twice."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.dashboard import look_in_both_themes, watched
from tests.acceptance.service import Service, running
from tests.acceptance.shop import CLIENT, EVERY_FATE, STRANGE, fill

pytestmark = pytest.mark.needs("chromium")

expect.set_options(timeout=60_000)  # the process that answers begins with the first question
OPEN = ("--clicks", "--click-port", "0", "--click-profile", "open")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(Path(tmp_path_factory.mktemp("data")), *OPEN) as standing:
        yield standing


@pytest.fixture(scope="module")
def shop(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Service:
    """The service, with a shop in its lake."""
    scratch = Path(tmp_path_factory.mktemp("scratch"))
    with ThreadPoolExecutor(1) as thread:  # the browser's driver has a loop in this one
        assert thread.submit(fill, service.data_dir / "lake", scratch).result() == 2
    return service


def table(page: Page, name: str) -> list[list[str]]:
    """The rows of a table, each as its cells' texts."""
    rows = page.get_by_role("region", name=name).locator("tbody tr")
    expect(rows.first).to_be_visible()
    return [[" ".join(cell.split()) for cell in row.locator("th, td").all_inner_texts()] for row in rows.all()]


def test_before_the_first_run_each_page_says_what_would_be_here_and_what_fills_it(
    browser: Browser, service: Service
) -> None:
    pages = {
        "/attribution": "No order is credited yet",
        "/attribution/orders": "No order is credited yet",
        "/attribution/paths": "No order is credited yet",
        "/attribution/versions": "No result version yet",
    }
    with watched(browser, service.url, is_quiet=False) as page:
        for address, words in pages.items():
            page.goto(address)
            expect(page.get_by_role("heading", name=words)).to_be_visible()
            expect(page.locator("pre.command")).to_contain_text(
                f"clickclock --url {service.url} demo --click-url {service.click_url} "
            )
        assert look_in_both_themes(page) == []


def test_a_number_opens_its_orders_and_an_order_its_proof(browser: Browser, shop: Service) -> None:
    with watched(browser, shop.url) as page:
        page.goto("/attribution?version=2")
        expect(page.get_by_role("heading", name="Credit", exact=True)).to_be_visible()
        rows = {row[0]: row for row in table(page, "The report")}
        assert set(rows) == {"google", "meta", "newsletter", "(no click)"}
        assert rows["google"][8:] != ["–", "–", "–"]
        for _, *cells, depends in table(page, "Credit by model"):
            given = [float(cell.replace(",", "")) for cell in cells]
            assert len(given) == 9
            spread = max(given) - min(given)
            assert depends.startswith(f"{spread:,.2f} " if spread else "–"), (cells, depends)
        assert look_in_both_themes(page) == []
        number = page.get_by_role("link", name="orders of meta")
        count = number.inner_text()
        number.click()
        orders = page.get_by_role("region", name="Orders")
        expect(orders.locator("tbody tr")).to_have_count(int(count))
        assert "channel=meta" in page.url
        assert look_in_both_themes(page) == []
        page.get_by_role("link", name=EVERY_FATE).click()
        expect(page.get_by_role("heading", name=f"Order {EVERY_FATE}")).to_be_visible()
        page.go_back()
        expect(orders.locator("tbody tr")).to_have_count(int(count))
        page.go_back()
        expect(page.get_by_role("link", name="orders of meta")).to_be_visible()


def test_a_report_goes_down_to_ads_compares_and_survives_a_reload(browser: Browser, shop: Service) -> None:
    with watched(browser, shop.url) as page:
        page.goto("/attribution?version=2&nonsense=1&compare=1")
        expect(page.get_by_text("This page does not know")).to_contain_text("nonsense")
        expect(page.get_by_role("columnheader", name="Before")).to_be_visible()
        page.get_by_role("link", name="meta", exact=True).click()
        expect(page.get_by_role("heading", name="By campaign")).to_be_visible()
        page.get_by_role("link", name="summer", exact=True).click()
        expect(page.get_by_role("heading", name="By ad set")).to_be_visible()
        model = page.get_by_role("combobox", name="Model")
        model.select_option("linear")
        expect(page).to_have_url(re.compile("model=linear"))
        page.reload()
        expect(model).to_have_value("linear")
        expect(page.get_by_role("navigation", name="Where you are")).to_contain_text("summer")


def test_a_report_tells_kinds_of_orders_apart_and_leads_to_the_orders_of_one(browser: Browser, shop: Service) -> None:
    with watched(browser, shop.url) as page:
        page.goto("/attribution?version=2")
        page.get_by_role("combobox", name="Rows").select_option("Kind of order")
        expect(page.get_by_role("heading", name="By kind of order")).to_be_visible()
        page.get_by_label("Kind", exact=True).fill("lead")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name=re.compile("orders? of purchase"))).to_have_count(0)
        page.get_by_label("Kind", exact=True).fill("purchase")
        page.keyboard.press("Enter")
        page.get_by_role("link", name=re.compile("orders? of purchase")).click()
        expect(page).to_have_url(re.compile("/attribution/orders.*kind=purchase"))
        expect(page.get_by_role("row").filter(has_text="EUR").first).to_be_visible()


def test_a_report_says_why_orders_are_not_credited_who_came_back_and_what_was_before(
    browser: Browser, shop: Service
) -> None:
    with watched(browser, shop.url) as page:
        page.goto("/attribution?version=2")
        rows = page.get_by_role("combobox", name="Rows")
        page.get_by_role("combobox", name="Compare with").select_option("the period before")
        expect(page.get_by_text(re.compile("before: the 30 days that end on"))).to_be_visible()
        expect(page.get_by_role("columnheader", name="Change")).to_be_visible()
        assert all(cells[4] == "new" for cells in table(page, "The report") if cells[0] in {"google", "meta"})
        assert look_in_both_themes(page) == []
        rows.select_option("Why not credited")
        reasons = table(page, "The reasons")
        assert [cells[0].split(" No click has")[0] for cells in reasons] == ["No click is known", "Credited"]
        expect(page.get_by_text(re.compile(r"1 order of \d+ in EUR has no touchpoint\."))).to_be_visible()
        assert look_in_both_themes(page) == []
        page.get_by_role("region", name="The reasons").get_by_role("link").first.click()
        expect(page).to_have_url(re.compile(r"reason=no_click"))
        assert [cells[0].split()[0] for cells in table(page, "Orders")] == ["A-2042"]
        page.get_by_role("link", name="Remove the filter reason").click()
        expect(page).not_to_have_url(re.compile(r"reason="))
        page.go_back()
        page.go_back()
        page.get_by_role("link", name="Open these orders").click()
        expect(page.get_by_role("region", name="Orders").get_by_role("link", name="A-2042")).to_be_visible()
        page.go_back()
        rows.select_option("Who came back")
        cohort = page.get_by_role("region", name="Cohorts").get_by_role("link").first
        expect(cohort).to_contain_text("100 %")
        cohort.focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"cohort=\d{4}-\d\d&month=0"))
        assert {cells[0] for cells in table(page, "The cohort by channel")} >= {"google", "meta", "(no click)"}
        assert look_in_both_themes(page) == []
        rows.select_option("Device")
        expect(page).to_have_url(re.compile(r"by=device"))
        assert {cells[0] for cells in table(page, "The report")} & {"desktop", "mobile"}
        page.reload()
        assert {cells[0] for cells in table(page, "The report")} & {"desktop", "mobile"}
        assert look_in_both_themes(page) == []


def test_a_proof_shows_every_click_with_its_fate_and_splits_the_amount(browser: Browser, shop: Service) -> None:
    with watched(browser, shop.url) as page:
        page.goto(f"/attribution/orders/{CLIENT}/{EVERY_FATE}?version=2")
        expect(page.get_by_text("6 of 11 count")).to_be_visible()
        fates = [row[5] for row in table(page, "Clicks")]
        assert {"counts", "outside the window", "sent again", "repeated", "click id used before"} < set(fates)
        for model, _, *parts in table(page, "Credit by model"):
            assert f"{sum(map(float, parts)):.2f}" == "129.90", model
        expect(page.get_by_role("region", name="Whose clicks these are")).to_contain_text("device_id d-7")
        assert look_in_both_themes(page) == []
        page.goto("/attribution/orders?version=2")
        page.get_by_role("link", name=STRANGE).click()
        expect(page.get_by_role("heading", name=f"Order {STRANGE}")).to_be_visible()
        expect(page.get_by_role("region", name="What the shop said of it")).to_contain_text("cancelled")


def test_what_is_not_there_is_said_in_the_services_own_words(browser: Browser, shop: Service) -> None:
    with watched(browser, shop.url, is_quiet=False) as page:
        for address, words in (
            (f"/attribution/orders/{CLIENT}/nothing", "There is no such order in this result version"),
            ("/attribution?version=99", "There is no result version 99; there are 1 to"),
            ("/attribution/orders?cursor=x&limit=2&version=2", "This page does not know"),
        ):
            page.goto(address)
            expect(page.get_by_role("main")).to_contain_text(words)
        assert look_in_both_themes(page) == []


def test_two_versions_are_compared_and_paths_are_counted(browser: Browser, shop: Service) -> None:
    with watched(browser, shop.url) as page:
        page.goto("/attribution/versions?from=1&to=2")
        expect(page.get_by_text("2 orders differ; 0 new, 0 gone.")).to_be_visible()
        rows = table(page, "Orders that differ")
        assert [row[0].split()[0] for row in rows] == [EVERY_FATE, STRANGE.split()[0]]
        assert "a click came" in rows[0][1]
        assert "the shop changed it" in rows[1][1]
        assert look_in_both_themes(page) == []
        page.goto("/attribution/paths?version=2&clientId=shop-1")
        expect(page.get_by_role("heading", name="The commonest paths")).to_be_visible()
        assert len(table(page, "Paths")) > 5
        assert look_in_both_themes(page) == []


def test_clicks_show_as_they_arrive_with_every_reason(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/clicks?kind=rejection")
        expect(page.get_by_text("as it happens")).to_be_visible()
        expect(page.locator("pre.command")).to_contain_text(f"curl -i '{service.click_url}/aclick?")
        httpx.get(f"{service.click_url}/aclick?client_id={CLIENT}&gclid=x&event_time=soon&cli_ubid=")
        faults = page.locator(".arrivals .faults")
        expect(faults).to_contain_text("cli_ubid or device_id is required")
        page.get_by_role("combobox", name="Show").select_option("click")
        expect(page.get_by_text("as it happens")).to_be_visible()
        sent = {"client_id": CLIENT, "cli_ubid": "<b>me</b>", "utm_source": "gazette"}
        assert httpx.get(f"{service.click_url}/aclick", params=sent).status_code == 204
        arrived = page.locator(".arrivals > li").filter(has_text="gazette")
        expect(arrived).to_be_visible()
        arrived.locator("summary").click()
        expect(arrived).to_contain_text("<b>me</b>")
        assert look_in_both_themes(page) == []


def test_clicks_are_counted_step_by_step_and_the_last_ones_are_there_at_once(browser: Browser, shop: Service) -> None:
    with watched(browser, shop.url) as page:
        page.goto("/clicks?span=30d&nothing=1")
        steps = page.get_by_role("region", name="From click to credit").get_by_role("listitem")
        expect(steps.filter(has_text="Credited")).to_contain_text(re.compile(r"[1-9]"))
        assert [re.match(r"[A-Za-z ]+", each.strip())[0] for each in steps.all_inner_texts()] == [  # type: ignore[index]
            *("Received", "Accepted", "In the lake", "In journeys", "Credited")
        ]
        expect(page.locator(".arrivals > li").first).to_be_visible()
        expect(page.get_by_text("This page does not know nothing")).to_be_visible()
        page.get_by_role("textbox", name="Client", exact=True).fill("nobody")
        page.get_by_role("textbox", name="Client", exact=True).press("Enter")
        expect(steps.filter(has_text="Received")).to_contain_text("0")
        page.go_back()
        expect(steps.filter(has_text="Credited")).to_contain_text(re.compile(r"[1-9]"))
        assert look_in_both_themes(page) == []


def test_uploads_say_what_is_held_and_receipts_what_was_erased(browser: Browser, shop: Service) -> None:
    with watched(browser, shop.url) as page:
        page.goto("/uploads")
        expect(page.get_by_role("heading", name="Google Ads")).to_be_visible()
        expect(page.get_by_role("heading", name="Nothing was exported yet")).to_be_visible()
        assert look_in_both_themes(page) == []
        page.goto("/erasures")
        expect(page.get_by_role("heading", name="Nothing was erased yet")).to_be_visible()
        assert look_in_both_themes(page) == []


def test_a_landing_page_is_checked_by_the_collectors_own_parser(browser: Browser, service: Service) -> None:
    with watched(browser, service.url) as page:
        page.goto("/clicks")
        page.get_by_label("Address of a landing page").fill("https://shop.example/?utm_source=fb&utm_campaign=a%20b")
        page.get_by_label("Client of the tag").fill("shop's")
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_text("Accepted")).to_be_visible()
        expect(page.get_by_role("definition").first).to_contain_text("meta")
        page.get_by_text("The same with curl").click()
        expect(page.get_by_text("curl -sG")).to_contain_text("clientId=shop'\\''s")
        page.reload()
        expect(page.get_by_text("Accepted")).to_be_visible()
        page.get_by_label("Address of a landing page").fill("client_id=x&event_time=%zz&cli_ubid=u&gclid=null")
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_text("says nothing")).to_be_visible()
        page.get_by_label("Address of a landing page").fill("client_id=x")
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_text("Refused", exact=True)).to_be_visible()
        expect(page.locator(".verdict + .faults")).to_contain_text("cli_ubid or device_id is required")
        assert look_in_both_themes(page) == []

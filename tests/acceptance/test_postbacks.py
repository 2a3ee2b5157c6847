"""Postbacks as their user meets them: a click and an order over HTTP, the commands, the list, and the page."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from clickclock.client import Client
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.instant import HOUR_MS
from tests.acceptance.clicking import until
from tests.acceptance.dashboard import look_in_both_themes, watched
from tests.acceptance.service import Service, running
from tests.partner import Call, Server, partner

pytestmark = pytest.mark.needs("chromium")

expect.set_options(timeout=60_000)  # the process that answers begins with the first question
WITHIN_S = 60.0
OPEN = ("--clicks", "--click-port", "0", "--click-profile", "open")
BROWSER = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
ORDERS = ("A-1001", "A-1002", "A-1003")


class Shop:
    """A service with a shop's three orders, and a partner whose clicks earned them."""

    def __init__(self, service: Service, config: Path, server: Server) -> None:
        self.service, self.server = service, server
        self._config = config

    def command(self, *words: str) -> list[str]:
        files = ["--config", str(self._config), "--data-dir", str(self.service.data_dir)]
        return [sys.executable, "-m", "clickclock.cli", *words, *(() if words[0] == "schedule" else files)]

    def run(self, *words: str, code: int = 0) -> str:
        ended = subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN_S,
            env={**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_URL": self.service.url},
        )
        assert ended.returncode == code, ended.stderr
        return ended.stdout

    def has_schedule(self, name: str) -> bool:
        with Client(self.service.url) as client:
            return bool(client.list_schedules(scheduleId=f"attribution.{name}")["schedules"])

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = Path(tmp_path_factory.mktemp("shop"))
    config = folder / "clickclock.toml"
    with partner() as server:
        config.write_text(
            f'segment_age_s = 0.2\n[[postback]]\nname = "affiliate"\nchanges = true\n'
            f'url = "{server.url}/s2s?click={{click.subid}}&order={{order_id}}&sum={{credit}}&what={{kind}}"\n'
        )
        with running(folder / "data", *OPEN, "--config", str(config)) as service:
            now_ms = SystemClock().epoch_ms()
            for number, order in enumerate(ORDERS):
                who = {"client_id": "shop-1", "cli_ubid": f"u-{number}"}
                query: dict[str, str | int] = {
                    **who,
                    "source": "affiliate",
                    "subid": f"s {number}",
                    "event_time": now_ms - HOUR_MS,
                }
                httpx.get(
                    f"{service.click_url}/aclick", params=query, headers=BROWSER, timeout=WITHIN_S
                ).raise_for_status()
                body = {**who, "order_id": order, "amount": "24.90", "currency": "EUR", "event_time": now_ms}
                httpx.post(f"{service.click_url}/orders", json=body, timeout=WITHIN_S).raise_for_status()
            made = Shop(service, config, server)
            # Its own jobs would do what the tests do, and at another time.
            schedules = ("postbacks", "run", "compaction")
            until(lambda: all(made.has_schedule(name) for name in schedules), "the service has its jobs")
            for name in schedules:
                made.run("schedule", "pause", f"attribution.{name}")
            yield made


def credit(shop: Shop, *statuses: str) -> None:
    """Credit what came, until the orders with credit have these statuses. A collector seals what it has by and by."""

    def is_credited() -> bool:
        shop.run("compact", "--all")
        shop.run("attribution", "run")
        orders = shop.json("attribution", "orders", "--credited")["orders"]
        return sorted(each["status"] for each in orders) == sorted(statuses)

    until(is_credited, f"orders are credited: {statuses}", WITHIN_S)


def test_from_a_click_to_a_call_that_is_made_once(browser: Browser, shop: Shop) -> None:
    with watched(browser, shop.service.url) as page:
        page.goto("/postbacks")
        expect(page.get_by_role("heading", name="Nothing is credited yet")).to_be_visible()
        credit(shop, *["completed"] * 3)
        looked = shop.run("attribution", "postbacks", "send", "--dry-run")
        assert looked.startswith("affiliate: would be called about 3 conversion of shop-1.\n")
        assert shop.server.calls == []

        def kill(_: Call) -> None:
            os.kill(process.pid, signal.SIGKILL)

        shop.server.after = kill
        process = subprocess.Popen(
            shop.command("attribution", "postbacks", "send"), env={**os.environ, "PYTHONPATH": "src"}
        )
        assert process.wait(WITHIN_S) == -signal.SIGKILL
        shop.server.after = lambda _: None
        page.reload()
        calls = page.get_by_role("region", name="All calls").locator("tbody tr")
        expect(calls).to_have_count(3)
        expect(calls.first).to_contain_text("waiting")
        shop.server.judge = lambda call: 404 if call.order == "A-1002" else 200
        (done,) = shop.json("attribution", "postbacks", "send")["partners"]
        assert (done["taken"], done["refused"], done["codes"], done["left"]) == (2, 1, {"http_404": 1}, 0)
        assert sorted(shop.server.orders) in [sorted([*ORDERS, each]) for each in ORDERS]
        assert len({each.headers["webhook-id"] for each in shop.server.calls}) == 3
        assert {each.target.partition("?")[2].partition("&")[0] for each in shop.server.calls} == {
            *("click=s%200", "click=s%201", "click=s%202")
        }
        again = shop.run("attribution", "postbacks", "send")
        assert "Nothing waits to be sent." in again
        states = {each["orderId"]: each["state"] for each in shop.json("attribution", "postbacks", "list")["postbacks"]}
        assert states == {"A-1001": "taken", "A-1002": "refused", "A-1003": "taken"}
        assert "answers with status 404" in shop.run("attribution", "postbacks", "list", "--state", "refused")
        page.reload()
        expect(calls.filter(has_text="A-1002")).to_contain_text("refused")
        expect(calls.filter(has_text="A-1002")).to_contain_text("affiliate answers with status 404")
        expect(page.get_by_role("heading", name="affiliate")).to_be_visible()
        page.get_by_label("State").select_option("refused")
        expect(calls).to_have_count(1)
        assert look_in_both_themes(page) == []
        calls.get_by_role("link", name="A-1002").click()
        expect(page).to_have_url(re.compile(r"/attribution/orders/shop-1/A-1002"))


def test_a_cancelled_order_is_taken_back(shop: Shop) -> None:
    shop.server.judge = lambda _: 200
    credit(shop, *["completed"] * 3)
    shop.json("attribution", "postbacks", "send")
    before = len(shop.server.calls)
    order = {"client_id": "shop-1", "order_id": "A-1003", "cli_ubid": "u-2", "amount": "24.90", "currency": "EUR"}
    body = {**order, "status": "cancelled", "event_time": SystemClock().epoch_ms()}
    httpx.post(f"{shop.service.click_url}/orders", json=body, timeout=WITHIN_S).raise_for_status()
    credit(shop, "completed", "completed", "cancelled")
    shop.server.judge = lambda _: 503
    (failed,) = shop.json("attribution", "postbacks", "send", code=1)["partners"]
    assert (failed["left"], failed["why"]) == (1, "affiliate answers with status 503")
    shop.server.judge = lambda _: 200
    (done,) = shop.json("attribution", "postbacks", "send")["partners"]
    assert done["taken"] == 1
    assert [each.target.rpartition("&sum=")[2] for each in shop.server.calls[before:]] == ["0.00&what=retract"] * 2


def test_the_service_has_a_job_for_it(shop: Shop) -> None:
    asked = {"application": "attribution", "jobName": "postbacks"}
    job = httpx.get(f"{shop.service.url}/schedulerService/jobDetail", params=asked, timeout=WITHIN_S).json()
    assert "attribution postbacks send" in json.dumps(job)


def test_an_unknown_partner_is_named_with_those_that_are(shop: Shop) -> None:
    asked = httpx.get(f"{shop.service.url}/attribution/postbacks", params={"partner": "nobody"}, timeout=WITHIN_S)
    assert (asked.status_code, asked.json()["message"]) == (
        422,
        "unknown partner nobody; give one of affiliate.",
    )

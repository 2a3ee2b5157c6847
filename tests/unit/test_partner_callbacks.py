"""The addresses that the page gives Adjust and Branch: filled in as they fill them in, each call is an order.

And the message that the page shows of AppsFlyer.
"""

import json
import re
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from clickclock.attribution.orders.amendment import Rejection
from clickclock.attribution.orders.appsflyer import Sale, judge, query_of

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/connect-adjust-or-branch.md"
NOW = 1_800_000_000_000
DEVICE = "38400000-8cf0-11bd-b23e-10b96e40000d"
ADJUST = {"gps_adid": DEVICE, "revenue_float": "3.99", "currency": "usd", "created_at": "1799999990"}
BRANCH = {
    "event_data.transaction_id": "A 1/7",
    "user_data.aaid": DEVICE,
    "user_data.developer_identity": "c-7",
    "event_data.revenue": "3.99",
    "event_data.currency": "USD",
    "event_timestamp": "1799999990000",
}


def called(kind: str, macro: str, said: dict[str, str], more: str = "") -> Sale | Rejection:
    """What becomes of the address of this kind of block; what is not said is dropped."""
    (address,) = re.findall(rf"^ *```text {kind}\n *(\S+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    names = re.findall(macro, address)
    assert set(names) >= set(said)
    filled = re.sub(macro, lambda found: quote(said.get(found[1], ""), safe=""), address)
    parts = urlsplit(filled + more)
    assert parts.path == "/appsflyer"
    judged = judge(parts.query.encode(), NOW)
    assert isinstance(judged, Sale | Rejection)
    return judged


def adjust(said: dict[str, str]) -> Sale | Rejection:
    return called("adjust", r"\{(\w+)\}", said, "&item_identifier=A-1")


def branch(said: dict[str, str]) -> Sale | Rejection:
    return called("branch", r"\$\{\(([\w.]+)\)!\}", said)


def test_adjusts_callback_is_an_order() -> None:
    sale = adjust(ADJUST)
    assert isinstance(sale, Sale), sale
    order = sale.amendment
    assert (order.order_id, order.device_id, order.customer_id) == ("A-1", DEVICE, None)
    assert (order.amount_minor, order.currency, order.event_time_ms) == (399, "USD", 1_799_999_990_000)


def test_branchs_webhook_is_an_order() -> None:
    sale = branch(BRANCH)
    assert isinstance(sale, Sale), sale
    order = sale.amendment
    assert (order.order_id, order.device_id, order.customer_id) == ("A 1/7", DEVICE, "c-7")
    assert (order.amount_minor, order.currency, order.event_time_ms) == (399, "USD", 1_799_999_990_000)


@pytest.mark.parametrize(("left_out", "field"), [("gps_adid", "cli_ubid"), ("currency", "currency")])
def test_what_adjust_cannot_say_is_missing(left_out: str, field: str) -> None:
    refused = adjust({name: value for name, value in ADJUST.items() if name != left_out})
    assert isinstance(refused, Rejection)
    assert [fault.field for fault in refused.faults] == [field]


@pytest.mark.parametrize("currency", ["usd ", "Usd", "xyz", "us"])
def test_small_letters_are_all_that_a_currency_is_forgiven(currency: str) -> None:
    refused = adjust({**ADJUST, "currency": currency})
    assert isinstance(refused, Rejection)
    assert [fault.field for fault in refused.faults] == ["currency"]


def test_appsflyers_message_is_an_order() -> None:
    page = PAGE.read_text(encoding="utf-8")
    (message,) = re.findall(r"```json appsflyer\n(.*?)```", page, flags=re.DOTALL)
    sale = judge(b"client_id=shop-1&" + query_of(message.encode()), NOW)
    assert isinstance(sale, Sale), sale
    order, said = sale.amendment, json.loads(message)
    assert (order.order_id, order.device_id, order.customer_id) == ("A-1", said["advertising_id"], "c-7")
    assert (order.amount_minor, order.currency, order.event_time_ms) == (2990, "EUR", 1_793_523_600_120)
    articles = [(item.sku_id, item.price_minor, item.quantity) for item in order.items]
    assert articles == [("P-7", 990, 1), ("P-9", 1000, 2)]

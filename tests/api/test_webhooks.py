"""Webhooks of shops on the collector's port: signed, kept, and never refused for what a shop cannot mend."""

import copy
import hmac
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clickclock.attribution.clicks.account import Account, Profile
from clickclock.attribution.clicks.entry import Entry, EntryKind
from clickclock.attribution.clicks.query import split
from clickclock.attribution.orders.shop_order import RUDDERSTACK, SEGMENT, SHOPS, Shop
from tests.api.port import Heard, Port, post
from tests.unit.test_shop_order import ORDERS, REFUND, SHOPIFY_ORDER

SECRET = b"hush"
SIGNED = pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.name)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    folder = tmp_path_factory.mktemp("hooks")
    accounts = [Account(client_id="shop-1", orders_token_sha256="0" * 64), Account(client_id="shop-2")]
    with Port(folder, accounts, secrets={("shop-1", shop.name): SECRET for shop in SHOPS}) as standing:
        yield standing


def signature(shop: Shop, body: bytes, secret: bytes = SECRET) -> bytes:
    """As each of them documents it."""
    return {
        "shopify": b64encode(hmac.digest(secret, body, "sha256")),
        "woocommerce": b64encode(hmac.digest(secret, body, "sha256")),
        "segment": hmac.new(secret, body, "sha1").hexdigest().encode(),
        "rudderstack": secret,
    }[shop.name]


def send(port: Port, shop: Shop, body: bytes, signed: bytes | None = None, query: str = "client_id=shop-1") -> Heard:
    signed = signature(shop, body) if signed is None else signed
    fields = f"{shop.signature.decode()}: {signed.decode()}\r\nContent-Type: application/json\r\n" if signed else ""
    return port.ask(post(f"/webhooks/{shop.name}?{query}", body, fields))


def kept(port: Port) -> list[Entry]:
    """Entries since the last look."""
    before = getattr(kept, "seen", 0)
    found = port.entries()
    kept.seen = len(found)  # type: ignore[attr-defined]
    return found[before:]


@SIGNED
def test_a_signed_order_is_kept_in_our_own_fields(port: Port, shop: Shop) -> None:
    kept(port)
    heard = send(port, shop, json.dumps(ORDERS[shop.name]).encode())
    told = json.loads(heard.body)
    assert (heard.status, told["status"], [each["result"] for each in told["orders"]]) == (202, "success", ["accepted"])
    (entry,) = kept(port)
    assert entry.kind is EntryKind.ORDER
    assert json.loads(entry.raw)["order_id"] == told["orders"][0]["order_id"]
    assert b"Main Street" not in entry.raw


def test_an_order_and_its_refund_are_two_entries(port: Port) -> None:
    kept(port)
    heard = send(port, SHOPS[0], json.dumps({**SHOPIFY_ORDER, "refunds": [REFUND]}).encode())
    assert (heard.status, json.loads(heard.body)["accepted"]) == (202, 2)
    assert [json.loads(each.raw).get("status") for each in kept(port)] == [None, "partially_refunded"]


@SIGNED
@pytest.mark.parametrize("case", ["none", "of another secret", "of another body", "no base64"])
def test_without_its_signature_nothing_is_read_or_kept(port: Port, shop: Shop, case: str) -> None:
    body = json.dumps(ORDERS[shop.name]).encode()
    wrong = {"none": b"", "of another secret": signature(shop, body, b"other"), "no base64": b"\xc3\xa9"}
    if shop is not RUDDERSTACK:  # signs nothing
        wrong["of another body"] = signature(shop, body + b" ")
    kept(port)
    heard = send(port, shop, body, wrong.get(case, b"hush2"))
    told = json.loads(heard.body)
    assert (heard.status, told["code"]) == (401, "unauthorized")
    assert f"{shop.name}_webhook_secret_file" in told["message"]
    assert kept(port) == []


@SIGNED
def test_an_order_that_is_refused_is_acknowledged_and_kept_with_its_faults(port: Port, shop: Shop) -> None:
    amount = shop.names["amount"]
    order = copy.deepcopy(ORDERS[shop.name])
    (order["properties"] if "." in amount else order)[amount.rpartition(".")[2]] = "-3"
    kept(port)
    heard = send(port, shop, json.dumps(order).encode())
    told = json.loads(heard.body)
    assert (heard.status, told["status"], told["rejected"]) == (202, "refused", 1)
    assert [each["field"] for each in told["errors"]] == [amount]
    (entry,) = kept(port)
    assert (entry.kind, json.loads(entry.detail)["was"]) == (EntryKind.REJECTION, "order")
    assert entry.id == told["requestId"]


@SIGNED
@pytest.mark.parametrize("body", [b"{}", b"[]", b"7", b'{"refund_line_items": [], "order_id": 7}', b"webhook_id=12"])
def test_what_says_nothing_of_an_order_is_acknowledged(port: Port, shop: Shop, body: bytes) -> None:
    kept(port)
    assert (send(port, shop, body).status, kept(port)) == (204, [])


def test_a_shop_that_asks_whether_anybody_is_there_signs_nothing(port: Port) -> None:
    for shop in SHOPS:
        assert send(port, shop, b"webhook_id=12", b"").status == 204
    assert send(port, SHOPS[1], b"webhook_id=12&x=y", b"").status == 401


REFUSED: list[tuple[str, bytes, int]] = [
    ("", b"{}", 400),
    ("client_id=%", b"{}", 400),
    ("client_id=shop-2", b"{}", 401),
    ("client_id=nobody", b"{}", 403),
    ("client_id=shop-1", b"{", 400),
    ("client_id=shop-1", b'{"id": 1, "id": 2}', 400),
    ("client_id=shop-1", b" " * (1024 * 1024 + 1), 413),
]


@pytest.mark.parametrize(("query", "body", "status"), REFUSED)
def test_what_cannot_be_taken_says_why_and_is_not_kept(port: Port, query: str, body: bytes, status: int) -> None:
    kept(port)
    heard = send(port, SHOPS[0], body, query=query)
    told: dict[str, Any] = json.loads(heard.body)
    assert (heard.status, bool(told["message"]), kept(port)) == (status, True, [])


PAGE = {
    "type": "page",
    "anonymousId": "a-1",
    "context": {"userAgent": "Mozilla/5.0 (X11)", "page": {"referrer": "https://www.google.com/"}},
    "properties": {"url": "https://shop.example/menu?gclid=EAIaIQ&utm_campaign=may"},
}


@pytest.mark.parametrize("shop", [SEGMENT, RUDDERSTACK], ids=lambda shop: shop.name)
def test_a_page_that_an_ad_led_to_is_a_click(tmp_path: Path, shop: Shop) -> None:
    accounts = [Account(client_id="shop-1", profile=Profile.OPEN)]
    with Port(tmp_path, accounts, secrets={("shop-1", shop.name): SECRET}) as port:
        assert send(port, shop, json.dumps(PAGE).encode(), b"wrong").status == 401
        assert send(port, shop, json.dumps(PAGE).encode()).status == 204
        (entry,) = port.entries()
        assert (entry.kind, entry.agent, entry.referer, entry.address) == (
            EntryKind.CLICK,
            b"Mozilla/5.0 (X11)",
            b"https://www.google.com/",
            "",
        )
        assert split(entry.raw)["gclid"] == "EAIaIQ"
        port.until('clickclock_clicks_total{profile="open"}', 1)
        direct = PAGE | {"properties": {"url": "https://shop.example/menu"}}
        assert send(port, shop, json.dumps(direct).encode()).status == 204
        denied = PAGE | {"context": {"consent": {"categoryPreferences": {"Advertising": False}}}}
        assert send(port, shop, json.dumps(denied).encode()).status == 204
        nobody = {name: value for name, value in PAGE.items() if name != "anonymousId"}
        refused = send(port, shop, json.dumps(nobody).encode())
        assert (refused.status, "kept under its requestId" in json.loads(refused.body)["message"]) == (400, True)
        kinds = [each.kind for each in port.entries()]
        assert kinds == [EntryKind.CLICK, EntryKind.CLICK, EntryKind.REJECTION]
        assert b"a-1" not in port.entries()[1].raw


IDENTIFY = {
    "type": "identify",
    "anonymousId": "a-1",
    "userId": "c-7",
    "timestamp": "2026-11-20T10:00:00.000Z",
    "context": {"device": {"id": "D-1"}},
    "traits": {"email": "jo@shop.example"},
}


@pytest.mark.parametrize("shop", [SEGMENT, RUDDERSTACK], ids=lambda shop: shop.name)
def test_who_a_visitor_is_becomes_an_identification(tmp_path: Path, shop: Shop) -> None:
    with Port(tmp_path, [Account(client_id="shop-1")], secrets={("shop-1", shop.name): SECRET}) as port:
        assert send(port, shop, json.dumps(IDENTIFY).encode(), b"wrong").status == 401
        alias = {"type": "alias", "previousId": "a-2", "userId": "c-7", "timestamp": "2026-11-20T11:00:00Z"}
        ours = IDENTIFY | {"traits": {"cli_ubid": "tag-1"}, "context": {}}
        for event in (IDENTIFY, alias, ours):
            heard = send(port, shop, json.dumps(event).encode())
            assert (heard.status, heard.body) == (204, b"")
        assert [(entry.kind, entry.detail) for entry in port.entries()] == [(EntryKind.OTHER, b"identify")] * 3
        assert [dict(split(entry.raw)) for entry in port.entries()] == [
            {"client_id": "shop-1", "customer_id": "c-7", "cli_ubid": "a-1", "device_id": "D-1",
             "event_time": "1795168800000"},
            {"client_id": "shop-1", "customer_id": "c-7", "cli_ubid": "a-2", "event_time": "1795172400000"},
            {"client_id": "shop-1", "customer_id": "c-7", "cli_ubid": "tag-1", "event_time": "1795168800000"},
        ]  # fmt: skip
        port.until("clickclock_identifications_total", 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"userId": None},
        {"userId": "jo@shop.example"},
        {"anonymousId": None, "context": {}},
        {"context": {"consent": {"categoryPreferences": {"Advertising": False}}}},
        {"context": "none", "anonymousId": None, "traits": []},
    ],
)
def test_who_says_nothing_of_a_customer_is_not_kept(port: Port, changes: dict[str, Any]) -> None:
    kept(port)
    heard = send(port, SEGMENT, json.dumps(IDENTIFY | changes).encode())
    assert (heard.status, kept(port)) == (204, [])


def test_an_identification_that_is_refused_is_acknowledged_and_kept(port: Port) -> None:
    kept(port)
    heard = send(port, SEGMENT, json.dumps(IDENTIFY | {"userId": "c" * 300}).encode())
    (entry,) = kept(port)
    assert (heard.status, entry.kind) == (204, EntryKind.REJECTION)
    (fault,) = json.loads(entry.detail)["faults"]
    assert (json.loads(entry.detail)["was"], fault["field"]) == ("identification", "userId")


def test_events_that_come_in_one_body_are_not_taken_for_their_signature_is_that_of_one_alone(port: Port) -> None:
    event = json.dumps(ORDERS["segment"]).encode()
    kept(port)
    heard = send(port, SEGMENT, b"[" + event + b"," + event + b"]", signature(SEGMENT, event))
    assert (heard.status, kept(port)) == (401, [])


def test_a_compressed_body_is_not_read(port: Port) -> None:
    heard = port.ask(post("/webhooks/shopify?client_id=shop-1", b"{}", "Content-Encoding: gzip\r\n"))
    assert heard.status == 415

"""What `integrations/` ships, run as its platform runs it, against the real collector.

The doubles in `doubles/` offer what each platform's documentation offers a template, a pixel or a plugin.
"""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from clickclock.attribution.clicks.entry import Entry, EntryKind
from tests.acceptance.collecting import Collector, collecting
from tests.acceptance.tag_pages import listening, shop
from tests.house.tag import SERVED
from tests.house.tree import ROOT
from tests.ports import free_port

FOLDER = ROOT / "integrations"
DOUBLES = Path(__file__).parent / "doubles"
AD = "utm_source=a%20b&gclid=x%2By&atag=1"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(tmp_path_factory.mktemp("collector"), "--click-profile", "open") as running:
        yield running


def _sections(template: str) -> dict[str, str]:
    parts = re.split(r"^___([A-Z_]+)___$", (FOLDER / "google-tag-manager" / template).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


@pytest.mark.parametrize(
    ("template", "place", "permissions", "needed"),
    [
        ("clickclock-web.tpl", "SANDBOXED_JS_FOR_WEB_TEMPLATE", "WEB_PERMISSIONS",
         {"injectScript": "inject_script", "logToConsole": "logging", "setInWindow": "access_globals"}),
        ("clickclock-server.tpl", "SANDBOXED_JS_FOR_SERVER", "SERVER_PERMISSIONS",
         {"getAllEventData": "read_event_data", "getRemoteAddress": "read_request", "logToConsole": "logging",
          "sendHttpRequest": "send_http"}),
    ],
)  # fmt: skip
def test_a_template_is_whole_and_asks_for_just_what_it_uses(
    template: str, place: str, permissions: str, needed: dict[str, str]
) -> None:
    sections = _sections(template)
    code = sections[place]
    granted = {each["instance"]["key"]["publicId"] for each in json.loads(sections[permissions])}
    apis = set(re.findall(r"require\('(\w+)'\)", code))
    assert {needed[api] for api in apis if api in needed} == granted
    assert set(needed) <= apis
    fields = {each["name"] for each in json.loads(sections["TEMPLATE_PARAMETERS"])}
    assert set(re.findall(r"\bdata\.(\w+)", code)) - {"gtmOnSuccess", "gtmOnFailure"} == fields
    assert json.loads(sections["INFO"])["type"] == "TAG"
    assert not re.search(r"\bnew\b|\bwindow\b|\bdocument\b|\bfetch\b", re.sub(r"//.*", "", code))  # not in the sandbox


@pytest.mark.needs("chromium")
def test_the_web_template_loads_the_tag_with_its_settings(browser: Browser) -> None:
    code = _sections("clickclock-web.tpl")["SANDBOXED_JS_FOR_WEB_TEMPLATE"]
    with listening(SERVED.read_bytes()) as ear:
        data = {
            "collectorUrl": f"{ear.url}/",
            "clientId": "shop & 1",
            "sellerId": "s",
            "visitorId": "",
            "params": "aff",
            "landings": True,
        }
        container = f"""<p>shop</p><script>
          const data = {json.dumps(data)};
          data.gtmOnSuccess = () => document.title = 'loaded';
          data.gtmOnFailure = () => document.title = 'failed';
          const offered = {{
            injectScript: (url, done, failed) => {{
              const script = document.createElement('script');
              Object.assign(script, {{src: url, async: true, onload: done, onerror: failed}});
              document.head.append(script);
            }},
            logToConsole: (line) => console.log(line),
            setInWindow: (name, value) => {{ window[name] = value; }},
          }};
          new Function('require', 'data', {json.dumps(code)})((name) => offered[name], data);
        </script>"""
        with shop({"/": container}) as url:
            page = browser.new_page()
            page.goto(f"{url}/?{AD}")
            request = ear.wait_for(1)[0]
            assert page.evaluate("clickclockSettings.landings") is True
            page.wait_for_function("() => document.title === 'loaded'")
            page.close()
    assert request.path == "/aclick"
    assert re.fullmatch(
        rf"cli_ubid=[\w-]+&event_time=\d+&landing_page=[\w.]+%3A\d+%2F&client_id=shop%20%26%201&seller_id=s&{AD}",
        request.query,
    )


def _in_container(collector_url: str, event: dict[str, Any], **fields: str) -> dict[str, Any]:
    code = _sections("clickclock-server.tpl")["SANDBOXED_JS_FOR_SERVER"]
    data = {"collectorUrl": collector_url, "clientId": "shop-1", **fields}
    given = {"data": data, "event": event, "address": "192.0.2.7"}
    outcome: dict[str, Any] = _node("tag_manager.js", code, json.dumps(given))
    return outcome


def _node(double: str, code: str, *arguments: str) -> Any:
    script = subprocess.run(
        ["node", DOUBLES / double, "/dev/stdin", *arguments], input=code, capture_output=True, text=True, check=True
    )
    return json.loads(script.stdout) if script.stdout else None


def _raw(entry: Entry) -> str:
    return entry.raw.decode()


@pytest.mark.needs("npm")
def test_the_server_template_sends_clicks_byte_for_byte(collector: Collector) -> None:
    collector.forget()
    ad = {"event_name": "page_view", "client_id": "v&1", "page_location": f"https://shop.example/?{AD}#top",
          "user_agent": "Mozilla/5.0"}  # fmt: skip
    assert _in_container(collector.url, ad) == {"outcome": "success", "log": []}
    plain = {**ad, "page_location": "https://shop.example/?utm_source=&page=2"}
    assert _in_container(collector.url, plain)["outcome"] == "success"
    [entry] = collector.entries(1)
    assert entry.kind is EntryKind.PLAIN_CLICK
    assert re.fullmatch(
        rf"cli_ubid=v%261&event_time=\d{{13}}&landing_page=https%3A%2F%2Fshop.example%2F&client_id=shop-1&{AD}",
        _raw(entry),
    )
    refused = _in_container(collector.url, {**ad, "client_id": None})
    assert refused == {
        "outcome": "failure",
        "log": ["clickclock: an event without client_id; set cli_ubid in the tag"],
    }


@pytest.mark.needs("npm")
@pytest.mark.parametrize("said", ["G100", "G101"])
def test_the_server_template_obeys_the_consent_mode(collector: Collector, said: str) -> None:
    collector.forget()
    ad = {
        "event_name": "page_view",
        "client_id": "v1",
        "page_location": f"https://shop.example/?{AD}",
        "x-ga-gcs": said,
    }
    assert _in_container(collector.url, ad) == {"outcome": "success", "log": []}
    assert _in_container(collector.url, {**ad, "event_name": "purchase"})["outcome"] == "success"
    assert _in_container(collector.url, {**ad, "x-ga-gcs": "G110"})["outcome"] == "success"
    denied, granted = collector.entries(2)
    assert (denied.kind, "v1" in _raw(denied), denied.address) == (EntryKind.CLICK, False, "")
    assert _raw(denied).endswith("&consent=denied")
    assert (granted.kind, "cli_ubid=v1" in _raw(granted)) == (EntryKind.PLAIN_CLICK, True)


@pytest.mark.needs("npm")
def test_the_server_template_sends_purchases_and_says_why_one_is_refused(collector: Collector) -> None:
    collector.forget()
    purchase = {"event_name": "purchase", "client_id": "v1", "transaction_id": 1001, "value": 24.9, "currency": "EUR"}
    assert _in_container(collector.url, purchase)["outcome"] == "success"
    order = json.loads(_raw(collector.entries(1)[0]))
    assert (order["order_id"], order["amount"], order["cli_ubid"]) == ("1001", "24.9", "v1")
    told = _in_container(collector.url, {**purchase, "currency": "Euro"})
    assert told["outcome"] == "failure"
    assert "422" in told["log"][0]
    assert "currency" in told["log"][0]
    nobody = f"http://127.0.0.1:{free_port()}"
    assert _in_container(nobody, purchase)["log"] == [f"clickclock: the collector does not answer at {nobody}"]


@pytest.mark.needs("npm")
def test_the_pixel_sends_each_ad_once_and_the_customer(collector: Collector) -> None:
    collector.forget()

    def seen(search: str) -> dict[str, Any]:
        location = {"host": "shop.example", "pathname": "/sale", "search": search}
        return {"clientId": "v 2", "timestamp": "2026-11-25T10:00:00.000Z",
                "context": {"document": {"location": location}}}  # fmt: skip

    customer = {"id": "gid://shopify/Customer/77"}
    events = [
        ["page_viewed", seen(f"?{AD}")],
        ["page_viewed", seen(f"?{AD}")],
        ["page_viewed", seen("?page=2")],
        ["checkout_completed", {**seen(""), "data": {"checkout": {"order": {"id": "1", "customer": customer}}}}],
        ["checkout_completed", {**seen(""), "data": {"checkout": {"order": None}}}],
    ]
    pixel = (FOLDER / "shopify/pixel.js").read_text()
    _node("shopify.js", pixel, json.dumps(events), collector.url)
    click, identified = sorted((_raw(entry) for entry in collector.entries(2)), key=lambda raw: "customer_id" in raw)
    said = "cli_ubid=v%202&consent=granted&event_time=1795600800000"
    assert click == f"{said}&landing_page=shop.example%2Fsale&client_id=shop-1&{AD}"
    assert sorted(identified.split("&")) == [
        *("cli_ubid=v%202", "client_id=shop-1", "customer_id=77", "event_time=1795600800000"),
    ]


@pytest.mark.needs("npm")
def test_the_pixel_follows_what_the_visitor_allows(collector: Collector) -> None:
    collector.forget()
    location = {"host": "shop.example", "pathname": "/sale", "search": f"?{AD}"}
    context = {"document": {"location": location}}
    seen = {"clientId": "v2", "timestamp": "2026-11-25T10:00:00.000Z", "context": context}
    order = {"data": {"checkout": {"order": {"id": "1", "customer": {"id": "gid://shopify/Customer/77"}}}}}
    events = [
        ["visitorConsentCollected", {"customerPrivacy": {"marketingAllowed": False}}],
        ["page_viewed", seen],
        ["checkout_completed", {**seen, **order}],
        ["visitorConsentCollected", {"customerPrivacy": {"marketingAllowed": True}}],
        ["page_viewed", seen],
    ]
    _node("shopify.js", (FOLDER / "shopify/pixel.js").read_text(), json.dumps(events), collector.url)
    # Both are sent at once, so either may be first.
    denied, granted = sorted(collector.entries(2), key=lambda entry: "cli_ubid" in _raw(entry))
    assert (denied.kind, "v2" in _raw(denied), "consent=denied" in _raw(denied)) == (EntryKind.CLICK, False, True)
    assert _raw(granted).startswith("cli_ubid=v2&consent=granted&")


def _wordpress(settings: dict[str, str], **given: Any) -> Any:
    plugin = FOLDER / "woocommerce/clickclock.php"
    ran = subprocess.run(
        [
            *("php", "-d", "error_reporting=E_ALL", "-d", "display_errors=stderr"),
            *(DOUBLES / "wordpress.php", plugin, json.dumps({"settings": settings, **given})),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr == ""
    return json.loads(ran.stdout)


ROW = {"number": "1001", "total": "24.90", "currency": "EUR", "status": "processing", "created": "2026-11-20T10:00:00Z",
       "modified": "2026-11-21T10:00:00Z", "meta": {"_clickclock_visitor": "v1"}}  # fmt: skip
SEND = "clickclock_send_order"


@pytest.mark.needs("php")
def test_the_plugin_puts_the_tag_on_a_page_and_the_visitor_into_the_order() -> None:
    settings = {"CLICKCLOCK_URL": "https://clicks.example.com/", "CLICKCLOCK_CLIENT_ID": 'shop"1'}
    told = _wordpress(
        settings,
        user=7,
        orders={1: {**ROW, "meta": {}}},
        post={"clickclock_visitor": "  v<b>1</b> "},
        calls=[["wp_enqueue_scripts"], ["woocommerce_after_order_notes"], ["admin_notices"],
               ["woocommerce_checkout_create_order", {"order": 1}]],
    )  # fmt: skip
    assert told["meta"]["1"] == {"_clickclock_visitor": "v1"}
    assert told["output"].startswith(
        '<script data-client-id="shop&quot;1" data-customer-id="7" src=\'https://clicks.example.com/clickclock.js\''
    )
    assert "notice" not in told["output"]
    lacking = _wordpress({"CLICKCLOCK_URL": ""}, calls=[["wp_enqueue_scripts"], ["admin_notices"]])["output"]
    assert "define CLICKCLOCK_URL and CLICKCLOCK_CLIENT_ID in wp-config.php" in lacking
    assert "<script" not in lacking


@pytest.mark.needs("php", "chromium")
@pytest.mark.parametrize(
    ("before", "then", "said"),
    [
        ("window.wp_has_consent = () => true", None, "granted"),
        ("window.wp_has_consent = () => false", {"marketing": "allow"}, "granted"),
        ("window.wp_has_consent = () => false", {"marketing": "deny"}, "denied"),
        ("document.cookie = 'wp_consent_marketing=deny'; window.wp_has_consent = () => false", None, "denied"),
    ],
)
def test_the_plugin_waits_for_what_the_banner_of_the_site_is_answered(
    browser: Browser, before: str, then: dict[str, str] | None, said: str
) -> None:
    with listening(SERVED.read_bytes()) as ear:
        settings = {"CLICKCLOCK_URL": ear.url, "CLICKCLOCK_CLIENT_ID": "shop-1"}
        tag = _wordpress(settings, has_consent_api=True, calls=[["wp_enqueue_scripts"]])["output"]
        with shop({"/": f"<p>shop</p><script>{before}</script>{tag}"}) as url:
            page = browser.new_page()
            page.goto(f"{url}/?{AD}", wait_until="load")
            if then is not None:
                assert page.evaluate("localStorage.length + sessionStorage.length") == 0, "nobody has agreed yet"
                assert ear.heard == []
                told = json.dumps({"detail": then})
                page.evaluate(f"document.dispatchEvent(new CustomEvent('wp_listen_for_consent_change', {told}))")
            (request,) = ear.wait_for(1)
            page.close()
    assert f"&consent={said}&" in f"&{request.query}"
    assert ("cli_ubid=" in request.query) == (said == "granted")


@pytest.mark.needs("php")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"status": "completed", "event_time": 1795168800000}),
        ({"refunded": 4.9}, {"status": "partially_refunded", "refunded_amount": "4.90", "event_time": 1795255200000}),
        ({"refunded": 24.9}, {"status": "refunded"}),
        ({"status": "refunded"}, {"status": "refunded"}),
        ({"status": "cancelled"}, {"status": "cancelled"}),
        ({"customer": 7, "meta": {}}, {"customer_id": "7"}),
    ],
)
def test_the_plugin_sends_an_order_as_it_stands(
    collector: Collector, change: dict[str, Any], expected: dict[str, Any]
) -> None:
    collector.forget()
    settings = {"CLICKCLOCK_URL": collector.url, "CLICKCLOCK_CLIENT_ID": "shop-1"}
    told = _wordpress(settings, orders={1: {**ROW, **change}}, calls=[[SEND, 1, 1]])
    order = json.loads(_raw(collector.entries(1)[0]))
    wanted = {"client_id": "shop-1", "order_id": "1001", "amount": "24.90", "currency": "EUR", **expected}
    assert {name: order.get(name) for name in wanted} == wanted
    assert int(told["meta"]["1"]["_clickclock_sent"]) <= time.time()
    assert (told["notes"]["1"], told["scheduled"]) == ([], [])


@pytest.mark.needs("php")
def test_the_plugin_sends_again_what_did_not_arrive_and_notes_what_was_refused(collector: Collector) -> None:
    away = {"CLICKCLOCK_URL": f"http://127.0.0.1:{free_port()}", "CLICKCLOCK_CLIENT_ID": "shop-1"}
    first = _wordpress(away, orders={1: ROW}, calls=[[SEND, 1, 1]])
    assert first["scheduled"] == [[60, SEND, [1, 2]]]
    assert "sent again" in first["notes"]["1"][0]
    later = _wordpress(away, orders={1: ROW}, calls=[[SEND, 1, 9]])
    assert later["scheduled"] == [[21600, SEND, [1, 10]]]
    assert later["notes"]["1"] == []
    last = _wordpress(away, orders={1: ROW}, calls=[[SEND, 1, 84]])
    assert last["scheduled"] == []
    here = {"CLICKCLOCK_URL": collector.url, "CLICKCLOCK_CLIENT_ID": "shop-1"}
    refused = _wordpress(here, orders={1: {**ROW, "currency": "XXQ"}}, calls=[[SEND, 1, 1]])
    assert refused["scheduled"] == []
    assert "currency" in refused["notes"]["1"][0] or "XXQ" in refused["notes"]["1"][0]
    nobody = _wordpress(here, orders={1: {**ROW, "meta": {}}}, calls=[[SEND, 1, 1]])
    assert "neither the visitor nor the customer" in nobody["notes"]["1"][0]


@pytest.mark.needs("php")
@pytest.mark.parametrize(("to", "sent", "count"), [("processing", "", 1), ("on-hold", "", 0), ("cancelled", "1", 1)])
def test_the_plugin_sends_sales_and_what_becomes_of_them(to: str, sent: str, count: int) -> None:
    settings = {"CLICKCLOCK_URL": "https://clicks.example.com", "CLICKCLOCK_CLIENT_ID": "shop-1"}
    row = {**ROW, "meta": {"_clickclock_sent": sent}}
    called = ["woocommerce_order_status_changed", 1, "pending", to, {"order": 1}]
    told = _wordpress(settings, orders={1: row}, calls=[called])
    assert told["scheduled"] == [[0, SEND, [1, 1]]] * count

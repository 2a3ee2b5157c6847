"""What the collector's port answers to requests that are whole."""

import asyncio
import hashlib
import json
import select
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from clickclock.attribution.api.origin import Origins
from clickclock.attribution.clicks.account import Account, Accounts, Profile
from clickclock.attribution.clicks.address import pseudonym
from clickclock.attribution.clicks.entry import JUDGED, EntryKind, connection
from clickclock.attribution.lake.rows import row_of, with_query
from clickclock.attribution.registering.registration import accepted
from clickclock.attribution.registering.retrial import Accepted, Rejected, judge
from clickclock.attribution.registering.sighting import sight
from tests.api.port import SALT, Port, get, now_ms, post, query

FORM = "Content-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture(scope="module", params=[uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
def port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    interval_s = sys.getswitchinterval()
    with Port(tmp_path_factory.mktemp("journal"), run=request.param) as port:
        yield port
    sys.setswitchinterval(interval_s)


def _unique(port: Port) -> str:
    return f"u{len(port.entries())}"


@pytest.mark.parametrize("path", ["/aclick", "/aclick/", "/ACLICK", "/AClick/", "http://clicks.example/aclick"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_click_is_on_disk_before_it_is_answered(port: Port, path: str, method: str) -> None:
    said = query(cli_ubid=_unique(port))
    heard = port.ask(get(f"{path}?{said}", method=method, fields="User-Agent: test\r\nReferer: http://p/\r\n"))
    assert (heard.status, heard.body) == (204, b"")
    assert heard.fields["cache-control"] == "no-store"
    assert heard.fields["access-control-allow-origin"] == "*"
    assert "date" in heard.fields
    assert "content-length" not in heard.fields
    entry = port.entries()[-1]
    assert (entry.kind, entry.raw, entry.detail) == (EntryKind.PLAIN_CLICK, said.encode(), b"strict" + JUDGED.encode())
    assert (entry.agent, entry.referer) == (b"test", b"http://p/")
    assert entry.address == ""  # that of a server of our own says nothing about a visitor
    assert abs(entry.received_ms - now_ms()) < 60_000


def test_a_form_is_a_query(port: Port) -> None:
    said = query(cli_ubid=_unique(port)).encode()
    for content_type in (FORM, "Content-Type: text/plain;charset=UTF-8\r\n", ""):
        assert port.ask(post("/aclick", said, content_type)).status == 204
        assert port.entries()[-1].raw == said
    assert port.ask(post(f"/aclick?{query(cli_ubid='first')}", b"cli_ubid=second", FORM)).status == 204
    assert port.entries()[-1].raw.endswith(b"&cli_ubid=second")


def test_a_chunked_form_is_a_query(port: Port) -> None:
    said = query(cli_ubid=_unique(port)).encode()
    head = b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n" + FORM.encode() + b"\r\n"
    chunks = b"5;x=y\r\n%b\r\n%x\r\n%b\r\n0\r\nTrailer: x\r\n\r\n" % (said[:5], len(said) - 5, said[5:])
    with port.connect() as client:
        assert client.ask(head, chunks).status == 204
        assert port.entries()[-1].raw == said
        assert client.ask(get(query())).status == 204


def test_every_fault_is_named_and_the_request_is_kept(port: Port) -> None:
    heard = port.ask(get("seller_id=s&asvt=&event_time=soon"))
    body = json.loads(heard.body)
    assert heard.status == 400
    assert {fault["field"] for fault in body["errors"]} == {"client_id", "asvt", "atag", "cli_ubid", "event_time"}
    assert {fault["code"] for fault in body["errors"]} == {"missing", "badEventTime"}
    entry = port.entries()[-1]
    assert (entry.kind, entry.id, entry.raw) == (
        EntryKind.REJECTION,
        body["requestId"],
        b"seller_id=s&asvt=&event_time=soon",
    )
    detail = json.loads(entry.detail)
    assert (detail["was"], detail["kind"], detail["faults"]) == ("click", "invalid", body["errors"])


def test_an_unknown_client_is_refused_and_kept(tmp_path: Path) -> None:
    with Port(tmp_path, accounts=[Account(client_id="known")]) as port:
        assert port.ask(get(query(client_id="known"))).status == 204
        heard = port.ask(get(query(client_id="other")))
        assert (heard.status, json.loads(heard.body)["code"]) == (403, "unknownClient")
        assert [entry.kind for entry in port.entries()] == [EntryKind.PLAIN_CLICK, EntryKind.REJECTION]


REAL = {
    "android": (
        "device_id=own&client_id=c&seller_id=s&asvt=2|r9sga6ewt7p9ps59stvm59gotyii6qht|{x}&utm_source=push&utm_x=a&b"
        "&device_id=theirs"
    ),
    "node": (
        "uclid=2%7Cr9sga6ewt7p9ps59stvm59gotyii6qht%7C0.0040838%7C1664429063646%7C12027%7CBRAND_AD_TAG%7C"
        "os_62e8d149a52d65.11278952%7CCPM%7Cb_Samsung%7C387071%7C187752%7C197248%7C197248%7C%7C3246%7C4408%7C"
        "&client_id=c&cli_ubid=a+b&event_time=undefined"
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_what_real_clients_send_is_taken_as_the_profile_says(tmp_path: Path, name: str) -> None:
    path = "/aclick/" if name == "node" else "/aclick"
    for profile, status, kind in ((Profile.OBSERVED, 204, EntryKind.CLICK), (Profile.STRICT, 400, EntryKind.REJECTION)):
        with Port(tmp_path / profile, profile=profile) as port:
            # Two screens run the same code: both are acknowledged, what they are is decided later.
            assert [port.ask(get(f"{path}?{REAL[name]}")).status for _ in range(2)] == [status, status]
            entries = port.entries()
            assert [(entry.kind, entry.raw) for entry in entries] == [(kind, REAL[name].encode())] * 2


def test_a_real_gclid_satisfies_the_google_rule(port: Port) -> None:
    gclid = "EAItIQoxChMIiYfIzLff6AIVPSsrCh0hqwA2EAYEKCPAEgJ09vD_IwE"
    assert port.ask(get(query(gad_source=1, gclid=gclid))).status == 204
    assert port.ask(get(query(gad_source=1))).status == 400


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        ("ä=b", 400, None),
        ("cli_ubid=a%zz", 400, "brokenEncoding"),
        ("cli_ubid=%ff", 400, "notUtf8"),
        ("cli_ubid=%00", 400, "nul"),
        ("&".join(f"p{number}=1" for number in range(101)), 400, "tooManyParameters"),
    ],
)
def test_bytes_that_are_no_text_are_kept_and_refused(port: Port, raw: str, status: int, code: str | None) -> None:
    heard = port.ask(f"GET /aclick?{raw} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    assert heard.status == status
    assert code is None or code in {fault["code"] for fault in json.loads(heard.body)["errors"]}
    assert port.entries()[-1].raw == raw.encode()


def test_a_query_may_hold_raw_utf8_even_in_pieces(port: Port) -> None:
    said = query(cli_ubid="Zoë", utm_campaign="Ångström").encode()
    request = b"GET /aclick?" + said + b" HTTP/1.1\r\nHost: h\r\n\r\n"
    with port.connect() as client:
        assert client.ask(request).status == 204
        assert port.entries()[-1].raw == said
        for at in range(0, len(request), 7):
            client.send(request[at : at + 7])
        assert client.answer().status == 204
        assert port.entries()[-1].raw == said
        assert client.ask(request + request[:20], request[20:]).status == 204
        assert client.answer().status == 204


@pytest.mark.parametrize("packet_bytes", [1, 50, 100_000])
def test_a_query_may_hold_raw_utf8_behind_any_other_request(port: Port, packet_bytes: int) -> None:
    said = query(utm_campaign="Ångström").encode()
    raw = b"GET /aclick?" + said + b" HTTP/1.1\r\nHost: h\r\n\r\n"
    chunked = b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked += b"%x\r\n%b\r\n0\r\n\r\n" % (len(said), said)
    long = b"[%b]" % b",".join([b'{"order_id":\r\n\r\n"7"}'] * 1500)
    before = [get(query()), post("/aclick", said), chunked, post("/orders", long), post("/nothing", b"x\r\n\r\n"), raw]
    data = b"".join(each + raw for each in before)
    known = len(port.entries())
    with port.connect() as client:
        client.send(*(data[at : at + packet_bytes] for at in range(0, len(data), packet_bytes)))
        answers = [client.answer().status for _ in range(2 * len(before))]
    assert answers[1::2] == [204] * len(before)
    assert answers[::2] == [204, 204, 204, 413, 404, 204]
    assert [entry.raw for entry in port.entries()[known:]].count(said) == len(before) + 3


@pytest.mark.parametrize("later_bytes", [1, 2, 3])
def test_a_query_may_hold_raw_utf8_where_its_request_comes_with_the_end_of_another(
    port: Port, later_bytes: int
) -> None:
    raw = b"GET /aclick?" + query(utm_campaign="Ångström").encode() + b" HTTP/1.1\r\nHost: h\r\n\r\n"
    chunked = b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    for before, status in ((get(query()), 204), (raw, 204), (chunked, 400)):
        packets = before[:-later_bytes], before[-later_bytes:] + raw[:20], raw[20:]
        with port.connect() as client, port.connect() as other:
            for packet in packets:
                client.send(packet)
                assert other.ask(get(query())).status == 204, "by now it has been read"
            assert [client.answer().status for _ in range(2)] == [status, 204]


@pytest.mark.parametrize("first_bytes", range(1, 9))
def test_a_query_may_hold_raw_utf8_however_few_bytes_of_the_request_come_first(port: Port, first_bytes: int) -> None:
    raw = b"GET /aclick?" + query(utm_campaign="Ångström").encode() + b" HTTP/1.1\r\nHost: h\r\n\r\n"
    with port.connect() as client, port.connect() as other:
        client.send(raw[:first_bytes])
        assert other.ask(get(query())).status == 204, "by now they have been read"
        assert client.ask(raw[first_bytes:]).status == 204


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("OPTIONS", "/aclick", 204, "GET, HEAD, OPTIONS, POST"),
        ("OPTIONS", "/aclick/", 204, "GET, HEAD, OPTIONS, POST"),
        ("OPTIONS", "*", 204, "GET, HEAD, OPTIONS"),
        ("PUT", "/aclick", 405, "GET, HEAD, OPTIONS, POST"),
        ("DELETE", "/aclick", 405, "GET, HEAD, OPTIONS, POST"),
        ("POST", "/healthz", 405, "GET, HEAD, OPTIONS"),
        ("GET", "/orders", 405, "POST, OPTIONS"),
        ("GET", "/", 404, None),
        ("GET", "/aclick/x", 404, None),
        ("GET", "//aclick", 404, None),
        ("GET", "/aclicks", 404, None),
        ("GET", "http://clicks.example", 404, None),
    ],
)
def test_paths_and_methods(port: Port, method: str, path: str, status: int, allow: str | None) -> None:
    heard = port.ask(get(path, method=method))
    assert (heard.status, heard.fields.get("allow")) == (status, allow)
    is_for_pages = path in {"/aclick", "/aclick/"}
    assert heard.fields.get("access-control-allow-origin") == ("*" if is_for_pages else None)
    if method == "OPTIONS" and is_for_pages:
        assert heard.fields["access-control-allow-methods"] == allow
        assert heard.fields["access-control-allow-headers"] == "*"


def test_pages_read_what_they_ask_for_and_nothing_else(port: Port) -> None:
    for path in ("/clickclock.js", "/identify", "/aclick"):
        assert port.ask(get(path)).fields["access-control-allow-origin"] == "*"
    for path in ("/healthz", "/metrics", "/openapi.json", "/orders", "/appsflyer", "/nothing"):
        heard = port.ask(get(path))
        assert not [name for name in heard.fields if name.startswith("access-control")]
        assert heard.fields["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in heard.fields["content-security-policy"]


def test_strangers_see_no_metrics(port: Port) -> None:
    assert port.ask(get("/metrics")).status == 200
    # The loopback is a trusted proxy here, and passes on whom it got this from.
    for forwarded in ("203.0.113.7", "127.0.0.1, 203.0.113.7", "not an address"):
        heard = port.ask(get("/metrics", f"X-Forwarded-For: {forwarded}\r\n"))
        assert heard.status == 403
        assert b"click_metrics_from" in heard.body
        assert b"clickclock_" not in heard.body
    assert port.ask(get("/metrics", "X-Forwarded-For: 127.0.0.2\r\n")).status == 200


def test_a_head_has_the_fields_of_the_answer_and_no_body(port: Port) -> None:
    with port.connect() as client:
        for target in ("/healthz", "/metrics", "/clickclock.js", "/nothing", "seller_id=s"):
            heard = client.send(get(target, method="HEAD")).answer(to_head=True)
            assert int(heard.fields["content-length"]) > 0
        assert client.ask(get(query())).status == 204


def test_the_script_is_cached_by_its_tag(port: Port) -> None:
    heard = port.ask(get("/clickclock.js"))
    assert (heard.status, heard.fields["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert heard.fields["cache-control"] == "public, max-age=3600"
    assert b"sendBeacon" in heard.body
    again = port.ask(get("/clickclock.js", f"If-None-Match: W/{heard.fields['etag']}\r\n"))
    assert (again.status, again.body) == (304, b"")


def test_it_is_healthy_while_its_disk_writes(port: Port) -> None:
    with port.connect() as client:
        assert client.ask(get("/healthz")).status == 200
        # It keeps its place among the answers.
        client.send(get("/healthz") + get(query()) + get("/healthz") + get("/nothing"))
        assert [client.answer().status for _ in range(4)] == [200, 204, 200, 404]


ORDER = {"client_id": "c", "order_id": "7", "cli_ubid": "u", "amount": "9.90", "currency": "EUR", "status": "completed"}


def test_orders_are_on_disk_before_they_are_answered(port: Port) -> None:
    order = {**ORDER, "event_time": now_ms()}
    bad = {**order, "amount": "much"}
    before = len(port.entries())
    heard = port.ask(post("/orders", json.dumps([order, bad]).encode(), "Content-Type: application/json\r\n"))
    body = json.loads(heard.body)
    assert (heard.status, body["status"], body["accepted"], body["rejected"]) == (202, "partial", 1, 1)
    kept = port.entries()[before:]
    assert [entry.kind for entry in kept] == [EntryKind.ORDER, EntryKind.REJECTION]
    assert [entry.id for entry in kept] == [result["id"] for result in body["orders"]]


def test_an_order_that_is_refused_by_itself_is_422_and_kept(port: Port) -> None:
    heard = port.ask(post("/orders", b'{"amount": 24.9}'))
    body = json.loads(heard.body)
    assert (heard.status, body["status"], body["rejected"]) == (422, "refused", 1)
    assert (port.entries()[-1].kind, port.entries()[-1].id) == (EntryKind.REJECTION, body["requestId"])
    assert heard.fields["x-request-id"] == body["requestId"]
    sale = port.ask(get("/appsflyer?event_name=funnel_salecomplete&client_id=c&sales=9.90"))
    assert (sale.status, port.entries()[-1].id) == (422, json.loads(sale.body)["requestId"])


def test_many_orders_let_clicks_between(port: Port) -> None:
    order = {**ORDER, "event_time": now_ms()}
    lines = b"\n".join(json.dumps({**order, "order_id": str(number)}).encode() for number in range(10_000))
    before = len(port.entries())
    with port.connect() as client, port.connect() as other:
        client.send(post("/orders", lines))
        clicks = 0
        while not select.select([client.socket], [], [], 0)[0]:
            assert other.ask(get(query())).status == 204
            clicks += 1
        heard = json.loads(client.answer().body)
    assert (heard["accepted"], clicks > 1) == (10_000, True)
    kept = port.entries()[before:]
    places = [place for place, entry in enumerate(kept) if entry.kind == EntryKind.ORDER]
    assert [result["id"] for result in heard["orders"]] == [kept[place].id for place in places]
    assert any(entry.kind != EntryKind.ORDER for entry in kept[places[0] : places[-1]])


@pytest.mark.parametrize(
    ("body", "fields", "status"),
    [
        (b"", "", 400),
        (b"{", "", 400),
        (b"not json", "", 400),
        (b"{}", "Content-Encoding: gzip\r\n", 415),
    ],
)
def test_orders_that_cannot_be_read(port: Port, body: bytes, fields: str, status: int) -> None:
    heard = port.ask(post("/orders", body, fields))
    assert heard.status == status
    assert json.loads(heard.body)["status"] == "error"


def test_orders_of_an_account_with_a_token_need_it(tmp_path: Path) -> None:
    account = Account(client_id="c", orders_token_sha256=hashlib.sha256(b"secret").hexdigest())
    order = json.dumps({**ORDER, "event_time": now_ms()}).encode()
    with Port(tmp_path, accounts=[account]) as port:
        assert port.ask(post("/orders", order)).status == 401
        assert port.ask(post("/orders", order, "Authorization: Bearer wrong\r\n")).status == 401
        assert port.ask(post("/orders", order, "Authorization: Bearer secret\r\n")).status == 202
        assert port.ask(get(query())).status == 204


def test_the_call_of_other_services_is_an_order(port: Port) -> None:
    sale = "event_name=funnel_salecomplete&sales=9.90&currency=EUR&item_identifier=8"
    said = f"{sale}&client_id=c&cli_ubid=u&event_time={now_ms()}"
    other = f"event_name=viewproduct&client_id=c&cli_ubid=u&event_time={now_ms()}"
    results: list[Any] = [port.ask(get(f"/appsflyer?{said}")), port.ask(post("/appsflyer", said.encode(), FORM))]
    results += [port.ask(get(f"/appsflyer?{other}")), port.ask(get("/appsflyer?event_name=x"))]
    assert [heard.status for heard in results] == [204, 204, 204, 400]
    kinds = [entry.kind for entry in port.entries()[-4:]]
    assert kinds == [EntryKind.ORDER, EntryKind.ORDER, EntryKind.OTHER, EntryKind.REJECTION]


def test_a_message_of_appsflyers_push_api_is_an_order(port: Port) -> None:
    as_json = "Content-Type: application/json; charset=utf-8\r\n"
    said = {"event_name": "af_purchase", "event_revenue": 9.9, "event_revenue_currency": "EUR", "idfa": "i"}
    said |= {"event_time": "2026-11-01 09:00:00.120", "event_value": '{"af_order_id": "A-9"}', "ip": "::1"}
    for target, body, status in (
        ("/appsflyer?client_id=c", json.dumps(said).encode(), 204),
        ("/appsflyer", json.dumps(said).encode(), 422),
        ("/appsflyer?client_id=c", b'{"event_name": ', 400),
        ("/appsflyer?client_id=c", b"[]", 400),
    ):
        assert port.ask(post(target, body, as_json)).status == status
    (taken, *refused) = port.entries()[-4:]
    assert (taken.kind, json.loads(taken.raw)["order_id"]) == (EntryKind.ORDER, "A-9")
    assert b"::1" not in taken.detail + taken.raw
    assert [each.kind for each in refused] == [EntryKind.REJECTION] * 3
    assert refused[1].raw == b'{"event_name": '


def test_a_body_that_is_no_form_is_refused(port: Port) -> None:
    assert port.ask(post("/aclick", b"{}", "Content-Type: application/json\r\n")).status == 415
    assert port.ask(post("/aclick", b"a=b", f"{FORM}Content-Encoding: gzip\r\n")).status == 415


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("10.0.0.1, 203.0.113.7", "203.0.113.7"),
        ("203.0.113.7, 127.0.0.2", "203.0.113.7"),
        ("203.0.113.7:4711", "203.0.113.7"),
        ('"[2001:db8::1]:4711"', "2001:db8::1"),
        ("10.1.2.3", "10.1.2.3"),
        ("127.0.0.3", ""),
        ("::1", ""),
        ("169.254.1.1", ""),
        ("nobody", ""),
        ("", ""),
    ],
)
def test_the_address_is_the_last_that_no_trusted_proxy_vouches_for(port: Port, forwarded: str, address: str) -> None:
    assert port.ask(get(query(), f"X-Forwarded-For: {forwarded}\r\n")).status == 204
    assert port.entries()[-1].address == pseudonym(address, SALT)


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("198.51.100.9", "", "198.51.100.9"),
        ("::ffff:198.51.100.9", "", "198.51.100.9"),
        ("198.51.100.9", "203.0.113.7", "198.51.100.9"),
        ("192.0.2.1", "", ""),
        ("192.0.2.1", "203.0.113.7", "203.0.113.7"),
        ("192.0.2.1", "192.0.2.1", ""),
        ("172.17.0.1", "", ""),
        ("172.17.0.1", "203.0.113.7", ""),
        ("::ffff:10.0.0.7", "", ""),
        ("fd00::7", "", ""),
        ("127.0.0.1", "203.0.113.7", ""),
        ("", "", ""),
    ],
)
def test_an_address_of_a_proxy_or_a_server_is_no_visitors(peer: str, forwarded: str, address: str) -> None:
    columns = Origins(["192.0.2.0/24"], SALT).of(peer, forwarded.encode(), b"", b"")
    assert columns == connection(pseudonym(address, SALT), b"", b"")


def test_who_is_not_trusted_cannot_choose_an_address(tmp_path: Path) -> None:
    with Port(tmp_path, trusted_proxies=["10.0.0.0/8"]) as port:
        assert port.ask(get(query(), "X-Forwarded-For: 203.0.113.7\r\n")).status == 204
        assert port.entries()[-1].address == ""


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize(
    "purpose",
    [
        *("Sec-Purpose: prefetch", "sec-purpose: prefetch;prerender", "Sec-Purpose: prefetch;anonymous-client-ip"),
        *("Purpose: preview", "PURPOSE: Prefetch", "X-Moz: prefetch", "X-Purpose: preview"),
    ],
)
def test_what_is_asked_for_in_advance_is_kept_with_a_flag(port: Port, method: str, purpose: str) -> None:
    said = query(cli_ubid=_unique(port))
    for _ in range(3):  # whoever repeats himself is not read each time
        heard = port.ask(get(f"/aclick?{said}", method=method, fields=f"{purpose}\r\n"))
        assert heard.status == 204
        entry = port.entries()[-1]
        assert (entry.kind, entry.raw, entry.detail) == (EntryKind.CLICK, said.encode(), b"strict prefetch")
    assert sight(entry).fields["flags"] == ["prefetch"]
    table, row = row_of(entry, "j", 1)
    assert (table.name, row["flags"], row["profile"]) == ("clicks", ["prefetch"], "strict")
    assert port.ask(get(f"/aclick?{said}", method=method)).status == 204
    assert port.entries()[-1].detail == b"strict" + JUDGED.encode()


def test_another_purpose_is_a_click_like_any_other(port: Port) -> None:
    for purpose in ("Sec-Purpose: ", "Purpose: navigate", "X-Moz: microsummary"):
        assert port.ask(get(f"/aclick?{query(cli_ubid=_unique(port))}", fields=f"{purpose}\r\n")).status == 204
        assert port.entries()[-1].detail == b"strict" + JUDGED.encode()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/aclick?client_id=c&cli_ubid=u", fields="Sec-Purpose: prefetch\r\n"), 400),
        (post("/aclick", b"client_id=c&cli_ubid=u", "X-Moz: prefetch\r\nContent-Type: text/html\r\n"), 415),
        (get("/aclick?client_id=c&cli_ubid=u", fields="Purpose: preview\r\n", method="PUT"), 405),
        (get("/aclick?client_id=c&cli_ubid=u", fields="Purpose: preview\r\nExpect: more\r\n"), 417),
        (get("/clik?client_id=c&cli_ubid=u", fields="Sec-Purpose: prefetch;prerender\r\n"), 404),
    ],
)
def test_a_prefetch_that_is_refused_stays_one_when_it_is_judged_again(port: Port, request_: bytes, status: int) -> None:
    before = len(port.entries())
    assert port.ask(request_).status == status
    (entry,) = port.entries()[before:]
    assert sight(entry).fields["flags"] == ["prefetch"]
    table, row = row_of(entry, "j", 1)
    assert (table.name, row["flags"]) == ("rejections", ["prefetch"])
    codes = frozenset(fault["code"] for fault in row["faults"])
    rejected = Rejected(row["what"], row["kind"], "c", codes, entry.received_ms, entry.raw, frozenset(row["flags"]))
    again = judge(rejected, Accounts(default_profile=Profile.OPEN))
    assert isinstance(again, Accepted)
    assert (again.kind, again.detail) == (EntryKind.CLICK, b"open prefetch")
    assert accepted(again.detail) == ("open", True)


@pytest.mark.parametrize("path", ["/aview", "/AView/", "http://clicks.example/aview"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_view_is_on_disk_before_it_is_answered_and_is_no_click(port: Port, path: str, method: str) -> None:
    said = query(cli_ubid=_unique(port))
    heard = port.ask(get(f"{path}?{said}", method=method, fields="User-Agent: test\r\n"))
    assert (heard.status, heard.body, heard.fields["access-control-allow-origin"]) == (204, b"", "*")
    entry = port.entries()[-1]
    assert (entry.kind, entry.raw, entry.agent, entry.detail) == (
        EntryKind.VIEW,
        said.encode(),
        b"test",
        b"strict" + JUDGED.encode(),
    )
    assert (sight(entry).seen, sight(entry).fields["profile"]) == ("view", "strict")
    table, row = row_of(entry, "j", 1)
    assert (table.name, with_query(row)["query"]) == ("views", said.encode())


def test_a_view_with_flags_and_without_consent_is_as_a_click_would_be(tmp_path: Path) -> None:
    with Port(tmp_path, profile=Profile.OPEN) as port:
        assert port.ask(get("/aview?client_id=c&consent=denied&cli_ubid=u&utm_source=tv")).status == 204
        (entry,) = port.entries()
        assert (entry.kind, entry.raw) == (EntryKind.VIEW, b"client_id=c&utm_source=tv&consent=denied")
        assert sight(entry).fields["flags"] == ["noConsent", "eventTimeAbsent"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/aview?client_id=c&cli_ubid=u"), 400),
        (post("/aview", b"client_id=c&cli_ubid=u", "Content-Type: text/html\r\n"), 415),
        (get("/aview?client_id=c&cli_ubid=u", method="PUT"), 405),
    ],
)
def test_a_view_that_is_refused_stays_one_when_it_is_judged_again(port: Port, request_: bytes, status: int) -> None:
    heard = port.ask(request_)
    assert heard.status == status
    entry = port.entries()[-1]
    assert (sight(entry).seen, sight(entry).fields["was"]) == ("rejection", "view")
    table, row = row_of(entry, "j", 1)
    assert (table.name, row["what"], row["client_id"]) == ("rejections", "view", "c")
    codes = frozenset(fault["code"] for fault in row["faults"])
    rejected = Rejected(row["what"], row["kind"], "c", codes, entry.received_ms, entry.raw)
    again = judge(rejected, Accounts(default_profile=Profile.OPEN))
    assert isinstance(again, Accepted)
    assert (again.kind, again.detail) == (EntryKind.VIEW, b"open")

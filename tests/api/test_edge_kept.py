# ruff: noqa: E501 (a request and what is kept of it stand side by side)
"""Whatever a request is refused for: what there is of a click or an order in it is on disk before it is answered."""

import json
import select
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clickclock.attribution.api.limits import Limits
from clickclock.attribution.clicks.entry import Entry, EntryKind
from tests.api.port import Gate, Heard, Port, get, post, query

FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
JSON = "Content-Type: application/json\r\n"
XML = "Content-Type: application/xml\r\n"
Q = "client_id=c&atag=a%7Cb&cli_ubid=u"
LONG = f"{Q}&x={'y' * 8190}"
CHUNKED = "Transfer-Encoding: chunked\r\n"
ORDER = b'{"client_id": "c", "order_id": "7", "amount": "9.90"}'
MANY = "X: y\r\n" * 101


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    with Port(tmp_path_factory.mktemp("journal")) as port:
        yield port


def refused(port: Port, *said: bytes) -> tuple[Heard, dict[str, Any], list[Entry]]:
    """The answer, its body, and what was kept by the time it came."""
    before = len(port.entries())
    heard = port.ask(*said)
    return heard, json.loads(heard.body), port.entries()[before:]


WHOLE = {
    "a method that is not taken": (get(Q, method="PUT"), 405, "click", Q),
    "a method that is not taken, with a body": (get(Q, "Content-Length: 3\r\n", "DELETE") + b"a=b", 405, "click", f"{Q}&a=b"),
    "an order by another method": (post("/orders", ORDER).replace(b"POST", b"PUT"), 405, "order", ORDER.decode()),
    "an order in a query": (get(f"/orders?{Q}"), 405, "order", Q),
    "another path": (get(f"/api/aklick?{Q}"), 404, "click", Q),
    "another path, with a form": (post("/click", Q.encode(), FORM), 404, "click", Q),
    "another path, with an order": (post("/order", ORDER, JSON), 404, "order", ORDER.decode()),
    "a query that is too long": (get(LONG), 414, "click", LONG),
    "a body that is JSON": (post("/aclick", b'{"client_id": "c"}', JSON), 415, "click", '{"client_id": "c"}'),
    "JSON beside a query": (post(f"/aclick?{Q}", b"{}", JSON), 415, "click", f"{Q}&{{}}"),
    "a body that is compressed": (post("/aclick", b"\x1f\x8b\x08\0", f"{FORM}Content-Encoding: gzip\r\n"), 415, "click", "\x1f\x8b\x08\0"),
    "an order that is compressed": (post("/orders", ORDER, "Content-Encoding: gzip\r\n"), 415, "order", ORDER.decode()),
    "a sale of another type": (post("/appsflyer", b"<a/>", XML), 415, "appsflyer", "<a/>"),
    "a miracle": (get(Q, "Expect: a miracle\r\n"), 417, "click", Q),
    "a space": (get(f"{Q}&utm_campaign=summer sale"), 400, "click", f"{Q}&utm_campaign=summer sale"),
    "a space beside bytes that are no ASCII": (get(f"{Q}&x=é ü"), 400, "click", "client_id=c&atag=a%7Cb&cli_ubid=u&x=é ü"),
    "bytes that are no ASCII in a request that is none": (get(f"{Q}&x=é").replace(b"HTTP/1.1", b"HTTX"), 400, "click", f"{Q}&x=é HTTX"),
    "another version": (get(Q).replace(b"HTTP/1.1", b"HTTP/2.0"), 400, "click", Q),
    "no version": (f"GET /aclick?{Q}\r\n\r\n".encode(), 400, "click", Q),
    "small letters": (get(Q, method="get"), 400, "click", Q),
    "no host": (get(Q).replace(b"Host: clicks.example\r\n", b""), 400, "click", Q),
    "two hosts": (get(Q, "Host: another\r\n"), 400, "click", Q),
    "lines without a carriage return": (get(Q).replace(b"\r\n", b"\n"), 400, "click", Q),
    "a field that is none": (get(Q, "X : y\r\n"), 400, "click", Q),
    "a field with a NUL": (get(Q, "X: \0\r\n"), 400, "click", Q),
    "too many fields": (get(Q, MANY), 431, "click", Q),
    "a field that is too long": (get(Q, f"Cookie: {'c' * 16_384}\r\n"), 431, "click", Q),
    "much too long a field": (get(Q, f"Cookie: {'c' * 2**17}\r\n"), 431, "click", Q),
}  # fmt: skip


@pytest.mark.parametrize(("said", "status", "what", "raw"), WHOLE.values(), ids=WHOLE)
def test_a_request_that_nobody_judged_is_kept_as_it_came(
    port: Port, said: bytes, status: int, what: str, raw: str
) -> None:
    heard, told, (entry,) = refused(port, said)
    detail = json.loads(entry.detail)
    assert (heard.status, entry.kind, entry.raw) == (
        status,
        EntryKind.REJECTION,
        raw.encode("utf-8" if "é" in raw else "latin-1"),
    )
    assert (detail["was"], detail["kind"], [fault["code"] for fault in detail["faults"]]) == (
        what,
        "invalid",
        [told["code"]],
    )
    assert told["requestId"] == heard.fields["x-request-id"] == entry.id
    assert told["message"].endswith("The request is kept under its requestId.")


CUT = {
    "a query that has no end": (get(f"{Q}&x={'y' * 20_000}"), 414, f"{Q}&x=yyy"),
    "a body that is too long": (post(f"/aclick?{Q}", b"y" * 65_537, FORM), 413, Q),
    "chunks that are too long": (get(f"/aclick?{Q}", CHUNKED, "POST") + b"10001\r\n" + b"y" * 65_537, 413, f"{Q}&yyy"),
    "chunks that are none": (get(f"/aclick?{Q}", CHUNKED, "POST") + b"3\r\na=b\r\nrubbish\r\n", 400, f"{Q}&a=b"),
    "a body beside a miracle": (post(f"/aclick?{Q}", b"a=b", "Expect: a miracle\r\n"), 417, Q),
    "a body of two lengths": (post(f"/aclick?{Q}", b"a=b", CHUNKED), 400, Q),
}  # fmt: skip


@pytest.mark.parametrize(("said", "status", "raw"), CUT.values(), ids=CUT)
def test_of_a_request_that_is_not_whole_the_beginning_is_kept_and_marked(
    port: Port, said: bytes, status: int, raw: str
) -> None:
    heard, told, (entry,) = refused(port, said)
    assert (heard.status, entry.kind) == (status, EntryKind.REJECTION)
    assert entry.raw.startswith(raw.encode())
    assert len(entry.raw) <= 2 * 64 * 1024
    assert "cut" in [fault["code"] for fault in json.loads(entry.detail)["faults"]] or status == 400
    assert told["requestId"] == entry.id


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (get("/favicon.ico"), 404), (get("/?s=1&page=client"), 404), (post("/wp-login.php", b"log=admin&pwd=x", FORM), 404),
        (get("/aclick", method="PUT"), 405), (get("/healthz?x=client_id", method="PUT"), 405),
        (post("/orders", b"y" * (8 * 2**20 + 1)), 413), (b"\x16\x03\x01\x02\r\n\r\n", 400), (b"hello\r\n\r\n", 400),
        (get("/" + "y" * 20_000), 414), (get("/metrics", MANY), 431),
    ],
)  # fmt: skip
def test_a_request_in_which_there_is_nothing_of_a_click_is_not_kept(port: Port, said: bytes, status: int) -> None:
    heard, told, kept = refused(port, said)
    assert (heard.status, kept) == (status, [])
    assert len(told["requestId"]) == 32
    assert heard.fields["x-request-id"] == told["requestId"]


def test_a_head_is_told_its_request_id_too(port: Port) -> None:
    before = len(port.entries())
    with port.connect() as client:
        heard = client.send(get(LONG, method="HEAD")).answer(to_head=True)
    (entry,) = port.entries()[before:]
    assert (heard.status, heard.fields["x-request-id"]) == (414, entry.id)


@pytest.mark.parametrize("at", [9, 30, 70])
def test_a_request_that_comes_in_two_pieces_is_never_replayed_with_half_a_value(port: Port, at: int) -> None:
    said = get(f"{Q}&utm_campaign=summer sale")
    before = len(port.entries())
    with port.connect() as client:
        assert client.ask(get("/nothing")).status == 404
        client.send(said[:at])
        assert (
            port.ask(get("/nothing")).status == 404
        )  # by now it has been read, for all pieces are read in their order
        assert client.ask(said[at:]).status == 400
    for entry in port.entries()[before:]:
        codes = [fault["code"] for fault in json.loads(entry.detail)["faults"]]
        assert entry.raw == f"{Q}&utm_campaign=summer sale".encode() or codes == ["malformed", "cut"]


def test_what_follows_a_refusal_of_another_client_has_its_own_origin(port: Port) -> None:
    before = len(port.entries())
    with port.connect() as client:  # a proxy, which sends for many
        assert client.ask(get(query(), "User-Agent: one\r\nX-Forwarded-For: 203.0.113.7\r\n")).status == 204
        assert client.ask(get(Q, "User-Agent: two\r\nX-Forwarded-For: 198.51.100.4\r\n" + MANY)).status == 431
    good, bad = port.entries()[before:]
    assert (good.agent, bad.agent) == (b"one", b"two")
    assert good.address != bad.address


@pytest.mark.parametrize("said", [get(Q, method="PUT"), get(f"{Q}&x=a b"), get(f"{Q}&x={'y' * 20_000}"), get(Q, MANY)])
def test_kept_means_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    gate = Gate()
    with Port(tmp_path) as port, gate.before(monkeypatch), port.connect() as client, port.connect() as late:
        gate.close()
        client.send(get("/nothing") + said)
        assert client.answer().status == 404
        port.until("clickclock_waiting", 1)
        assert not select.select([client.socket], [], [], 0.05)[0]
        gate.break_disk()
        gate.open()
        assert client.answer().status == 503
        gate.mend()
        assert late.ask(said).status in {400, 405, 414, 431}


def test_nothing_is_said_to_be_kept_that_the_disk_did_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Port(tmp_path, limits=Limits(waiting_max=0, drain_s=1.0)) as full:
        for said in (get(Q, method="PUT"), get(f"{Q}&x=a b"), post("/orders", ORDER, "Content-Encoding: gzip\r\n")):
            heard, told, kept = refused(full, said)
            assert (heard.status, kept) == (503, [])
            assert told["message"].endswith("Nothing was kept.")
            assert told["requestId"]


BAD = f"/aclick?{Q}&event_time=never"


def said(heard: Heard) -> tuple[int, bool]:
    """The status, and whether it says that the request was kept."""
    message = json.loads(heard.body)["message"]
    assert ("kept under its requestId" in message) is not ("Nothing was kept" in message)
    return heard.status, "Nothing was kept" not in message


def test_on_a_disk_that_is_nearly_full_clicks_are_kept_and_refusals_counted(tmp_path: Path) -> None:
    short = Limits(drain_s=1.0, refused_free_bytes_min=2**80, refused_free_share_min=1.0)
    with Port(tmp_path, limits=short) as port:
        for ask, status in ((get(BAD), 400), (get(f"/nothing?{Q}"), 404), (post("/orders", b"{"), 400)):
            assert said(port.ask(ask)) == (status, False)
        assert port.ask(get(query())).status == 204
        port.until('clickclock_clicks_total{profile="strict"}', 1)
        assert port.number('clickclock_not_kept_total{what="click"}') == 2
        assert port.number('clickclock_not_kept_total{what="order"}') == 1
        assert len(port.entries()) == 1


def test_a_flood_of_refused_requests_is_counted_and_not_kept_and_costs_nobody_elses_clicks(tmp_path: Path) -> None:
    with Port(tmp_path, limits=Limits(drain_s=1.0, refused_bytes_per_day=8_000)) as port, port.connect() as client:
        flood = get(BAD, "X-Forwarded-For: 203.0.113.7\r\n")
        heard = [said(client.send(flood).answer()) for _ in range(20)]
        kept = [is_kept for _, is_kept in heard].count(True)
        assert {status for status, _ in heard} == {400}
        assert 0 < kept < 10
        assert [is_kept for _, is_kept in heard] == [True] * kept + [False] * (20 - kept)
        # The same from the same network in other words; another network has a share of its own.
        assert said(port.ask(get(f"/nothing?{Q}", "X-Forwarded-For: 203.0.113.99\r\n"))) == (404, False)
        assert port.ask(post("/orders", b"{", "X-Forwarded-For: 203.0.113.8\r\n")).status == 400
        assert said(port.ask(get(BAD, "X-Forwarded-For: 198.51.100.1\r\n"))) == (400, True)
        # All that are pipelined have their answers, in their order: a good click is on disk as ever.
        good = get(query(), "X-Forwarded-For: 203.0.113.7\r\n")
        client.send(good + flood + good)
        assert [client.answer().status for _ in range(3)] == [204, 400, 204]
        port.until('clickclock_clicks_total{profile="strict"}', 2)
        assert port.number('clickclock_not_kept_total{what="click"}') == 20 - kept + 2
        assert port.number('clickclock_not_kept_total{what="order"}') == 1
        assert len(port.entries()) == kept + 1 + 2

"""HTTP to the byte: connections that stay or end, requests that are none, limits, and whoever takes his time."""

import contextlib
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from clickclock.attribution.api.limits import Limits
from clickclock.attribution.clicks.entry import EntryKind
from tests.api.port import PATIENCE_S, Port, get, post, query

QUICK = Limits(request_s=0.15, body_s=0.3, idle_s=0.3, unsent_s=0.3, linger_s=0.2, drain_s=0.5)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    interval_s = sys.getswitchinterval()
    with Port(tmp_path_factory.mktemp("journal")) as port:
        yield port
    sys.setswitchinterval(interval_s)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    """A port that has little patience."""
    with Port(tmp_path_factory.mktemp("journal"), limits=QUICK) as port:
        yield port


def test_a_connection_stays_open_and_a_client_that_repeats_itself_is_understood(port: Port) -> None:
    before = len(port.entries())
    with port.connect() as client:
        for number in range(5):
            assert client.ask(get(query(cli_ubid=number))).status == 204
        assert client.ask(get(query(cli_ubid=5), "User-Agent: another\r\n")).status == 204
        assert client.ask(get("seller_id=s")).status == 400
        assert client.ask(get(query(cli_ubid=6))).status == 204
        assert client.ask(get("seller_id=s")).status == 400
        assert client.ask(get(query(cli_ubid=7))).status == 204
        assert client.ask(get("/nothing")).status == 404
        assert client.ask(get(query(cli_ubid=8))).status == 204
    kept = port.entries()[before:]
    assert [entry.agent for entry in kept] == [b""] * 5 + [b"another"] + [b""] * 5
    assert sum(entry.kind == "c" for entry in kept) == 9


@pytest.mark.parametrize("byte", [*range(0x21), 0x7F])
def test_a_client_that_repeats_itself_may_say_no_byte_that_another_may_not(port: Port, byte: int) -> None:
    with port.connect() as client:
        for number in range(4):
            assert client.ask(get(query(cli_ubid=number))).status == 204
        said = get(query(cli_ubid="X")).replace(b"=X", b"=%c" % byte)
        assert client.ask(said).status == port.ask(said).status == 400
        assert client.is_ended()


@pytest.mark.parametrize("byte", [*range(0x21, 0x7F)])
def test_every_other_byte_is_the_same_to_both(port: Port, byte: int) -> None:
    if chr(byte) == "%":
        return  # begins an escape
    said = get(query(cli_ubid="X")).replace(b"=X", b"=x%cx" % byte)
    with port.connect() as client:
        for number in range(4):
            assert client.ask(get(query(cli_ubid=number))).status == 204
        assert client.ask(said).status == port.ask(said).status
        first, second = port.entries()[-2:]
        assert (first.kind, first.raw) == (second.kind, second.raw)


@pytest.mark.parametrize(
    ("fields", "version", "persistence"),
    [
        ("", "1.1", None),
        ("Connection: close\r\n", "1.1", "close"),
        ("Connection: Keep-Alive\r\n", "1.1", "keep-alive"),
        ("Connection: keep-alive, close\r\n", "1.1", "close"),
        ("", "1.0", "close"),
        ("Connection: keep-alive\r\n", "1.0", "keep-alive"),
    ],
)
def test_a_connection_lasts_as_the_client_says(port: Port, fields: str, version: str, persistence: str | None) -> None:
    with port.connect() as client:
        heard = client.ask(get(query(), fields, version=version))
        assert (heard.status, heard.fields.get("connection")) == (204, persistence)
        if persistence == "close":
            assert client.is_ended()
        else:
            assert client.ask(get(query(), fields, version=version)).status == 204


def test_pipelined_requests_are_answered_in_order(port: Port) -> None:
    before = len(port.entries())
    with port.connect() as client:
        said = [get(query(cli_ubid=number)) if number % 3 else get("/nothing") for number in range(300)]
        client.send(b"".join(said))
        assert [client.answer().status for _ in said] == [204 if number % 3 else 404 for number in range(300)]
    assert [entry.raw.partition(b"&event")[0] for entry in port.entries()[before:]] == [
        query(cli_ubid=number).encode().partition(b"&event")[0] for number in range(300) if number % 3
    ]


def test_what_follows_a_close_is_not_answered(port: Port) -> None:
    with port.connect() as client:
        client.send(get(query(), "Connection: close\r\n") + get(query(cli_ubid="late")))
        assert client.answer().status == 204
        assert client.is_ended()
    assert b"late" not in port.entries()[-1].raw


def test_a_client_may_end_its_side_before_it_is_answered(port: Port) -> None:
    with port.connect() as client:
        client.send(get(query()) + get("/healthz") + get(query()))
        client.socket.shutdown(socket.SHUT_WR)
        assert [client.answer().status for _ in range(3)] == [204, 200, 204]
        assert client.is_ended()


def test_a_line_that_was_half_when_its_client_ended_is_not_waited_for(port: Port) -> None:
    with port.connect() as client:
        client.send(get(query()) + get(query(cli_ubid="half"))[:90])
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer().status == 204
        assert client.is_ended()
    with port.connect() as client:
        client.send(b"GET /aclick?half")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_ended()


def test_lines_without_a_carriage_return_are_refused_at_once(port: Port) -> None:
    with port.connect() as client:
        client.send(b"GET /aclick HTTP/1.1\nHost: x\n\n")
        assert client.answer().status == 400
        assert client.is_ended()


def test_a_request_in_single_bytes_is_a_request(port: Port) -> None:
    said = post("/aclick", query().encode(), "Content-Type: application/x-www-form-urlencoded\r\n")
    with port.connect() as client:
        for at in range(len(said)):
            client.send(said[at : at + 1])
        assert client.answer().status == 204


def test_who_asks_before_sending_the_body_is_told_to(port: Port) -> None:
    body = query().encode()
    with port.connect() as client:
        whole = post("/aclick", body, "Expect: 100-continue\r\n")
        assert client.ask(whole[: -len(body)]).status == 100
        assert client.ask(body).status == 204
        assert client.ask(get(query(), "Expect: 100-continue\r\n")).status == 204
        assert client.ask(post("/aclick", body, "Expect: a miracle\r\n")).status == 417
    with port.connect() as client:
        head = b"POST /aclick HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 65537\r\n\r\n"
        assert client.ask(head).status == 413
        assert client.is_ended()


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"get /aclick HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /aclick\r\n\r\n",
        b"GET /aclick HTTP/1.2\r\nHost: h\r\n\r\n",
        get(query()).replace(b"HTTP/1.1", b"HTTP/2.0"),
        get(query()).replace(b"HTTP/1.1", b"HTTP/0.9"),
        b"GET /aclick?a b HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET aclick HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET /aclick HTTP/1.1\r\n\r\n",
        b"GET /aclick HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
        b"GET /aclick HTTP/1.1\nHost: h\n\n",
        b"GET /aclick HTTP/1.1\r\nHost : h\r\n\r\n",
        b"GET /aclick HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
        b"GET /aclick HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\n\r\nabc",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nContent-Length: -3\r\n\r\nabc",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\nabc",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nrubbish\r\n",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        b"POST /aclick HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_the_connection_ends(port: Port, said: bytes) -> None:
    before = len(port.entries())
    with port.connect() as client:
        assert client.ask(said + get(query(cli_ubid="smuggled"))).status == 400
        assert client.is_ended()
    kept = port.entries()[before:]
    assert [entry.kind for entry in kept] == [EntryKind.REJECTION] * (
        b"?" in said or b"chunked\r\n\r\n3\r\nabc" in said
    )
    assert all(b"smuggled" not in entry.raw for entry in kept)


def test_a_length_is_taken_at_its_word(port: Port) -> None:
    with port.connect() as client:
        short, said = query(event_time=None).encode(), query(event_time=None, x="").encode()
        client.send(post("/aclick", said)[: -len(said)] + short + b"&x=" + get(query()))
        assert [client.answer().status, client.answer().status] == [400, 204]
        client.send(post("/aclick", query().encode()) + b"more than it said\r\n\r\n")
        assert [client.answer().status, client.answer().status] == [204, 400]
        assert client.is_ended()


def test_the_offer_of_another_protocol_is_passed_over(port: Port) -> None:
    # As Java's own client makes it with each first request, of whatever method.
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n"
    before = len(port.entries())
    with port.connect() as client:
        for again in range(3):
            assert client.ask(get(query(cli_ubid=again), offer)).status == 204
        said = query(cli_ubid="in the body").encode()
        chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(said), said)
        chunks = get("/aclick", f"Transfer-Encoding: chunked\r\n{offer}", method="POST") + chunked
        client.send(post("/aclick", said, offer) + chunks + get("/nothing", offer) + get(query()))
        assert [client.answer().status for _ in range(4)] == [204, 204, 404, 204]
        assert client.ask(get("/aclick", offer, method="CONNECT")).status == 405
        assert client.ask(get(query())).status == 204
    assert len(port.entries()) - before == 7


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (get("x=" + "y" * 8190), 400),  # as long as may be; what is missing is another matter
        (get("x=" + "y" * 8191), 414),
        (get("/appsflyer?x=" + "y" * 8191), 414),
        (get("x=" + "y" * 20_000), 414),
        (get("x=" + "y" * 2**20), 414),
        (get("/" + "y" * 1000), 404),
        (get("/" + "y" * 20_000), 414),
        (get(query(), "X: " + "y" * 16_000 + "\r\n"), 204),
        (get(query(), "X: " + "y" * 16_384 + "\r\n"), 431),
        (get(query(), "X: " + "y" * 2**20 + "\r\n"), 431),
        (get(query(), "X: y\r\n" * 99), 204),
        (get(query(), "X: y\r\n" * 100), 431),
        (get(query(), "X: y\r\n" * 100_000), 431),
        (post("/aclick", b"x=" + b"y" * 65_534), 400),
        (post("/aclick", b"x=" + b"y" * 65_535), 413),
        (post("/aclick", b"y" * 2**20), 413),
        (post("/nothing", b"y" * 2**20), 413),
        (post("/orders", b"y" * (8 * 2**20 + 1)), 413),
        (post("/orders", b"y" * (40 * 2**20)), 413),
        (post("/appsflyer", b"y" * 65_537), 413),
        (
            b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n%b\r\n" % (b"y" * 4096),
            None,
        ),
    ],
)
def test_what_is_too_long_is_refused_by_its_name(port: Port, said: bytes, status: int | None) -> None:
    with port.connect() as client:
        if status is None:  # a body in chunks, without an end
            status, said = 413, said + said[said.index(b"1000\r\n") :] * 16
        client.send(said)  # all of it, as many do before they read; it was refused long before its end
        assert client.answer().status == status
        if status in {413, 431} or len(said) > 10_000:
            assert status in {204, 400} or client.is_ended()
        elif status != 414:
            assert client.ask(get(query())).status == 204
    assert port.ask(get(query())).status == 204


@pytest.mark.parametrize("behind", [b"0\r\nX: %b", b"0\r\n%b: x", b"1;%b"], ids=["value", "name", "extension"])
def test_what_stands_behind_a_piece_of_a_body_is_no_longer_than_a_head(port: Port, behind: bytes) -> None:
    begun = b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nx=y\r\n"
    with port.connect() as client:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.send(begun + behind % (b"y" * 2**20))
        assert client.answer().status == 431
        assert client.is_ended()


@pytest.mark.parametrize(
    "said",
    [
        b"G",
        b"GET /aclick?x=",
        b"GET /aclick HTTP/1.1\r\nHost: h\r\nX",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc",
        b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ],
)
def test_a_request_without_an_end_is_given_up(quick: Port, said: bytes) -> None:
    with quick.connect() as client:
        assert client.ask(get("/nothing")).status == 404
        assert client.ask(said).status == 408
        assert client.is_ended()


def test_a_body_that_begins_late_has_the_time_of_a_body(tmp_path: Path) -> None:
    body = query().encode()
    patient = replace(QUICK, body_s=3600)
    with Port(tmp_path, limits=patient) as port, port.connect() as late, port.connect() as later:
        late.send(post("/aclick", body)[: -len(body)])
        assert later.ask(b"GET /aclick HTTP/1.1\r\n").status == 408
        assert late.ask(body).status == 204


def test_a_request_that_trickles_is_given_up_all_the_same(quick: Port) -> None:
    with quick.connect() as client:
        client.send(b"GET /aclick HTTP/1.1\r\nHost: h\r\n")
        client.socket.settimeout(0.01)
        while True:
            client.send(b"X: y\r\n")
            try:
                assert client.answer().status == 408
                break
            except TimeoutError:
                continue


def test_an_idle_connection_just_ends(quick: Port) -> None:
    with quick.connect() as client, quick.connect() as silent:
        assert client.ask(get(query())).status == 204
        assert client.is_ended()
        assert silent.is_ended()


def test_who_does_not_read_the_answers_is_not_read_and_then_dropped(quick: Port) -> None:
    with quick.connect() as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.socket.settimeout(PATIENCE_S)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.send(*[get("/metrics") * 10] * 10_000)
    assert quick.ask(get(query())).status == 204


def test_who_does_not_go_after_a_refusal_is_shown_out(quick: Port) -> None:
    with quick.connect() as client:
        assert client.ask(b"rubbish\r\n\r\n").status == 400
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.send(*[b"more rubbish\r\n" * 1000] * 10_000)


def test_beyond_the_limit_of_connections_one_is_told_so(tmp_path: Path) -> None:
    with Port(tmp_path, limits=replace(QUICK, connections_max=3, idle_s=10)) as port:
        clients = [port.connect() for _ in range(3)]
        assert [client.ask(get(query())).status for client in clients] == [204] * 3
        with port.connect() as late:
            heard = late.answer()
            assert (heard.status, heard.fields["retry-after"]) == (503, "1")
            assert late.is_ended()
        clients[0].socket.close()
        while True:  # it takes a moment until the port has seen that
            with port.connect() as late:
                if late.send(get(query())).answer().status == 204:
                    break
        for client in clients[1:]:
            client.socket.close()


def test_a_client_that_resets_costs_nobody_else_anything(port: Port) -> None:
    for _ in range(50):
        rude, polite = port.connect(), port.connect()
        rude.send(get(query(cli_ubid="rude")))
        polite.send(get(query(cli_ubid="polite")))
        rude.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        rude.socket.close()
        assert polite.answer().status == 204
        polite.socket.close()

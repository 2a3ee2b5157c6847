"""Where a request ends, on both ports of the real program: no offer changes that, and no body is read as a request.

Never asks a client of ours: every byte that goes out is written here, but for Java's and curl's.
"""

import contextlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.acceptance.clicking import ORDER, click_path
from tests.acceptance.service import Service, running
from tests.api.port import Client
from tests.openapi import SCHEDULER
from tests.ports import free_port

OFFER = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQAAP__\r\n"
OFFERS = {
    "h2c": OFFER,
    "websocket": "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    "any case, many": "cOnNeCtIoN: keep-alive, uPGRADE\r\nUPGRADE: TLS/1.3, foo\r\nUpgrade: bar/2\r\n",
    "with an expectation": f"{OFFER}Expect: 100-continue\r\n",
}
AS_JSON = {"Content-Type": "application/json"}
UNHEARD_OF = b'{"unheardOf": 1}'
SMUGGLED = b"POST /schedulerService/job HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
PATHS = SCHEDULER["paths"]
NEW_EACH_TIME = {"/schedulerService/signInLink"}
"""Routes whose answer is another one each time."""
OF_SCHEDULER = [
    (path, verb.upper()) for path, each in PATHS.items() if path not in NEW_EACH_TIME for verb in each if verb != "get"
]
COLLECTOR = [(path, "POST") for path in ("/aclick", "/appsflyer", "/orders", "/webhooks/shopify")]
ROUTES = [*OF_SCHEDULER, *COLLECTOR]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("data"), "--clicks", "--click-port", str(free_port())) as service:
        yield service


def port_of(service: Service, path: str) -> Client:
    url = service.url if path.startswith("/schedulerService") else service.click_url
    return Client(("127.0.0.1", int(url.rpartition(":")[2])))


def head(path: str, method: str, length: int | None, fields: str = "", version: str = "1.1") -> bytes:
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = f"{method} {path} HTTP/{version}\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{lines}{fields}{framing}\r\n\r\n".encode()


def in_chunks(body: bytes) -> bytes:
    return b"%x;note=1\r\n%b\r\n%x\r\n%b\r\n0\r\nX-Trailer: 1\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])


Said = tuple[int, str]


def said(service: Service, path: str, *pieces: bytes) -> Said:
    """Status and message of the answer. Each piece is read before the next is sent; the connection stays in step."""
    with port_of(service, path) as client, port_of(service, path) as other:
        for piece in pieces:
            with contextlib.suppress(ConnectionError):  # it has an answer already, which is the last
                client.send(piece)
            if len(piece) > 1:
                other.ask(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")  # which comes behind the piece
        answer = client.answer()
        while answer.status == 100:
            answer = client.answer()
        told = re.sub(rb'"(id|requestId|entryId)": ?"[^"]*"', b"", answer.body).decode()
        if answer.fields.get("connection") != "close":
            client.send(b"GET /unheardOf HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert client.answer().status == 404
        assert client.is_ended()
    return answer.status, told


Split = Callable[[bytes, bytes], list[bytes]]
SPLITS: dict[str, Split] = {
    "together": lambda head, body: [head + body],
    "apart": lambda head, body: [head, body],
    "byte by byte": lambda head, body: [bytes([each]) for each in head + body],
}


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize(("path", "method"), ROUTES)
def test_the_offer_of_another_protocol_changes_no_answer(
    service: Service, path: str, method: str, split: Split
) -> None:
    plain = said(service, path, head(path, method, len(UNHEARD_OF)) + UNHEARD_OF)
    assert plain[0] != 404
    for offer in OFFERS.values():
        assert said(service, path, *split(head(path, method, len(UNHEARD_OF), offer), UNHEARD_OF)) == plain
        assert said(service, path, *split(head(path, method, None, offer), in_chunks(UNHEARD_OF))) == plain
        assert said(service, path, *split(head(path, method, len(UNHEARD_OF), offer, "1.0"), UNHEARD_OF)) == plain


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "CONNECT", "OPTIONS"])
@pytest.mark.parametrize("path", ["/schedulerService/job", "/orders"])
def test_no_body_is_executed(service: Service, path: str, method: str, split: Split) -> None:
    job = json.dumps({"application": "smuggled", "jobName": "job", "command": "true"}).encode()
    inner = SMUGGLED + b"Content-Length: %d\r\n\r\n%b" % (len(job), job)
    for offer in ("", *OFFERS.values()):
        said(service, path, *split(head(path, method, len(inner), offer), inner))
        said(service, path, *split(head(path, method, None, offer), in_chunks(inner)))
    assert httpx.get(f"{service.url}/schedulerService/job?application=smuggled").json()["jobs"] == []


DOUBTFUL = {
    "a length beside chunks": "Transfer-Encoding: chunked\r\nContent-Length: 3",
    "chunks beside a length": "Content-Length: 3\r\nTransfer-Encoding: chunked",
    "two lengths": "Content-Length: 16\r\nContent-Length: 3",
    "the same length twice": "Content-Length: 16\r\nContent-Length: 16",
    "a list of lengths": "Content-Length: 16, 16",
    "a signed length": "Content-Length: +16",
    "a length with a space before its colon": "Content-Length : 16",
    "chunks that are not last": "Transfer-Encoding: chunked, identity",
    "chunks that are last": "Transfer-Encoding: gzip, chunked",
    "chunks twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "chunks in a second field": "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "chunks with a parameter": "Transfer-Encoding: chunked;q=1",
    "no chunks": "Transfer-Encoding: identity",
    "nearly chunks": "Transfer-Encoding: xchunked",
    "a folded field": "X: a\r\n b\r\nContent-Length: 16",
    "a folded coding": "Transfer-Encoding:\r\n chunked",
    "a bare line feed": "X: a\nTransfer-Encoding: chunked\r\nContent-Length: 16",
    "a bare carriage return": "X: a\rTransfer-Encoding: chunked\r\nContent-Length: 16",
    "a zero byte": "X: \0\r\nContent-Length: 16",
}


@pytest.mark.parametrize("offer", ["", OFFER], ids=["plain", "offer"])
@pytest.mark.parametrize("path", ["/schedulerService/job", "/orders"])
@pytest.mark.parametrize("fields", DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_request_whose_end_is_in_doubt_is_refused_and_is_the_last(
    service: Service, path: str, fields: str, offer: str
) -> None:
    begun = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{offer}{fields}\r\n\r\n".encode()
    with port_of(service, path) as client:
        answer = client.ask(begun + UNHEARD_OF)
        assert (answer.status, json.loads(answer.body)["code"]) == (400, "malformed")
        assert answer.fields["connection"].lower() == "close"
        assert client.is_ended()


@pytest.mark.parametrize("path", ["/schedulerService/job", "/orders"])
def test_chunks_are_of_http_1_1_and_end_as_it_says(service: Service, path: str) -> None:
    for chunks in (b"3\nabc\n0\n\n", b"-1\r\nabc", b"0x3\r\nabc", b"fffffffffffffffff\r\na", b'3;a="\r\n"\r\nabc'):
        with port_of(service, path) as client:
            assert client.ask(head(path, "POST", None) + chunks).status == 400
            assert client.is_ended()
    with port_of(service, path) as client:
        assert client.ask(head(path, "POST", None, version="1.0") + in_chunks(UNHEARD_OF)).status == 400
        assert client.is_ended()
    trailer = b"3\r\nabc\r\n0\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert said(service, path, head(path, "POST", None) + trailer)[0] == 400


@pytest.mark.parametrize("path", ["/schedulerService/job", "/orders"])
@pytest.mark.parametrize("line", [b"GET / HTTP/2.0\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n"])
def test_other_versions_of_http_are_answered(service: Service, path: str, line: bytes) -> None:
    for pieces in ([line + b"\0\0\0\4\0\0\0\0\0"], [bytes([each]) for each in line]):
        with port_of(service, path) as client:
            answer = client.ask(*pieces)
            assert answer.status == 400
            assert "HTTP/1.1" in json.loads(answer.body)["message"]
            assert client.is_ended()


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"


@pytest.mark.parametrize("path", ["/schedulerService/job", "/orders"])
def test_who_begins_with_http_2_is_told_in_its_frames_what_is_required(service: Service, path: str) -> None:
    for pieces in ([PREFACE + SETTINGS], [PREFACE[:24]], [bytes([each]) for each in PREFACE]):
        with port_of(service, path) as client:
            client.send(*pieces)
            said = b"".join(iter(partial(client.socket.recv, 4096), b""))
        assert said.startswith(SETTINGS)
        goaway = said.removeprefix(SETTINGS)
        length, kind, stream = int.from_bytes(goaway[:3]), goaway[3], int.from_bytes(goaway[5:9])
        assert (length, kind, stream) == (len(goaway) - 9, 7, 0)
        assert (int.from_bytes(goaway[9:13]), int.from_bytes(goaway[13:17])) == (0, 13)
        assert b"HTTP/1.1" in goaway[17:]


@pytest.mark.parametrize("path", ["/schedulerService/group", "/limits"])
def test_who_turns_to_http_2_later_is_answered_as_before(service: Service, path: str) -> None:
    with port_of(service, path) as client:
        client.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() + PREFACE)
        assert client.answer().status < 500
        assert client.answer().status == 400
        assert client.is_ended()


@pytest.mark.needs("curl")
@pytest.mark.parametrize("path", ["/schedulerService/job", "/orders"])
def test_curl_says_what_http_2_met(service: Service, path: str) -> None:
    url = (service.url if path.startswith("/schedulerService") else service.click_url) + path
    command = ["curl", "--verbose", "--silent", "--http2-prior-knowledge", "--data", "{}", url]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert "GOAWAY" in told
    assert "Empty reply" not in told


def test_requests_behind_an_offer_are_answered_in_their_order(service: Service) -> None:
    one = head("/schedulerService/job", "POST", len(UNHEARD_OF), OFFER) + UNHEARD_OF
    two = f"GET /schedulerService/group HTTP/1.1\r\nHost: localhost\r\n{OFFER}\r\n".encode()
    broken = head("/schedulerService/job", "POST", None, OFFER) + b"no chunk"
    with port_of(service, "/schedulerService/job") as client:
        client.send((one + two) * 300 + one + broken)
        assert [client.answer().status for _ in range(602)] == [422, 200] * 300 + [422, 400]
        assert client.is_ended()


CALLS = [
    ("POST", "/schedulerService/job", '{"application": "java", "jobName": "one", "command": "true"}', 201),
    ("PUT", "/schedulerService/job", '{"application": "java", "jobName": "one", "command": "false"}', 200),
    ("POST", "/orders", json.dumps(ORDER), 202),
]


def url(service: Service, path: str) -> str:
    return (service.url if path.startswith("/schedulerService") else service.click_url) + path


@pytest.mark.needs("java")
def test_javas_own_client_gets_through_with_every_route_that_has_a_body(service: Service) -> None:
    every = [(method, path, UNHEARD_OF.decode(), None) for path, method in ROUTES]
    calls = [*CALLS, ("GET", click_path(), "", 204), *every]
    words = [word for method, path, body, _ in calls for word in (method, url(service, path), body)]
    program = str(Path(__file__).with_name("Calls.java"))
    told = subprocess.run(["java", program, *words], capture_output=True, text=True, check=True, timeout=120)
    answers = told.stdout.splitlines()
    assert len(answers) == len(calls)
    for answer, (method, path, body, status) in zip(answers, calls, strict=True):
        wanted = status or httpx.request(method, url(service, path), content=body, headers=AS_JSON).status_code
        assert answer.startswith(f"{wanted} "), (method, path, answer)
        assert "There is no body" not in answer


@pytest.mark.needs("curl")
def test_curl_gets_through_when_it_offers_http_2(service: Service) -> None:
    for method, path, body, status in CALLS:
        said = body.replace("java", "curl")
        words = ["--http2", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--data-binary", said]
        command = [
            "curl",
            *words,
            "--header",
            "Content-Type: application/json",
            "--request",
            method,
            url(service, path),
        ]
        assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout == str(status)

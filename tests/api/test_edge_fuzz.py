"""Thousands of connections that send broken bytes: each gets an answer or its end, and a good click its 204."""

import logging
import random
import resource
import select
import socket
from pathlib import Path

import pytest

from clickclock.attribution.api.limits import Limits
from tests.api.port import Port, get, post, query

ROUNDS = 10
AT_ONCE = 200
# A good click has a connection of its own, and on a busy machine some time passes before it says anything.
PATIENCE = Limits(request_s=0.1, body_s=0.1, idle_s=0.5, linger_s=0.1, drain_s=1.0)
PIECES = [
    *(b"\r\n", b"\r\n\r\n", b"\n", b"\0", b"\xff", b" ", b"\t", b":", b"?", b"&", b"=", b"%", b"%00", b"%ff", b"|{}"),
    *(b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"Host: x\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Upgrade: h2c\r\n"),
    *(b"Connection: upgrade\r\n", b"0\r\n\r\n", b"ffff\r\n", b"GET ", b"POST ", b"/aclick", b"/orders", b"x" * 9000),
    *(b"X: " + b"y" * 17_000, b"A:\r\n" * 200, "ä".encode()),
]


def _seeds() -> list[bytes]:
    form = "Content-Type: application/x-www-form-urlencoded\r\n"
    chunked = b"POST /aclick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\n\r\n"
    return [
        get(query()),
        get(query()) * 5,
        get("/metrics") + get(query()),
        get("/healthz") * 3,
        post("/aclick", query().encode(), form),
        post("/orders", b'{"client_id": "c"}\n{"client_id": "d"}\n'),
        post("/appsflyer", b"event_name=viewproduct&client_id=c", form),
        get(query(), "User-Agent: test\r\nX-Forwarded-For: 1.2.3.4\r\nReferer: http://p/?q\r\n"),
        chunked,
        get("/clickclock.js", "If-None-Match: *\r\n"),
    ]


def _mutated(dice: random.Random, said: bytes) -> bytes:
    for _ in range(dice.randrange(1, 6)):
        at, to = sorted(dice.randrange(len(said) + 1) for _ in range(2))
        match dice.randrange(6):
            case 0:
                said = said[:at] + dice.choice(PIECES) + said[at:]
            case 1:
                said = said[:at] + said[to:]
            case 2:
                said = said[:at] + bytes(dice.randrange(256) for _ in range(3)) + said[at + 3 :]
            case 3:
                said = said[:to] + said[at:]
            case 4:
                said = said[:at] + dice.choice(PIECES) + said[to:]
            case _:
                said = said[:at] or b"G"
    return said


@pytest.mark.parametrize("seed", range(2))
def test_whatever_comes_is_answered_or_ended(tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    dice, seeds = random.Random(seed), _seeds()
    peak_kb = 0
    with caplog.at_level(logging.WARNING), Port(tmp_path, limits=PATIENCE) as port:
        for round_number in range(ROUNDS):
            if round_number == ROUNDS // 4:
                peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            open_sockets = {_start(port, dice, _mutated(dice, dice.choice(seeds))) for _ in range(AT_ONCE)}
            while open_sockets:
                readable, _, _ = select.select(open_sockets, [], [], 10)
                assert readable, f"{len(open_sockets)} connections hang"
                for each in readable:
                    if _is_over(each):
                        open_sockets.discard(each)
            assert port.ask(get(query())).status == 204
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kb
        assert port.number("clickclock_connections") == 1
        assert port.number("clickclock_waiting") == 0
        assert port.number('clickclock_responses_total{status="500"}') == 0
    assert [record.getMessage() for record in caplog.records] == []
    assert grown_kb < 30_000


def _start(port: Port, dice: random.Random, said: bytes) -> socket.socket:
    client = socket.create_connection(port.address)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    cut = dice.randrange(len(said) + 1) if dice.random() < 0.5 else 0
    try:
        client.sendall(said[:cut])
        client.sendall(said[cut:])
        if dice.random() < 0.2:
            client.shutdown(socket.SHUT_WR)
    except OSError:  # refused before its end
        pass
    client.setblocking(False)
    return client


def _is_over(client: socket.socket) -> bool:
    try:
        if client.recv(2**16):
            return False
    except ConnectionResetError:
        pass
    client.close()
    return True

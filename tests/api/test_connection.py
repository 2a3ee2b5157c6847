"""What is no body, on a real port: it has limits, and what cannot be read is answered like any other error."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from clickclock.app.budget import Budget
from clickclock.app.connection import HEAD_BYTES_MAX, Connection

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
PATIENCE_S = 60.0
Port = tuple[str, int]


class Hasty(Connection):
    """One that does not wait."""

    silence_s_max = 0.05


class Punctual(Connection):
    """One whose requests have to be there within a moment, however often a byte comes."""

    head_s_max = body_s_max = 0.3


class Small(Connection):
    """One of a port with little room."""

    budget = Budget(connections_max=2, bodies_bytes_max=10_000)
    news: asyncio.Queue[None] = asyncio.Queue()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.news.put_nowait(None)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.news.put_nowait(None)


async def heard(scope: Scope, receive: Receive, send: Send) -> None:
    """An answer to whoever has said all."""
    while (await receive()).get("more_body"):
        pass
    await PlainTextResponse("heard")(scope, receive, send)


@pytest.fixture
async def port(request: pytest.FixtureRequest) -> AsyncIterator[Port]:
    kind: type[Connection] = getattr(request, "param", Connection)
    config = uvicorn.Config(heard, http=kind, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(config, state, {}), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()


async def told(port: Port, *pieces: bytes) -> tuple[bytes, dict[str, Any]]:
    """The head of the answer and its body, when the connection is closed; `pieces` are sent one after the other."""
    reader, writer = await asyncio.open_connection(*port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return head, json.loads(body) if body else {}


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /?name=\xc3\xbc HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01 is TLS\r\n\r\n",
        HEAD + b"no field\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_answered_like_any_other_error(port: Port, request_: bytes) -> None:
    head, body = await told(port, request_)
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert body["code"] == "malformed"
    assert f"x-request-id: {body['requestId']}".encode() in head
    assert body.keys() == {"status", "code", "message", "errors", "requestId"}


@pytest.mark.parametrize("begun", [HEAD + b"X: ", b"GET /?", CHUNKED + b"0\r\nX: ", CHUNKED + b"1;"])
async def test_whatever_is_no_body_and_has_no_end_is_refused(port: Port, begun: bytes) -> None:
    reader, writer = await asyncio.open_connection(*port)
    answer = b""
    with contextlib.suppress(ConnectionError):  # it does not listen to the rest, which may cost its answer
        for piece in (begun, *[b"a" * HEAD_BYTES_MAX] * 8):
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(PATIENCE_S):
            answer = await reader.read()
    assert not answer or b"are longer than" in answer
    writer.close()


async def test_long_filters_and_requests_one_after_the_other_pass(port: Port) -> None:
    long = b"GET /?command=" + b"%2F" * 21000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = HEAD + b"Connection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection(*port)
    for piece in (*[long] * 8, last):
        writer.write(piece)
        await writer.drain()
    async with asyncio.timeout(PATIENCE_S):
        assert (await reader.read()).count(b"HTTP/1.1 200 ") == 9
    writer.close()


@pytest.mark.parametrize("port", [Hasty], indirect=True)
@pytest.mark.parametrize("begun", [(), (HEAD,), (CHUNKED,), (HEAD + b"Content-Length: 200000\r\n\r\n", b"a" * 100_000)])
async def test_who_begins_no_request_or_falls_silent_in_one_is_not_waited_for(
    port: Port, begun: tuple[bytes, ...]
) -> None:
    assert await told(port, *begun) == (b"", {})


@pytest.mark.parametrize("port", [Punctual], indirect=True)
@pytest.mark.parametrize("begun", [HEAD, CHUNKED, HEAD + b"Content-Length: 200000\r\n\r\n"])
async def test_who_sends_a_byte_now_and_then_has_so_long_in_all(port: Port, begun: bytes) -> None:
    reader, writer = await asyncio.open_connection(*port)
    writer.write(begun)
    answer = asyncio.create_task(reader.read())
    async with asyncio.timeout(PATIENCE_S):
        with contextlib.suppress(ConnectionError):
            while not answer.done():
                writer.write(b"1" if begun is CHUNKED else b"a")
                await asyncio.wait([answer], timeout=0.05)
    told = await answer
    assert told.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert json.loads(told.partition(b"\r\n\r\n")[2])["code"] == "tooSlow"
    writer.close()


@pytest.mark.parametrize("port", [Punctual], indirect=True)
async def test_the_time_of_one_request_is_not_that_of_the_next(port: Port) -> None:
    reader, writer = await asyncio.open_connection(*port)
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(4):
            for piece in (HEAD.replace(b"GET", b"POST"), b"Content-Length: 2\r\n\r\na", b"b"):
                writer.write(piece)
                await asyncio.wait([asyncio.create_task(asyncio.Event().wait())], timeout=0.06)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            await reader.readexactly(len(b"heard"))
    writer.close()


async def until_held(size: int) -> None:
    while Small.budget.bodies_bytes != size:
        await Small.news.get()


@pytest.mark.parametrize("port", [Small], indirect=True)
async def test_bodies_on_their_way_take_no_more_than_they_may_and_give_it_back(port: Port) -> None:
    begun = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n"
    _, first = await asyncio.open_connection(*port)
    first.write(begun + b"a" * 8_999)
    async with asyncio.timeout(PATIENCE_S):
        await until_held(8_999)
        head, body = await told(port, begun + b"a" * 8_999)
        assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"retry-after: 1" in head
        assert body["code"] == "tooManyBodies"
        first.close()
        await until_held(0)
    # Answered ones give theirs back, too, on one connection as on many.
    whole = begun + b"a" * 9_000
    reader, writer = await asyncio.open_connection(*port)
    async with asyncio.timeout(PATIENCE_S):
        for _ in range(3):
            writer.write(whole)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            await reader.readexactly(len(b"heard"))
    assert Small.budget.bodies_bytes == 0
    writer.close()


@pytest.mark.parametrize("port", [Small], indirect=True)
async def test_more_connections_than_may_be_open_are_answered_and_closed(port: Port) -> None:
    open_ = [await asyncio.open_connection(*port) for _ in range(2)]
    head, body = await told(port)
    assert head.startswith(b"HTTP/1.1 503 ")
    assert body["code"] == "tooManyConnections"
    open_[0][1].write(HEAD + b"Connection: close\r\n\r\n")
    async with asyncio.timeout(PATIENCE_S):
        assert (await open_[0][0].read()).startswith(b"HTTP/1.1 200 ")
    for _, writer in open_:
        writer.close()

"""Answers of text leave as gzip where that is asked for; streams and short answers stay as they are."""

import gzip
import json

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from clickclock.foundation.compression import BYTES_MIN, Compression, takes_gzip

LONG = json.dumps([{"number": number} for number in range(50_000)]).encode()


async def _long(_request: object) -> Response:
    return Response(LONG, media_type="application/json", headers={"etag": '"3"'})


async def _short(_request: object) -> Response:
    return Response(b"x" * (BYTES_MIN - 1), media_type="text/plain")


async def _binary(_request: object) -> Response:
    return Response(LONG, media_type="application/vnd.apache.parquet")


async def _pieces(_request: object) -> Response:
    length = {"content-length": str(len(LONG))}
    return StreamingResponse(iter([LONG[:9], LONG[9:]]), media_type="application/json", headers=length)


async def _stream(_request: object) -> Response:
    return StreamingResponse(iter([b"data: 1\n\n", LONG]), media_type="text/event-stream")


@pytest.fixture
def client() -> httpx.AsyncClient:
    endpoints = {"/long": _long, "/short": _short, "/binary": _binary, "/pieces": _pieces, "/stream": _stream}
    app = Compression(Starlette(routes=[Route(path, endpoint) for path, endpoint in endpoints.items()]))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


@pytest.mark.parametrize("path", ["/long", "/pieces"])
async def test_a_long_answer_is_compressed_for_who_takes_it(client: httpx.AsyncClient, path: str) -> None:
    async with client.stream("GET", path, headers={"accept-encoding": "br;q=1, gzip;q=0.5"}) as answer:
        raw = b"".join([piece async for piece in answer.aiter_raw()])
    assert (gzip.decompress(raw), answer.headers["content-encoding"]) == (LONG, "gzip")
    assert (answer.headers["vary"], answer.headers["content-length"]) == ("Accept-Encoding", str(len(raw)))
    assert len(raw) < len(LONG) / 4
    plain = await client.get(path, headers={"accept-encoding": "identity"})
    assert (plain.content, "content-encoding" in plain.headers) == (LONG, False)
    assert plain.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize("path", ["/short", "/binary", "/stream"])
async def test_what_is_short_or_binary_or_a_stream_stays_as_it_is(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers={"accept-encoding": "gzip"})
    assert (answer.status_code, "content-encoding" in answer.headers) == (200, False)


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("x-gzip", True),
        ("deflate, gzip;q=1.0, *;q=0.5", True),
        ("*", True),
        ("", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000, *;q=1", False),
        ("gzipped", False),
        ("gzip;q=nonsense", False),
    ],
)
def test_gzip_is_taken_by_its_weight(accepted: str, takes: bool) -> None:
    assert takes_gzip(accepted) is takes

"""Compression: an answer of text whose length is known leaves as gzip, if its caller takes that.

Never touches a stream: its events would wait for each other. Invariants: an answer that depends on `Accept-Encoding`
says so (`Vary`); a long answer is compressed on a thread, so that no job waits for it.

>>> Compression(app)   # doctest: +SKIP
"""

import asyncio
import gzip
import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BYTES_MIN = 1024
"""A shorter answer fits into a packet or two as it is."""
ON_LOOP_BYTES_MAX = 16 * 1024
"""A fifth of a millisecond; the loop also starts jobs."""
LEVEL = 4
"""Within a twentieth of the best, in a third of its time."""
_is_text = re.compile(r"application/(?:[\w.+-]*json|javascript)|text/(?!event-stream)").match
_CODING = re.compile(r"\s*([!#$%&'*+.^_`|~0-9a-z-]+)\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?", re.IGNORECASE)


class Compression:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the answer, compressed or not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_wanted = takes_gzip(Headers(scope=scope).get("accept-encoding", ""))
        start: Message | None = None
        pieces: list[bytes] = []

        async def send_packed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_worth(Headers(raw=message.setdefault("headers", []))):
                MutableHeaders(raw=message["headers"]).add_vary_header("Accept-Encoding")
                if is_wanted:
                    start = message
                    return
            if start is None:
                await send(message)
                return
            pieces.append(message.get("body", b""))
            if not message.get("more_body"):
                packed = await _packed(b"".join(pieces))
                headers = MutableHeaders(raw=start["headers"])
                headers["content-encoding"] = "gzip"
                headers["content-length"] = str(len(packed))
                await send(start)
                await send({**message, "body": packed})

        await self._app(scope, receive, send_packed)


def takes_gzip(accepted: str) -> bool:
    """Whether a field `Accept-Encoding` takes gzip.

    >>> takes_gzip("br, gzip;q=0.5"), takes_gzip("*"), takes_gzip("gzip;q=0, *"), takes_gzip("")
    (True, True, False, False)
    """
    weights: dict[str, float] = {}
    for part in accepted.lower().split(","):
        if found := _CODING.fullmatch(part):
            weights[found[1].removeprefix("x-")] = float(found[2] or 1)
    return weights.get("gzip", weights.get("*", 0)) > 0


def _is_worth(headers: Headers) -> bool:
    """Whether it is text of a known length. A stream has none, for its pieces may not wait for each other."""
    length = headers.get("content-length", "")
    return (
        length.isdigit()
        and int(length) >= BYTES_MIN
        and "content-encoding" not in headers
        and _is_text(headers.get("content-type", "")) is not None
    )


async def _packed(body: bytes) -> bytes:
    if len(body) <= ON_LOOP_BYTES_MAX:
        return gzip.compress(body, LEVEL, mtime=0)
    return await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)

"""The gate: what every request passes, whatever it asks for.

Never reads a body and never knows a path. Invariants: every answer has a request id and the headers of `CLOSED`; every
error that gets here becomes one answer; whoever answers a request can ask who made it (`caller`); a web page of another
site can neither change anything here (`Origin`) nor, by pointing its own name at this machine, read anything (`Host`).

>>> Gate(app, allowed_hosts=["clickclock.example.com"])   # doctest: +SKIP
"""

import logging
import re
from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clickclock.foundation import trace_context
from clickclock.foundation.access import OPEN, SAFE, Access
from clickclock.foundation.caller import Caller, answer_to
from clickclock.foundation.errors import Malformed
from clickclock.foundation.ids import new_id
from clickclock.foundation.problem import INTERNAL_STATUS, ForeignHost, ForeignOrigin, problem
from clickclock.foundation.reach import is_loopback
from clickclock.foundation.streams import Stream, Streams

CLOSED: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
"""No answer is sniffed or framed, and no other site hears its address. A page that says more of itself keeps that."""
_TLS_ONLY: Final = (b"strict-transport-security", b"max-age=31536000")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger(__name__)


class Gate:
    """ASGI middleware. `allowed_hosts` are names beside the loopback's; None lets every name in."""

    def __init__(self, app: ASGIApp, allowed_hosts: Collection[str] | None = (), access: Access = OPEN) -> None:
        self._app = app
        self._public_origin = access.public_url and access.public_url.lower()
        self._access = access
        self._streams = Streams(access)
        self._hosts = None if allowed_hosts is None else frozenset(_bare(each) for each in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, or answer with what is wrong."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else new_id()
        started = False
        answer: Stream | None = None
        scope = self._as_seen(scope, headers)
        usual = (*CLOSED, _TLS_ONLY) if scope.get("scheme") == "https" else CLOSED

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                raw = message["headers"] = list(message.get("headers", ()))
                if answer is not None:
                    answer.start(raw)
                started = True
                said = {name for name, _ in raw}
                raw += [each for each in usual if each[0] not in said]
                MutableHeaders(raw=raw)["x-request-id"] = request_id
            elif answer is not None and not await answer.may_go_on():
                await send({"type": "http.response.body", "body": b""})
                raise ClientDisconnect  # whose key has ended is gone, to us
            await send(message)

        try:
            self._check(scope["method"], headers, scope["http_version"])
            client = scope.get("client")
            principal = await self._access.of(scope)
            trace = trace_context.read(headers.get("traceparent"), headers.get("tracestate"))
            answer_to(Caller(principal, client[0] if client else "", request_id, trace))
            answer = self._streams.answer(scope, principal)
            path: str = scope["path"]
            if len(path) > 1 and path.endswith("/"):
                scope = {**scope, "path": path[:-1]}
            await self._app(scope, receive, send_with_headers)
        except ClientDisconnect:
            return  # nobody is there to hear
        except Exception as error:
            if started:
                raise
            await _answer(error, request_id, send_with_headers)
        finally:
            if answer is not None:
                answer.close()

    def _as_seen(self, scope: Scope, headers: Headers) -> Scope:
        """With the scheme that the caller sees, where the proxy passes on the public name."""
        origin, host = self._public_origin, headers.get("host", "").lower()
        if origin is None or not origin.startswith("https://") or host != origin.removeprefix("https://"):
            return scope
        return {**scope, "scheme": "https"}

    def _check(self, method: str, headers: Headers, http_version: str) -> None:
        hosts = headers.getlist("host")
        if len(hosts) > 1 or (not hosts and http_version == "1.1"):
            raise Malformed("Send one Host field.")
        host = hosts[0] if hosts else None
        if host is not None and self._hosts is not None:
            name = _bare(host)
            if name not in self._hosts and not is_loopback(name) and not name.endswith(".localhost"):
                raise ForeignHost
        origin = headers.get("origin")
        if origin is None and method not in SAFE and headers.get("sec-fetch-site") == "cross-site":
            raise ForeignOrigin
        if origin is None or method in SAFE or origin.lower() == self._public_origin:
            return
        if origin.partition("://")[2].lower() != (host or "").lower():
            raise ForeignOrigin


async def _answer(error: Exception, request_id: str, send: Send) -> None:
    if isinstance(error, RecursionError):
        error = Malformed("The JSON is nested too deeply.")
    told = problem(error, request_id)
    if told.status == INTERNAL_STATUS:
        _log.error("request %s failed", request_id, exc_info=error, extra={"requestId": request_id})
    headers = {"content-type": "application/json", "content-length": str(len(told.body)), **told.headers}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": told.status, "headers": raw})
    await send({"type": "http.response.body", "body": told.body})


def _bare(host: str) -> str:
    """A host without port and brackets."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0] if name.count(":") == 1 else name

"""Attribution over HTTP, on the service's own port: what people ask about clicks, orders and credit.

Never takes a click: the collector does, on a port of its own (`server.py`).
Invariant: every path begins with `BASE`.

>>> app = create_app(Path("clickclock-data/journal"))   # doctest: +SKIP
"""

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from clickclock.attribution.api import check, stream
from clickclock.attribution.api.check import Checker
from clickclock.attribution.api.openapi import Described
from clickclock.attribution.api.query_process import Asker
from clickclock.attribution.api.questions import READERS, Question
from clickclock.attribution.api.stream import Stream
from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.crediting.policy import Policies
from clickclock.foundation.access import OPEN, Access
from clickclock.foundation.clock import Clock, SystemClock
from clickclock.foundation.compression import Compression
from clickclock.foundation.gate import Gate
from clickclock.foundation.permission import Permission
from clickclock.foundation.problem import UnknownPath
from clickclock.foundation.refusals import Count, Refusals

BASE = "/attribution"
PAGES = ("orders", "versions", "paths")
"""Questions whose addresses are also those of pages: a browser shows what curl gets."""
_PERMISSIONS = {
    **{("GET", f"{BASE}/{name}"): reading.permission for name, reading in READERS.items()},
    **{(method, f"{BASE}/check"): check.PERMISSION for method in ("GET", "POST")},
    ("GET", f"{BASE}/clicks/stream"): stream.PERMISSION,
    ("GET", f"{BASE}/openapi.json"): Permission.DESCRIPTION_READ,
}


def create_app(  # noqa: PLR0913 (each is a part of it)
    journal_dir: Path,
    *,
    desk: Callable[[], Any] | None = None,
    allowed_hosts: Collection[str] | None = (),
    clock: Clock | None = None,
    stopping: asyncio.Event | None = None,
    accounts: Accounts | None = None,
    policies: Policies | None = None,
    access: Access = OPEN,
    elsewhere: ASGIApp | None = None,
    refused: Count | None = None,
) -> Starlette:
    """The ASGI application over the journals in a folder. `access` says who asks.

    `desk` is called in a process of its own, so it must be picklable, and gives a `desk.Desk` there; without it, only
    journals are looked at. `allowed_hosts` are names by which it may be addressed beside the loopback's; None lets
    every name in. Streams end when `stopping` is set, and so does that process. `accounts` and `policies` are those by
    which clicks are checked. At the addresses of `PAGES`, and at unknown ones, `elsewhere` answers whoever takes HTML.
    `refused` counts who may not do what he asks for.
    """
    stopping, clock = stopping or asyncio.Event(), clock or SystemClock()
    checker = Checker(accounts or Accounts(), policies or Policies(), clock)
    routes = [
        Route(f"{BASE}/clicks/stream", Stream(journal_dir, clock, stopping)),
        Route(f"{BASE}/check", checker),
    ]
    if desk is not None:
        asker = Asker(desk, stopping)
        questions: dict[str, ASGIApp] = {name: Question(name, asker) for name in READERS}
        if elsewhere is not None:
            questions |= {name: _Either(elsewhere, questions[name]) for name in PAGES}
        routes += [Route(f"{BASE}/{name}", question) for name, question in questions.items()]
        routes.append(Route(f"{BASE}/openapi.json", Described()))
    middleware = [Middleware(Gate, allowed_hosts=allowed_hosts, access=access), Middleware(Compression)]
    if refused is not None:
        middleware.append(Middleware(Refusals, count=refused, permissions=_PERMISSIONS))
    app = Starlette(routes=routes, middleware=middleware)
    app.router.redirect_slashes = False
    app.router.default = _nothing_here if elsewhere is None else _Either(elsewhere, _nothing_here)
    return app


class _Either:
    """A page for whoever takes HTML, as browsers do, and the interface for everybody else."""

    def __init__(self, page: ASGIApp, interface: ASGIApp) -> None:
        self._page = page
        self._interface = interface

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = "text/html" in Headers(scope=scope).get("accept", "")
        await (self._page if is_page else self._interface)(scope, receive, send)


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    raise UnknownPath(f"There is nothing at this path; {BASE}/openapi.json lists every path.")

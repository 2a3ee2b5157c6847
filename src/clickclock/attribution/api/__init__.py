"""Attribution over HTTP, on the service's own port: what people ask about clicks, orders and credit.

Never takes a click: the collector does, on a port of its own (`edge.py`).
Invariant: every path begins with `BASE`.

>>> app = create_app(Path("clickclock-data/journal"))   # doctest: +SKIP
"""

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from clickclock.attribution.account import Accounts
from clickclock.attribution.api.asking import Asker
from clickclock.attribution.api.check import Checker
from clickclock.attribution.api.openapi import Described
from clickclock.attribution.api.questions import READERS, Question
from clickclock.attribution.api.stream import Stream
from clickclock.attribution.policy import Policies
from clickclock.foundation.access import OPEN, Access
from clickclock.foundation.clock import Clock, SystemClock
from clickclock.foundation.compression import Compression
from clickclock.foundation.gate import Gate
from clickclock.foundation.problem import UnknownPath

BASE = "/attribution"


def create_app(
    journal_dir: Path,
    *,
    desk: Callable[[], Any] | None = None,
    allowed_hosts: Collection[str] | None = (),
    clock: Clock | None = None,
    stopping: asyncio.Event | None = None,
    accounts: Accounts | None = None,
    policies: Policies | None = None,
    access: Access = OPEN,
) -> Starlette:
    """The ASGI application over the journals in a folder. `access` says who asks.

    `desk` is called in a process of its own, so it must be picklable, and gives a `desk.Desk` there; without it, only
    journals are looked at. `allowed_hosts` are names by which it may be addressed beside the loopback's; None lets
    every name in. Streams end when `stopping` is set, and so does that process. `accounts` and `policies` are those by
    which clicks are checked.
    """
    stopping, clock = stopping or asyncio.Event(), clock or SystemClock()
    checker = Checker(accounts or Accounts(), policies or Policies(), clock)
    routes = [
        Route(f"{BASE}/clicks/stream", Stream(journal_dir, clock, stopping)),
        Route(f"{BASE}/check", checker),
    ]
    if desk is not None:
        asker = Asker(desk, stopping)
        routes += [Route(f"{BASE}/{name}", Question(name, asker)) for name in READERS]
        routes.append(Route(f"{BASE}/openapi.json", Described()))
    middleware = [Middleware(Gate, allowed_hosts=allowed_hosts, access=access), Middleware(Compression)]
    app = Starlette(routes=routes, middleware=middleware)
    app.router.redirect_slashes = False
    app.router.default = _nothing_here
    return app


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    raise UnknownPath(f"There is nothing at this path; {BASE}/openapi.json lists every path.")

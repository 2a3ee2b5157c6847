"""The collector's port: sockets in, clicks on disk out, until it has to stop.

Never reads the configuration: everything is handed over. Invariants: it answers only when its journal is ready; when
it is told to stop, it takes nothing new, and what it had taken is on disk and answered before it returns.

>>> await run_collector(Path("journal/0"), sockets, Setup(accounts, salt), stopping=stopping)   # doctest: +SKIP
"""

import asyncio
import contextlib
import dataclasses
import gc
import logging
import resource
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from ipaddress import ip_network
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from clickclock.attribution.agents.collector import Collector
from clickclock.attribution.agents.commit_spans import CommitSpans
from clickclock.attribution.api import metrics
from clickclock.attribution.api.connection import Connection
from clickclock.attribution.api.health import Health
from clickclock.attribution.api.limits import Limits
from clickclock.attribution.api.origin import LOOPBACK, Origins
from clickclock.attribution.api.routes import Routes
from clickclock.attribution.api.shared import Shared
from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.clicks.address import Salt
from clickclock.attribution.errors import JournalFailing
from clickclock.attribution.files.counters import Counters, read_all
from clickclock.attribution.files.country_table import CountryTable
from clickclock.attribution.files.disk_room import DiskRoom
from clickclock.attribution.files.order_tokens import OrderTokens
from clickclock.attribution.journal import Journal
from clickclock.attribution.orders.shop_order import Secrets
from clickclock.attribution.registering.refusal_budget import RefusalBudget
from clickclock.foundation.clock import Clock, SystemClock
from clickclock.foundation.instant import DAY_MS
from clickclock.foundation.span import Spans

TICK_S: Final = 1.0
BACKLOG: Final = 4096
HANDSHAKE_S: Final = 10.0
_SPARE_FILES: Final = 64
"""File descriptors that are not connections."""
_SWITCH_S: Final = 0.001
"""How long the commit thread may wait for its turn once the disk has answered: many answers hang on it."""
_GARBAGE_AFTER: Final = 50_000

_log = logging.getLogger(__name__)


class Setup(msgspec.Struct, frozen=True):
    """The settings of one collector."""

    accounts: Accounts
    salt: Salt
    """What client addresses are salted with."""
    trusted_proxies: Sequence[str] = LOOPBACK
    """Networks whose `X-Forwarded-For` is believed."""
    limits: Limits = msgspec.field(default_factory=Limits)
    clock: Clock = msgspec.field(default_factory=SystemClock)
    tick_s: float = TICK_S
    """How often time-outs are looked at."""
    metrics_from: Sequence[str] = LOOPBACK
    """Networks that may see the metrics."""
    order_tokens: Path | None = None
    """The file with the order tokens that are in no account's settings."""
    orders_need_token: bool = False
    """Whether orders of every account need a token."""
    secrets: Secrets = msgspec.field(default_factory=lambda: Secrets({}))
    """What webhooks of shops are signed with."""
    countries: CountryTable | None = None
    """Which country an address is in; None if nobody says so."""
    tls: ssl.SSLContext | None = None
    """What connections are encrypted with; None if they are not."""
    spans: Spans | None = None
    """Where spans of entries go; None if there are none."""


async def run_collector(
    journal: Journal,
    sockets: Sequence[socket.socket],
    setup: Setup,
    *,
    stopping: asyncio.Event,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Take clicks and orders on `sockets`, which listen already, until `stopping` is set; then drain.

    The journal is the caller's, and stays open. The counters are in its folder, and `/metrics` adds up those of all
    folders beside it. `ready` is called when requests are answered. Raises `OSError`.
    """
    clock = setup.clock
    counters = Counters(journal.folder, clock.epoch_ms())
    loop = asyncio.get_running_loop()
    tokens = OrderTokens(setup.order_tokens, are_needed=setup.orders_need_token)
    tokens.refresh()
    shared = _shared(journal, counters, setup, loop, tokens)
    ticking = asyncio.create_task(_tick(shared, setup, tokens))
    within_s = None if setup.tls is None else HANDSHAKE_S
    servers = [
        await loop.create_server(
            lambda: Connection(shared), sock=each, backlog=BACKLOG, ssl=setup.tls, ssl_handshake_timeout=within_s
        )
        for each in sockets
    ]
    _settle_in()
    ready()
    try:
        await stopping.wait()
        for server in servers:
            server.close()
        await asyncio.sleep(0)  # what was accepted in this turn of the loop becomes a connection
        await _drain(shared)
    finally:
        ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticking
        while shared.collector.waiting:  # of clients that did not wait for it themselves
            with contextlib.suppress(JournalFailing):
                await journal.probe()
        shared.count()
        counters.close()


def _shared(
    journal: Journal, counters: Counters, setup: Setup, loop: asyncio.AbstractEventLoop, tokens: OrderTokens
) -> Shared:
    limits = replace(setup.limits, connections_max=_connections_max(setup.limits.connections_max))
    room = DiskRoom(journal.folder, limits.refused_free_bytes_min, limits.refused_free_share_min)
    refusals = RefusalBudget(limits.refused_bytes_per_day, room.is_short)
    spans = setup.spans
    append = None if spans is None else CommitSpans(journal.append, spans, setup.clock).append
    collector = Collector(
        journal, counters.cells, setup.accounts, setup.clock.epoch_ms, limits.waiting_max, refusals, append
    )

    pages: list[bytes] = []

    def page() -> bytes:
        if not pages:  # one for all who ask in this turn of the loop: it costs as much as some hundred clicks
            shared.count()
            pages.append(metrics.text(read_all(journal.folder.parent)).encode())
            loop.call_soon(pages.clear)
        return pages[0]

    script = files("clickclock.attribution.api").joinpath("clickclock.js").read_bytes()
    health = Health(journal.probe, loop.time)
    origins = Origins(setup.trusted_proxies, setup.salt.secret, setup.countries)
    near = partial(origins.is_from, [ip_network(each, strict=False) for each in setup.metrics_from])
    routes = Routes(
        collector,
        counters.cells,
        limits,
        setup.accounts,
        health,
        page,
        script,
        near,
        tokens,
        setup.secrets,
        is_tls=setup.tls is not None,
        is_locating=setup.countries is not None,
    )
    shared = Shared(routes, origins)
    shared.tick(loop.time(), setup.clock.now().timestamp())
    return shared


async def _tick(shared: Shared, setup: Setup, tokens: OrderTokens) -> None:
    clock, every_s, salt = setup.clock, setup.tick_s, dataclasses.replace(setup.salt)
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(every_s)
        try:
            shared.tick(loop.time(), clock.now().timestamp())
            shared.count()
            if salt.turn(clock.epoch_ms() // DAY_MS):
                shared.use_salt(salt.secret)
            for connection in tuple(shared.connections):
                connection.check()
            await asyncio.to_thread(tokens.refresh)
            if setup.countries is not None and await asyncio.to_thread(setup.countries.refresh):
                shared.use_countries()
        except Exception:  # noqa: BLE001 - without the tick nobody's time would ever be over
            _log.exception("time-outs could not be checked")


async def _drain(shared: Shared) -> None:
    """Let every connection have its answers; what is still half sent after a while is cut off."""
    shared.is_draining = True
    for connection in tuple(shared.connections):
        connection.drain()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(shared.limits.drain_s):
            await shared.emptied()
            return
    _log.warning("%d connections did not end in time and are cut off", len(shared.connections))
    for connection in tuple(shared.connections):
        connection.abort()
    await shared.emptied()


def _connections_max(wanted: int) -> int:
    """As many connections as this process may have files for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _SPARE_FILES
    if hard == resource.RLIM_INFINITY or soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft < needed:
        _log.warning("only %d connections at once: this process may open no more files", soft - _SPARE_FILES)
    return min(wanted, soft - _SPARE_FILES)


def _settle_in() -> None:
    """Connections and requests make no circles of objects, so the collector of garbage need hardly look."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_AFTER, 50, 100)
    sys.setswitchinterval(_SWITCH_S)

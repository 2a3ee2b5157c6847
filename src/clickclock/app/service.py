"""`clickclock serve`: the scheduler, and the collectors of clicks beside it.

Never decides anything about jobs or clicks. Invariants: one service to a data folder; the ports are ours before the
store is opened, and answer only when the engine has adopted what was left behind.

>>> serve(load(None, {}, {"port": 9000}))   # doctest: +SKIP
0
"""

import asyncio
import contextlib
import gc
import logging
import os
import shlex
import signal
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send

from clickclock.app import backup_state
from clickclock.app.budget import Budget, allow_connections
from clickclock.app.certificates import Certificates
from clickclock.app.checking import check, targets_of
from clickclock.app.clusters import LOCAL, clusters, told_to_jobs
from clickclock.app.collectors import Collectors, listen
from clickclock.app.connection import Connection
from clickclock.app.data_folder import (
    BACKLOG,
    FILES_MIN,
    expect_files,
    listening,
    make_data_dir,
    running_as_root,
    sole,
    url_of,
)
from clickclock.app.desk import open_desk
from clickclock.app.keyring import peers_of
from clickclock.app.late import Late
from clickclock.app.membership import advertised_url, be_sole, keep_age, node_name, open_store
from clickclock.app.noticing import Noticing
from clickclock.app.own_jobs import ensure_own_jobs, out_of_reach
from clickclock.app.own_program import own_program, typed
from clickclock.app.peer import Peers
from clickclock.app.people import open_provider, sign_out_beyond
from clickclock.app.tracing import Tracing
from clickclock.examples import apply_examples, read_examples
from clickclock.foundation import extras, log
from clickclock.foundation.access import Access, Mode
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.environment import environment, take_secrets
from clickclock.foundation.errors import ClickclockError
from clickclock.foundation.gate import Gate
from clickclock.foundation.problem import UnknownPath
from clickclock.foundation.refusals import Count
from clickclock.foundation.shown_settings import shown
from clickclock.scheduler import api as scheduler_api
from clickclock.scheduler.api.metrics import Measured, Measures
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.identity_provider import IdentityProvider
from clickclock.scheduler.jobs.limits import Limits
from clickclock.scheduler.store import Store
from clickclock.scheduler.targets import Target
from clickclock.scheduler.vault import Vault
from clickclock.web import Dashboard

TICK_S = 1.0
ATTRIBUTION = "/attribution/"
OWN_JOBS_EVERY_S = 30.0
GRACEFUL_S = 5
"""Seconds that open answers get when the service stops; live logs are cut then, and can be resumed."""
_GARBAGE_AFTER = (700, 10, 10)
"""As Python has it by itself: what goes on and on looks more often than a command, which ends soon."""
WHAT_TO_TRY = """
The examples are running. In another terminal, in this folder, try:
  {cli} triggers list                          what ran, and when
  {cli} trigger examples countdown --follow    run a job now and watch its output
  {cli} schedule preview "30 2 * * *" --time-zone Europe/Berlin
  curl -s '{url}/schedulerService/jobDetail?application=examples&jobName=hello'
  {cli} open                                   the dashboard, at {url}/
  a browser on {url}/docs                      the scheduler's endpoints, to try
  {cli} clicks tail                            clicks, orders and rejections, as they arrive
  {cli} attribution report{data}                     what the ads of a small shop earned (two minutes from now)
Stop with Ctrl-C; running jobs continue, and are adopted at the next start."""

_log = logging.getLogger(__name__)


def serve(config: Config, file: Path | None = None, *, new_store: bool = False) -> int:
    """Run both services until SIGTERM or SIGINT; returns the exit code. Raises `ConfigurationError`.

    `file` is where the configuration comes from, if it does: attribution's own jobs read it again. With `new_store`, a
    database that the data folder does not know is taken for its own.
    """
    log.set_up(config.log_format, config.log_level)
    config = _as_installed(config)
    check(config)
    expect_files(config)
    if (warning := running_as_root(os.geteuid())) is not None:
        _log.warning("%s", warning)
    targets = targets_of(config)
    provider = open_provider(config, SystemClock())
    umask = os.umask(0o077)  # all that is made from now on is for this user alone; jobs keep what we were started with
    make_data_dir(config.data_dir)
    with contextlib.ExitStack() as opened:
        opened.enter_context(sole(config.data_dir, "lock", "serves"))
        (listener,) = opened.enter_context(listening(config.host, config.port, "port"))
        for_clicks = opened.enter_context(listen(config)) if config.clicks else []
        if for_clicks:  # the one that is free, where any may be taken
            config = config.model_copy(update={"click_port": for_clicks[0].getsockname()[1]})
        return uvloop.run(
            _serve(config, file, listener, for_clicks, targets, provider, umask=umask, new_store=new_store)
        )


def _as_installed(config: Config) -> Config:
    """The configuration without clicks, if nobody asked for them and what takes them is not installed."""
    if not config.clicks or "clicks" in config.model_fields_set or extras.is_installed(extras.ATTRIBUTION):
        return config
    how = extras.how_to_install(extras.ATTRIBUTION)
    _log.info("clicks and orders are not taken: attribution is not installed; for it, %s", how)
    return config.model_copy(update={"clicks": False})


async def _serve(
    config: Config,
    file: Path | None,
    listener: socket.socket,
    for_clicks: list[socket.socket],
    targets: Mapping[str, Target],
    provider: IdentityProvider | None,
    *,
    umask: int,
    new_store: bool,
) -> int:
    clock, node, url = SystemClock(), node_name(config.data_dir), url_of(listener, config.scheme)
    executors = clusters(config, node, clock, told_to_jobs(config, url, for_clicks), umask)
    try:
        store = await open_store(config, LOCAL, is_new=new_store)
    except ClickclockError as error:
        _log.error("%s", error)
        return 1
    await be_sole(store, node)
    engine = Engine(
        store,
        clock,
        executors,
        node=node,
        version=version("clickclock"),
        targets=targets,
        vault=Vault(config.secrets_dir, take_secrets(config)),
        limits=Limits(config.preemptions_max, config.backfill_times_max, config.job_users, config.audit_days),
        url=advertised_url(config, listener),
        settings=shown(config),
    )
    certificates = Certificates.of(config, knows_clients=True)
    noticing = _noticing(config, engine, certificates)
    await engine.open()
    await sign_out_beyond(config, store)
    peers = await peers_of(config, store)
    tracing = Tracing.of(config, engine)
    server, stopped = _server(config, engine, peers, provider, certificates, tracing), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
    working = asyncio.create_task(engine.run(until=stopped))
    keeping = [each.keep() for each in (certificates, tracing) if each is not None]
    noting = [asyncio.create_task(each) for each in (*keeping, keep_age(config, store))]
    # A dead engine behind an answering port would be the worst of both: they end together.
    working.add_done_callback(lambda _: server.stop())
    try:
        await apply_examples(read_examples(config.examples), engine)
    except ClickclockError as error:
        _log.error("not all examples are there: %s", " ".join([str(error), *(each.message for each in error.faults)]))
    async with contextlib.AsyncExitStack() as running:
        if for_clicks:
            await running.enter_async_context(_clicks(config, for_clicks, noticing, store))
        own = partial(ensure_own_jobs, url, engine.authenticator.own_token, config, file, node)
        await running.enter_async_context(_own_jobs(config, own))
        # The objects of now stay: the collector need not walk through them in the middle of a busy moment.
        gc.freeze()
        gc.set_threshold(*_GARBAGE_AFTER)
        gc.enable()
        _announce(url, config)
        try:
            await server.serve(sockets=[listener])
        finally:
            stopped.set()
            await asyncio.gather(working, return_exceptions=True)
            await _end(noting)
            await engine.close(stop_jobs=config.stop_jobs)
            await store.close()
    fate = "were ended" if config.stop_jobs else "continue and are adopted at the next start"
    _log.info("stopped; running jobs %s", fate)
    return 1 if working.exception() else 0


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _noticing(config: Config, engine: Engine, certificates: Certificates | None) -> Noticing:
    """What the scanner tells with its own findings: of clicks, of backups, and of the certificate."""
    noticing = Noticing(config)
    engine.scanner.noticed = lambda: noticing.findings
    engine.scanner.backup = lambda: backup_state.age(config)
    if certificates is not None:
        engine.scanner.noticed = lambda: (*noticing.findings, *certificates.findings(engine.clock.now()))
        engine.peer_trust = certificates.peer_trust
    return noticing


@contextlib.asynccontextmanager
async def _clicks(
    config: Config, sockets: list[socket.socket], noticing: Noticing, store: Store
) -> AsyncIterator[None]:
    """The collectors, with the order tokens of the store, and what is noticed of clicks."""
    # It is of attribution, which may not be there.
    from clickclock.app.order_tokens import keep_order_tokens  # noqa: PLC0415 (see the line above)

    async with Collectors.started(config, sockets) as collectors:
        announcing = asyncio.create_task(collectors.announce())
        beside = [
            asyncio.create_task(each) for each in (noticing.keep(), keep_order_tokens(store, config.order_tokens))
        ]
        try:
            yield
        finally:
            announcing.cancel()
            for each in beside:
                each.cancel()
            await asyncio.gather(*beside, return_exceptions=True)


@contextlib.asynccontextmanager
async def _own_jobs(config: Config, ensure_own: Callable[[], bool]) -> AsyncIterator[None]:
    """Jobs of our own, on our own scheduler, where there are any."""
    if not config.clicks and config.backup_url is None:
        yield
        return
    # It waits for the port to answer, which is as soon as the rest is ready.
    stopping = asyncio.Event()
    asking = asyncio.create_task(_keep_own_jobs(stopping, config, ensure_own))
    try:
        yield
    finally:
        stopping.set()
        await asyncio.gather(asking, return_exceptions=True)


async def _keep_own_jobs(stopping: asyncio.Event, config: Config, ensure_own: Callable[[], bool]) -> None:
    """Until they are there; among replicas for ever, since one that is gone leaves those that it has for all."""
    for fault in out_of_reach(config, environment()):
        _log.warning("%s", fault.message)
    while not stopping.is_set():
        are_there = await asyncio.to_thread(ensure_own)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if are_there and not config.shares_database else OWN_JOBS_EVERY_S):
                await stopping.wait()


def _server(
    config: Config,
    engine: Engine,
    peers: Peers | None,
    provider: IdentityProvider | None,
    tls: Certificates | None,
    tracing: Tracing | None,
) -> "_Server":
    """The service's own port: the scheduler, and what people ask of attribution."""
    public = engine.url, config.public_url, None if provider is None else provider.config.public_url
    own_names = [config.host, *filter(None, (urlsplit(each or "").hostname for each in public))]
    # A page that points its own name at us has no token: with tokens, a name gives nobody anything.
    is_keyed = config.access is Mode.TOKENS
    lets_every_name_in = (config.insecure_no_authentication or is_keyed) and not config.allowed_hosts
    allowed_hosts = None if lets_every_name_in else [*own_names, *config.allowed_hosts]
    access = Access(config.access, engine.authenticator, config.certificate_grants(), config.public_url)
    dashboard = Dashboard(config.click_port if config.clicks else None)
    paths = (*scheduler_api.TABLE, "/healthz", "/livez", "/readyz", "/metrics", "/openapi.json", "/docs")
    measures = Measures(engine, paths)
    scheduler = scheduler_api.create_app(
        engine,
        measures=measures,
        allowed_hosts=allowed_hosts,
        body_bytes_max=config.request_body_bytes_max,
        elsewhere=dashboard,
        access=access,
        provider=provider,
    )
    stopping = asyncio.Event()
    attribution = _attribution(config, allowed_hosts, access, stopping, dashboard, engine.auditor.count)

    async def both(scope: Scope, receive: Receive, send: Send) -> None:
        is_for_attribution = scope["type"] == "http" and scope["path"].startswith(ATTRIBUTION)
        await (attribution if is_for_attribution else scheduler)(scope, receive, send)

    measured = Measured(both, measures)
    budget = Budget(allow_connections(config.connections_max, FILES_MIN), config.request_bodies_bytes_max)
    return _Server(
        uvicorn.Config(
            measured if tracing is None else tracing.requests(measured),
            http=Connection.knowing(peers, budget),
            ssl_context_factory=None if tls is None else lambda *_: tls.context,
            ws="none",
            loop="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            forwarded_allow_ips=list(config.trusted_proxies),
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACEFUL_S,
        ),
        stopping,
        engine.announcer.close,
    )


def _attribution(
    config: Config,
    allowed_hosts: Collection[str] | None,
    access: Access,
    stopping: asyncio.Event,
    elsewhere: ASGIApp,
    refused: Count,
) -> ASGIApp:
    """What people ask of attribution, or, where that is not installed, how it is. `elsewhere` has the pages."""
    if not extras.is_installed(extras.ATTRIBUTION):

        async def not_installed(scope: Scope, receive: Receive, send: Send) -> None:
            raise UnknownPath(f"Attribution is not installed; {extras.how_to_install(extras.ATTRIBUTION)}.")

        return Gate(not_installed, allowed_hosts=allowed_hosts, access=access)

    def made() -> ASGIApp:
        from clickclock.app.accounts import accounts_of, policies_of  # noqa: PLC0415 (it is an optional part)
        from clickclock.attribution.api.application import create_app  # noqa: PLC0415 (as above)

        return create_app(
            config.journal_dir,
            desk=partial(open_desk, config),
            allowed_hosts=allowed_hosts,
            stopping=stopping,
            accounts=accounts_of(config),
            policies=policies_of(config),
            access=access,
            elsewhere=elsewhere,
            refused=refused,
        )

    return Late(made)


class _Server(uvicorn.Server):
    """uvicorn, with the signals left to us: they also stop the engine, in order."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event, let_go: Callable[[], None]) -> None:
        super().__init__(config)
        self._stopping = stopping
        self._let_go = let_go

    async def main_loop(self) -> None:
        """As uvicorn's, which is for the date in answers: but once a second, and at once when it is to stop."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._stopping.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self) -> None:
        """Stop accepting, answer what is open, return from `serve`; at the second time at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._stopping.set()
        self._let_go()


def _announce(url: str, config: Config) -> None:
    lines = [f"clickclock is ready at {url}/schedulerService/ (data in {config.data_dir})"]
    if config.examples is not None:
        cli = shlex.quote(typed(own_program(), environment().get("PATH"), Path.cwd()))
        if not url.endswith(f":{Config.model_fields['port'].default}"):
            cli = f"{cli} --url {url}"
        is_usual = config.data_dir == Config.model_fields["data_dir"].default
        data = "" if is_usual else f" --data-dir {shlex.quote(str(config.data_dir))}"
        lines.append(WHAT_TO_TRY.format(cli=cli, url=url, data=data))
    log.announce("\n".join(lines))

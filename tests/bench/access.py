"""What it costs to know who asks (`python -m tests.bench access`).

In this process, with everything known: the CPU of one request by each kind of key. Then three real services in turns:
one asks nobody, one the kernel, one wants a token. A connection without a key; a trigger from the call to the start.
"""

import asyncio
import http.client
import time
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from clickclock.foundation.access import SAME_USER, Access, Mode
from clickclock.foundation.bearer import digest, session_token
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.permission import Role
from clickclock.scheduler.access.access_token import NewToken, TokenGrant
from clickclock.scheduler.agents.authenticator import Authenticator, mint
from clickclock.scheduler.store import Store
from tests.bench.report import Goal, Report, percentile
from tests.bench.service import Service
from tests.bench.stamps import Stamps
from tests.bench.trigger import WARM, called, lags_of_ours

TOKENS = 10_000
KEY_GOAL_US, CONNECTION_GOAL_US, START_GOAL = 30, 60, 1.03
ROUNDS = 10
MODES = ("none", "same-user", "tokens")


def run(folder: Path, *, quick: bool) -> Report:
    """20,000 requests of each kind (--quick: 5,000), 2,000 connections (500), 400 triggers (100)."""
    requests, connections, triggers = (5_000, 500, 100) if quick else (20_000, 2_000, 400)
    report = Report(
        f"access: CPU of a request by its key, of {requests:,}, with {TOKENS:,} tokens; {connections:,} connections "
        f"and {triggers} triggers in turns"
    )
    asyncio.run(_keys(folder, requests, report))
    with ExitStack() as stack:
        services, stamps = {}, {}
        for mode in MODES:
            (folder / mode).mkdir()
            services[mode] = stack.enter_context(Service(folder / mode, "--authentication", mode))
            stamps[mode] = Stamps(folder / mode)
            command = stamps[mode].command("{{ parameters.n }}")
            services[mode].create_job("stamp", command, parameters={"n": None})
            called(services[mode], WARM, 1, stamps[mode])
        _connections(services, connections, report)
        lags: dict[str, list[float]] = {mode: [] for mode in services}
        for turn in range(ROUNDS):
            # Another one first each time: what else the machine does happens to both.
            for mode, service in sorted(services.items(), reverse=bool(turn % 2)):
                lags[mode] += lags_of_ours(service, stamps[mode], triggers // ROUNDS, report)
    found = {mode: percentile(each, 0.5) for mode, each in lags.items()}
    for mode in MODES[1:]:
        goal, none = Goal(factor=START_GOAL, of="none"), {"none": found["none"]}
        report.add(f"POST jobTrigger → start, {mode}, median", "ms", found[mode], goal, none)
    return report


async def _keys(folder: Path, requests: int, report: Report) -> None:
    store, clock = await Store.open(f"sqlite:///{folder / 'clickclock.db'}"), SystemClock()
    secrets = [mint() for _ in range(TOKENS)]
    await store.tokens.create(_token("first"), digest(secrets[0]), "bench", datetime.now(UTC))
    authenticator = Authenticator(store, clock)
    by_token = {"headers": [(b"authorization", f"Bearer {secrets[0]}".encode())]}
    session = await authenticator.begin_session(await authenticator.principal_of(secrets[0]))
    kept, proved = (b"cookie", f"clickclock={session}".encode()), (b"x-session-token", session_token(session).encode())
    scopes: dict[str, tuple[Mode, Mapping[str, Any]]] = {
        "nobody is asked": (Mode.NONE, {"headers": []}),
        "the same user": (Mode.SAME_USER, {"headers": [], SAME_USER: True}),
        "a token": (Mode.TOKENS, by_token),
        "a session that reads": (Mode.TOKENS, {"headers": [kept]}),
        "a session that changes": (Mode.TOKENS, {"headers": [kept, proved], "method": "POST"}),
    }
    took: dict[str, list[float]] = {}
    for is_full in (False, True):
        if is_full:
            for number, secret in enumerate(secrets[1:]):
                await store.tokens.create(_token(f"token-{number}"), digest(secret), "bench", datetime.now(UTC))
                if number < TOKENS // 10:
                    await authenticator.principal_of(secret)
        for name, (mode, scope) in scopes.items():
            access = Access(mode, authenticator)
            asked = {"method": "GET", "query_string": b"limit=1", "client": ("127.0.0.1", 1), **scope}
            await access.of(asked)
            for _ in range(ROUNDS):
                begun = time.process_time()
                for _ in range(requests // ROUNDS):
                    await access.of(asked)
                each_us = 1e6 * (time.process_time() - begun) / (requests // ROUNDS)
                took.setdefault(f"{name}{', 10,000 tokens' if is_full else ''}", []).append(each_us)
    for name, each in took.items():
        report.add(f"CPU of a request, {name}", "µs", median(each), Goal(most=KEY_GOAL_US))
    await store.close()


def _connections(services: Mapping[str, Service], count: int, report: Report) -> None:
    took: dict[str, list[float]] = {mode: [] for mode in services}
    for _ in range(count):
        for mode, service in services.items():
            parts = urlsplit(service.url)
            begun = time.perf_counter()
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
            connection.request("GET", "/livez")
            connection.getresponse().read()
            connection.close()
            took[mode].append(1e6 * (time.perf_counter() - begun))
    more = [ours - theirs for ours, theirs in zip(took["same-user"], took["none"], strict=True)]
    others = {mode: median(each) for mode, each in took.items()}
    report.add("a connection, more than without, median", "µs", median(more), Goal(most=CONNECTION_GOAL_US), others)


def _token(name: str) -> NewToken:
    return NewToken(name=name, grants=[TokenGrant(role=Role.OPERATOR)])

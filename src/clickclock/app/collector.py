"""One collector process: `python -m clickclock.app.collector SLOT DESCRIPTOR`, started by `collectors.py`.

Never reads the environment, a file of settings or a command line of its own: one line on standard input has it all. The
next one is the order to drain; if that input just ends, who started it is dead, and it drains in a hurry. Says one line
on standard output when it is ready, and nothing else.
Invariant: it never outlives who started it by more than the draining.

>>> main(["0", "7"])   # doctest: +SKIP
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop
from msgspec.structs import replace

from clickclock.app.accounts import accounts_of, countries_of, webhook_secrets_of
from clickclock.app.certificates import Certificates
from clickclock.app.collectors import DRAIN
from clickclock.app.spans import spans_of
from clickclock.attribution.api.limits import Limits
from clickclock.attribution.api.server import Setup, run_collector
from clickclock.attribution.clicks.address import Salt
from clickclock.attribution.journal import Journal
from clickclock.foundation import log
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ClickclockError
from clickclock.foundation.seal import close

TAKEN_WAIT_S = 20.0
"""How long the collector before this one may drain."""

ORPHAN_DRAIN_S = 1.0
"""How long it drains when who started it is dead: the next one waits for the journal, and its clients for that."""

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Collect until standard input ends; returns the exit code."""
    close()
    slot, descriptor = int(arguments[0]), int(arguments[1])
    if not (line := sys.stdin.readline()):
        return 0  # who started it died before it could say what to do
    told = json.loads(line)
    config = Config.model_validate(told["config"])
    log.set_up(config.log_format, config.log_level)
    # It drains when the parent asks; a signal meant for the service must not come before that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as listening:
        try:
            uvloop.run(_collect(config, _salt(told, config), config.journal_dir / str(slot), listening))
        except ClickclockError as error:
            _log.error("%s", error)
            return 1
    return 0


def _salt(told: dict[str, Any], config: Config) -> Salt:
    return Salt(bytes.fromhex(told["salt"]), told["salt_day"], config.click_salt_days)


async def _collect(config: Config, salt: Salt, folder: Path, listening: socket.socket) -> None:
    stopping, orphaned = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def told() -> None:
        loop.remove_reader(sys.stdin.fileno())  # at its end it would be ready for ever
        if not os.read(sys.stdin.fileno(), len(DRAIN)):
            orphaned.set()
        stopping.set()

    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    loop.add_reader(sys.stdin.fileno(), told)
    journal = await Journal.open(
        folder,
        segment_bytes=config.segment_bytes_in_blocks,
        segment_age_s=config.segment_age_s,
        taken_wait_s=TAKEN_WAIT_S,
    )
    limits = replace(
        Limits(),
        waiting_max=config.click_waiting_max,
        connections_max=config.click_connections_max,
        refused_bytes_per_day=config.refused_bytes_per_day // config.click_processes,
    )
    certificates = Certificates.of(config)
    spans = spans_of(config, f"{socket.gethostname()}-collector-{folder.name}")
    setup = Setup(
        accounts_of(config),
        salt,
        config.trusted_proxies,
        limits,
        metrics_from=config.click_metrics_from,
        order_tokens=config.order_tokens,
        orders_need_token=config.orders_need_token,
        secrets=webhook_secrets_of(config),
        countries=countries_of(config),
        tls=None if certificates is None else certificates.context,
        spans=spans,
    )
    renewing = None if certificates is None else asyncio.create_task(certificates.keep())
    collecting = asyncio.create_task(run_collector(journal, [listening], setup, stopping=stopping, ready=_say_ready))
    try:
        await asyncio.wait([collecting, asyncio.create_task(stopping.wait())], return_when=asyncio.FIRST_COMPLETED)
        if orphaned.is_set():
            await asyncio.wait([collecting], timeout=ORPHAN_DRAIN_S)
            collecting.cancel()  # what it had taken is on disk all the same before it ends
        with contextlib.suppress(asyncio.CancelledError):
            await collecting
    finally:
        if renewing is not None:
            renewing.cancel()
        await journal.close()
        if spans is not None:  # the journal is the next collector's already
            await asyncio.to_thread(spans.close)


def _say_ready() -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody is there to hear it: it drains at once
        os.write(sys.stdout.fileno(), b"ready\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

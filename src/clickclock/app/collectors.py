"""The collector processes: started, watched, started again when they die, and drained at the end.

Never touches a click. Invariants: one process at a time has the collectors of a data folder; the listening sockets are
held here, so that a collector that dies refuses nobody (who connects meanwhile waits for the next one); a collector
ends when this process does, however that ends, because its standard input does. (Told to drain, it takes its time.)

>>> async with Collectors.started(config, listen(config)) as collectors:   # doctest: +SKIP
...     collectors.url
'http://127.0.0.1:8081'
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Self

import uvloop

from clickclock.app.address_salt import salt_of
from clickclock.app.data_folder import expect_files, listening, make_data_dir, sole, url_of
from clickclock.app.spans import expect_traces
from clickclock.foundation import extras, log
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.environment import environment_to_start, take_secrets
from clickclock.foundation.errors import ClickclockError, ConfigurationError, Fault

DRAIN = b"drain\n"
"""The signal that ends a collector."""
DRAIN_S = 15.0
"""Seconds that a collector gets to answer what waits; its clicks are on disk long before."""
RESTART_FIRST_S = 0.1
RESTART_MAX_S = 5.0
SALT_LOOK_S = 60.0
"""How often it is looked whether the salt of addresses is over."""

_log = logging.getLogger(__name__)


def collect(config: Config) -> int:
    """Take clicks and orders until SIGTERM or SIGINT; returns the exit code. Raises `ConfigurationError`."""
    if not extras.is_installed(extras.ATTRIBUTION):
        how = extras.how_to_install(extras.ATTRIBUTION)
        raise ConfigurationError("Attribution is not installed.", [Fault("clicks", f"Nothing takes them; {how}.")])
    log.set_up(config.log_format, config.log_level)
    expect_files(config)
    os.umask(0o077)
    make_data_dir(config.data_dir)
    take_secrets(config)
    with listen(config) as sockets:
        return uvloop.run(_collect(config, sockets))


async def _collect(config: Config, sockets: Sequence[socket.socket]) -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with Collectors.started(config, sockets) as collectors:
        announcing = asyncio.create_task(collectors.announce())
        await stopped.wait()
        announcing.cancel()
    return 0


@contextlib.contextmanager
def listen(config: Config) -> Iterator[list[socket.socket]]:
    """One listening socket for each process, all on one port.

    The data folder's collectors are ours while this is open. Each collector locks its journal, too; that lock is waited
    for, as a collector whose starter died drains first. Raises `ConfigurationError`.
    """
    with (
        sole(config.data_dir, "collectors-lock", "collects into"),
        listening(config.click_host, config.click_port, "click_port", config.click_processes) as sockets,
    ):
        yield sockets


_NOT_TOLD = {
    *("notifications", "oidc", "oidc_client_secret", "smtp", "smtp_password", "lake_options", "database_url"),
    *("send", "postback"),
}
"""Settings of others, many with secrets in them. Some could not be read again, as they are masked."""


class Collectors:
    """The collectors of one data folder."""

    def __init__(self, config: Config, sockets: Sequence[socket.socket]) -> None:
        self.url = url_of(sockets[0], config.scheme)
        self.sentence = f"clicks are taken at {self.url}/aclick"
        self._sockets = sockets
        # All that a collector must know; it has neither our command line nor our environment to read it from.
        self._salt = salt_of(config.data_dir, config.click_salt_days, SystemClock().now())
        self._config = config
        self._told = config.model_dump(mode="json", exclude=_NOT_TOLD)
        # Here, as the scheduler alone has no accounts; and now, as a collector could only try again.
        from clickclock.app.accounts import countries_of, webhook_secrets_of  # noqa: PLC0415 (see the line above)

        webhook_secrets_of(config)
        countries_of(config)
        expect_traces(config)
        self._stopping = asyncio.Event()
        self._ready = [asyncio.Event() for _ in sockets]

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls, config: Config, sockets: Sequence[socket.socket]) -> AsyncIterator[Self]:
        """They run while this is open, and are drained when it ends. A connection waits until they are ready."""
        collectors = cls(config, sockets)
        keepers = [asyncio.create_task(collectors._keep(slot)) for slot in range(len(sockets))]
        keepers.append(asyncio.create_task(collectors._turn_salts()))
        try:
            yield collectors
        finally:
            collectors._stopping.set()
            for each in sockets:  # a client that comes now is refused, and can go elsewhere, rather than kept waiting
                each.close()
            await asyncio.gather(*keepers)

    async def announce(self) -> None:
        """Say where clicks are taken, once all are ready. One that cannot start is tried again; the log says why."""
        for ready in self._ready:
            await ready.wait()
        log.announce(self.sentence)

    async def _keep(self, slot: int) -> None:
        pause_s = RESTART_FIRST_S
        while not self._stopping.is_set():
            was_ready = False
            try:
                process = await self._start(slot)
            except OSError as error:  # no memory or no files left, for a while
                _log.error("collector %d could not be started: %s; trying again in %.1f s", slot, error, pause_s)
            else:
                was_ready = await self._until_ended(process, slot)
                if self._stopping.is_set():
                    return
                pause_s = RESTART_FIRST_S if was_ready else pause_s
                ended = "collector %d ended with %d; it is started again in %.1f s"
                _log.error(ended, slot, process.returncode, pause_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
            pause_s = min(2 * pause_s, RESTART_MAX_S)

    async def _turn_salts(self) -> None:
        """Forget a salt that is over: collectors make the next one themselves, and so does who starts them again."""
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SALT_LOOK_S):
                    await self._stopping.wait()
            try:
                today = SystemClock().now()
                self._salt = await asyncio.to_thread(
                    salt_of, self._config.data_dir, self._config.click_salt_days, today
                )
            except ClickclockError as error:
                _log.error("the salt of addresses stays what it was: %s", error)

    async def _start(self, slot: int) -> asyncio.subprocess.Process:
        descriptor = self._sockets[slot].fileno()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "clickclock.app.collector", str(slot), str(descriptor)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(descriptor,),
            # Ctrl-C reaches every process of the terminal's group; we ask collectors to drain.
            start_new_session=True,
            env=environment_to_start(),
        )
        assert process.stdin is not None
        orders = {"config": self._told, "salt": self._salt.secret.hex(), "salt_day": self._salt.day}
        process.stdin.write(json.dumps(orders).encode() + b"\n")
        return process

    async def _until_ended(self, process: asyncio.subprocess.Process, slot: int) -> bool:
        """Wait for its end, which comes when we stop at the latest. Whether it ever was ready."""
        assert process.stdin is not None
        announcing = asyncio.create_task(self._announce(process, slot))
        exited, stopping = asyncio.create_task(process.wait()), asyncio.create_task(self._stopping.wait())
        await asyncio.wait([exited, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        with contextlib.suppress(OSError, RuntimeError):  # it ended, or does so just now
            process.stdin.write(DRAIN)
        process.stdin.close()
        try:
            await asyncio.wait_for(asyncio.shield(exited), DRAIN_S)
        except TimeoutError:
            _log.error("collector %d did not end within %.0f s and is killed", slot, DRAIN_S)
            process.kill()
            await exited
        return await announcing

    async def _announce(self, process: asyncio.subprocess.Process, slot: int) -> bool:
        """A collector says one line when it is ready, and nothing else."""
        assert process.stdout is not None
        ready = bool(await process.stdout.readline())
        if ready:
            self._ready[slot].set()
        return ready

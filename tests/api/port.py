"""A collector's port in a thread of the test: a real loop, a real socket, a real journal in a temporary folder.

Never fakes the disk: a `Gate` only holds `fdatasync` back, or lets it fail. Invariant: whatever the test does, the
port is drained afterwards, and what the log says of errors is a failure unless the test expects it.

>>> with Port(tmp_path) as port, port.connect() as client:
...     client.send(get("client_id=c"))
...     client.answer().status
400
"""

import asyncio
import contextlib
import errno
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pytest
import uvloop

from clickclock.attribution.api.limits import Limits
from clickclock.attribution.api.server import Setup, run_collector
from clickclock.attribution.clicks.account import Account, Accounts, Profile
from clickclock.attribution.clicks.address import Salt
from clickclock.attribution.clicks.entry import Entry, decode
from clickclock.attribution.files.country_table import CountryTable
from clickclock.attribution.journal import Journal, Tail
from clickclock.attribution.orders.shop_order import Secrets
from clickclock.foundation.clock import Clock, SystemClock

PATIENCE_S = 60.0
"""A client that hears nothing for so long fails its test."""
SALT = b"salt"


def now_ms() -> int:
    return SystemClock().epoch_ms()


def query(**parameters: object) -> str:
    """A good click's query, with these parameters instead of or beside the usual ones; None leaves one out.

    A visitor may be a number from 0: as `cli_ubid` that is `u0`, for `0` names nobody.
    """
    usual = {"client_id": "c", "cli_ubid": "u", "seller_id": "s", "asvt": "v", "atag": "t", "event_time": now_ms()}
    given = {**usual, **parameters}
    if isinstance(given["cli_ubid"], int):
        given["cli_ubid"] = f"u{given['cli_ubid']}"
    return "&".join(f"{name}={value}" for name, value in given.items() if value is not None)


def get(target: str, fields: str = "", method: str = "GET", version: str = "1.1") -> bytes:
    """A request without a body; a target without a slash is a query of /aclick. `fields` are whole lines."""
    target = target if target.startswith(("/", "*", "http")) else f"/aclick?{target}"
    host = "Host: clicks.example\r\n" if version == "1.1" else ""
    return f"{method} {target} HTTP/{version}\r\n{host}{fields}\r\n".encode()


def post(target: str, body: bytes, fields: str = "") -> bytes:
    """A POST with a body and its length."""
    lines = f"POST {target} HTTP/1.1\r\nHost: clicks.example\r\nContent-Length: {len(body)}\r\n{fields}\r\n"
    return lines.encode() + body


@dataclass(frozen=True)
class Heard:
    """An answer as it came."""

    status: int
    fields: dict[str, str]
    body: bytes


class Client:
    """A client that sees every byte."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._heard = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> Self:
        for part in parts:
            self.socket.sendall(part)
        return self

    def answer(self, *, to_head: bool = False) -> Heard:
        """The next answer. Raises `EOFError` if the connection ends instead."""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        line, *lines = head.split("\r\n")[:-2]
        found = re.fullmatch(r"HTTP/1\.1 (\d{3}) .+", line)
        assert found is not None, line
        fields = {name.lower(): value for name, _, value in (each.partition(": ") for each in lines)}
        length = 0 if to_head else int(fields.get("content-length", "0"))
        while len(self._heard) < length:
            self._hear()
        body, self._heard = self._heard[:length], self._heard[length:]
        return Heard(int(found[1]), fields, body)

    def ask(self, *parts: bytes) -> Heard:
        """Send a request, and hear the answer."""
        return self.send(*parts).answer()

    def is_ended(self) -> bool:
        """Whether the connection ends, and nothing more comes before. Waits for it."""
        try:
            return not self._heard and self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _until(self, end: bytes) -> bytes:
        while end not in self._heard:
            self._hear()
        at = self._heard.index(end) + len(end)
        found, self._heard = self._heard[:at], self._heard[at:]
        return found

    def _hear(self) -> None:
        more = self.socket.recv(2**16)
        if not more:
            raise EOFError(self._heard)
        self._heard += more


@dataclass
class Port:
    """A collector, listening on `address` while the context is open."""

    folder: Path
    accounts: Sequence[Account] = ()
    profile: Profile = Profile.STRICT
    limits: Limits = field(default_factory=lambda: Limits(drain_s=1.0))
    trusted_proxies: Sequence[str] = ("127.0.0.0/8",)
    run: Callable[[Any], Any] = uvloop.run
    slot: str = "0"
    secrets: Mapping[tuple[str, str], bytes] = field(default_factory=dict)
    """What webhooks are signed with, by client and kind of shop."""
    countries: Path | None = None
    """A table of networks and their countries."""
    salt: Salt = field(default_factory=lambda: Salt(SALT, 0))
    clock: Clock = field(default_factory=SystemClock)
    address: tuple[str, int] = ("", 0)

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = self._socket.getsockname()[:2]
        self._is_ready = threading.Event()
        self._failure: list[BaseException] = []
        self._clients: list[Client] = []
        self._tail, self._entries = Tail(self.folder / self.slot), list[Entry]()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        assert self._is_ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for client in self._clients:
            client.socket.close()
        self._socket.close()
        assert not self._failure, self._failure

    def stop(self) -> None:
        """SIGTERM, as the process would get it, and the end of the process."""
        self.begin_to_stop()
        self._thread.join(2 * PATIENCE_S)
        assert not self._thread.is_alive(), "it does not drain"

    def begin_to_stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._stopping.set)

    def connect(self) -> Client:
        """A new client; it is closed with the port at the latest."""
        client = Client(self.address)
        self._clients.append(client)
        return client

    def ask(self, *parts: bytes) -> Heard:
        """One request on a connection of its own."""
        with self.connect() as client:
            return client.ask(*parts)

    def entries(self) -> list[Entry]:
        """All that is on disk."""
        while frames := self._tail.read_more():
            self._entries += [decode(line) for frame in frames for line in frame.lines]
        return list(self._entries)

    def number(self, sample: str) -> float:
        """A number of /metrics."""
        text = self.ask(get("/metrics")).body.decode()
        (line,) = [line for line in text.splitlines() if line.startswith(f"{sample} ")]
        return float(line.rpartition(" ")[2])

    def until(self, sample: str, wanted: float) -> None:
        """Wait until a number of /metrics is that."""
        deadline_s = time.monotonic() + PATIENCE_S
        while (number := self.number(sample)) != wanted:
            assert time.monotonic() < deadline_s, f"{sample} is {number}"

    def until_health_is(self, status: int) -> None:
        """Wait until /healthz says so; it believes its last look at the disk for a second."""
        deadline_s = time.monotonic() + PATIENCE_S
        while self.ask(get("/healthz")).status != status:
            assert time.monotonic() < deadline_s

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The loop stands still while this is open: what is sent meanwhile comes to it all at once."""
        stands, goes_on = threading.Event(), threading.Event()

        def stand() -> None:
            stands.set()
            goes_on.wait(PATIENCE_S)

        self._loop.call_soon_threadsafe(stand)
        assert stands.wait(PATIENCE_S)
        try:
            yield
        finally:
            goes_on.set()

    def is_refusing(self) -> bool:
        """Whether nobody can connect any more."""
        try:
            self.connect()
        except ConnectionRefusedError:
            return True
        return False

    def _serve(self) -> None:
        try:
            self.run(self._collect())
        except BaseException as error:
            self._failure.append(error)
            self._is_ready.set()
            raise

    async def _collect(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        accounts = Accounts(self.accounts, self.profile)
        tokens = self.folder / "order-tokens.json"
        setup = Setup(
            accounts,
            replace(self.salt),
            self.trusted_proxies,
            self.limits,
            clock=self.clock,
            tick_s=0.02,
            order_tokens=tokens,
            secrets=Secrets(self.secrets),
            countries=None if self.countries is None else CountryTable(self.countries),
        )
        journal = await Journal.open(self.folder / self.slot)
        try:
            await run_collector(journal, [self._socket], setup, stopping=self._stopping, ready=self._is_ready.set)
        finally:
            await journal.close()


class Gate:
    """Stands before the disk: closed, a sync waits; broken, it fails."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self._is_broken = False
        self._real = os.fdatasync

    @contextlib.contextmanager
    def before(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Self]:
        """It stands there while this is open."""
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", self._sync)
            try:
                yield self
            finally:
                self.open()

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def break_disk(self) -> None:
        self._is_broken = True

    def mend(self) -> None:
        self._is_broken = False

    def _sync(self, descriptor: int) -> None:
        assert self._open.wait(PATIENCE_S)
        if self._is_broken:
            raise OSError(errno.EIO, "the disk is broken")
        self._real(descriptor)

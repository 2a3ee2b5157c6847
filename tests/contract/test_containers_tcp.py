"""A container engine on another host, as its address would be: Podman's service on TCP, as it is and behind TLS."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.executors.container import ContainerExecutor
from clickclock.scheduler.jobs.trigger import ExitKind
from tests.container_engine import OPTIONS, ContainerEngine
from tests.contract.test_executors import BASE, LOG_BYTES_MAX, ContainerMember, Place

pytestmark = pytest.mark.needs("podman", "runc", "busybox")
ANSWERS_WITHIN_S = 60.0


class TcpMember(ContainerMember):
    """The engine at an address."""

    def __init__(self, folder: Path, podman: ContainerEngine, **options: Any) -> None:
        super().__init__(folder, podman)
        self._options = options

    def build(self) -> ContainerExecutor:
        return ContainerExecutor(
            name="boxes",
            data_dir=self._folder,
            node="host-1",
            log_bytes_max=LOG_BYTES_MAX,
            clock=SystemClock(),
            options={**OPTIONS, "capacity": 4, "environment": BASE, "shared": False, **self._options},
        )


@pytest.fixture(scope="module")
def port(engine_for_all: ContainerEngine) -> Iterator[int]:
    """Where the engine is on TCP, beside its socket."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    words = [*engine_for_all.podman, "system", "service", "--time=0", f"tcp://127.0.0.1:{port}"]
    service = subprocess.Popen(
        words, env=engine_for_all.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(service, port)
        yield port
    finally:
        service.terminate()
        service.wait()


def _wait_for(service: "subprocess.Popen[bytes]", port: int) -> None:
    for _ in range(int(ANSWERS_WITHIN_S / 0.05)):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            service.wait(0.05)
    raise AssertionError("the engine does not answer on TCP")


@pytest.fixture
def pem(tmp_path: Path) -> dict[str, str]:
    """A certificate that is its own authority, for the engine and for us."""
    files = {"tls_certificate": str(tmp_path / "crt"), "tls_key": str(tmp_path / "key")}
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=engine", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*made, *names, "-keyout", files["tls_key"], "-out", files["tls_certificate"]], check=True, capture_output=True
    )
    return {**files, "tls_ca": files["tls_certificate"]}


@pytest.fixture
async def tls_port(port: int, pem: dict[str, str]) -> AsyncIterator[int]:
    """The same engine behind TLS, which asks for a certificate: as Docker's own with `--tlsverify`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=pem["tls_ca"])
    context.load_cert_chain(pem["tls_certificate"], pem["tls_key"])
    context.verify_mode = ssl.CERT_REQUIRED

    relays: list[asyncio.Task[None]] = []
    server = await asyncio.start_server(
        lambda reader, writer: relays.append(asyncio.create_task(_relay(reader, writer, port))),
        "127.0.0.1", 0, ssl=context,
    )  # fmt: skip
    yield int(server.sockets[0].getsockname()[1])
    server.close()
    for each in relays:
        each.cancel()
    await asyncio.gather(*relays, return_exceptions=True)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    """Both ways, until either side hangs up."""
    theirs, ours = await asyncio.open_connection("127.0.0.1", port)
    ways = [asyncio.create_task(_pour(reader, ours)), asyncio.create_task(_pour(theirs, writer))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in (writer, ours):
            each.transport.abort()
        await asyncio.gather(*ways, return_exceptions=True)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


async def _lives(place: Place) -> None:
    """Output that comes live, an exit that is known after a restart, a stop with its grace."""
    name = await place.shell("echo began; sleep 1; echo went on; exit 7")
    await place.printed(name, b"began\n")
    await place.reopen()
    assert (await place.end(name)).code == 7
    assert await place.output(name) == b"began\nwent on\n"
    stopped = await place.start("sleep", "60")
    await place.running(stopped)
    await place.executor.stop([stopped], 1.0)
    assert (await place.end(stopped)).kind is ExitKind.STOPPED
    await place.executor.forget([name, stopped])


async def test_an_engine_on_tcp_is_one_like_any_other(
    engine_for_all: ContainerEngine, port: int, tmp_path: Path
) -> None:
    place = Place(TcpMember(tmp_path / "data", engine_for_all, engine=f"tcp://127.0.0.1:{port}"))
    await place.open()
    await _lives(place)
    await place.executor.close()


@pytest.mark.needs("openssl")
async def test_an_engine_behind_tls_knows_us_by_our_certificate(
    engine_for_all: ContainerEngine, tls_port: int, pem: dict[str, str], tmp_path: Path
) -> None:
    place = Place(TcpMember(tmp_path / "data", engine_for_all, engine=f"tcp://127.0.0.1:{tls_port}", **pem))
    await place.open()
    await _lives(place)
    await place.executor.close()


@pytest.mark.needs("openssl")
async def test_without_a_certificate_such_an_engine_is_told_as_unreachable(
    engine_for_all: ContainerEngine, tls_port: int, pem: dict[str, str], tmp_path: Path
) -> None:
    options = {"engine": f"tcp://127.0.0.1:{tls_port}", "tls_ca": pem["tls_ca"]}
    executor = TcpMember(tmp_path / "data", engine_for_all, **options).build()
    await executor.open(lambda: None)
    capacity = await executor.capacity()
    assert not capacity.reachable
    assert "does not answer" in (capacity.message or "")
    await executor.close()

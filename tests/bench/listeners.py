"""A thousand listeners on the event stream at 50 changes a second: what they cost (`python -m tests.bench listeners`).

The changes are those of groups, which cost the service the same with and without listeners: what is told is the
difference. Each listener has to get each change, once, in order.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.bench.report import Goal, Report
from tests.bench.service import Service

LISTENERS = 1000
A_SECOND = 50
SECONDS = 20
PATIENCE_S = 30.0


class Counting(asyncio.Protocol):
    """One listener: it counts the ids of what it is told, and sees that they grow."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._rest = b""
        self.ids: list[int] = []
        self.stands = asyncio.Event()
        self.news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.transport.write(f"GET /schedulerService/events?type=group HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())

    async def have(self, count: int, patience_s: float) -> None:
        """Wait for so many, but not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while len(self.ids) < count:
                    self.news.clear()
                    await self.news.wait()

    def data_received(self, data: bytes) -> None:
        if b"\nid:" in data or data.startswith(b"id:") or b"listening" in data:
            self.stands.set()
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        self.ids += [int(line[4:]) for line, after in pairwise(lines) if _is_event(line, after)]
        self.news.set()
        if lines and lines[-1].startswith(b"id: "):
            self._rest = lines[-1] + b"\n" + self._rest


def _is_event(line: bytes, after: bytes) -> bool:
    return line.startswith(b"id: ") and after.startswith(b"data: ")


def run(folder: Path, *, quick: bool) -> Report:
    """20 seconds with and without (--quick: 5)."""
    seconds = 5 if quick else SECONDS
    report = Report(f"listeners: {LISTENERS} on the event stream, {A_SECOND} changes a second for {seconds} s")
    with Service(folder) as service:
        asyncio.run(_measure(service, seconds, report))
    return report


async def _measure(service: Service, seconds: int, report: Report) -> None:
    async with httpx.AsyncClient(base_url=service.url) as http:
        await _changes(http, 1)
        alone = await _cost(service, http, seconds)
        listeners = [await _listen(service.url) for _ in range(LISTENERS)]
        with_them = await _cost(service, http, seconds)
        wanted = A_SECOND * seconds
        until = time.monotonic() + PATIENCE_S
        for each in listeners:
            await each.have(wanted, until - time.monotonic())
        wrong = sum(len(each.ids) != wanted or each.ids != sorted(set(each.ids)) for each in listeners)
        if wrong:
            report.faults.append(f"{wrong} of {LISTENERS} listeners did not get all {wanted} events once and in order")
        for each in listeners:
            each.transport.close()
    report.add("changes a second, alone", "1/s", alone.a_second)
    report.add("changes a second, with listeners", "1/s", with_them.a_second)
    report.add("CPU of the changes alone", "ms/s", alone.ms_per_s)
    # A machine that is busy makes fewer of them in a second, and these cost less.
    of_changes = alone.ms_per_s / alone.a_second * with_them.a_second
    report.add("CPU of the listeners", "ms/s", with_them.ms_per_s - of_changes, Goal(most=100.0))


async def _listen(url: str) -> Counting:
    parts = urlsplit(url)
    _, protocol = await asyncio.get_running_loop().create_connection(
        lambda: Counting(parts.netloc), str(parts.hostname), parts.port or 80
    )
    await asyncio.wait_for(protocol.stands.wait(), PATIENCE_S)
    return protocol


@dataclass(frozen=True, slots=True)
class Cost:
    """What the service took while so many changes were made."""

    ms_per_s: float
    a_second: float


async def _cost(service: Service, http: httpx.AsyncClient, seconds: int) -> Cost:
    before_s, begun_s = service.cpu_seconds(), time.monotonic()
    await _changes(http, A_SECOND * seconds)
    took_s = time.monotonic() - begun_s
    return Cost(1000 * (service.cpu_seconds() - before_s) / took_s, A_SECOND * seconds / took_s)


async def _changes(http: httpx.AsyncClient, count: int) -> None:
    begun = time.monotonic()
    for number in range(count):
        body = {"groupName": "bench", "description": str(number)}
        answer = await http.put("/schedulerService/group", json=body)
        answer.raise_for_status()
        await asyncio.sleep(max(0.0, begun + (number + 1) / A_SECOND - time.monotonic()))

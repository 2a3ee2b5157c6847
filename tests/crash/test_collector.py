"""All that was acknowledged is in the journal exactly once, clicks and links: after kill -9 under load, and SIGTERM."""

import asyncio
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from clickclock.attribution.clicks.entry import Entry, decode
from clickclock.attribution.journal import read, segments, verify
from clickclock.attribution.journal.recovery import recover
from clickclock.attribution.registering.identification import Identification, of_query
from clickclock.foundation.clock import SystemClock

ROOT = Path(__file__).parents[2]
LIVES = 10
CLIENTS = 64
DEADLINE_S = 60.0
LENGTH = re.compile(rb"(?i)content-length: *(\d+)")


def _start(folder: Path, listening: socket.socket) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.collector_process", str(folder), str(listening.fileno())],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", *filter(None, sys.path)])},
        pass_fds=[listening.fileno()],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


Said = Callable[[str], bytes]
"""The request of a visitor."""


class _Load:
    """Clients that send request after request, two at a time, and remember which were acknowledged."""

    def __init__(self, address: tuple[str, int], life: int, said: Said) -> None:
        self._said = said
        self._address = address
        self._life = life
        self._number = 0
        self.acknowledged: list[str] = []
        self.refused: list[bytes] = []
        self.enough = asyncio.Event()
        self._wanted = 0
        self._unheard = CLIENTS
        """Of how many no answer was seen yet: they may still wait to be accepted, by whichever collector comes."""

    async def run(self, wanted: int) -> None:
        """Until the collector is gone. `enough` is set once `wanted` were acknowledged, and everybody had an answer."""
        self._wanted = wanted
        await asyncio.gather(*(self._register() for _ in range(CLIENTS)))

    async def _register(self) -> None:
        try:
            reader, writer = await asyncio.open_connection(*self._address)
        except OSError:
            return
        is_heard = False
        try:
            while True:
                pair = [self._next(), self._next()]
                writer.write(b"".join(self._said(each) for each in pair))
                for each in pair:
                    answer = await reader.readuntil(b"\r\n\r\n")
                    await reader.readexactly(int(next(iter(LENGTH.findall(answer)), 0)))
                    if not answer.startswith((b"HTTP/1.1 204 ", b"HTTP/1.1 202 ")):
                        self.refused.append(answer)
                        return
                    self.acknowledged.append(each)
                    self._unheard -= not is_heard
                    is_heard = True
                    if len(self.acknowledged) >= self._wanted and not self._unheard:
                        self.enough.set()
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            writer.close()

    def _next(self) -> str:
        self._number += 1
        return f"{self._life}-{self._number}"


def _click(click: str) -> bytes:
    event_time = SystemClock().epoch_ms()
    said = f"client_id=c&seller_id=s&asvt=v&atag=t&event_time={event_time}&cli_ubid={click}"
    return f"GET /aclick?{said} HTTP/1.1\r\nHost: h\r\n\r\n".encode()


def _identification(visitor: str) -> bytes:
    body = f'{{"client_id": "c", "customer_id": "of {visitor}", "cli_ubid": "{visitor}"}}'
    return f"POST /identify HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


async def _live(
    folder: Path, listening: socket.socket, life: int, wanted: int, number: signal.Signals, said: Said = _click
) -> _Load:
    process = await asyncio.to_thread(_start, folder, listening)
    load = _Load(listening.getsockname()[:2], life, said)
    running = asyncio.create_task(load.run(wanted))
    try:
        await asyncio.wait_for(load.enough.wait(), DEADLINE_S)
        process.send_signal(number)
        code = await asyncio.to_thread(process.wait, DEADLINE_S)
        # The listening socket is ours: what connects now would wait for the next collector.
        await asyncio.wait_for(running, DEADLINE_S)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert code == (0 if number is signal.SIGTERM else -number)
    assert load.refused == []
    return load


def _entries(folder: Path) -> list[Entry]:
    return [decode(line) for segment in segments(folder) for frame in read(segment) for line in frame.lines]


def _journaled(folder: Path) -> Counter[str]:
    return Counter(each.raw.rpartition(b"cli_ubid=")[2].decode() for each in _entries(folder))


async def test_kill_9_under_load_loses_no_click_that_was_acknowledged_and_doubles_none(tmp_path: Path) -> None:
    dice, acknowledged = random.Random(1), list[str]()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        for life in range(LIVES):
            load = await _live(tmp_path, listening, life, dice.randrange(1, 3000), signal.SIGKILL)
            acknowledged += load.acknowledged
    recover(tmp_path, 0)
    found = _journaled(tmp_path)
    assert len(acknowledged) > LIVES * 100
    assert [click for click in acknowledged if found[click] != 1] == []
    assert [click for click, count in found.items() if count > 1] == []
    assert [damage for segment in segments(tmp_path) for damage in verify(segment)] == []


async def test_kill_9_under_load_loses_no_link_of_a_visitor_and_a_customer(tmp_path: Path) -> None:
    dice, acknowledged = random.Random(2), list[str]()
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        for life in range(LIVES):
            wanted = dice.randrange(1, 600)
            load = await _live(tmp_path, listening, life, wanted, signal.SIGKILL, _identification)
            acknowledged += load.acknowledged
    recover(tmp_path, 0)
    said = [of_query(each.raw, each.received_ms) for each in _entries(tmp_path) if each.detail == b"identify"]
    links = Counter(
        link["cli_ubid"]
        for each in said
        if isinstance(each, Identification)
        for link in each.links
        if link == {"cli_ubid": each.cli_ubid, "customer_id": f"of {each.cli_ubid}"}
    )
    assert len(acknowledged) > LIVES * 10
    assert [visitor for visitor in acknowledged if links[visitor] != 1] == []
    assert [damage for segment in segments(tmp_path) for damage in verify(segment)] == []


async def test_sigterm_under_load_answers_all_that_it_keeps(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listening:
        load = await _live(tmp_path, listening, 0, 2000, signal.SIGTERM)
    found = _journaled(tmp_path)
    assert [click for click in load.acknowledged if found[click] != 1] == []
    assert sum(found.values()) == len(load.acknowledged)
    assert [segment.state for segment in segments(tmp_path)] == ["sealed"] * len(segments(tmp_path))

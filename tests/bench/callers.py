"""Callers of `POST jobTrigger`, in a process of their own: cheap, for they share the cores with the service.

Never parses an answer beyond its status and length. Run as a program; prints one JSON object to stdout:
`{"sent": {label: ns since 1970}, "last_answer": ns, "refused": [first lines of answers that are no 201]}`.

python -m tests.bench.callers HOST PORT APPLICATION JOB COUNT CALLERS [STAMPS]
With STAMPS, a file, each caller waits after each call until that file is a line longer: one at a time, end to end.
The variable CLICKCLOCK_TOKEN has the token that is sent, if any.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

_LINE_WAIT_S = 10.0


class Caller:
    """One caller on one kept connection."""

    def __init__(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._head = f"POST /schedulerService/jobTrigger HTTP/1.1\r\nhost: {host}:{port}\r\n"
        if token := os.environ.get("CLICKCLOCK_TOKEN"):
            self._head += f"authorization: Bearer {token}\r\n"

    async def trigger(self, body: bytes) -> str:
        """Send one request; returns the first line of its answer."""
        head = f"{self._head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        await self._reader.readexactly(int(length))
        return answer.partition(b"\r\n")[0].decode()


async def call(host: str, port: int, job: dict[str, str], count: int, callers: int, stamps: Path | None) -> None:
    """Trigger `count` times from `callers` callers at once, and print what happened."""
    labels = iter(range(count))
    sent: dict[str, int] = {}
    refused: list[str] = []

    async def work() -> None:
        caller = Caller(host, port, *await asyncio.open_connection(host, port))
        for number in labels:
            label = str(number)
            size = _size(stamps) if stamps else 0
            body = json.dumps({**job, "parameters": {"n": label}}).encode()
            sent[label] = time.time_ns()
            status = await caller.trigger(body)
            if " 201 " not in status:
                refused.append(status)
            elif stamps is not None:
                await _longer(stamps, size)

    await asyncio.gather(*(work() for _ in range(callers)))
    print(json.dumps({"sent": sent, "last_answer": time.time_ns(), "refused": refused[:10]}))


async def _longer(stamps: Path, size: int) -> None:
    until = time.monotonic() + _LINE_WAIT_S
    while _size(stamps) <= size and time.monotonic() < until:  # noqa: ASYNC110 - the job is another process
        await asyncio.sleep(0.0005)


def _size(stamps: Path) -> int:
    return stamps.stat().st_size


if __name__ == "__main__":
    _host, _port, _application, _job, _count, _callers, *_stamps = sys.argv[1:]
    asyncio.run(
        call(
            _host,
            int(_port),
            {"application": _application, "jobName": _job},
            int(_count),
            int(_callers),
            Path(_stamps[0]) if _stamps else None,
        )
    )

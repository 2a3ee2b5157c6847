"""A collector as a process that can be killed: `python -m tests.crash.collector_process FOLDER DESCRIPTOR`.

Says `ready` when it answers. Never ends by itself but by SIGTERM, for which it drains.
"""

import asyncio
import logging
import signal
import socket
import sys
from pathlib import Path

import uvloop

from clickclock.attribution.api.server import Setup, run_collector
from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.clicks.address import Salt
from clickclock.attribution.journal import Journal

SEGMENT_BYTES = 2**20


async def _collect(folder: Path, listening: socket.socket) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    journal = await Journal.open(folder, segment_bytes=SEGMENT_BYTES, taken_wait_s=10)
    setup = Setup(Accounts(), Salt(b"salt", 0))
    await run_collector(journal, [listening], setup, stopping=stopping, ready=_say_ready)
    await journal.close()


def _say_ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.basicConfig()
    uvloop.run(_collect(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))))

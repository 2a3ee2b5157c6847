"""The collector as the click benchmark runs it: `python -m tests.bench.collector FOLDER PORT SYNC_S`.

SYNC_S seconds are added to every sync of the disk. Says `ready`, and drains on SIGTERM.
"""

import asyncio
import os
import signal
import socket
import sys
import time
from pathlib import Path

import uvloop

from clickclock.attribution.api.server import Setup, run_collector
from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.clicks.address import Salt
from clickclock.attribution.journal import Journal


async def collect(folder: Path, listening: socket.socket) -> None:
    """Until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    journal = await Journal.open(folder)
    setup = Setup(Accounts(), Salt(b"salt", 0))
    await run_collector(journal, [listening], setup, stopping=stopping, ready=lambda: print("ready", flush=True))
    await journal.close()


def slow_down(seconds: float) -> None:
    """Let the disk take so much longer."""
    real = os.fdatasync

    def fdatasync(descriptor: int) -> None:
        time.sleep(seconds)
        real(descriptor)

    os.fdatasync = fdatasync  # type: ignore[assignment]  # it takes what the real one takes from us


if __name__ == "__main__":
    if seconds := float(sys.argv[3]):
        slow_down(seconds)
    uvloop.run(collect(Path(sys.argv[1]), socket.create_server(("127.0.0.1", int(sys.argv[2])), backlog=4096)))

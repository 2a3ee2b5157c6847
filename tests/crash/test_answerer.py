"""The process that answers questions, when the service that started it is killed."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_MS = 60_000
SERVICE = """
import asyncio
import signal
from clickclock.attribution.api.query_process import Asker

async def serve() -> None:
    asker = Asker(signal.pause, asyncio.Event())
    asking = asyncio.create_task(asker.ask("versions", 1))
    while asker._process is None:
        await asyncio.sleep(0)
    print(asker._process.pid, flush=True)
    await asking

asyncio.run(serve())
"""


def test_it_does_not_outlive_a_service_that_is_killed_whatever_it_is_computing() -> None:
    with subprocess.Popen([sys.executable, "-c", SERVICE], cwd=ROOT, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        answerer = os.pidfd_open(int(service.stdout.readline()))
        service.send_signal(signal.SIGKILL)
    ended = select.poll()
    ended.register(answerer, select.POLLIN)
    assert ended.poll(DEADLINE_MS)
    os.close(answerer)

"""The real application over a real engine, whose loops do not run: a test calls `step()` where it wants one.

Never listens on a port. Invariant: the clock stands still until a test moves it.
"""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.api import create_app
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.executors.process import ProcessExecutor
from clickclock.scheduler.store import Store
from tests.agents.scripted import ScriptedTarget

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
BASE = "http://127.0.0.1/schedulerService/"
JOB = {"application": "shop", "jobName": "export", "command": "python export.py", "preemption": False}
SCHEDULE = {"application": "shop", "jobName": "export", "expression": "30 2 * * *", "timeZone": "Europe/Berlin"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def engine(tmp_path: Path, clock: ManualClock, store_url: Callable[[str], str]) -> AsyncIterator[Engine]:
    store = await Store.open(store_url("sqlite"))
    executor = ProcessExecutor(
        name="local",
        data_dir=tmp_path,
        node="node-1",
        slots=10,
        log_bytes_max=2**20,
        base_environment={"PATH": "/usr/bin:/bin"},
        clock=clock,
    )
    engine = Engine(
        store, clock, {"local": executor}, node="node-1", version="0.1.0", targets={"ops": ScriptedTarget()}
    )
    yield engine
    await store.close()


@pytest.fixture
async def http(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(engine))
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        yield client


@pytest.fixture
async def job(http: httpx.AsyncClient) -> None:
    assert (await http.post("job", json=JOB)).status_code == 201

"""`overlapPolicy: replace` under `kill -9` of the service and of the supervisor: never two copies of a job at once.

The copies themselves tell: each holds a lock for as long as it or anything that it started is there, and says so when
it finds that another holds it.
"""

import asyncio
import os
import random
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.acceptance.service import Service, running
from tests.crash.test_supervisor import until
from tests.ports import free_port

KILLS = 6
SCRIPT = """
exec 9>>{folder}/lock
flock --nonblock 9 || echo two at once >> {folder}/marks
echo begun >> {folder}/marks
trap 'sleep 0.3; exit 0' TERM
while :; do sleep 0.05; done
"""
"""A copy that is asked to end takes its time, so that the next is due meanwhile."""


def _marks(folder: Path) -> list[str]:
    marks = folder / "marks"
    return marks.read_text(encoding="ascii").splitlines() if marks.exists() else []


async def _go_on(folder: Path, more: int) -> None:
    """Wait until so many further copies have begun."""
    before = len(_marks(folder))

    async def have_begun() -> bool:
        return len(_marks(folder)) >= before + more

    await until(have_begun)


async def _declare(service: Service, script: str) -> None:
    async with httpx.AsyncClient(base_url=f"{service.url}/schedulerService/") as http:
        job = {"application": "a", "jobName": "j", "command": script, "shell": True, "gracePeriodSeconds": 5}
        assert (await http.put("job", json=job)).status_code == 201
        every_second = {"application": "a", "jobName": "j", "kind": "cron", "expression": "* * * * * *"}
        response = await http.post("schedules", json=every_second | {"overlapPolicy": "replace"})
        assert response.status_code == 201, response.text


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_copies_that_are_replaced_never_run_two_at_once_whoever_is_killed(
    kind: str, blank_url: Callable[[str], str], tmp_path: Path
) -> None:
    data_dir, folder, port = tmp_path / "data", tmp_path / "marks", free_port()
    folder.mkdir()
    options = ["--database-url", blank_url(kind)]
    chance = random.Random(kind)
    with ExitStack() as stack:
        service = await asyncio.to_thread(stack.enter_context, running(data_dir, *options, port=port))
        await _declare(service, SCRIPT.format(folder=folder))
        for kill in range(KILLS):
            await _go_on(folder, 2)
            await asyncio.wait([asyncio.create_task(_beside(chance.random()))])
            if kill % 3 != 1:
                os.kill(int((data_dir / "supervisor" / "lock").read_text(encoding="ascii")), signal.SIGKILL)
            if kill % 3 != 0:
                await asyncio.to_thread(service.kill)
                service = await asyncio.to_thread(stack.enter_context, running(data_dir, *options, port=port))
        await _go_on(folder, 3)
        async with httpx.AsyncClient(base_url=f"{service.url}/schedulerService/") as http:
            response = await http.delete("job", params={"application": "a", "jobName": "j", "force": "true"})
            assert response.status_code < 300, response.text

        async def is_free() -> bool:
            process = await asyncio.create_subprocess_exec("flock", "--nonblock", str(folder / "lock"), "true")
            return await process.wait() == 0

        await until(is_free)
    marks = _marks(folder)
    assert set(marks) == {"begun"}
    assert len(marks) >= 2 * KILLS


async def _beside(share: float) -> None:
    """Some moment of the next second, so that not every kill meets the same step."""
    never = asyncio.Event()
    try:
        async with asyncio.timeout(share):
            await never.wait()
    except TimeoutError:
        return

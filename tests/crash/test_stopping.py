"""The service stops, or is killed together with its supervisor: what becomes of the jobs that run."""

import os
import signal
from pathlib import Path

import httpx

from clickclock.scheduler.jobs.trigger import State
from tests.crash.ground import Ground, Mark, true_code, until


async def with_two_running(ground: Ground, **settings: object) -> dict[str, Mark]:
    """Start a service with two running jobs: `waits` ends when the file `go` is there, `sleeps` when it is stopped."""
    ground.config.update(settings)
    wait = f'while [ ! -e {ground.folder / "go"} ]; do sleep 0.05; done; exit "$code"'
    await ground.prepare([ground.job("waits", wait), ground.job("sleeps", "exec sleep 60")], lambda now: [])
    ground.start()
    async with httpx.AsyncClient(base_url=await ground.ready(), timeout=60) as client:
        for job_name in ("waits", "sleeps"):
            answer = await client.post("/jobTrigger", json={"application": "crash", "jobName": job_name})
            assert answer.status_code == 201

    async def both() -> bool:
        return len(ground.marks()) == 2 and {row.state for row in ground.rows()} == {State.RUNNING}

    await until(both, "both jobs run")
    names = {row.trigger_id: row.job_name for row in ground.rows()}
    return {names[mark.trigger_id]: mark for mark in ground.marks()}


async def state_of(ground: Ground, mark: Mark, state: State) -> None:
    """Wait until a trigger has that state."""

    async def there() -> bool:
        return any(row.trigger_id == mark.trigger_id and row.state == state for row in ground.rows())

    await until(there, f"{mark.trigger_id} is {state}")


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_a_clean_stop_leaves_jobs_running_and_the_next_start_adopts_them(ground: Ground) -> None:
    marks = await with_two_running(ground)
    assert await ground.end(signal.SIGTERM) == 0
    assert runs(marks["waits"].pid)
    assert runs(marks["sleeps"].pid)
    ground.start()
    address = await ground.ready()
    (ground.folder / "go").touch()
    await state_of(ground, marks["waits"], State.FAILED if true_code(marks["waits"].trigger_id) else State.SUCCEEDED)
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        answer = await client.delete("/jobTrigger", params={"triggerId": marks["sleeps"].trigger_id})
        assert answer.status_code == 202
    await state_of(ground, marks["sleeps"], State.CANCELLED)
    rows = {row.trigger_id: row for row in ground.rows()}
    assert rows[marks["waits"].trigger_id].exit_code == true_code(marks["waits"].trigger_id)
    assert {row.attempt for row in rows.values()} == {1}
    assert len(ground.marks()) == 2


async def test_a_job_that_ends_while_the_service_is_away_is_known_afterwards(ground: Ground) -> None:
    marks = await with_two_running(ground)
    await ground.end(signal.SIGTERM)
    (ground.folder / "go").touch()

    async def gone() -> bool:
        return not runs(marks["waits"].pid)

    await until(gone, "the job has ended")
    ground.start()
    await state_of(ground, marks["waits"], State.FAILED if true_code(marks["waits"].trigger_id) else State.SUCCEEDED)
    (row,) = [row for row in ground.rows() if row.trigger_id == marks["waits"].trigger_id]
    assert row.exit_code == true_code(row.trigger_id)


async def test_with_stop_jobs_a_clean_stop_ends_and_concludes_them(ground: Ground) -> None:
    marks = await with_two_running(ground, stop_jobs=True)
    assert await ground.end(signal.SIGTERM) == 0
    assert ground.living() == []
    assert {row.state for row in ground.rows()} == {State.CANCELLED}
    assert not any(runs(mark.pid) for mark in marks.values())


async def test_when_service_and_supervisor_die_together_jobs_live_on_and_are_adopted_once(ground: Ground) -> None:
    marks = await with_two_running(ground)
    ground.kill_supervisor()
    assert await ground.end(signal.SIGKILL) == -signal.SIGKILL
    ground.start()
    address = await ground.ready()
    assert runs(marks["waits"].pid)
    assert runs(marks["sleeps"].pid)
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        await client.delete("/jobTrigger", params={"triggerId": marks["sleeps"].trigger_id})
    await state_of(ground, marks["sleeps"], State.CANCELLED)
    # Only the parent of a process learns its exit code, and that was the supervisor: it is lost, and said to be.
    (ground.folder / "go").touch()
    await state_of(ground, marks["waits"], State.LOST)
    assert len(ground.marks()) == 2
    assert {row.attempt for row in ground.rows()} == {1}
    assert "exit is unknown" in next(row.message for row in ground.rows() if row.state == State.LOST)


async def test_the_death_of_the_supervisor_alone_is_noticed_and_another_goes_on(ground: Ground) -> None:
    marks = await with_two_running(ground)
    ground.kill_supervisor()

    async def another_runs_it() -> bool:
        async with httpx.AsyncClient(base_url=ground.address, timeout=60) as client:
            answer = await client.post(
                "/jobTrigger", json={"application": "crash", "jobName": "waits", "idempotencyKey": "after"}
            )
        return answer.status_code in {200, 201} and len(ground.marks()) == 3

    await until(another_runs_it, "another job runs")
    (ground.folder / "go").touch()
    fresh = ground.marks()[-1]
    await state_of(ground, fresh, State.FAILED if true_code(fresh.trigger_id) else State.SUCCEEDED)
    os.kill(marks["sleeps"].pid, 0)
    assert len(ground.marks()) == 3

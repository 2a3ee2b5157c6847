"""kill -9 while starts are held for their moment: they were planned ahead, handed over, and have not begun."""

import signal
from datetime import timedelta

import pytest

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.jobs.trigger import LIVE, State
from clickclock.scheduler.times.schedule import Schedule
from tests.crash.ground import Ground, until
from tests.crash.storm import clear_up

SCHEDULES = 10
MARGIN = timedelta(seconds=0.15)
ON_ITS_WAY = {*LIVE, State.QUEUED}


def every_second(number: int) -> Schedule:
    return Schedule.model_validate(
        {
            "application": "crash",
            "jobName": "short",
            "scheduleId": str(number),
            "kind": "interval",
            "expression": "1",
            "overlapPolicy": "allow",
            "catchUp": {"policy": "all", "maxTriggers": 1000},
        }
    )


async def only_held_starts(ground: Ground) -> set[str]:
    """Wait until the supervisor holds attempts, and nothing else is on its way; returns the triggers of those."""
    held: set[str] = set()

    async def is_so() -> bool:
        held.clear()
        held.update(ground.held())
        soon = SystemClock().now() + MARGIN
        return bool(held) and all(row.due_time > soon for row in ground.rows() if row.state in ON_ITS_WAY)

    await until(is_so, "attempts that wait for their moment")
    return held


@pytest.mark.parametrize("service_dies", [True, False], ids=["with the service", "alone"])
async def test_what_a_supervisor_held_when_it_died_runs_once_and_no_exit_is_unknown(
    ground: Ground, service_dies: bool
) -> None:
    began = await ground.prepare([ground.job("short")], lambda now: [every_second(n) for n in range(SCHEDULES)])
    service = ground.start()
    await ground.ready()
    await only_held_starts(ground)
    if service_dies:
        service.send_signal(signal.SIGKILL)
    ground.kill_supervisor()
    await ground.end(signal.SIGKILL if service_dies else signal.SIGTERM)
    tally = await clear_up(ground, SCHEDULES, began)
    assert {row.message for row in ground.rows() if row.state == State.LOST} == set()
    assert tally.faults == []


async def test_what_is_held_starts_in_its_moment_although_the_service_died(ground: Ground) -> None:
    began = await ground.prepare([ground.job("short")], lambda now: [every_second(n) for n in range(SCHEDULES)])
    ground.start()
    await ground.ready()
    held = await only_held_starts(ground)
    await ground.end(signal.SIGKILL)

    async def all_ran() -> bool:
        return held <= {mark.trigger_id for mark in ground.marks()}

    await until(all_ran, "all that was held, without a service")
    tally = await clear_up(ground, SCHEDULES, began)
    assert tally.faults == []
    assert {row.attempt for row in ground.rows() if row.trigger_id in held} == {1}

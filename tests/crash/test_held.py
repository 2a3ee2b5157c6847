"""kill -9 while starts are held for their moment: they were planned ahead, handed over, and have not begun."""

import signal
from datetime import timedelta

import pytest

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.schedule import Schedule
from clickclock.scheduler.trigger import LIVE, State
from tests.crash.ground import Ground, until
from tests.crash.storm import clear_up

SCHEDULES = 10
MARGIN = timedelta(seconds=0.15)


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
    """Wait until attempts have been handed over whose moment is still to come, and nothing else is on its way.

    Returns their triggers. What has just been claimed is handed over a moment later: so they were seen the look before.
    """
    looks: list[set[str]] = [set()]

    async def is_so() -> bool:
        soon = SystemClock().now() + MARGIN
        live = [row for row in ground.rows() if row.state in LIVE or row.state == State.QUEUED]
        looks.append({row.trigger_id for row in live if row.state == State.STARTING})
        return bool(looks[-2] & looks[-1]) and all(row.due_time > soon for row in live)

    await until(is_so, "attempts that wait for their moment")
    return looks[-2] & looks[-1]


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

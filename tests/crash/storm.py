"""A storm: `kill -9` again and again while 20 jobs a second come due, and the count afterwards.

Never asserts anything: the tests do, and the benchmark prints. Invariant: every nominal time up to the last start of
the service is counted, none is left out because it came in a bad moment.
"""

import asyncio
import random
import signal
from datetime import datetime, timedelta

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.times.schedule import Schedule
from tests.crash.ground import Ground, Tally, until

SCHEDULES = 20
"""One second each: together 20 fires a second."""


async def storm(ground: Ground, kills: int, *, alive_s: tuple[float, float] = (0.1, 1.2), seed: int = 1) -> Tally:
    """Kill the service `kills` times, each time after a random moment of its life; then let it finish, and count."""
    dice = random.Random(seed)
    began = await gather_clouds(ground, SCHEDULES)
    for _ in range(kills):
        ground.start()
        if dice.random() < 0.8:
            await ground.ready()  # otherwise it dies while it still starts
        await asyncio.sleep(dice.uniform(*alive_s))
        await ground.end(signal.SIGKILL)
    return await clear_up(ground, SCHEDULES, began)


async def gather_clouds(ground: Ground, schedules: int) -> datetime:
    """Schedules that fire every second, all made up for when missed; every fourth runs on for a while."""
    jobs = [ground.job("short"), ground.job("long", 'sleep 0.7; exit "$code"')]
    return await ground.prepare(jobs, lambda now: [_every_second(number) for number in range(schedules)])


async def clear_up(ground: Ground, schedules: int, began: datetime) -> Tally:
    """Start the service once more, let all that was due by then come to its end, and count."""
    ground.start()
    await ground.ready()
    last = SystemClock().now()
    expected = [
        (str(number), began + timedelta(seconds=second))
        for number in range(schedules)
        for second in range(1, int((last - began).total_seconds()) + 1)
    ]
    await _let_it_finish(ground, expected)
    return ground.tally(expected)


async def _let_it_finish(ground: Ground, expected: list[tuple[str, datetime]]) -> None:
    """Wait until all that was due is there, then plan nothing more, and wait until all has ended."""

    async def all_there() -> bool:
        there = {(row.schedule_id, row.nominal_time) for row in ground.rows()}
        return there.issuperset(expected)

    await until(all_there, f"{len(expected)} due times with a row")
    ground.forget_schedules()
    await ground.settled(len(expected))
    await ground.end(signal.SIGTERM)


def _every_second(number: int) -> Schedule:
    return Schedule.model_validate(
        {
            "application": "crash",
            "jobName": "short" if number % 4 else "long",
            "scheduleId": str(number),
            "kind": "interval",
            "expression": "1",
            "overlapPolicy": "allow",
            "catchUp": {"policy": "all", "maxTriggers": 1000},
        }
    )

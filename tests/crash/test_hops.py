"""kill -9 of the real service at each numbered hop of the journey (ARCHITECTURE.md), on both stores.

After each death the service starts again on the same data folder. Then: every due time has one row and ran once, every
exit code is the true one, nothing is left running. Each test is one place to die; its name says where.
"""

import signal
from datetime import datetime, timedelta

import pytest

from clickclock.foundation.record import rfc3339
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.times.schedule import Schedule
from tests.crash.ground import Ground
from tests.crash.mortal import Death
from tests.crash.storm import clear_up, gather_clouds

SERVICE = "clickclock.scheduler"
EXECUTOR = f"{SERVICE}.executors.process:ProcessExecutor"
TIMES = 12
EVERY_MS = 60
LONG = 5

# However slow the machine: these calls come, even if all is overdue and goes in one batch.
HOPS = {
    "1 before the planner looks": Death(f"{SERVICE}.agents.planner:Planner.step"),
    "2 after the due schedules are claimed": Death(f"{SERVICE}.agents.planner:decide_due", nth=3),
    "3 after the decision": Death(f"{SERVICE}.agents.planner:decide_due", "after", nth=4),
    "4 before the triggers are committed": Death(f"{SERVICE}.store.queue:plan", "after"),
    "4 after the triggers are committed": Death(f"{SERVICE}.store.queue:Queue.plan", "after"),
    "5 before the claim is committed": Death(f"{SERVICE}.store.queue:claim", "after", nth=2),
    "5 after the claim is committed": Death(f"{EXECUTOR}.start", worth_of=1),
    "6 before the start is acknowledged": Death(f"{SERVICE}.executors.process:_Line._answered", nth=2),
    "6 after the attempts are started": Death(f"{EXECUTOR}.start", "after", worth_of=1),
    "7 before an exit is heard": Death(f"{EXECUTOR}._hear", nth=3),
    "7 after an exit is observed": Death(f"{EXECUTOR}.observe", "after", nth=4),
    "7 before an attempt is marked as running": Death(f"{SERVICE}.store.queue:Queue.mark_running"),
    "7 after an attempt is marked as running": Death(f"{SERVICE}.store.queue:Queue.mark_running", "after"),
    "8 after the conclusion": Death(f"{SERVICE}.store.concluding:conclude", "after", nth=2),
    "9 before the conclusion is committed": Death(f"{SERVICE}.store.queue:finish", "after"),
    "9 after the conclusion is committed": Death(f"{SERVICE}.store.queue:Queue.finish", "after"),
    "9 after the exit is forgotten": Death(f"{EXECUTOR}.forget", "after"),
}


def once(number: int, at: datetime) -> Schedule:
    """A schedule for one moment: every other one allows overlap, every fifth runs on for a while."""
    return Schedule.model_validate(
        {
            "application": "crash",
            "jobName": "short" if number % LONG else "long",
            "scheduleId": str(number),
            "kind": "once",
            "expression": rfc3339(at),
            "overlapPolicy": "allow" if number % 2 else "skip",
        }
    )


async def prepare(ground: Ground) -> list[tuple[str, datetime]]:
    """Jobs that end at once and jobs that run on through the death; the times at which they are due."""
    now = await ground.prepare(_jobs(ground), lambda now: [once(number, _due(now, number)) for number in range(TIMES)])
    return [(str(number), _due(now, number)) for number in range(TIMES)]


def _jobs(ground: Ground) -> list[Job]:
    """One with a cap, whose triggers are queued and claimed, and one whose triggers are taken as they are planned."""
    return [ground.job("short", maxConcurrentTriggers=100), ground.job("long", 'sleep 1; exit "$code"')]


def _due(now: datetime, number: int) -> datetime:
    """The service needs about half a second to come up: some times are overdue by then, and most come one by one."""
    return now + timedelta(milliseconds=10 + number if number < 2 else 400 + number * EVERY_MS)


@pytest.mark.parametrize("hop", HOPS)
async def test_a_death_at_this_hop_loses_nothing_and_doubles_nothing(ground: Ground, hop: str) -> None:
    expected = await prepare(ground)
    ground.start(HOPS[hop])
    assert await ground.died() == -signal.SIGKILL
    before = {mark.trigger_id: mark.pid for mark in ground.marks() if mark.pid in ground.living()}
    ground.start()
    await ground.ready()
    await ground.settled(TIMES)
    tally = ground.tally(expected)
    assert tally.faults == []
    assert tally.runs == TIMES
    assert {mark.trigger_id: mark.pid for mark in ground.marks() if mark.trigger_id in before} == before
    assert {row.attempt for row in ground.rows()} == {1}
    assert await ground.end(signal.SIGTERM) == 0
    assert ground.living() == []


async def test_a_death_at_every_hop_one_after_the_other(ground: Ground) -> None:
    """Each life meets what the death before left behind, and dies at the next hop."""
    schedules = len(HOPS)  # so that one second of them all is enough, however quick the lives are
    began = await gather_clouds(ground, schedules)
    for hop in HOPS.values():
        ground.start(Death(hop.target, hop.moment, 1, hop.worth_of))
        assert await ground.died() == -signal.SIGKILL
    tally = await clear_up(ground, schedules, began)
    assert tally.faults == []
    assert tally.runs >= len(HOPS)

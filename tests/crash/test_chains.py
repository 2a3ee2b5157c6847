"""kill -9 of the real service between an upstream's end and its dependents, and in the middle of a preemption or pause.

After each death the service starts again on the same data folder. Then: every dependent ran once in its run, and the
preempted one came back once the urgent one had its place.
"""

import signal
from collections import Counter
from datetime import datetime, timedelta

import httpx
import pytest

from clickclock.foundation.record import rfc3339
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.times.schedule import Schedule
from tests.crash.ground import Ground, until
from tests.crash.mortal import Death

SERVICE = "clickclock.scheduler"
CHAINS = f"{SERVICE}.store.chains"
TIMES = 4
FOLLOWING = {
    "before the conclusion is committed": Death(f"{SERVICE}.store.queue:finish", "after"),
    "after the conclusion is committed": Death(f"{SERVICE}.store.queue:Queue.finish", "after"),
    "before the dependents are looked for": Death(f"{CHAINS}:_follow"),
    "after they are decided on": Death(f"{CHAINS}:_settle", "after", nth=2),
    "before their triggers are committed": Death(f"{CHAINS}:_rows", "after", nth=2, worth_of=1),
    "after their triggers are committed": Death(f"{CHAINS}:Chains._write", "after", nth=3),
}
PAUSES = f"{SERVICE}.store.pausing:Pausing.pause"
PAUSING = {
    "before the failure is committed": Death(f"{SERVICE}.store.queue:finish", "after", nth=2),
    "after the failure is committed": Death(f"{SERVICE}.store.queue:Queue.finish", "after", nth=2),
    "before the schedule is paused": Death(PAUSES),
    "after the schedule is paused": Death(PAUSES, "after"),
}
PREEMPTING = {
    "before the victim is chosen": Death(f"{SERVICE}.store.queue:preempt"),
    "before the wish is committed": Death(f"{SERVICE}.store.queue:preempt", "after"),
    "after the wish is committed": Death(f"{SERVICE}.engine:Engine.stop_attempts"),
    "before the victim is told": Death(f"{SERVICE}.executors.process:ProcessExecutor.stop"),
    "after the victim is told": Death(f"{SERVICE}.executors.process:ProcessExecutor.stop", "after"),
}


def once(number: int, at: datetime) -> Schedule:
    fields = {"application": "crash", "jobName": "first", "scheduleId": str(number), "kind": "once"}
    return Schedule.model_validate({**fields, "expression": rfc3339(at), "overlapPolicy": "allow"})


async def ask(address: str, job_name: str) -> None:
    """Have a job run; the port may need a moment yet."""
    async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=5)) as client:
        answer = await client.post(f"{address}/jobTrigger", json={"application": "crash", "jobName": job_name})
    answer.raise_for_status()


@pytest.mark.parametrize("hop", FOLLOWING)
async def test_a_death_between_an_end_and_its_dependents_loses_and_doubles_none(ground: Ground, hop: str) -> None:
    jobs = [
        ground.job("first", "exit 0"),
        ground.job("left", "exit 0", dependsOn=["first"]),
        ground.job("right", "exit 0", dependsOn=["first"]),
        ground.job("last", "exit 0", dependsOn=["left", "right"]),
    ]
    await ground.prepare(
        jobs, lambda now: [once(number, now + timedelta(milliseconds=600 + 60 * number)) for number in range(TIMES)]
    )
    ground.start(FOLLOWING[hop])
    assert await ground.died() == -signal.SIGKILL
    ground.start()
    await ground.ready()
    await ground.settled(4 * TIMES)
    rows, marks = ground.rows(), Counter(mark.trigger_id for mark in ground.marks())
    assert {row.state for row in rows} == {State.SUCCEEDED}
    assert Counter(row.job_name for row in rows) == dict.fromkeys(("first", "left", "right", "last"), TIMES)
    assert marks == {row.trigger_id: 1 for row in rows}
    assert await ground.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("hop", FOLLOWING)
async def test_a_death_between_a_failure_and_those_that_await_it_loses_and_doubles_none(
    ground: Ground, hop: str
) -> None:
    """The alarm and the clean-up run once for each time, the work below is skipped once, and so on down."""
    either = [{"jobName": name, "when": "anySucceeded"} for name in ("first", "alarm")]
    jobs = [
        ground.job("first", "exit 1"),
        ground.job("load", "exit 0", dependsOn=["first"]),
        ground.job("alarm", "exit 0", dependsOn=[{"jobName": "first", "when": "failed"}]),
        ground.job("clean", "exit 0", dependsOn=[{"jobName": "load", "when": "finished"}]),
        ground.job("last", "exit 0", dependsOn=either),
    ]
    await ground.prepare(
        jobs, lambda now: [once(number, now + timedelta(milliseconds=600 + 60 * number)) for number in range(TIMES)]
    )
    ground.start(FOLLOWING[hop])
    assert await ground.died() == -signal.SIGKILL
    ground.start()
    await ground.ready()
    await ground.settled(5 * TIMES)
    rows, marks = ground.rows(), Counter(mark.trigger_id for mark in ground.marks())
    assert Counter((row.job_name, row.state, row.skip_reason) for row in rows) == {
        ("first", State.FAILED, None): TIMES,
        ("load", State.SKIPPED, "upstreamFailed"): TIMES,
        ("alarm", State.SUCCEEDED, None): TIMES,
        ("clean", State.SUCCEEDED, None): TIMES,
        ("last", State.SUCCEEDED, None): TIMES,
    }
    assert marks == {row.trigger_id: 1 for row in rows if row.state != State.SKIPPED}
    assert await ground.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("hop", PREEMPTING)
async def test_a_death_in_the_middle_of_a_preemption_loses_neither(ground: Ground, hop: str) -> None:
    ground.config["process_slots"] = 1
    batch = ground.job("batch", 'test "$CLICKCLOCK_ATTEMPT" -gt 1 || exec sleep 60', preemption=True, priority=10)
    await ground.prepare([batch, ground.job("urgent", "exit 0", priority=90)], lambda _: [])
    ground.start(PREEMPTING[hop])
    address = await ground.ready()
    await ask(address, "batch")

    async def runs() -> bool:
        return len(ground.marks()) == 1

    await until(runs, "the batch job runs")
    await ask(address, "urgent")
    assert await ground.died() == -signal.SIGKILL
    ground.start()
    await ground.ready()
    await ground.settled(2)
    first, second = ground.rows()
    assert (first.state, first.preemption_count, first.preempted_by) == (State.SUCCEEDED, 1, second.trigger_id)
    assert (first.attempt, second.attempt, second.state) == (2, 1, State.SUCCEEDED)
    assert Counter((mark.trigger_id, mark.attempt) for mark in ground.marks()) == {
        (first.trigger_id, 1): 1,
        (second.trigger_id, 1): 1,
        (first.trigger_id, 2): 1,
    }
    assert await ground.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("hop", PAUSING)
async def test_a_death_around_a_pause_after_failures_pauses_once_and_fires_nothing_more(
    ground: Ground, hop: str
) -> None:
    job = ground.job("failing", "exit 1")
    fields = {"application": "crash", "jobName": "failing", "scheduleId": "s", "kind": "interval", "expression": "PT1S"}
    every_second = Schedule.model_validate({**fields, "pauseAfterFailures": 2})
    await ground.prepare([job], lambda _: [every_second])
    ground.start(PAUSING[hop])
    assert await ground.died() == -signal.SIGKILL
    ground.start()
    address = await ground.ready()

    async def is_paused() -> bool:
        async with httpx.AsyncClient() as client:
            (found,) = (await client.get(f"{address}/schedules")).json()["schedules"]
        return bool(found["paused"]) and found["version"] == 2

    await until(is_paused, "the schedule is paused, once")
    ran = {row.trigger_id for row in ground.rows() if row.state != State.SKIPPED}

    async def skips() -> bool:
        return any(row.skip_reason == "paused" for row in ground.rows())

    await until(skips, "its times are skipped")
    later = {row.trigger_id for row in ground.rows() if row.state != State.SKIPPED} - ran
    assert len(later) <= 1, "one may have been planned ahead of the pause"
    assert Counter(mark.trigger_id for mark in ground.marks()) == dict.fromkeys(ran | later, 1)
    assert await ground.end(signal.SIGTERM) == 0

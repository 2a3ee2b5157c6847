"""The schedules of runs, as far as commands ask about them: planned, claimed, run by hand, and handed over again."""

from typing import Any

from clickclock.scheduler.agents.planner import decide_due
from clickclock.scheduler.jobs.trigger import parse_attempt_name
from clickclock.scheduler.store import Store, Taker
from tests.stores import LEASE, NODE, add_job, add_schedule, at, claim, plan, queue

COMMAND = "echo {{ zone }} {{ previousNominalTime | date('%H:%M') }} {{ nominalTime | date('%H:%M') }}"
IN_BERLIN: dict[str, Any] = {"expression": "*/5 * * * *", "time_zone": "Europe/Berlin", "overlap_policy": "allow"}


async def test_a_planned_run_asks_its_own_schedule_taken_or_claimed(store: Store) -> None:
    await add_job(store, command=COMMAND, environment={"NEXT": "{{ nextNominalTime }}"})
    await add_schedule(store, **IN_BERLIN)
    await add_schedule(store, "other", time_zone="UTC", expression="0 0 1 1 *")
    taker = Taker("local", NODE, LEASE, 1000, 100)
    (taken,) = (await store.queue.plan(at(300), 100, decide_due, at(360), taker)).launches
    assert taken.argv == ("echo", "Europe/Berlin", "11:00", "11:05")
    assert taken.environment["NEXT"] == "2026-11-20T10:10:00.000Z"
    again, unstartable = await store.queue.relaunch(LEASE, [taken.name])
    assert ([each.argv for each in again], unstartable) == ([taken.argv], {})
    await plan(store, at(600))
    (claimed,) = (await claim(store, at(600))).launches
    assert claimed.argv == ("echo", "Europe/Berlin", "11:05", "11:10")


async def test_a_run_by_hand_asks_the_only_schedule_of_its_job(store: Store) -> None:
    await add_job(store, command=COMMAND)
    await add_schedule(store, **IN_BERLIN)
    await queue(store, now=at(60))
    (launch,) = (await claim(store, at(60))).launches
    assert launch.argv == ("echo", "Europe/Berlin", "11:00", "11:01")


async def test_a_run_that_has_no_such_schedule_ends_with_a_sentence_and_holds_up_no_other(store: Store) -> None:
    await add_job(store, command=COMMAND)
    await add_job(store, "two", command="echo {{ zone }}")
    await add_job(store, "plain", command="echo {{ nominalTime | date('%F %H') }}")
    await add_schedule(store, "berlin", job_name="two", time_zone="Europe/Berlin", expression="0 0 1 1 *")
    await add_schedule(store, "utc", job_name="two", expression="0 0 1 1 *")
    ids = {await queue(store, name): name for name in ("export", "two", "plain")}
    claimed = await claim(store)
    assert [each.argv for each in claimed.launches] == [("echo", "2026-11-20 10")]
    told = {ids[parse_attempt_name(name)[0]]: why for name, why in claimed.unstartable}
    assert told == {
        "export": "The template {{ previousNominalTime | date('%H:%M') }} has no value: the job has no schedule; "
        "give one by | default('2026-01-01T00:00:00Z').",
        "two": "The template {{ zone }} has no value: the job has schedules in several zones, and the run is of none "
        "of them; name the zone, such as 'Europe/Berlin'.",
    }


async def test_a_run_whose_schedule_was_deleted_says_so(store: Store) -> None:
    await add_job(store, command="echo {{ zone }}")
    await add_schedule(store)
    await plan(store, at(60))
    await store.schedules.delete("s", at(61))
    ((_, why),) = (await claim(store, at(62))).unstartable
    assert why == (
        "The template {{ zone }} has no value: its schedule has been deleted; name the zone, such as 'Europe/Berlin'."
    )

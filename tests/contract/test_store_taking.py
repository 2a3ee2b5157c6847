"""Planned triggers that nothing can hold up are taken as they are written; all others are queued."""

from datetime import timedelta
from typing import Any

import pytest

from clickclock.scheduler.backfill import Backfill, count_times
from clickclock.scheduler.event import EVERYTHING
from clickclock.scheduler.planner import decide_due
from clickclock.scheduler.store import Planned, Store, Taker
from clickclock.scheduler.trigger import ExitKind, Kind, State
from tests.stores import LEASE, NODE, add_job, add_schedule, at, claim, ended, finish, group, queue, schedule, triggers

FAR = 2**53


async def plan(store: Store, seconds: float = 60, *, slots: int = 1000, most: int = 100) -> Planned:
    """Plan what is due, for a replica that starts what it plans."""
    taker = Taker("local", NODE, LEASE, slots, most)
    return await store.queue.plan(at(seconds), 100, decide_due, at(seconds) + timedelta(minutes=1), taker)


async def test_what_nothing_holds_up_is_ours_to_start_as_it_is_planned(store: Store) -> None:
    await add_job(store, command="echo {{ parameters.day }}", parameters={"day": "monday"}, preemption=True)
    await add_schedule(store)
    planned = await plan(store)
    (launch,) = planned.launches
    assert (launch.argv, launch.not_before) == (("echo", "monday"), at(60))
    assert (planned.fires, planned.queued) == (1, 0)
    (held,) = await store.queue.held(LEASE)
    assert (held.name, held.state, held.cluster, held.node) == (launch.name, State.STARTING, "local", NODE)
    assert not (await claim(store, at(60))).launches
    conclusion = await finish(store, launch.name, ended(at(61)))
    assert conclusion is not None
    assert conclusion.state is State.SUCCEEDED


async def test_it_looks_as_if_it_had_been_queued_and_claimed(store: Store) -> None:
    await add_job(store, "first", preemption=True)
    await add_job(store, "second", preemption=True)
    await add_schedule(store, "s1", job_name="first")
    await plan(store)
    await add_schedule(store, "s2", job_name="second", now=at(60))
    await store.queue.plan(at(120), 1, decide_due, at(180))
    await store.queue.plan(at(120), 1, decide_due, at(180))
    await claim(store, at(120))
    changes = [each for each in await store.changes.read(0, FAR, EVERYTHING, 100) if each.about == "trigger"]
    told: dict[Any, list[Any]] = {}
    for each in changes:
        seen = (each.state, each.attempt, each.retry_at is None, each.started_at)
        told.setdefault((each.schedule_id, each.nominal_time), []).append(seen)
    assert told["s1", at(60)] == told["s2", at(120)] == [("queued", 0, False, None), ("starting", 1, True, None)]


@pytest.mark.parametrize(
    "fields",
    [
        {"max_concurrent_triggers": 5},
        {"group_name": "capped"},
        {"cluster": "elsewhere"},
        {"node": "node-2"},
        {"depends_on": ["upstream"]},
    ],
    ids=["a cap", "its group's cap", "another cluster", "another node", "an upstream"],
)
async def test_what_something_may_hold_up_is_queued(store: Store, fields: dict[str, Any]) -> None:
    await store.groups.create(group("capped", max_concurrent_triggers=5), at(0))
    await add_job(store, "upstream")
    await add_job(store, **fields)
    await add_schedule(store)
    planned = await plan(store)
    assert (planned.launches, planned.fires, planned.queued) == ((), 1, 1)
    (trigger,) = await triggers(store)
    assert (trigger.state, trigger.attempts) == (State.QUEUED, None)


async def test_times_that_wait_for_each_other_are_queued(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="queue")
    assert (await plan(store)).queued == 1


async def test_no_more_are_taken_than_there_are_slots(store: Store) -> None:
    await add_job(store)
    for number in range(4):
        await add_schedule(store, f"s{number}")
    planned = await plan(store, slots=3)
    assert (len(planned.launches), planned.queued) == (3, 1)
    await add_schedule(store, "later", now=at(60))
    assert not (await plan(store, 120, slots=3)).launches


async def test_no_more_are_taken_in_one_transaction_than_was_said(store: Store) -> None:
    await add_job(store)
    for number in range(3):
        await add_schedule(store, f"s{number}")
    assert len((await plan(store, most=2)).launches) == 2


async def test_slots_are_left_for_what_is_queued_already(store: Store) -> None:
    await add_job(store)
    await queue(store)
    await add_schedule(store)
    assert not (await plan(store, slots=1)).launches
    assert len((await claim(store, at(60), slots=1)).launches) == 1


async def test_a_time_that_a_backfill_took_is_not_started_again(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    asked = Backfill.model_validate({"schedule_id": "s", "since": at(60), "until": at(120)})
    await store.backfills.create(asked, count_times(schedule().timetable(at(0)), at(60), at(120), 10), at(120))
    await store.backfills.lead(at(120))
    planned = await plan(store)
    assert (planned.launches, planned.fires) == ([], 0)
    assert {each.kind for each in await triggers(store)} == {Kind.BACKFILL}


ODD = ["", "NULL", 'say "b"', "back\\slash", "{a,b}", "it's", "two\nlines", "für ÿ", "\\N", "%s %(b_id)s", "[1, null]"]


async def test_whatever_is_said_many_at_once_is_kept_as_it_was_said(store: Store) -> None:
    await add_job(store, command="echo {{ parameters.said }}", parameters={"said": "nothing"})
    for number, said in enumerate(ODD):
        await add_schedule(store, f"s{number}", parameters={"said": said})
    names = [launch.name for launch in (await plan(store)).launches]
    told = {name: ended(at(61), message=said or None) for name, said in zip(names, ODD, strict=True)}
    told[names[1]] = ended(at(61), kind=ExitKind.SIGNAL, signal=9, cpu_seconds=1, max_memory_bytes=2**40)
    told[names[2]] = ended(at(61.5), cpu_seconds=0.25, max_memory_bytes=7)
    assert len(await store.queue.finish(LEASE, told, lambda: 0.5)) == len(ODD)
    there = await triggers(store)
    assert sorted(each.parameters["said"] for each in there) == sorted(ODD)
    assert all((each.resolved_command or [])[1:] == [each.parameters["said"]] for each in there)
    kept = {f"{each.trigger_id}-1": each for each in there}
    assert (kept[names[1]].signal, kept[names[1]].cpu_seconds, kept[names[1]].max_memory_bytes) == (9, 1, 2**40)
    assert (kept[names[2]].signal, kept[names[2]].cpu_seconds, kept[names[2]].max_memory_bytes) == (None, 0.25, 7)
    for name, trigger in kept.items():
        (run,) = (await store.triggers.get(name.removesuffix("-1"))).attempts or []
        told_of = (run.state, run.exit_code, run.message)
        assert told_of == (trigger.state, trigger.exit_code, trigger.message)
        if names.index(name) > 2:
            assert run.message == told[name].message

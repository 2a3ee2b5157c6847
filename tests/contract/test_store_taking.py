"""Planned triggers that nothing can hold up are taken as they are written; all others are queued."""

from datetime import timedelta
from typing import Any

import pytest

from clickclock.scheduler.agents.planner import decide_due
from clickclock.scheduler.insight.event import EVERYTHING
from clickclock.scheduler.jobs.slots import reserve
from clickclock.scheduler.jobs.trigger import ExitKind, Kind, State
from clickclock.scheduler.store import Edited, NewSchedule, Planned, Span, Store, Taker
from clickclock.scheduler.store.planning import plan as plan_in
from clickclock.scheduler.times.backfill import Backfill, count_times
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


async def plan_ahead(store: Store, after: float, until: float, *, limit: int = 100, slots: int = 1000) -> Planned:
    taker = Taker("local", NODE, LEASE, slots, 100)
    span = Span(at(after), at(until))
    return await store.queue.plan(at(after), limit, decide_due, at(after) + timedelta(minutes=1), taker, span)


async def test_a_time_that_has_not_come_is_taken_for_its_moment(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    await add_schedule(store, "later", start_at=at(120))
    planned = await plan_ahead(store, 59, 61)
    (launch,) = planned.launches
    assert (launch.not_before, launch.patient) == (at(60), True)
    assert (planned.next_due, planned.looked, planned.beyond) == (at(120), at(61), at(120))
    (trigger,) = await triggers(store)
    assert (trigger.state, trigger.queued_at, trigger.nominal_time) == (State.STARTING, at(60), at(60))
    assert not (await plan_ahead(store, 59, 61)).launches
    assert not (await plan(store)).launches


async def test_who_others_depend_on_is_waited_for(store: Store) -> None:
    await add_job(store)
    await add_job(store, "downstream", depends_on=["export"])
    await add_schedule(store)
    (launch,) = (await plan_ahead(store, 59, 61)).launches
    assert not launch.patient


@pytest.mark.parametrize(
    ("of_job", "of_schedule"),
    [
        ({"max_concurrent_triggers": 5}, {}),
        ({"node": "node-2"}, {}),
        ({"enabled": False}, {}),
        ({}, {"paused": True}),
        ({}, {"overlap_policy": "replace"}),
    ],
    ids=["a cap", "another node", "disabled", "paused", "replace"],
)
async def test_what_cannot_be_known_is_left_for_its_time(
    store: Store, of_job: dict[str, Any], of_schedule: dict[str, Any]
) -> None:
    await add_job(store, **of_job)
    await add_schedule(store, **of_schedule)
    planned = await plan_ahead(store, 59, 61)
    assert (planned.launches, planned.queued, planned.skips, planned.next_due) == ((), 0, 0, at(60))
    assert await triggers(store) == []
    planned = await plan(store)
    assert planned.fires + planned.skips == 1


async def test_what_has_not_ended_is_waited_for_until_the_time_has_come(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    (launch,) = (await plan(store)).launches
    assert not (await plan_ahead(store, 119, 121)).launches
    await finish(store, launch.name, ended(at(119.5)))
    assert len((await plan_ahead(store, 119, 121)).launches) == 1


async def test_ahead_of_their_time_triggers_leave_slots_for_what_is_asked_for_now(store: Store) -> None:
    await add_job(store)
    for number in range(8):
        await add_schedule(store, f"s{number}")
    assert len((await plan_ahead(store, 59, 61, slots=8)).launches) == 8 - reserve(8)
    await queue(store)
    assert len((await claim(store, at(59), slots=8)).launches) == 1


async def test_what_was_left_is_not_met_again_and_again(store: Store) -> None:
    await add_job(store)
    for number in range(6):
        await add_schedule(store, f"s{number}", paused=True)
    planned = await plan_ahead(store, 59, 61, limit=4)
    assert (planned.claimed, planned.looked, planned.beyond) == (4, at(60), None)
    await add_schedule(store, "free", start_at=at(60.5), kind="interval", expression="PT1M")
    planned = await plan_ahead(store, 60, 61, limit=4)
    assert (len(planned.launches), planned.looked) == (1, at(61))


async def test_of_several_due_together_the_rest_follows(store: Store) -> None:
    await add_job(store)
    for number in range(6):
        await add_schedule(store, f"s{number}")
    planned = await plan_ahead(store, 59, 61, limit=4)
    assert (len(planned.launches), planned.beyond) == (4, at(60))
    planned = await plan_ahead(store, planned.looked.timestamp() - at(0).timestamp(), 61, limit=4)
    assert (len(planned.launches), planned.looked) == (2, at(61))


async def test_what_was_on_its_way_when_something_was_edited_is_known_until_it_has_started(store: Store) -> None:
    await add_job(store, group_name=None)
    await add_job(store, "other")
    await add_schedule(store)
    await add_schedule(store, "another", job_name="other")
    launches = {launch.job_name: launch.name for launch in (await plan_ahead(store, 59, 61)).launches}
    asked = [
        (Edited(), {"export", "other"}),
        (Edited(schedule_id="s"), {"export"}),
        (Edited(job=("shop", "other")), {"other"}),
        (Edited(group_name="none"), set()),
        (Edited(calendar_name="none"), set()),
    ]
    for edited, jobs in asked:
        found = await store.queue.under_way(edited, ["local"], at(59))
        assert found == {launches[name]: at(60) for name in jobs}
    assert await store.queue.under_way(Edited(), ["elsewhere"], at(59)) == {}
    await store.queue.mark_running(LEASE, [(launches["export"], NODE, at(60))])
    assert await store.queue.starting_among(launches.values()) == {launches["other"]}


async def test_what_ended_before_its_time_is_tried_again_when_that_has_come(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    (launch,) = (await plan_ahead(store, 59, 61)).launches
    await finish(store, launch.name, ended(at(59.7), kind=ExitKind.UNSTARTED))
    (trigger,) = await triggers(store)
    assert (trigger.state, trigger.retry_at) == (State.QUEUED, at(60))
    assert not (await claim(store, at(59.9))).launches
    (again,) = (await claim(store, at(60))).launches
    assert again.not_before == at(60)


async def test_times_that_a_change_brings_before_what_is_planned_ahead_are_not_lost(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, kind="interval", expression="PT1M", overlap_policy="allow")
    await plan_ahead(store, 59, 61)
    change = schedule(kind="interval", expression="PT1M", start_at=at(59.8), overlap_policy="allow")
    await store.schedules.put(NewSchedule(change, "s"), at(59.5))
    assert [launch.not_before for launch in (await plan(store, 59.8)).launches] == [at(59.8)]
    change = schedule(kind="interval", expression="PT1M", start_at=at(60), overlap_policy="allow")
    await store.schedules.put(NewSchedule(change, "s"), at(59.9))
    assert not (await plan(store, 60)).launches
    assert sorted(each.nominal_time for each in await triggers(store) if each.nominal_time) == [at(59.8), at(60)]


async def test_who_plans_ahead_is_waited_for_by_whoever_edited_and_by_nobody_else(store: Store) -> None:
    assert await store.queue.nobody_plans_ahead()
    if store.kind == "sqlite":
        return  # one writer: no plan is open while an edit is written
    await add_job(store)
    await add_schedule(store)
    engine = store.queue._database.engine
    with engine.connect() as other, other.begin():
        plan_in(other, at(59), 100, decide_due, at(120), None, Span(at(59), at(61)))
        assert not await store.queue.nobody_plans_ahead()
        assert (await plan_ahead(store, 59, 61)).looked == at(61)
    assert await store.queue.nobody_plans_ahead()

"""Schedules, and the planner's transaction, in every store."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.agents.planner import decide_due
from clickclock.scheduler.errors import ScheduleExists, ScheduleNotFound, StaleVersion
from clickclock.scheduler.insight.statistics import Scope
from clickclock.scheduler.insight.summary import summarise
from clickclock.scheduler.jobs.trigger import Kind, SkipReason, State, StopReason
from clickclock.scheduler.store import Due, Store
from clickclock.scheduler.times.schedule import Decision
from tests.stores import (
    NOW,
    add_job,
    add_schedule,
    at,
    claim,
    ended,
    finish,
    job,
    new_schedule,
    plan,
    queue,
    states,
    triggers,
)


async def test_a_schedule_comes_back_as_it_was_said(store: Store) -> None:
    await store.jobs.create([job(parameters={"day": None})], NOW)
    said = new_schedule("s", parameters={"day": "today"}, time_zone="Europe/Berlin", overlap_policy="queue")
    (created,) = await store.schedules.create([said], NOW)
    read = await store.schedules.get("s")
    assert read.wire() == created.wire()
    assert (read.schedule_id, read.schedule_name, read.version, read.created_at) == ("s", "s", 1, NOW)
    assert (read.next_fire_at, read.last_fire_at) == (at(60), None)


async def test_a_batch_of_schedules_is_all_or_nothing_and_names_every_fault_by_its_place(store: Store) -> None:
    await store.jobs.create([job(parameters={"day": None})], NOW)
    with pytest.raises(Invalid) as refused:
        await store.schedules.create(
            [
                new_schedule("a", parameters={"day": "x"}),
                new_schedule("b", job_name="unknown"),
                new_schedule("c"),
                new_schedule("d", parameters={"day": "x", "hour": "1"}),
            ],
            NOW,
        )
    assert [fault.field for fault in refused.value.faults] == [
        "[1].jobName", "[2].parameters.day", "[3].parameters.hour"
    ]  # fmt: skip
    given: dict[str, Any] = {"parameters": {"day": "x"}}
    await store.schedules.create([new_schedule("old", schedule_name="nightly", **given)], NOW)
    with pytest.raises(ScheduleExists) as caught:
        await store.schedules.create(
            [
                new_schedule("a", **given),
                new_schedule("old", **given),
                new_schedule("b", schedule_name="nightly", **given),
                new_schedule("a", **given),
            ],
            NOW,
        )
    assert [fault.field for fault in caught.value.faults] == [
        "[1].scheduleId", "[2].scheduleName", "[3].scheduleId", "[3].scheduleName",
    ]  # fmt: skip
    assert [each.schedule_id for each in await store.schedules.find({}, None, 10)] == ["old"]


async def test_a_thousand_schedules_are_one_batch(store: Store) -> None:
    await add_job(store)
    many = [new_schedule(f"s{number:04}") for number in range(1000)]
    assert len(await store.schedules.create(many, NOW)) == 1000
    with pytest.raises(ScheduleExists) as caught:
        await store.schedules.create(many, NOW)
    assert len(caught.value.faults) == 2000  # id and name of each


async def test_the_name_of_a_schedule_is_unique_in_its_job_alone(store: Store) -> None:
    await store.jobs.create([job(), job("other")], NOW)
    await add_schedule(store, "a", schedule_name="nightly")
    await add_schedule(store, "b", schedule_name="nightly", job_name="other")
    with pytest.raises(ScheduleExists):
        await add_schedule(store, "c", schedule_name="nightly")


async def test_of_two_that_create_one_schedule_at_once_one_is_told_that_it_exists(store: Store, second: Store) -> None:
    await add_job(store)
    results = await asyncio.gather(
        *(each.schedules.create([new_schedule("s")], NOW) for each in (store, second)), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["ScheduleExists", "list"]


async def test_a_schedule_is_replaced_with_its_version(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    changed = await store.schedules.put(new_schedule("s", at(10), expression="*/5 * * * *"), at(10), if_version=1)
    assert (changed.version, changed.created_at, changed.updated_at) == (2, NOW, at(10))
    assert changed.next_fire_at == at(300)
    with pytest.raises(StaleVersion):
        await store.schedules.put(new_schedule("s"), at(10), if_version=1)
    with pytest.raises(StaleVersion):
        await store.schedules.delete("s", NOW, if_version=1)
    with pytest.raises(ScheduleNotFound):
        await store.schedules.put(new_schedule("unknown"), at(10))
    with pytest.raises(Invalid):
        await store.schedules.put(new_schedule("s", job_name="unknown"), at(10))
    await add_schedule(store, "t")
    with pytest.raises(ScheduleExists):
        await store.schedules.put(new_schedule("t", schedule_name="s"), at(10))
    await store.schedules.delete("s", NOW, if_version=2)
    for gone in (store.schedules.get("s"), store.schedules.delete("s", NOW)):
        with pytest.raises(ScheduleNotFound):
            await gone


async def test_schedules_are_paged_by_id_and_filtered(store: Store) -> None:
    await store.jobs.create([job(), job("other")], NOW)
    await store.schedules.create([new_schedule(f"s{n}") for n in range(5)], NOW)
    await add_schedule(store, "t", job_name="other", schedule_name="named")
    first = await store.schedules.find({"job_name": "export"}, None, 3)
    rest = await store.schedules.find({"job_name": "export"}, [first[-1].schedule_id], 3)
    assert [each.schedule_id for each in (*first, *rest)] == ["s0", "s1", "s2", "s3", "s4"]
    assert [each.schedule_id for each in await store.schedules.find({"schedule_name": "named"}, None, 3)] == ["t"]
    assert [each.schedule_id for each in await store.schedules.find({"schedule_id": "s1"}, None, 3)] == ["s1"]


async def test_an_edit_never_fires_the_past(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, catch_up={"policy": "all"})
    await store.schedules.put(new_schedule("s", at(610), catch_up={"policy": "all"}), at(610))
    await plan(store, at(660))
    assert [each.nominal_time for each in await triggers(store) if each.state is State.QUEUED] == [at(660)]
    skipped = [each for each in await triggers(store) if each.state is State.SKIPPED]
    assert [each.nominal_time for each in skipped] == [at(60 * minute) for minute in range(1, 11)]
    assert {each.message for each in skipped} == {"The schedule was changed before this time was planned."}


async def test_an_edit_takes_no_time_away_that_waits_out_its_jitter(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, jitter_seconds=50)
    (before,) = await store.schedules.find({}, None, 10)
    assert before.next_fire_at is not None
    assert at(60) < before.next_fire_at
    edited = await store.schedules.put(new_schedule("s", at(60), jitter_seconds=50, description="d"), at(60))
    assert edited.next_fire_at == before.next_fire_at
    await plan(store, before.next_fire_at)
    (trigger,) = await triggers(store)
    assert (trigger.state, trigger.nominal_time) == (State.QUEUED, at(60))


async def test_other_times_leave_a_row_of_what_waited_out_its_jitter(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, jitter_seconds=50)
    await store.schedules.put(new_schedule("s", at(60), jitter_seconds=0), at(60))
    await plan(store, at(120))
    assert [(each.state, each.nominal_time) for each in await triggers(store)] == [
        (State.SKIPPED, at(60)),
        (State.QUEUED, at(120)),
    ]


async def test_an_edit_in_the_moment_that_a_time_comes_does_not_take_it_away(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    await store.schedules.put(new_schedule("s", at(60.5), description="d"), at(60.5))
    await plan(store, at(61))
    assert [(each.state, each.nominal_time) for each in await triggers(store)] == [(State.QUEUED, at(60))]


async def test_the_high_water_mark_stays_when_the_clock_steps_back(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="allow")
    await plan(store, at(60))
    await store.schedules.put(new_schedule("s", at(-3600), overlap_policy="allow"), at(-3600))
    await plan(store, at(60))
    await plan(store, at(120))
    assert [each.nominal_time for each in await triggers(store)] == [at(60), at(120)]


async def test_a_due_time_becomes_one_trigger_with_all_that_its_job_says(store: Store) -> None:
    await add_job(store, parameters={"day": "x", "hour": "1"}, max_retries=2, priority=80, cluster="remote")
    await add_schedule(store, parameters={"day": "y"})
    planned = await plan(store, at(60.5))
    assert (planned.claimed, planned.fires, planned.skips, planned.replaced) == (1, 1, 0, False)
    assert (planned.next_due, planned.faults) == (at(120), ())
    (trigger,) = await triggers(store)
    assert (trigger.kind, trigger.state, trigger.schedule_id) == (Kind.SCHEDULE, State.QUEUED, "s")
    assert (trigger.nominal_time, trigger.due_time, trigger.queued_at) == (at(60), at(60), at(60.5))
    assert (trigger.parameters, trigger.max_attempts, trigger.priority) == ({"day": "y", "hour": "1"}, 3, 80)
    assert trigger.cluster == "remote"
    kept = await store.schedules.get("s")
    assert (kept.next_fire_at, kept.last_fire_at, kept.version) == (at(120), at(60), 1)


async def test_nothing_is_planned_before_it_is_due(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    planned = await plan(store, at(59.999))
    assert (planned.claimed, planned.next_due) == (0, at(60))
    assert await states(store) == []


async def test_a_schedule_without_further_times_is_not_looked_at_again(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, kind="once", expression="2026-11-20T10:00:30Z")
    assert (await plan(store, at(30))).next_due is None
    assert (await plan(store, at(9999))).claimed == 0
    assert (await store.schedules.get("s")).next_fire_at is None


async def test_at_most_so_many_schedules_are_planned_the_longest_due_first(store: Store) -> None:
    await add_job(store)
    for number in range(5):
        await add_schedule(store, f"s{number}", kind="once", expression=f"2026-11-20T10:00:0{5 - number}Z")
    assert (await plan(store, at(9), limit=2)).claimed == 2
    assert [each.schedule_id for each in await triggers(store)] == ["s4", "s3"]
    assert (await plan(store, at(9), limit=2)).claimed == 2
    planned = await plan(store, at(9), limit=2)
    assert (planned.claimed, planned.next_due) == (1, None)
    assert {each.schedule_id for each in await triggers(store)} == {"s0", "s1", "s2", "s3", "s4"}


async def test_skipped_times_are_rows_with_their_reason_and_count_in_the_statistics(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, catch_up={"policy": "none"}, kind="interval", expression="1")
    planned = await plan(store, at(500.5))
    assert (planned.fires, planned.skips) == (1, 499)
    merged, fired = await triggers(store)
    assert (merged.state, merged.skip_reason) == (State.SKIPPED, SkipReason.CATCH_UP_WINDOW)
    assert (merged.nominal_time, merged.skipped_through, merged.skipped_count) == (at(1), at(499), 499)
    assert (fired.state, fired.nominal_time, fired.skipped_count) == (State.QUEUED, at(500), None)
    rollups = await store.statistics.rollups(Scope.of(), at(-3600), at(3600))
    assert summarise(rollup for _, rollup in rollups).skipped == 499


async def test_a_nominal_time_that_has_its_row_gets_no_second(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="allow")
    await plan(store, at(60))
    await store.schedules.delete("s", NOW)
    await add_schedule(store, overlap_policy="allow")
    await plan(store, at(120))
    assert [each.nominal_time for each in await triggers(store)] == [at(60), at(120)]


async def test_planners_that_race_leave_each_nominal_time_once(store: Store, second: Store) -> None:
    await add_job(store)
    names = [f"s{number:02}" for number in range(40)]
    await store.schedules.create([new_schedule(each, overlap_policy="allow") for each in names], NOW)
    for minute in (1, 2, 3):
        planned = await asyncio.gather(*(plan(each, at(60 * minute), 15) for each in (store, second) * 4))
        assert sum(each.fires for each in planned) == 40
    times = Counter((each.schedule_id, each.nominal_time) for each in await triggers(store))
    assert times == {(name, at(60 * minute)): 1 for name in names for minute in (1, 2, 3)}


async def test_a_schedule_that_fails_is_postponed_and_holds_up_no_other(store: Store) -> None:
    def broken(due: Due) -> Decision:
        if due.schedule_id == "bad":
            raise ArithmeticError("cannot")
        return decide_due(due)

    await add_job(store)
    await add_schedule(store, "bad")
    await add_schedule(store, "good")
    planned = await store.queue.plan(at(60), 10, broken, at(90))
    assert [(schedule_id, str(error)) for schedule_id, error in planned.faults] == [("bad", "cannot")]
    assert (planned.fires, planned.next_due) == (1, at(90))
    await plan(store, at(90))
    assert [each.nominal_time for each in await triggers(store, schedule_id="bad")] == [at(60)]


async def test_a_schedule_whose_job_changed_under_it_loses_no_time_while_it_waits(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    await store.jobs.put(job(parameters={"day": None}), NOW)
    assert [schedule_id for schedule_id, _ in (await plan(store, at(60))).faults] == ["s"]
    await store.jobs.put(job(), at(70))
    await plan(store, at(120))
    assert [(each.nominal_time, each.state) for each in await triggers(store)] == [
        (at(60), State.SKIPPED),
        (at(120), State.QUEUED),
    ]


async def test_an_unfinished_trigger_skips_the_next_time(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    await plan(store, at(60))
    await plan(store, at(120))
    name = (await claim(store, at(130))).launches[0].name
    await plan(store, at(180))
    await finish(store, name, ended(at(200)))
    await plan(store, at(240))
    assert [(each.state, each.skip_reason) for each in await triggers(store)] == [
        (State.SUCCEEDED, None),
        (State.SKIPPED, SkipReason.OVERLAP),
        (State.SKIPPED, SkipReason.OVERLAP),
        (State.QUEUED, None),
    ]


async def test_replacing_ends_the_queued_and_stops_the_running(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="replace")
    assert not (await plan(store, at(60))).replaced
    assert (await plan(store, at(120))).replaced
    (launch,) = (await claim(store, at(120))).launches
    assert (await plan(store, at(180))).replaced
    assert [(each.state, each.stop_reason) for each in await triggers(store)] == [
        (State.CANCELLED, StopReason.REPLACED),
        (State.STARTING, StopReason.REPLACED),
        (State.QUEUED, None),
    ]
    (held,) = await store.queue.stopping("lease-1")
    assert (held.name, held.stop_reason) == (launch.name, StopReason.REPLACED)


async def test_the_successor_of_a_replaced_trigger_waits_until_it_is_gone(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="replace")
    await plan(store, at(60))
    (launch,) = (await claim(store, at(60))).launches
    await plan(store, at(120))
    assert (await claim(store, at(120))).launches == ()
    await finish(store, launch.name, ended(at(121)))
    assert len((await claim(store, at(121))).launches) == 1


async def test_triggers_of_a_queueing_schedule_run_one_after_the_other(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="queue")
    for minute in (1, 2, 3):
        await plan(store, at(60 * minute))
    ran = []
    for second in (200, 201, 202):
        (launch,) = (await claim(store, at(second))).launches
        ran.append(launch.environment["CLICKCLOCK_NOMINAL_TIME"])
        await finish(store, launch.name, ended(at(second)))
    assert ran == sorted(ran)
    assert len(set(ran)) == 3


async def test_a_call_by_hand_does_not_wait_for_a_queueing_schedule(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="queue")
    await plan(store, at(60))
    assert len((await claim(store, at(60))).launches) == 1
    await queue(store, now=at(61))
    assert len((await claim(store, at(61))).launches) == 1


async def test_a_schedule_that_is_deleted_leaves_what_it_triggered(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    await plan(store, at(60))
    await store.schedules.delete("s", NOW)
    (launch,) = (await claim(store, at(61))).launches
    await finish(store, launch.name, ended(at(62)))
    assert await states(store) == [State.SUCCEEDED]


async def test_jitter_delays_the_due_time_and_not_the_nominal_one(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, jitter_seconds=30)
    due = (await store.schedules.get("s")).next_fire_at
    assert due is not None
    assert at(60) < due < at(90)
    assert (await plan(store, due - timedelta(milliseconds=1))).claimed == 0
    await plan(store, due)
    assert [(each.nominal_time, each.due_time) for each in await triggers(store)] == [(at(60), due)]

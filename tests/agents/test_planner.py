"""The planner: due schedules become rows, and others are told."""

import logging

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import StoreUnreachable
from clickclock.scheduler.planner import CLAIM_MAX, CLEAR_S, POSTPONE_S, START_S, YIELD_S, Plan, Planner
from clickclock.scheduler.store import Planned, Store
from clickclock.scheduler.trigger import State
from tests.agents.conftest import Calls
from tests.stores import NOW, add_job, add_schedule, at, job, new_schedule, plan, states, triggers


@pytest.fixture
def replaced() -> Calls:
    return Calls()


@pytest.fixture
def planner(store: Store, clock: ManualClock, calls: Calls, replaced: Calls) -> Planner:
    return Planner(store, clock, fired=calls, replaced=replaced)


async def test_without_schedules_the_planner_waits_to_be_woken(planner: Planner) -> None:
    assert await planner.step() is None


async def test_the_planner_sleeps_until_the_next_time_and_then_fires(
    planner: Planner, store: Store, clock: ManualClock, calls: Calls, replaced: Calls
) -> None:
    await add_job(store)
    await add_schedule(store)
    assert await planner.step() == 60.0
    assert calls.count == 0
    clock.advance(60)
    assert await planner.step() == 60.0
    assert await states(store) == [State.QUEUED]
    assert (calls.count, replaced.count) == (1, 0)


async def test_a_time_is_planned_a_moment_ahead_and_not_sooner(store: Store, clock: ManualClock, calls: Calls) -> None:
    planner = Planner(store, clock, fired=calls, replaced=calls, ahead_s=0.5)
    await add_job(store)
    await add_schedule(store)
    assert await planner.step() == 59.5
    clock.advance(59.499)
    assert await planner.step() == pytest.approx(0.001)
    assert await states(store) == []
    clock.advance(0.001)
    assert await planner.step() == 60.0
    (trigger,) = await triggers(store)
    assert (trigger.nominal_time, clock.now()) == (at(60), at(59.5))


async def test_what_can_wait_is_told_how_long_what_is_live_has_the_machine_for_itself(
    store: Store, clock: ManualClock, calls: Calls
) -> None:
    planner = Planner(store, clock, fired=calls, replaced=calls, ahead_s=0.005)
    await add_job(store)
    await add_schedule(store)
    await planner.step()
    assert planner.busy_s() == 0
    clock.advance(60 - CLEAR_S)
    assert planner.busy_s() == 0
    clock.advance(CLEAR_S - 0.005)
    assert planner.busy_s() == pytest.approx(0.005 + START_S)
    await planner.step()  # the time is planned, and does not start before it has come
    assert planner.busy_s() == pytest.approx(0.005 + START_S)
    clock.advance(0.005 + START_S)
    assert planner.busy_s() == 0
    clock.advance(59.999 - START_S + 1)
    assert planner.busy_s() == START_S  # it is late


async def test_a_step_repeated_at_the_same_moment_adds_nothing(
    planner: Planner, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="allow")
    clock.advance(61)
    for _ in range(3):
        await planner.step()
    assert len(await states(store)) == 1


async def test_a_stepped_clock_fires_what_came_due_and_never_twice(
    planner: Planner, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="allow")
    for instant in (at(180), at(-7200), at(120), at(180), at(240)):
        clock.step_to(instant)
        await planner.step()
    fired = [each.nominal_time for each in await triggers(store) if each.state is State.QUEUED]
    assert fired == [at(180), at(240)]


async def test_replacing_is_told_so_that_the_running_one_is_stopped(
    planner: Planner, store: Store, clock: ManualClock, replaced: Calls
) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="replace")
    for _ in range(2):
        clock.advance(60)
        await planner.step()
    assert replaced.count == 1


async def test_more_than_one_batch_is_planned_without_a_pause(
    planner: Planner, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await store.schedules.create([new_schedule(f"s{number}") for number in range(CLAIM_MAX + 1)], NOW)
    clock.advance(60)
    pause_s = await planner.step()
    assert pause_s is not None
    assert pause_s <= 0
    assert await planner.step() == 60.0
    assert len(await states(store)) == CLAIM_MAX + 1


async def test_a_schedule_that_cannot_be_planned_waits_and_is_logged(
    planner: Planner, store: Store, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await add_job(store)
    await add_schedule(store)
    await store.jobs.put(job(parameters={"day": None}), NOW)
    clock.advance(60)
    with caplog.at_level(logging.ERROR):
        assert await planner.step() == POSTPONE_S
    assert "schedule s cannot be planned" in caplog.text
    assert await states(store) == []


async def test_who_is_beaten_to_a_due_time_leaves_the_next_ones_to_the_winner_for_a_moment(
    planner: Planner, store: Store, clock: ManualClock
) -> None:
    store.writes_in_order = False
    await add_job(store)
    await add_schedule(store, kind="interval", expression="PT1S")
    assert await planner.step() == 1.0
    clock.advance(1.99)
    await plan(store, clock.now())
    assert await planner.step() == YIELD_S


async def test_what_ended_is_written_before_a_plan_of_what_is_due(store: Store, clock: ManualClock) -> None:
    seen = []

    async def planning() -> None:
        seen.append(await states(store))

    planner = Planner(store, clock, fired=lambda: None, replaced=lambda: None, planning=planning)
    await add_job(store)
    await add_schedule(store)
    await planner.step()
    clock.advance(60)
    await planner.step()
    assert seen == [[]]
    assert await states(store) == [State.QUEUED]


async def test_a_plan_whose_answer_is_lost_is_looked_up(store: Store, clock: ManualClock, calls: Calls) -> None:
    async def lost(_: Plan) -> tuple[Planned, bool]:
        raise StoreUnreachable

    planner = Planner(store, clock, fired=calls, replaced=calls, start_with=lost)
    with pytest.raises(StoreUnreachable):
        await planner.step()
    assert calls.count == 1


async def test_what_was_missed_is_listed_in_the_order_of_its_times(
    planner: Planner, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await add_schedule(store, catch_up={"policy": "all", "max_triggers": 2})
    clock.advance(5 * 60)
    await planner.step()
    newest_first = await store.triggers.find({}, None, 10)
    assert [each.nominal_time for each in newest_first] == [at(60 * minute) for minute in (5, 4, 3, 2, 1)]
    assert [each.state for each in newest_first] == [State.QUEUED] * 2 + [State.SKIPPED] * 3

"""The planner: due schedules become rows, and others are told."""

import logging
from typing import Any

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.planner import (
    AHEAD_MAX,
    CLAIM_FIRST,
    CLAIM_MAX,
    CLEAR_S,
    POSTPONE_S,
    START_S,
    YIELD_S,
    Plan,
    Planner,
)
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Planned, Store, Taker
from clickclock.scheduler.store.backlog import BURST
from tests.agents.conftest import Calls
from tests.stores import LEASE, NODE, NOW, add_job, add_schedule, at, job, new_schedule, plan, states, triggers


@pytest.fixture
def replaced() -> Calls:
    return Calls()


@pytest.fixture
def planner(store: Store, clock: ManualClock, replaced: Calls) -> Planner:
    return Planner(store, clock, replaced=replaced)


async def test_without_schedules_the_planner_waits_to_be_woken(planner: Planner) -> None:
    assert await planner.step() is None


async def test_the_planner_sleeps_until_the_next_time_and_then_fires(
    planner: Planner, store: Store, clock: ManualClock, replaced: Calls
) -> None:
    await add_job(store)
    await add_schedule(store)
    assert await planner.step() == 60.0
    clock.advance(60)
    assert await planner.step() == 60.0
    assert await states(store) == [State.QUEUED]
    assert replaced.count == 0


async def test_a_time_is_planned_a_moment_ahead_and_not_sooner(store: Store, clock: ManualClock, calls: Calls) -> None:
    planner = Planner(store, clock, replaced=calls, ahead_s=0.5)
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
    planner = Planner(store, clock, replaced=calls, ahead_s=0.005)
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


HORIZON_S = 0.5


def foreseeing(store: Store, clock: ManualClock, calls: Calls) -> Planner:
    """A planner whose starts are held for their moment, as far ahead as `HORIZON_S`."""

    async def take(plan: Plan) -> Planned:
        return await plan(Taker("local", NODE, LEASE, slots=1000, most=250))

    return Planner(store, clock, replaced=calls, start_with=take, ahead_s=0.005, horizon_s=lambda: HORIZON_S)


async def test_all_that_is_certain_within_the_horizon_is_planned_in_one_go_when_the_first_is_half_of_it_away(
    store: Store, clock: ManualClock, calls: Calls
) -> None:
    planner = foreseeing(store, clock, calls)
    await add_job(store)
    for number in range(4):
        start_at = at(60 + 0.1 * number)
        await add_schedule(store, f"s{number}", kind="interval", expression="PT1M", start_at=start_at)
    assert await planner.step() == 60 - HORIZON_S / 2 - 0.005
    clock.advance(60 - HORIZON_S / 2 - 0.005)
    assert await planner.step() == pytest.approx(0.3)
    planned = await triggers(store)
    assert sorted(each.due_time for each in planned) == [at(60), at(60.1), at(60.2)]
    assert [each.queued_at for each in planned] == [each.due_time for each in planned]
    assert await states(store) == [State.STARTING] * 3


@pytest.mark.parametrize(
    ("of_job", "of_schedule"),
    [
        ({}, {"paused": True}),
        ({}, {"overlap_policy": "queue"}),
        ({"enabled": False}, {}),
        ({"max_concurrent_triggers": 5}, {}),
        ({"parameters": {"day": None}}, {}),
    ],
    ids=["paused", "one after the other", "disabled", "a cap", "it does not fit its job"],
)
async def test_what_may_come_out_otherwise_is_left_until_its_time_and_is_not_asked_about_again_and_again(
    store: Store, clock: ManualClock, calls: Calls, of_job: dict[str, Any], of_schedule: dict[str, Any]
) -> None:
    planner = foreseeing(store, clock, calls)
    await add_job(store)
    await store.schedules.create([new_schedule(f"s{n}", **of_schedule) for n in range(AHEAD_MAX + 1)], NOW)
    await store.jobs.put(job(**of_job), NOW)
    await planner.step()
    clock.advance(60 - HORIZON_S / 2 - 0.005)
    steps = 0
    while (pause_s := await planner.step()) is not None and pause_s <= 0:
        steps += 1
    assert steps <= 2
    assert pause_s == pytest.approx(HORIZON_S / 2)
    assert await states(store) == []
    clock.advance(HORIZON_S / 2)
    await planner.step()
    assert bool(await states(store)) is not bool(of_job.get("parameters"))


async def test_what_is_held_for_its_moment_has_the_machine_for_itself_then(
    store: Store, clock: ManualClock, calls: Calls
) -> None:
    planner = foreseeing(store, clock, calls)
    await add_job(store)
    await add_schedule(store)
    await planner.step()
    clock.advance(60 - HORIZON_S / 2 - 0.005)
    await planner.step()
    assert planner.busy_s() == 0
    clock.advance(HORIZON_S / 2)
    assert planner.busy_s() == pytest.approx(0.005 + START_S)
    clock.advance(0.005 + START_S)
    assert planner.busy_s() == 0


async def test_a_clock_that_is_set_back_is_planned_by_and_nothing_is_planned_twice(
    store: Store, clock: ManualClock, calls: Calls
) -> None:
    planner = foreseeing(store, clock, calls)
    await add_job(store)
    await add_schedule(store, overlap_policy="allow")
    await planner.step()
    for seconds in (59.8, 10.0, 59.8, 60.0, 119.8):
        clock.step_to(at(seconds))
        await planner.step()
        await planner.step()
    assert sorted(each.due_time for each in await triggers(store)) == [at(60), at(120)]


async def test_while_a_burst_that_was_planned_ahead_is_started_ends_can_wait(
    store: Store, clock: ManualClock, calls: Calls
) -> None:
    planner = foreseeing(store, clock, calls)
    await add_job(store)
    await store.schedules.create([new_schedule(f"s{n}") for n in range(AHEAD_MAX)], NOW)
    await planner.step()
    clock.advance(60 - HORIZON_S / 2 - 0.005)
    await planner.step()
    backlog = store.queue.backlog
    seen = [backlog.starts_wait(clock.now())]
    for seconds in (HORIZON_S / 2 + 0.005, BURST.total_seconds()):
        clock.advance(seconds)
        seen.append(backlog.starts_wait(clock.now()))
    assert seen == [False, True, False]


async def test_while_there_may_be_more_to_plan_ends_can_wait(
    planner: Planner, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await store.schedules.create([new_schedule(f"s{n}") for n in range(CLAIM_FIRST + 1)], NOW)
    await planner.step()
    clock.advance(60)
    seen = []
    for _ in range(2):
        await planner.step()
        seen.append(store.queue.backlog.starts_wait(clock.now()))
    assert seen == [True, False]

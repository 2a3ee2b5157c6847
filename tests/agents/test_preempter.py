"""The preempter: an urgent trigger finds no room, somebody is asked to go, and it takes that place."""

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Store
from tests.agents.scripted import ScriptedExecutor
from tests.stores import NODE, NOW, job, queue, states, triggers


@pytest.fixture
async def engine(store: Store, clock: ManualClock, executor: ScriptedExecutor) -> Engine:
    executor.slots = 1
    engine = Engine(store, clock, {"local": executor}, node=NODE, version="0", fraction=lambda: 0.5)
    await engine.open()
    await store.jobs.create(
        [job("batch", preemption=True, priority=10, grace_period_seconds=3), job("urgent", priority=90)], NOW
    )
    return engine


async def test_the_urgent_one_takes_the_place_and_the_other_comes_back(
    engine: Engine, store: Store, executor: ScriptedExecutor, clock: ManualClock
) -> None:
    first = await queue(store, "batch")
    await engine.dispatcher.step()
    second = await queue(store, "urgent")
    await engine.dispatcher.step()
    assert store.queue.backlog.waits_for_slots
    await engine.preempter.step()
    clock.advance(1)
    await engine.watcher.step()
    assert executor.stops == [(f"{first}-1", 3.0)]
    await engine.dispatcher.step()
    assert executor.running == [f"{second}-1"]
    executor.end(f"{second}-1")
    await engine.watcher.step()
    await engine.dispatcher.step()
    assert executor.running == [f"{first}-2"]


async def test_while_the_victim_takes_its_time_no_other_has_to_go(
    engine: Engine, store: Store, executor: ScriptedExecutor
) -> None:
    executor.slots, executor.obeys = 2, False
    for name in ("batch", "batch", "urgent"):
        await queue(store, name)
        await engine.dispatcher.step()
    for _ in range(3):
        await engine.preempter.step()
        await engine.watcher.step()
        await engine.dispatcher.step()
    assert len(executor.stops) == 1
    assert await states(store, job_name="urgent") == [State.QUEUED]


async def test_with_room_for_all_nobody_is_asked_to_go(
    engine: Engine, store: Store, executor: ScriptedExecutor
) -> None:
    executor.slots = 2
    await queue(store, "batch")
    await engine.dispatcher.step()
    await queue(store, "urgent")
    await engine.preempter.step()
    assert [each.stop_reason for each in await triggers(store)] == [None, None]

"""An edit is answered when what was on its way by the old definition has started."""

import asyncio
from datetime import timedelta

import pytest

from clickclock.foundation.clock import Clock, SystemClock
from clickclock.scheduler.agents import settler as settler_module
from clickclock.scheduler.agents.planner import decide_due
from clickclock.scheduler.agents.settler import Settler
from clickclock.scheduler.executors import Capabilities
from clickclock.scheduler.store import Edited, Span, Store, Taker
from tests.agents.scripted import ScriptedExecutor
from tests.stores import LEASE, NODE, add_job, add_schedule


class HoldingExecutor(ScriptedExecutor):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.capabilities = Capabilities(holds_s=1.0)


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


async def planned_ahead(store: Store, clock: SystemClock) -> str:
    """An attempt that is held for its moment, a tenth of a second from now."""
    now = clock.now()
    await add_job(store, now=now)
    await add_schedule(store, kind="once", expression=(now + timedelta(seconds=0.1)).isoformat(), now=now)
    taker = Taker("local", NODE, LEASE, 10, 10)
    span = Span(now, now + timedelta(seconds=0.5))
    planned = await store.queue.plan(now, 10, decide_due, now, taker, span)
    (launch,) = planned.launches
    return launch.name


@pytest.fixture
def for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit waits as long as it takes."""
    monkeypatch.setattr(settler_module, "STARTED_WITHIN_S", 3600.0)


@pytest.mark.usefixtures("for_ever")
async def test_an_edit_of_what_is_not_on_its_way_waits_for_nothing(store: Store, clock: SystemClock) -> None:
    await planned_ahead(store, clock)
    await Settler(store, clock, {"local": HoldingExecutor(clock)}).settle(Edited(schedule_id="another"))


@pytest.mark.usefixtures("for_ever")
@pytest.mark.parametrize("how", ["the store", "its executor", "its end"])
async def test_an_edit_waits_until_what_is_on_its_way_has_started(store: Store, clock: SystemClock, how: str) -> None:
    executor = HoldingExecutor(clock)
    name = await planned_ahead(store, clock)
    edit = asyncio.create_task(Settler(store, clock, {"local": executor}).settle(Edited(schedule_id="s")))
    await asyncio.wait([edit], timeout=0.2)  # beyond its moment
    assert not edit.done()
    if how == "the store":
        await store.queue.mark_running(LEASE, [(name, NODE, clock.now())])
    elif how == "its executor":
        executor.begin(name)
    else:
        executor.end(name)
    await edit


@pytest.mark.usefixtures("for_ever")
async def test_an_edit_is_answered_by_the_store_while_a_cluster_does_not_answer(
    store: Store, clock: SystemClock
) -> None:
    executor = HoldingExecutor(clock)
    executor.reachable = False
    name = await planned_ahead(store, clock)
    edit = asyncio.create_task(Settler(store, clock, {"local": executor}).settle(Edited(schedule_id="s")))
    await asyncio.wait([edit], timeout=0.2)
    assert not edit.done()
    await store.queue.mark_running(LEASE, [(name, NODE, clock.now())])
    await edit


async def test_an_edit_does_not_wait_for_ever_for_what_does_not_start(
    store: Store, clock: SystemClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settler_module, "STARTED_WITHIN_S", 0.05)
    await planned_ahead(store, clock)
    await Settler(store, clock, {"local": HoldingExecutor(clock)}).settle(Edited())


@pytest.mark.usefixtures("for_ever")
async def test_where_nothing_is_held_ahead_no_edit_waits(store: Store, clock: SystemClock) -> None:
    await planned_ahead(store, clock)
    await Settler(store, clock, {"local": ScriptedExecutor(clock)}).settle(Edited())

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
from tests.agents.conftest import Calls
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


async def test_an_edit_of_what_is_not_on_its_way_waits_for_nothing(
    store: Store, clock: SystemClock, calls: Calls
) -> None:
    await planned_ahead(store, clock)
    settler = Settler(store, clock, {"local": HoldingExecutor(clock)}, hurry=calls)
    await settler.settle(Edited(schedule_id="another"))
    assert calls.count == 0


async def test_an_edit_waits_until_what_is_on_its_way_has_started(store: Store, clock: SystemClock) -> None:
    name = await planned_ahead(store, clock)
    hurried = asyncio.Event()
    settler = Settler(store, clock, {"local": HoldingExecutor(clock)}, hurry=hurried.set)
    waiting = asyncio.create_task(settler.settle(Edited(schedule_id="s")))
    await hurried.wait()
    assert not waiting.done()
    await store.queue.mark_running(LEASE, [(name, NODE, clock.now())])
    await waiting


async def test_an_edit_does_not_wait_for_ever_for_what_does_not_start(
    store: Store, clock: SystemClock, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settler_module, "STARTED_WITHIN_S", 0.05)
    await planned_ahead(store, clock)
    await Settler(store, clock, {"local": HoldingExecutor(clock)}, hurry=calls).settle(Edited())
    assert calls.count > 0


async def test_where_nothing_is_held_ahead_no_edit_waits(store: Store, clock: SystemClock, calls: Calls) -> None:
    await planned_ahead(store, clock)
    await Settler(store, clock, {"local": ScriptedExecutor(clock)}, hurry=calls).settle(Edited())
    assert calls.count == 0

"""An edit is answered when what was on its way by the old definition has started."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from clickclock.foundation.clock import Clock, SystemClock
from clickclock.scheduler.agents import settler as settler_module
from clickclock.scheduler.agents.planner import decide_due
from clickclock.scheduler.agents.settler import Settler
from clickclock.scheduler.executors import Capabilities
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Edited, Span, Store, Taker
from tests.agents.conftest import DEADLINE_S, until
from tests.agents.scripted import ScriptedExecutor
from tests.stores import LEASE, NODE, add_job, add_schedule, states


class HoldingExecutor(ScriptedExecutor):
    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.capabilities = Capabilities(holds_s=1.0)


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


AHEAD_S, LATE_S = 0.1, 0.05


async def planned_ahead(store: Store, clock: SystemClock) -> tuple[str, datetime]:
    """An attempt that is held for its moment, `AHEAD_S` from now."""
    now = clock.now()
    moment = now + timedelta(seconds=AHEAD_S)
    await add_job(store, now=now)
    await add_schedule(store, kind="once", expression=moment.isoformat(), now=now)
    taker = Taker("local", NODE, LEASE, 10, 10)
    planned = await store.queue.plan(now, 10, decide_due, now, taker, Span(now, now + timedelta(seconds=0.5)))
    (launch,) = planned.launches
    return launch.name, moment


@pytest.fixture
def for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit waits as long as it takes."""
    monkeypatch.setattr(settler_module, "STARTED_WITHIN_S", 3600.0)


async def settle(store: Store, clock: SystemClock, executor: ScriptedExecutor, edited: Edited) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await Settler(store, clock, {"local": executor}).settle(edited)


@asynccontextmanager
async def edit_that_waits(store: Store, clock: SystemClock, executor: ScriptedExecutor) -> AsyncIterator[str]:
    """An edit that still waits when the moment of the attempt is over; it is answered by what the body does."""
    name, moment = await planned_ahead(store, clock)
    edit = asyncio.create_task(settle(store, clock, executor, Edited(schedule_id="s")))

    async def is_late() -> bool:
        await states(store)
        return clock.now() > moment + timedelta(seconds=LATE_S)

    await until(is_late)
    assert not edit.done()
    yield name
    await edit


@pytest.mark.usefixtures("for_ever")
async def test_an_edit_of_what_is_not_on_its_way_waits_for_nothing(store: Store, clock: SystemClock) -> None:
    await planned_ahead(store, clock)
    await settle(store, clock, HoldingExecutor(clock), Edited(schedule_id="another"))


@pytest.mark.usefixtures("for_ever")
@pytest.mark.parametrize("is_reachable", [True, False])
async def test_an_edit_waits_until_the_store_says_that_what_is_on_its_way_has_started(
    store: Store, clock: SystemClock, is_reachable: bool
) -> None:
    executor = HoldingExecutor(clock)
    executor.reachable = is_reachable
    async with edit_that_waits(store, clock, executor) as name:
        await store.queue.mark_running(LEASE, [(name, NODE, clock.now())])


@pytest.mark.usefixtures("for_ever")
@pytest.mark.parametrize("what", ["begin", "end"])
async def test_an_edit_is_answered_when_the_executor_has_seen_it_start_whatever_is_on_disk(
    store: Store, clock: SystemClock, what: str
) -> None:
    executor = HoldingExecutor(clock)
    async with edit_that_waits(store, clock, executor) as name:
        getattr(executor, what)(name)
    assert await states(store) == [State.STARTING]


async def test_an_edit_does_not_wait_for_ever_for_what_does_not_start(
    store: Store, clock: SystemClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settler_module, "STARTED_WITHIN_S", LATE_S)
    _, moment = await planned_ahead(store, clock)
    await settle(store, clock, HoldingExecutor(clock), Edited())
    assert clock.now() >= moment


@pytest.mark.usefixtures("for_ever")
async def test_where_nothing_is_held_ahead_no_edit_waits(store: Store, clock: SystemClock) -> None:
    await planned_ahead(store, clock)
    await settle(store, clock, ScriptedExecutor(clock), Edited())

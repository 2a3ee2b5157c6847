"""The pauser: what fails again and again is paused, also where whoever should have seen it died."""

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.pauser import SWEEP_EVERY_S, SWEEP_MAX, Pauser
from clickclock.scheduler.store import Store
from tests.agents.conftest import Calls
from tests.stores import NOW, add_job, at, claim, ended, finish, new_schedule, plan


@pytest.fixture
def pauser(store: Store, clock: ManualClock, calls: Calls) -> Pauser:
    return Pauser(store, clock, paused=calls)


async def fail_all(store: Store, count: int) -> list[str]:
    """So many schedules that are paused at the first failure, each of which has failed."""
    await add_job(store)
    names = [f"s{number:04}" for number in range(count)]
    await store.schedules.create([new_schedule(name, pause_after_failures=1) for name in names], NOW)
    await plan(store, at(60), limit=count)
    for launch in (await claim(store, at(60), slots=count, limit=count)).launches:
        await finish(store, launch.name, ended(at(60), 1))
    return names


async def paused(store: Store, names: list[str]) -> list[bool]:
    return [(await store.schedules.get(name)).paused for name in names]


async def test_with_nothing_that_failed_the_pauser_sleeps_until_its_next_sweep(pauser: Pauser, calls: Calls) -> None:
    assert await pauser.step() == SWEEP_EVERY_S
    assert calls.made == []


async def test_what_just_failed_is_paused_at_once_and_others_are_told(
    pauser: Pauser, store: Store, clock: ManualClock, calls: Calls
) -> None:
    await pauser.step()
    woken: list[None] = []
    pauser.on_news = lambda: woken.append(None)
    store.queue.on_failure = pauser.look_at
    names = await fail_all(store, 1)
    assert len(woken) == 1
    clock.advance(70)
    await pauser.step()
    assert await paused(store, names) == [True]
    assert len(calls.made) == 1
    await pauser.step()
    assert len(calls.made) == 1


async def test_what_nobody_heard_of_is_found_by_the_sweep_however_many_there_are(
    pauser: Pauser, store: Store, clock: ManualClock, calls: Calls
) -> None:
    names = await fail_all(store, 3)
    clock.advance(70)
    assert SWEEP_MAX > 3
    assert await pauser.step() == SWEEP_EVERY_S
    assert await paused(store, names) == [True] * 3
    assert len(calls.made) == 3

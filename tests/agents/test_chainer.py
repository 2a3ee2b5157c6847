"""The chainer: who ends is followed by its dependents, whatever died in between."""

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.chainer import FOLLOW_MAX, SWEEP_EVERY_S, Chainer
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Store
from tests.agents.conftest import Calls
from tests.stores import NOW, at, claim, ended, finish, job, new_schedule, plan, queue, states, triggers


@pytest.fixture
def chainer(store: Store, clock: ManualClock) -> Chainer:
    return Chainer(store, clock)


async def settle(chainer: Chainer) -> float | None:
    while (pause_s := await chainer.step()) == 0.0:
        pass
    return pause_s


async def test_with_nothing_to_tell_the_chainer_sleeps_until_its_next_sweep(
    chainer: Chainer, store: Store, calls: Calls
) -> None:
    store.on_queued = calls
    assert await chainer.step() == SWEEP_EVERY_S
    assert calls.count == 0


async def test_a_success_is_followed_and_the_dispatcher_is_woken(chainer: Chainer, store: Store, calls: Calls) -> None:
    await store.jobs.create([job("a"), job("b", depends_on=["a"])], NOW)
    await queue(store, "a")
    (launch,) = (await claim(store)).launches
    await finish(store, launch.name, ended())
    store.on_queued = calls
    await chainer.step()
    assert calls.count == 1
    assert await states(store, job_name="b") == [State.QUEUED]


async def test_a_skip_is_followed_down_the_whole_chain(chainer: Chainer, store: Store) -> None:
    await store.jobs.create([job("j0"), *(job(f"j{n}", depends_on=[f"j{n - 1}"]) for n in range(1, 6))], NOW)
    await queue(store, "j0")
    (launch,) = (await claim(store)).launches
    await finish(store, launch.name, ended(code=1))
    await settle(chainer)
    assert await states(store) == [State.FAILED, *[State.SKIPPED] * 5]


async def test_more_ends_than_one_batch_are_all_followed(chainer: Chainer, store: Store) -> None:
    await store.jobs.create([job("a"), job("b", depends_on=["a"])], NOW)
    for _ in range(FOLLOW_MAX + 1):
        await queue(store, "a")
    launches = (await claim(store, limit=1000)).launches
    await store.queue.finish("lease-1", {each.name: ended() for each in launches}, lambda: 0.5)
    await settle(chainer)
    assert len(await triggers(store, job_name="b")) == FOLLOW_MAX + 1


async def test_what_waits_is_told_of_at_once_and_looked_at_again_from_time_to_time(
    chainer: Chainer, store: Store, clock: ManualClock, calls: Calls
) -> None:
    await store.jobs.create([job("a"), job("b", depends_on=["a"])], NOW)
    await store.schedules.create([new_schedule("a", job_name="a"), new_schedule("b", job_name="b")], NOW)
    await settle(chainer)
    await plan(store, at(60))
    await settle(chainer)
    assert (await triggers(store, job_name="b"))[0].message == "Waits for shop/a."
    await store.jobs.put(job("b"), at(61))
    store.on_queued = calls
    await settle(chainer)
    assert calls.count == 0
    clock.advance(SWEEP_EVERY_S)
    await settle(chainer)
    assert calls.count == 1
    assert (await triggers(store, job_name="b"))[0].message is None


async def test_who_changes_a_job_has_all_that_waits_looked_at_now(chainer: Chainer, store: Store, calls: Calls) -> None:
    await store.jobs.create([job("a"), job("b", depends_on=["a"])], NOW)
    await store.schedules.create([new_schedule("a", job_name="a"), new_schedule("b", job_name="b")], NOW)
    await plan(store, at(60))
    await settle(chainer)
    await store.jobs.put(job("b"), at(61))
    chainer.sweep()
    store.on_queued = calls
    await chainer.step()
    assert calls.count == 1

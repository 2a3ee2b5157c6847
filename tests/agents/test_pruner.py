"""The pruner: what is finished goes when its job says so, logs first."""

from datetime import UTC, datetime, timedelta

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.pruner import LOOK_EVERY_S, PRUNE_MAX, Pruner
from clickclock.scheduler.insight.statistics import Scope
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Store
from tests.agents.scripted import ScriptedExecutor
from tests.stores import claim, ended, finish, group, job, queue, start, states, triggers

LATER = datetime(2090, 1, 1, tzinfo=UTC)
"""Ids carry the true time of their making; seen from here, all of them are old."""
DAY = timedelta(days=1)


async def test_each_job_keeps_its_history_for_as_long_as_it_says(
    store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await store.groups.create(group(defaults={"retention_days": 5}), LATER)
    kept_for = [job("short", retention_days=1), job("long", retention_days=100), job("unsaid")]
    await store.jobs.create([*kept_for, job("gone"), job("grouped", group_name="exports")], LATER)
    for name in ("short", "long", "unsaid", "gone", "grouped"):
        await finish(store, await start(store, name, LATER), ended(LATER))
    await store.jobs.delete("shop", "gone", LATER, force=False)
    pruner = Pruner(store, clock, {"local": executor})

    async def left_after(days: float) -> set[str]:
        clock.step_to(LATER + days * DAY)
        assert await pruner.step() == LOOK_EVERY_S
        return {each.job_name for each in await triggers(store)}

    assert len(await left_after(0.99)) == 5
    assert await left_after(1.01) == {"long", "unsaid", "gone", "grouped"}
    assert await left_after(5.01) == {"long", "unsaid", "gone"}
    assert await left_after(29.9) == {"long", "unsaid", "gone"}
    assert await left_after(30.1) == {"long"}
    assert await left_after(100.1) == set()


async def test_the_logs_of_all_attempts_go_and_those_of_the_unfinished_stay(
    store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await store.jobs.create([job(max_retries=1)], LATER)
    first = await start(store, now=LATER)
    executor.begin(first)
    await finish(store, first, ended(LATER, code=1), fraction=0.0)
    (again,) = (await claim(store, LATER)).launches
    executor.begin(again.name)
    await finish(store, again.name, ended(LATER, code=1))
    living = await start(store, now=LATER)
    executor.begin(living)
    clock.step_to(LATER + 31 * DAY)
    await Pruner(store, clock, {"local": executor}).step()
    logs = [await executor.read_log(name, 0, 100) for name in (first, again.name, living)]
    assert [each is not None for each in logs] == [False, False, True]
    assert await states(store) == [State.RUNNING]


async def test_statistics_outlive_their_triggers_and_go_in_the_end(
    store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await store.jobs.create([job()], LATER)
    await finish(store, await start(store, now=LATER), ended(LATER))
    pruner = Pruner(store, clock, {"local": executor})
    for days, expected in ((31, 1), (402, 0)):
        clock.step_to(LATER + days * DAY)
        await pruner.step()
        assert len(await store.statistics.rollups(Scope.of(), LATER, LATER + DAY)) == expected


async def test_a_full_batch_is_followed_by_the_next_at_once(
    store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await store.jobs.create([job()], LATER)
    for _ in range(PRUNE_MAX + 1):
        await queue(store, now=LATER)
    names = [each.name for each in (await claim(store, LATER, limit=PRUNE_MAX + 1)).launches]
    await store.queue.finish("lease-1", {name: ended(LATER) for name in names}, lambda: 0.0)
    clock.step_to(LATER + 31 * DAY)
    pruner = Pruner(store, clock, {"local": executor})
    assert await pruner.step() == 0.0
    assert await pruner.step() == LOOK_EVERY_S
    assert await states(store) == []

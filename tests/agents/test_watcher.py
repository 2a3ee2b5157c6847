"""The watcher: exits become conclusions, and wishes to stop reach the executor."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
import sqlalchemy as sa

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import ExecutorUnreachable, StoreUnreachable
from clickclock.scheduler.agents import watcher as watcher_module
from clickclock.scheduler.agents.watcher import (
    FINISH_MAX,
    PATIENCE_S,
    SEEN_RUNNING_AFTER_S,
    STOP_AGAIN_S,
    YIELD_S,
    YIELD_S_MAX,
    Watcher,
)
from clickclock.scheduler.executors import Sighting
from clickclock.scheduler.jobs.trigger import ExitKind, State
from clickclock.scheduler.store import Store, database
from tests.agents.conftest import DEADLINE_S, Calls, until
from tests.agents.scripted import ScriptedExecutor
from tests.stores import LEASE, NOW, add_job, at, claim, ended, finish, queue, states, triggers

LOOK_S = 30.0


def build(
    store: Store,
    clock: ManualClock,
    executor: ScriptedExecutor,
    calls: Calls,
) -> Watcher:
    return Watcher(
        store, clock, {"local": executor}, lease_id=LEASE, fraction=lambda: 0.5, concluded=calls,
        look_for_stops_s=LOOK_S,
    )  # fmt: skip


@pytest.fixture
def watcher(store: Store, clock: ManualClock, executor: ScriptedExecutor, calls: Calls) -> Watcher:
    return build(store, clock, executor, calls)


async def started(store: Store, executor: ScriptedExecutor, lease: str = LEASE) -> str:
    """A trigger that was claimed and handed over; the attempt's name."""
    await queue(store)
    (launch,) = (await claim(store, lease=lease)).launches
    await executor.start([launch])
    return launch.name


async def test_with_nothing_to_watch_the_watcher_waits(watcher: Watcher) -> None:
    assert await watcher.step() == LOOK_S


async def test_what_has_run_for_a_moment_is_written_as_running(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await started(store, executor)
    assert await watcher.step() == SEEN_RUNNING_AFTER_S
    assert await states(store) == [State.STARTING]
    clock.advance(SEEN_RUNNING_AFTER_S)
    assert await watcher.step() == LOOK_S - SEEN_RUNNING_AFTER_S
    (trigger,) = await store.triggers.find({}, None, 10)
    assert (trigger.state, trigger.started_at, trigger.lag_ms) == (State.RUNNING, NOW, 0)


async def test_an_exit_is_concluded_and_then_forgotten(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor, calls: Calls
) -> None:
    await add_job(store)
    name = await started(store, executor)
    clock.advance(5)
    executor.end(name)
    assert await watcher.step() == LOOK_S
    (trigger,) = await store.triggers.find({}, None, 10)
    assert (trigger.state, trigger.duration_ms) == (State.SUCCEEDED, 5000)
    assert executor.forgotten == [name]
    assert calls.made == [False]
    await watcher.step()
    assert calls.made == [False]


async def test_a_retry_is_told_so_that_it_is_dispatched(
    watcher: Watcher, store: Store, executor: ScriptedExecutor, calls: Calls
) -> None:
    await add_job(store, max_retries=1)
    executor.end(await started(store, executor), code=1)
    await watcher.step()
    assert await states(store) == [State.QUEUED]
    assert calls.made == [True]


async def test_an_exit_is_not_forgotten_until_it_is_on_disk(
    store_url: Callable[[str], str], clock: ManualClock, executor: ScriptedExecutor, calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(database, "SQLITE_BUSY_MS", 1)
    url = store_url("sqlite")
    store = await Store.open(url)
    watcher = build(store, clock, executor, calls)
    await add_job(store)
    name = await started(store, executor)
    executor.end(name)
    other = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with other.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(StoreUnreachable):
                await watcher.step()
        connection.exec_driver_sql("ROLLBACK")
    other.dispose()
    assert (executor.forgotten, calls.made) == ([], [])
    await watcher.step()
    assert await states(store) == [State.SUCCEEDED]
    assert executor.forgotten == [name]
    await store.close()


async def test_a_watcher_that_dies_after_the_commit_is_told_again_and_writes_nothing_twice(
    store: Store, clock: ManualClock, executor: ScriptedExecutor, calls: Calls
) -> None:
    await add_job(store)
    name = await started(store, executor)
    executor.end(name)
    await finish(store, name, ended(code=0))
    before = await store.triggers.get(name[:-2])
    clock.advance(60)
    await executor.open(calls)
    await build(store, clock, executor, calls).step()
    assert await store.triggers.get(name[:-2]) == before
    assert executor.forgotten == [name]


async def test_an_attempt_that_is_no_longer_ours_is_left_alone(
    watcher: Watcher, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    foreign = await started(store, executor, lease="another")
    executor.end(foreign)
    executor.begin("unknown-1")
    executor.end("unknown-1")
    await watcher.step()
    assert await states(store) == [State.STARTING]
    assert executor.forgotten == [foreign, "unknown-1"]


async def test_more_exits_than_one_batch_are_all_concluded(
    watcher: Watcher, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    for _ in range(FINISH_MAX + 1):
        await queue(store)
    launches = (await claim(store, limit=FINISH_MAX + 1)).launches
    await executor.start(launches)
    for each in launches:
        executor.end(each.name)
    await watcher.step()
    assert set(await states(store)) == {State.SUCCEEDED}
    assert len(executor.forgotten) == FINISH_MAX + 1


async def test_a_wish_to_stop_reaches_the_executor_with_the_grace_of_the_job(
    watcher: Watcher, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store, grace_period_seconds=7)
    name = await started(store, executor)
    await watcher.step()
    await store.triggers.cancel(name[:-2], NOW)
    await watcher.step()
    assert executor.stops == []  # nobody said that there is something to stop
    watcher.look_for_stops()
    await watcher.step()
    assert executor.stops == [(name, 7.0)]
    assert await states(store) == [State.CANCELLED]


async def test_wishes_of_others_are_found_by_looking(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    name = await started(store, executor)
    await watcher.step()
    await store.triggers.cancel(name[:-2], NOW)
    clock.advance(LOOK_S)
    await watcher.step()
    assert await states(store) == [State.CANCELLED]


async def test_a_wish_that_came_before_the_start_is_said_again(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    trigger_id = await queue(store)
    (launch,) = (await claim(store)).launches
    await store.triggers.cancel(trigger_id, NOW)
    assert await watcher.step() == STOP_AGAIN_S
    await executor.start([launch])
    clock.advance(STOP_AGAIN_S)
    await watcher.step()
    assert await states(store) == [State.CANCELLED]
    assert executor.stops == [(launch.name, 10.0)]
    assert await watcher.step() == LOOK_S


async def test_an_attempt_that_was_on_its_way_when_it_was_cancelled_is_stopped_as_soon_as_it_is_seen(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await queue(store)
    (launch,) = (await claim(store)).launches
    await store.triggers.cancel(launch.name.rpartition("-")[0], NOW)
    assert await watcher.step() == STOP_AGAIN_S
    await executor.start([launch])
    assert await watcher.step() == 0.0
    assert executor.stops == []
    clock.advance(SEEN_RUNNING_AFTER_S)
    await watcher.step()
    assert [name for name, _ in executor.stops] == [launch.name]
    assert await states(store) == [State.CANCELLED]


async def test_a_stubborn_attempt_is_told_once(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    executor.obeys = False
    name = await started(store, executor)
    await store.triggers.cancel(name[:-2], NOW)
    for _ in range(5):
        await watcher.step()
        clock.advance(LOOK_S)
        watcher.look_for_stops()
    assert executor.stops == [(name, 10.0)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ExitKind.SIGNAL, State.FAILED),
        (ExitKind.TIMEOUT, State.TIMED_OUT),
        (ExitKind.LOST, State.LOST),
        (ExitKind.NOT_STARTED, State.FAILED),
        (ExitKind.STOPPED, State.CANCELLED),
    ],
)
async def test_each_way_to_end_is_its_own_state(
    watcher: Watcher, store: Store, executor: ScriptedExecutor, kind: ExitKind, expected: State
) -> None:
    await add_job(store)
    executor.end(await started(store, executor), kind=kind)
    await watcher.step()
    assert await states(store) == [expected]


async def test_a_clock_that_steps_back_makes_no_negative_duration_wait(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    name = await started(store, executor)
    clock.step_to(at(-60))
    executor.end(name)
    await watcher.step()
    assert await states(store) == [State.SUCCEEDED]


async def test_a_clock_that_was_ahead_when_it_stamped_an_end_holds_up_no_retry(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store, max_retries=1, retry_backoff={"initialSeconds": 1, "jitter": "none"})
    name = await started(store, executor)
    clock.step_to(at(3600))  # the machine's clock, by which starts and ends are stamped
    executor.end(name, code=1)
    clock.step_to(at(5))
    await watcher.step()
    (trigger,) = await triggers(store)
    assert trigger.state is State.QUEUED
    attempts = (await store.triggers.get(trigger.trigger_id)).attempts
    assert attempts is not None
    assert [each.finished_at for each in attempts] == [at(5)]
    clock.step_to(at(6))
    assert [each.name for each in (await claim(store, at(6))).launches] == [f"{trigger.trigger_id}-2"]


async def test_a_start_that_a_clock_that_was_ahead_stamped_is_not_in_the_future(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    clock.step_to(at(3600))
    await started(store, executor)
    clock.step_to(at(5))
    await watcher.step()
    clock.advance(SEEN_RUNNING_AFTER_S)
    await watcher.step()
    (trigger,) = await triggers(store)
    assert (trigger.state, trigger.started_at) == (State.RUNNING, clock.now())


async def test_while_starts_wait_ends_do_but_not_for_long(
    store: Store, clock: ManualClock, executor: ScriptedExecutor, calls: Calls
) -> None:
    await add_job(store)
    watcher = build(store, clock, executor, calls)
    await watcher.step()
    name = await started(store, executor)
    store.queue.backlog.planned(may_be_more=True)
    executor.end(name)
    clock.advance(YIELD_S)
    assert await watcher.step() == YIELD_S
    assert await states(store) == [State.STARTING]
    clock.advance(YIELD_S_MAX)
    await watcher.step()
    assert await states(store) == [State.SUCCEEDED]


async def test_a_cluster_that_fails_holds_up_no_other(
    store: Store, clock: ManualClock, executor: ScriptedExecutor, calls: Calls
) -> None:
    class Broken(ScriptedExecutor):
        async def observe(self) -> Sequence[Sighting]:
            raise ExecutorUnreachable("The watch is closed.")

    watcher = Watcher(
        store, clock, {"broken": Broken(clock), "local": executor}, lease_id=LEASE, fraction=lambda: 0.5,
        concluded=calls, look_for_stops_s=LOOK_S,
    )  # fmt: skip
    await add_job(store)
    executor.end(await started(store, executor))
    assert await watcher.step() == 0.1
    assert await states(store) == [State.SUCCEEDED]
    assert watcher.clusters.trouble("broken") == "The watch is closed."


async def test_a_wish_to_stop_waits_for_a_cluster_that_is_away_and_no_other_does(
    store: Store, clock: ManualClock, executor: ScriptedExecutor, calls: Calls
) -> None:
    away = ScriptedExecutor(clock)
    watcher = Watcher(
        store, clock, {"away": away, "local": executor}, lease_id=LEASE, fraction=lambda: 0.5, concluded=calls,
        look_for_stops_s=LOOK_S,
    )  # fmt: skip
    await add_job(store)
    await add_job(store, "elsewhere", cluster="away")
    here = await started(store, executor)
    there = await queue(store, "elsewhere")
    await away.start((await claim(store, cluster="away")).launches)
    away.reachable = False
    for name in (here, f"{there}-1"):
        await store.triggers.cancel(name.removesuffix("-1"), NOW)
    await watcher.step()
    assert [name for name, _ in executor.stops] == [here]
    away.reachable = True
    clock.advance(STOP_AGAIN_S)
    await watcher.step()
    assert [name for name, _ in away.stops] == [f"{there}-1"]


@pytest.fixture
async def patient(
    watcher: Watcher, store: Store, executor: ScriptedExecutor, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[asyncio.Task[float | None]]:
    """A step that writes an end for which nobody waits, and has patience without end."""
    monkeypatch.setattr(watcher_module, "PATIENCE_S", 3600.0)
    await watcher.step()
    executor.is_urgent = False
    await add_job(store)
    executor.end(await started(store, executor))
    step = asyncio.create_task(watcher.step())
    yield step
    assert await states(store) == [State.SUCCEEDED]


async def test_an_end_that_nobody_waits_for_shares_the_commit_of_the_next_write(
    patient: asyncio.Task[float | None], store: Store
) -> None:
    for _ in range(10):
        assert await states(store) == [State.STARTING]

    async def is_written() -> bool:
        await store.ping_s()
        return patient.done()

    await until(is_written)


async def test_an_end_that_nobody_waits_for_is_written_when_it_has_waited(
    watcher: Watcher, store: Store, executor: ScriptedExecutor
) -> None:
    executor.is_urgent = False
    await add_job(store)
    executor.end(await started(store, executor))
    await watcher.step()
    assert await states(store) == [State.SUCCEEDED]


async def test_news_that_somebody_waits_for_does_not_wait_for_a_step_that_has_patience(
    patient: asyncio.Task[float | None], watcher: Watcher, executor: ScriptedExecutor, store: Store
) -> None:
    for _ in range(10):
        watcher.hear()
        assert await states(store) == [State.STARTING]
    executor.is_urgent = True

    async def is_written() -> bool:
        watcher.hear()
        await states(store)
        return patient.done()

    await until(is_written)


async def test_a_wish_to_stop_does_not_wait_for_a_step_that_has_patience(
    patient: asyncio.Task[float | None], watcher: Watcher, store: Store
) -> None:
    async def is_written() -> bool:
        watcher.look_for_stops()
        await states(store)
        return patient.done()

    await until(is_written)


@pytest.mark.parametrize("is_urgent", [True, False])
async def test_whoever_waits_for_an_end_or_for_its_slot_has_no_patience(
    watcher: Watcher, store: Store, executor: ScriptedExecutor, is_urgent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "PATIENCE_S", 3600.0)
    executor.is_urgent = is_urgent
    await add_job(store)
    executor.end(await started(store, executor))
    store.queue.backlog.claimed("local", may_be_more=False, is_blocked=not is_urgent)
    async with asyncio.timeout(DEADLINE_S):
        await watcher.step()
    assert await states(store) == [State.SUCCEEDED]


async def test_an_attempt_that_nobody_waits_for_is_seen_running_a_little_later(
    watcher: Watcher, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    executor.is_urgent = False
    await add_job(store)
    await started(store, executor)
    await watcher.step()
    clock.advance(SEEN_RUNNING_AFTER_S)
    assert await watcher.step() == pytest.approx(PATIENCE_S - SEEN_RUNNING_AFTER_S)
    assert await states(store) == [State.STARTING]
    clock.advance(PATIENCE_S)
    await watcher.step()
    assert await states(store) == [State.RUNNING]

"""The engine: its loops wake each other, it adopts at the start, and it says what is wrong."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.examiner import FAULTS_KEPT_S
from clickclock.scheduler.agents.rescuer import COMPARE_EVERY_S
from clickclock.scheduler.engine import LEASE_S, Engine
from clickclock.scheduler.executors import Capacity
from clickclock.scheduler.insight.finding import FindingCode
from clickclock.scheduler.jobs.trigger import SkipReason, State, StopReason
from clickclock.scheduler.store import Store, database
from tests.agents.conftest import DEADLINE_S, until
from tests.agents.scripted import ScriptedExecutor
from tests.stores import NODE, NOW, add_job, add_schedule, at, claim, ended, finish, heartbeat, plan, queue, states


@pytest.fixture
def engine(store: Store, clock: ManualClock, executor: ScriptedExecutor) -> Engine:
    return Engine(store, clock, {"local": executor}, node=NODE, version="1", fraction=lambda: 0.5)


@asynccontextmanager
async def one_running(engine: Engine, store: Store, executor: ScriptedExecutor) -> AsyncIterator[str]:
    """A running engine, with one attempt started; the id of its trigger."""
    await engine.open()
    stopped = asyncio.Event()
    running = asyncio.create_task(engine.run(stopped))
    trigger_id = await queue(store)
    engine.wake_dispatcher()

    async def started() -> bool:
        await store.triggers.find({}, None, 1)
        return executor.running == [f"{trigger_id}-1"]

    await until(started)
    yield trigger_id
    stopped.set()
    await running
    await engine.close(stop_jobs=False)


async def test_an_engine_that_opens_says_that_it_is_here_and_adopts(
    engine: Engine, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await queue(store)
    (launch,) = (await claim(store, lease="before")).launches
    await executor.start([launch])
    await engine.open()
    (replica,) = await store.replicas.living(NOW)
    assert (replica.replica_id, replica.node, replica.version) == (engine.replica_id, NODE, "1")
    assert replica.lease_until == NOW + timedelta(seconds=LEASE_S)
    assert [each["cluster"] for each in replica.clusters] == ["local"]
    assert {each["name"] for each in replica.loops} == {each.name for each in engine.loops()}
    assert [each.name for each in await store.queue.held(engine.replica_id)] == [launch.name]
    await engine.close(stop_jobs=False)


async def test_what_ended_while_nobody_was_here_does_not_overlap_with_what_was_due_meanwhile(
    engine: Engine, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await add_schedule(store, kind="interval", expression="PT1M")
    clock.advance(60)
    await plan(store, clock.now())
    (launch,) = (await claim(store, clock.now(), lease="before")).launches
    await executor.start([launch])
    executor.end(launch.name)
    clock.advance(3600)
    await engine.open()
    await engine.planner.step()
    triggers = await store.triggers.find({}, None, 3)
    assert [(each.state, each.skip_reason) for each in triggers[:2]] == [
        (State.QUEUED, None),
        (State.SKIPPED, SkipReason.CATCH_UP_WINDOW),
    ]
    await engine.close(stop_jobs=False)


async def test_a_due_time_goes_all_the_way_without_a_pause(
    engine: Engine, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store, max_retries=1, retry_backoff={"initial_seconds": 0})
    await add_schedule(store, kind="once", expression="2026-11-20T10:01:00Z")
    await engine.open()
    stopped = asyncio.Event()
    running = asyncio.create_task(engine.run(stopped))
    clock.advance(60)
    engine.change_schedules()

    async def starts(count: int) -> bool:
        await store.triggers.find({}, None, 1)
        return len(executor.starts) == count

    await until(lambda: starts(1))
    executor.end(executor.starts[0], code=1)
    await until(lambda: starts(2))
    executor.end(executor.starts[1])

    async def succeeded() -> bool:
        return await states(store) == [State.SUCCEEDED]

    await until(succeeded)
    assert await engine.faults() == []
    stopped.set()
    await running
    await engine.close(stop_jobs=False)


async def test_a_call_and_its_cancelling_need_no_pause_either(
    engine: Engine, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    async with one_running(engine, store, executor) as trigger_id:

        async def cancelled() -> bool:
            return await states(store) == [State.CANCELLED]

        await store.triggers.cancel(trigger_id, NOW)
        engine.stop_attempts()
        await until(cancelled)


async def test_a_slot_that_gets_free_is_taken_at_once(engine: Engine, store: Store, executor: ScriptedExecutor) -> None:
    executor.slots = 1
    await add_job(store)
    await queue(store)
    await queue(store)
    await engine.open()
    await engine.dispatcher.step()
    assert store.queue.backlog.waits_for_slots
    executor.end(executor.starts[0])
    await engine.watcher.step()
    await engine.dispatcher.step()
    assert len(executor.starts) == 2
    await engine.close(stop_jobs=False)


async def test_closing_leaves_jobs_running_and_gives_the_lease_up(
    engine: Engine, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await queue(store)
    await engine.open()
    await engine.dispatcher.step()
    await engine.close(stop_jobs=False)
    assert len(executor.running) == 1
    assert await store.replicas.living(NOW) == []
    assert await states(store) == [State.STARTING]


async def test_closing_with_the_jobs_ends_and_concludes_them(
    engine: Engine, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store, max_retries=3)
    for _ in range(3):
        await queue(store)
    await engine.open()
    await engine.dispatcher.step()
    await engine.close(stop_jobs=True)
    assert executor.running == []
    found = await store.triggers.find({}, None, 10)
    assert {(each.state, each.stop_reason) for each in found} == {(State.CANCELLED, StopReason.SHUTDOWN)}


async def test_closing_with_the_jobs_does_not_wait_for_what_never_reached_the_executor(
    engine: Engine, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await engine.open()
    await queue(store)
    await claim(store, lease=engine.replica_id)
    async with asyncio.timeout(DEADLINE_S):
        await engine.close(stop_jobs=True)
    assert executor.starts == []
    assert await states(store) == [State.CANCELLED]


async def test_closing_with_the_jobs_does_not_wait_for_a_cluster_that_is_away(
    store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    away = ScriptedExecutor(clock)
    engine = Engine(store, clock, {"local": executor, "away": away}, node=NODE, version="1")
    await add_job(store)
    await add_job(store, "elsewhere", cluster="away")
    await engine.open()
    await queue(store)
    await queue(store, "elsewhere")
    await engine.dispatcher.step()
    away.reachable = False
    async with asyncio.timeout(DEADLINE_S):
        await engine.close(stop_jobs=True)
    assert executor.running == []
    assert len(away.running) == 1
    (left,) = await store.queue.held(engine.replica_id)
    assert left.stop_reason is StopReason.SHUTDOWN


async def test_a_beat_renews_the_lease(engine: Engine, store: Store, clock: ManualClock) -> None:
    await engine.open()
    clock.advance(LEASE_S - 1)
    assert await engine.beat() < LEASE_S / 2
    clock.advance(LEASE_S - 1)
    assert len(await store.replicas.living(clock.now())) == 1
    await engine.close(stop_jobs=False)


async def test_another_replica_takes_over_when_this_one_falls_silent(
    engine: Engine, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store, max_retries=1, retry_backoff={"initial_seconds": 0})
    await store.replicas.beat(heartbeat("other", node="node-2"))
    await queue(store)
    (lost,) = (await claim(store, lease="other", node="node-2")).launches
    await engine.open()
    clock.advance(60)
    for _ in range(3):
        await engine.rescuer.step()
        clock.advance(COMPARE_EVERY_S)
    await engine.dispatcher.step()
    assert executor.starts == [lost.name[:-1] + "2"]
    assert await finish(store, lost.name, ended(at(1)), lease="other") is None
    await engine.close(stop_jobs=False)


async def test_an_engine_whose_loops_do_not_step_is_not_healthy(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await engine.faults() == []
    monkeypatch.setattr("clickclock.foundation.lifecycle.STALLED_AFTER_S", -1.0)
    assert await engine.faults() == []  # asked again within the second
    clock = engine.clock
    assert isinstance(clock, ManualClock)
    clock.advance(FAULTS_KEPT_S + 0.1)
    faults = await engine.faults()
    assert len(faults) == len(engine.loops())
    assert re.match(r"The planner loop has not finished a step for \d+ s: it hangs\.", faults[0])


async def test_an_engine_whose_store_does_not_answer_is_not_healthy(
    store_url: Callable[[str], str], clock: ManualClock, executor: ScriptedExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SQLITE_BUSY_MS", 1)
    url = store_url("sqlite")
    store = await Store.open(url)
    engine = Engine(store, clock, {"local": executor}, node=NODE, version="1")
    other = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with other.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        (fault,) = await engine.faults()
        assert "locked" in fault
        connection.exec_driver_sql("ROLLBACK")
    other.dispose()
    clock.advance(FAULTS_KEPT_S + 0.1)
    assert await engine.faults() == []
    await store.close()


async def test_an_engine_whose_disk_is_full_is_not_healthy_from_its_next_heartbeat_on(engine: Engine) -> None:
    def full(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith(("INSERT", "UPDATE")):
            raise sa.exc.OperationalError(statement, {}, OSError("database or disk is full"))

    its_writes = (engine.store._database.engine, "before_cursor_execute", full)
    sa.event.listen(*its_writes)
    await engine._heartbeat_loop._try_step()
    assert await engine.faults() == ["The store does not answer: database or disk is full."]
    (found,) = await engine.scanner.look()
    assert (found.code, found.message) == (FindingCode.STORE_UNREACHABLE, (await engine.faults())[0])
    sa.event.remove(*its_writes)
    await engine._heartbeat_loop._try_step()
    assert await engine.scanner.look() == []
    assert isinstance(engine.clock, ManualClock)
    engine.clock.advance(FAULTS_KEPT_S + 0.1)
    assert await engine.faults() == []


async def test_a_cluster_that_cannot_say_what_it_holds_costs_no_heartbeat(
    store: Store, clock: ManualClock, executor: ScriptedExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(ScriptedExecutor):
        async def capacity(self) -> Capacity:
            raise OSError("no route")

    class Hanging(ScriptedExecutor):
        async def capacity(self) -> Capacity:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("clickclock.scheduler.executors.CAPACITY_S_MAX", 0.01)
    clusters = {"local": executor, "broken": Broken(clock), "hanging": Hanging(clock)}
    engine = Engine(store, clock, clusters, node=NODE, version="1")
    await engine.beat()
    (replica,) = await store.replicas.living(NOW)
    told = {each["cluster"]: (each["reachable"], each["message"]) for each in replica.clusters}
    assert told["local"] == (True, None)
    assert told["broken"] == (False, "OSError: no route")
    assert told["hanging"] == (False, "The cluster did not answer within 0.01 s.")


async def test_whoever_fell_silent_with_attempts_is_told_of(store: Store) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    await queue(store)
    await claim(store, lease="other", node="node-2")
    assert await store.replicas.silent(at(1)) == []
    ((silent, held),) = await store.replicas.silent(at(16))
    assert (silent.node, held) == ("node-2", 1)


async def test_whoever_fell_silent_is_told_of_for_a_while_and_who_left_is_not(store: Store) -> None:
    await store.replicas.beat(heartbeat("other", node="node-2"))
    await store.replicas.beat(heartbeat("gone", node="node-3"))
    await store.replicas.leave("gone", at(1))
    assert [(each.node, held) for each, held in await store.replicas.silent(at(16))] == [("node-2", 0)]
    assert await store.replicas.silent(at(601)) == []


SOONER_S = 15.0
"""Less than the time after which a loop that nobody wakes looks by itself."""


async def test_what_is_queued_starts_though_nobody_wakes_the_dispatcher(
    engine: Engine, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    async with one_running(engine, store, executor), asyncio.timeout(SOONER_S):
        trigger_id = await queue(store)

        async def started() -> bool:
            await store.triggers.find({}, None, 1)
            return f"{trigger_id}-1" in executor.running

        await until(started)


async def test_a_planned_start_that_could_not_be_handed_over_is_looked_after(
    engine: Engine, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await add_schedule(store)
    async with one_running(engine, store, executor), asyncio.timeout(SOONER_S):
        executor.takes_starts = False
        clock.advance(60)
        engine.change_schedules()

        async def taken() -> bool:
            return (await states(store, schedule_id="s")) == [State.STARTING]

        async def started() -> bool:
            await store.triggers.find({}, None, 1)
            return len(executor.running) == 2

        await until(taken)
        executor.takes_starts = True
        await until(started)

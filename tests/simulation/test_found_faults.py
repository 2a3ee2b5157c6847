"""Faults that the simulation found, each as the shortest story that shows it."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import ExecutorUnreachable, StoreUnreachable
from clickclock.foundation.ids import new_id
from clickclock.scheduler.agents.rescuer import LOOK_EVERY_S, SILENT_S
from clickclock.scheduler.engine import HEARTBEAT_EVERY_S, LEASE_S, Engine
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import FINISHED, NewTrigger, State
from clickclock.scheduler.store import Store
from clickclock.scheduler.store.database import Database
from tests.simulation.world import Connection, Faults, FaultyDatabase, Node, World, jump

T = TypeVar("T")
CLUSTER = "local"


class LostAnswer(Faults):
    """Of the calls from now on, the one of that number does what it should, and its answer is lost."""

    armed = 0

    async def around(self, call: Callable[[], Awaitable[T]], fault: type[Exception]) -> T:
        result = await call()
        self.armed -= 1
        if self.armed == 0:
            raise fault
        return result


class Stage:
    """Two nodes, one store, one job with a queued trigger."""

    def __init__(self, database: Database) -> None:
        self.dice = random.Random(1)
        self.clock = ManualClock(datetime(2026, 11, 20, 10, tzinfo=UTC))
        self.world = World(self.dice, self.clock)
        self.database = database
        self.store = Store(database, CLUSTER)

    async def engine(self, name: str) -> tuple[Engine, LostAnswer, LostAnswer]:
        """A replica on a node of its own, with its connections to the store and to its executor."""
        node = self.world.nodes.setdefault(name, Node(name))
        to_store, to_executor = LostAnswer(self.dice), LostAnswer(self.dice)
        connection = Connection(self.world, node, to_executor)
        store = Store(FaultyDatabase(self.database, to_store), CLUSTER)
        engine = Engine(store, self.clock, {CLUSTER: connection}, node=name, version="0", fraction=self.dice.random)
        await engine.open()
        return engine, to_store, to_executor

    async def trigger(self) -> str:
        """Have the job run once."""
        await self.store.jobs.create([Job(application="sim", job_name="j", command="true")], self.clock.now())
        new = NewTrigger(new_id(), "sim", "j", {})
        return (await self.store.triggers.create(new, self.clock.now()))[0].trigger_id

    async def state(self, trigger_id: str) -> State:
        return (await self.store.triggers.get(trigger_id)).state

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.world.pass_time()


@pytest.fixture
async def stage(store_url: Callable[[str], str]) -> AsyncIterator[Stage]:
    database = Database(store_url("sqlite"))
    yield Stage(database)
    database.close()


async def test_a_start_whose_answer_was_lost_is_not_made_again_after_the_attempt_was_forgotten(stage: Stage) -> None:
    engine, _, to_executor = await stage.engine("north")
    await engine.dispatcher.step()
    trigger_id = await stage.trigger()
    to_executor.armed = 1
    with pytest.raises(ExecutorUnreachable):
        await engine.dispatcher.step()
    stage.pass_time(60)
    await engine.watcher.step()
    assert await stage.state(trigger_id) in FINISHED
    assert stage.world.nodes["north"].known == {}
    await engine.dispatcher.step()
    assert stage.world.doubled == []
    assert stage.world.nodes["north"].known == {}


async def test_a_claim_whose_answer_was_lost_is_started_by_the_next_step(stage: Stage) -> None:
    engine, to_store, _ = await stage.engine("north")
    await engine.dispatcher.step()
    trigger_id = await stage.trigger()
    to_store.armed = 1
    with pytest.raises(StoreUnreachable):
        await engine.dispatcher.step()
    assert await stage.state(trigger_id) is State.STARTING
    assert stage.world.runs == {}
    await engine.dispatcher.step()
    assert stage.world.runs.keys() == {f"{trigger_id}-1"}


async def test_what_was_claimed_and_cancelled_before_it_was_started_is_cancelled_and_never_runs(stage: Stage) -> None:
    engine, to_store, _ = await stage.engine("north")
    await engine.dispatcher.step()
    trigger_id = await stage.trigger()
    to_store.armed = 1
    with pytest.raises(StoreUnreachable):
        await engine.dispatcher.step()
    await stage.store.triggers.cancel(trigger_id, stage.clock.now())
    await engine.dispatcher.step()
    assert await stage.state(trigger_id) is State.CANCELLED
    assert stage.world.runs == {}


async def test_a_step_of_the_clock_takes_nothing_from_a_replica_that_lives(stage: Stage) -> None:
    north, _, _ = await stage.engine("north")
    south, _, _ = await stage.engine("south")
    trigger_id = await stage.trigger()
    await north.dispatcher.step()
    await south.rescuer.step()
    for _ in range(3):
        jump(stage.clock, 3600.0)
        await south.rescuer.step()
        stage.clock.advance(LOOK_EVERY_S)
        await north.beat()
        await south.rescuer.step()
    assert await stage.state(trigger_id) is State.STARTING


async def test_a_replica_that_says_nothing_any_more_loses_what_it_held(stage: Stage) -> None:
    north, _, _ = await stage.engine("north")
    south, _, _ = await stage.engine("south")
    trigger_id = await stage.trigger()
    await north.dispatcher.step()
    stage.clock.advance(LEASE_S + HEARTBEAT_EVERY_S)
    await south.rescuer.step()
    assert await stage.state(trigger_id) is State.STARTING
    stage.clock.advance(SILENT_S)
    await south.rescuer.step()
    assert await stage.state(trigger_id) is State.LOST


@pytest.mark.parametrize("call", range(1, 6))
async def test_what_is_given_up_is_never_for_a_moment_anybodys_else(stage: Stage, call: int) -> None:
    """A rescue that breaks off, and a holder that comes back in that moment, restarts, and finds its own attempt."""
    north, _, _ = await stage.engine("north")
    south, to_store, _ = await stage.engine("south")
    trigger_id = await stage.trigger()
    await north.dispatcher.step()
    stage.pass_time(LEASE_S + HEARTBEAT_EVERY_S)
    await south.rescuer.step()
    stage.clock.advance(SILENT_S)
    to_store.armed = call
    with suppress(StoreUnreachable):
        await south.rescuer.step()
    await north.watcher.step()
    north, _, _ = await stage.engine("north")
    await north.dispatcher.step()
    await north.watcher.step()
    assert stage.world.doubled == []
    assert await stage.state(trigger_id) in FINISHED

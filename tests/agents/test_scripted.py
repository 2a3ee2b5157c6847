"""The scripted executor keeps the promises of the door, or the agents' tests would teach the code something untrue."""

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.executors import Executor, Launch
from clickclock.scheduler.jobs.trigger import ExitKind
from tests.agents.conftest import Calls
from tests.agents.scripted import ScriptedExecutor
from tests.stores import NOW, at

ONE = Launch("t-1", ("true",))


async def test_a_name_that_is_started_twice_runs_once(executor: ScriptedExecutor) -> None:
    door: Executor = executor
    await door.start([ONE, ONE])
    await door.start([ONE])
    executor.end("t-1")
    await door.start([ONE])
    assert executor.starts == ["t-1"]


async def test_a_change_is_told_once_and_all_again_after_opening(
    executor: ScriptedExecutor, clock: ManualClock, calls: Calls
) -> None:
    await executor.open(calls)
    assert calls.count == 0
    await executor.start([ONE])
    ((name, began, exit_),) = [(each.name, each.started_at, each.exit) for each in await executor.observe()]
    assert (name, began, exit_) == ("t-1", NOW, None)
    assert list(await executor.observe()) == []
    clock.advance(3)
    executor.end("t-1", code=4)
    assert calls.count == 2
    for _ in range(2):
        (sighting,) = await executor.observe()
        assert sighting.exit is not None
        assert (sighting.exit.kind, sighting.exit.code, sighting.exit.finished_at) == (ExitKind.CODE, 4, at(3))
        await executor.open(calls)
    assert calls.count == 4


async def test_only_what_has_ended_is_forgotten(executor: ScriptedExecutor, calls: Calls) -> None:
    await executor.start([ONE])
    await executor.forget(["t-1", "unknown-1"])
    assert list(await executor.inventory()) == ["t-1"]
    executor.end("t-1")
    await executor.forget(["t-1"])
    assert await executor.inventory() == {}
    await executor.observe()
    await executor.open(calls)
    assert list(await executor.observe()) == []


async def test_stopping_is_idempotent_and_passes_over_the_unknown(executor: ScriptedExecutor) -> None:
    await executor.start([ONE])
    for _ in range(2):
        await executor.stop(["t-1", "unknown-1"], 1.0)
    inventory = await executor.inventory()
    assert inventory["t-1"].exit is not None
    assert inventory["t-1"].exit.kind is ExitKind.STOPPED


async def test_output_is_read_in_pieces_until_it_is_complete(executor: ScriptedExecutor) -> None:
    assert await executor.read_log("t-1", 0, 10) is None
    await executor.start([ONE])
    first = await executor.read_log("t-1", 0, 2)
    assert first is not None
    assert (first.data, first.next_offset, first.complete) == (b"t-", 2, False)
    executor.end("t-1")
    rest = await executor.read_log("t-1", 2, 10)
    assert rest is not None
    assert (rest.data, rest.next_offset, rest.complete) == (b"1", 3, True)
    await executor.remove_logs(["t-1", "unknown-1"])
    assert await executor.read_log("t-1", 0, 10) is None

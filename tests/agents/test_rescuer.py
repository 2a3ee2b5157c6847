"""The rescuer: what a replica left behind is adopted, or lost; what is foreign is ended."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.ids import new_id
from clickclock.scheduler.agents.rescuer import COMPARE_EVERY_S, LOOK_EVERY_S, SILENT_S, Rescuer
from clickclock.scheduler.executors import Sighting
from clickclock.scheduler.jobs.trigger import ExitKind, State
from clickclock.scheduler.store import Store
from tests.agents.conftest import Calls
from tests.agents.scripted import ScriptedExecutor, SharedScriptedExecutor
from tests.stores import LEASE, NODE, NOW, add_job, at, claim, ended, finish, heartbeat, job, queue, states

BEFORE = "an-earlier-life"


@pytest.fixture
def rescuer(store: Store, clock: ManualClock, executor: ScriptedExecutor, calls: Calls) -> Rescuer:
    return Rescuer(store, clock, {"local": executor}, node=NODE, lease_id=LEASE, fraction=lambda: 0.5, concluded=calls)


async def left(store: Store, executor: ScriptedExecutor | None, lease: str = BEFORE, node: str = NODE) -> str:
    """An attempt that was claimed, and seen running if there is an executor for it; its name."""
    await queue(store)
    (launch,) = (await claim(store, lease=lease, node=node)).launches
    if executor is not None:
        await executor.start([launch])
        await store.queue.mark_running(lease, [(launch.name, node, NOW)])
    return launch.name


async def listen(rescuer: Rescuer, clock: ManualClock, seconds: float = SILENT_S) -> None:
    """Look for so long, and once more."""
    for _ in range(round(seconds / LOOK_EVERY_S)):
        await rescuer.step()
        clock.advance(LOOK_EVERY_S)
    await rescuer.step()


async def held(store: Store) -> list[str]:
    return [each.name for each in await store.queue.held(LEASE)]


async def test_what_still_runs_is_adopted_and_goes_on(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor, calls: Calls
) -> None:
    await add_job(store)
    name = await left(store, executor)
    await rescuer.adopt()
    assert await held(store) == [name]
    assert (await states(store), executor.running, executor.stops) == ([State.RUNNING], [name], [])
    assert calls.count == 0


async def test_what_ended_meanwhile_is_kept_for_the_watcher(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    name = await left(store, executor)
    executor.end(name)
    await rescuer.adopt()
    assert await held(store) == [name]
    assert executor.forgotten == []


async def test_what_was_claimed_and_never_started_is_kept_for_the_dispatcher(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    name = await left(store, None)
    await rescuer.adopt()
    assert await held(store) == [name]
    assert await states(store) == [State.STARTING]


async def test_a_service_starts_although_what_it_left_behind_no_longer_fits_its_job(
    rescuer: Rescuer, store: Store
) -> None:
    await add_job(store, parameters={"day": "x"})
    await left(store, None)
    await store.jobs.put(job(command="run {{ parameters.hour }}", parameters={"hour": None}), NOW)
    await rescuer.adopt()
    await store.jobs.delete("shop", "export", NOW, force=True)
    await rescuer.adopt()


async def test_what_ran_and_is_unknown_now_is_lost_and_tried_again_where_it_may(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor, calls: Calls
) -> None:
    await add_job(store, max_retries=1)
    name = await left(store, executor)
    executor.lose(name)
    await rescuer.adopt()
    (trigger,) = await store.triggers.find({}, None, 10)
    assert (trigger.state, trigger.message) == (
        State.QUEUED,
        "Nothing is known of the attempt on node-1.",
    )
    assert calls.count == 1


async def test_what_runs_here_and_is_no_longer_ours_is_ended(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    name = await left(store, executor)
    await finish(store, name, ended(), lease=BEFORE)
    await rescuer.adopt()
    assert executor.stops == [(name, 0.0)]
    assert executor.running == []


async def test_what_ended_and_was_only_not_forgotten_before_we_died_is_forgotten_without_a_warning(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    await add_job(store)
    name = await left(store, executor)
    executor.end(name)
    await finish(store, name, ended(), lease=BEFORE)
    await rescuer.adopt()
    assert executor.forgotten == [name]
    assert caplog.text == ""


async def test_what_another_node_left_behind_is_not_adopted(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await left(store, None, lease="other", node="node-2")
    await rescuer.adopt()
    assert await held(store) == []


async def test_an_attempt_of_a_living_replica_is_left_alone(
    rescuer: Rescuer, store: Store, clock: ManualClock, calls: Calls
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", lease_s=15, node="node-2"))
    await left(store, None, lease="other", node="node-2")
    for _ in range(3):
        assert await rescuer.step() == LOOK_EVERY_S
        clock.advance(4)
    assert (await states(store), calls.count) == ([State.STARTING], 0)


async def test_an_attempt_of_a_replica_that_fell_silent_is_lost(
    rescuer: Rescuer, store: Store, clock: ManualClock, calls: Calls
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", lease_s=15, node="node-2"))
    name = await left(store, None, lease="other", node="node-2")
    clock.advance(16)
    await listen(rescuer, clock, SILENT_S - LOOK_EVERY_S)
    assert await states(store) == [State.STARTING]  # its lease ran out; but was it silent for long enough?
    clock.advance(LOOK_EVERY_S)
    await rescuer.step()
    assert await states(store) == [State.LOST]
    assert calls.count == 1
    assert await finish(store, name, ended(), lease="other") is None


async def test_a_step_of_the_clock_makes_no_living_replica_lose_its_attempts(
    rescuer: Rescuer, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    await left(store, None, lease="other", node="node-2")
    clock.step_to(at(86400))
    await rescuer.step()
    await store.replicas.beat(heartbeat("other", at(86401), node="node-2"))
    clock.step_to(at(86406))
    await rescuer.step()
    assert await states(store) == [State.STARTING]


async def test_an_attempt_of_a_replica_that_left_no_trace_is_lost(
    rescuer: Rescuer, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await left(store, None, lease=new_id(), node="node-2")
    await listen(rescuer, clock)
    assert await states(store) == [State.LOST]


async def test_an_attempt_that_vanished_under_us_is_lost(
    rescuer: Rescuer, store: Store, clock: ManualClock, executor: ScriptedExecutor, calls: Calls
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat())
    name = await left(store, executor, lease=LEASE)
    await rescuer.step()
    assert await states(store) == [State.RUNNING]
    executor.lose(name)
    clock.advance(COMPARE_EVERY_S)
    await rescuer.step()
    assert (await states(store), calls.count) == ([State.LOST], 1)


async def test_an_attempt_on_its_way_to_the_executor_has_not_vanished(rescuer: Rescuer, store: Store) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat())
    await left(store, None, lease=LEASE)
    await rescuer.step()
    assert await states(store) == [State.STARTING]


async def test_our_own_lease_that_ran_out_while_we_slept_costs_us_nothing(
    rescuer: Rescuer, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat())
    name = await left(store, executor, lease=LEASE)
    clock.advance(3600)
    for _ in range(3):
        await rescuer.step()
    assert await held(store) == [name]
    assert await states(store) == [State.RUNNING]


async def test_a_replica_that_stood_still_ends_what_others_gave_up_meanwhile(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store, max_retries=1)
    await store.replicas.beat(heartbeat())
    name, kept = await left(store, executor, lease=LEASE), await left(store, executor, lease=LEASE)
    await finish(store, name, ended(kind=ExitKind.LOST))  # as another replica does it
    await rescuer.step()
    assert executor.stops == [(name, 0.0)]
    assert executor.running == [kept]
    assert executor.forgotten == [name]


async def test_what_runs_here_and_another_lease_holds_is_left_alone(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    name = await left(store, executor, lease="other", node="node-2")
    await rescuer.adopt()
    await rescuer.step()
    assert (executor.stops, executor.running) == ([], [name])


async def test_a_store_that_was_away_costs_nobody_an_attempt(
    rescuer: Rescuer, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    await left(store, None, lease="other", node="node-2")
    clock.advance(16)
    await rescuer.step()
    clock.advance(60)  # and in all this time nobody could look or beat
    await listen(rescuer, clock, SILENT_S - LOOK_EVERY_S)
    assert await states(store) == [State.STARTING]
    await store.replicas.beat(heartbeat("other", clock.now(), node="node-2"))
    await listen(rescuer, clock)
    assert await states(store) == [State.STARTING]


async def test_a_cluster_that_fails_keeps_no_other_from_its_rescue(
    store: Store, clock: ManualClock, executor: ScriptedExecutor, calls: Calls
) -> None:
    class Broken(ScriptedExecutor):
        async def inventory(self) -> Mapping[str, Sighting]:
            raise OSError("no route")

    both = {"broken": Broken(clock), "local": executor}
    rescuer = Rescuer(store, clock, both, node=NODE, lease_id=LEASE, fraction=lambda: 0.5, concluded=calls)
    await add_job(store)
    name = await left(store, executor, lease=LEASE)
    await rescuer.adopt()
    executor.lose(name)
    await rescuer.step()
    assert await states(store) == [State.LOST]
    assert rescuer.clusters.trouble("broken") == "OSError: no route"


async def test_a_cluster_that_is_away_at_the_start_is_adopted_when_it_answers(
    rescuer: Rescuer, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    mine = await left(store, executor)
    vanished = await left(store, executor)
    executor.lose(vanished)
    executor.begin("foreign-1")
    executor.reachable = False
    await rescuer.adopt()
    await rescuer.step()
    assert sorted(await held(store)) == sorted([mine, vanished])
    assert executor.stops == []
    executor.reachable = True
    await rescuer.step()
    assert await held(store) == [mine]
    assert (executor.running, executor.forgotten) == ([mine], ["foreign-1"])


@pytest.fixture
def cluster(clock: ManualClock) -> SharedScriptedExecutor:
    return SharedScriptedExecutor(clock)


@pytest.fixture
def heir(store: Store, clock: ManualClock, cluster: SharedScriptedExecutor, calls: Calls) -> Rescuer:
    """A rescuer whose attempts run where every replica sees them."""
    return Rescuer(
        store,
        clock,
        {"local": cluster},
        node=NODE,
        lease_id=LEASE,
        fraction=lambda: 0.5,
        concluded=lambda: None,
        took_over=calls,
    )


async def test_an_attempt_that_belongs_to_no_host_is_gone_on_with_when_its_replica_falls_silent(
    heir: Rescuer, store: Store, clock: ManualClock, cluster: SharedScriptedExecutor, calls: Calls
) -> None:
    await add_job(store, max_retries=1)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    runs = await left(store, cluster, lease="other", node="node-2")
    claimed = await left(store, None, lease="other", node="node-2")
    clock.advance(16)
    await listen(heir, clock)
    assert sorted(await held(store)) == sorted([runs, claimed])
    assert sorted(await states(store)) == [State.RUNNING, State.STARTING]
    assert cluster.adopted == {runs: True, claimed: True}
    assert cluster.stops == []
    assert calls.count >= 1  # the dispatcher is to look for what was never started
    assert await finish(store, runs, ended(), lease="other") is None


async def test_an_attempt_of_a_replica_that_took_its_leave_is_gone_on_with_at_once(
    heir: Rescuer, store: Store, clock: ManualClock, cluster: SharedScriptedExecutor
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    name = await left(store, cluster, lease="other", node="node-2")
    await store.replicas.leave("other", clock.now())
    await heir.step()
    assert await held(store) == [name]


async def test_an_attempt_that_could_not_be_told_of_is_told_of_when_its_cluster_answers(
    heir: Rescuer, store: Store, clock: ManualClock, cluster: SharedScriptedExecutor
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    name = await left(store, cluster, lease="other", node="node-2")
    await store.replicas.leave("other", clock.now())
    cluster.reachable = False
    await heir.step()
    assert cluster.adopted == {}
    cluster.reachable = True
    await heir.step()
    assert cluster.adopted == {name: True}
    assert await states(store) == [State.RUNNING]


async def test_what_another_replica_went_on_with_is_let_be_and_what_is_nobodys_is_ended_at_the_second_look(
    heir: Rescuer, store: Store, clock: ManualClock, cluster: SharedScriptedExecutor
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    theirs = await left(store, cluster, lease="other", node="node-2")
    concluded = await left(store, cluster, lease="other", node="node-2")
    await finish(store, concluded, ended(), lease="other")
    await heir.step()
    assert (cluster.released, cluster.stops) == ([theirs], [])
    clock.advance(COMPARE_EVERY_S)
    await heir.step()
    assert cluster.stops == [(concluded, 0.0)]


async def test_after_a_restart_what_another_replica_went_on_with_meanwhile_stays_with_it(
    heir: Rescuer, store: Store, cluster: SharedScriptedExecutor
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    theirs, mine = await left(store, cluster), await left(store, cluster)
    abandoned = await store.queue.abandoned(NOW)
    await store.queue.take_over([each for each in abandoned if each.name == theirs], "other", NODE)
    await heir.adopt()
    assert await held(store) == [mine]
    assert cluster.adopted == {mine: False}


async def test_an_attempt_on_a_cluster_that_only_others_have_waits_for_them(
    rescuer: Rescuer, store: Store, clock: ManualClock
) -> None:
    await add_job(store, cluster="prod")
    beat = replace(heartbeat("other", node="node-2"), clusters=[{"cluster": "prod", "shared": True}])
    await store.replicas.beat(beat)
    await queue(store)
    assert (await claim(store, cluster="prod", lease="other", node="node-2")).launches
    clock.advance(16)
    await listen(rescuer, clock)
    assert (await states(store), await held(store)) == ([State.STARTING], [])

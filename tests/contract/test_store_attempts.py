"""Attempts in every store: marked, finished, taken over, and fenced at each of these."""

import asyncio

import pytest

from clickclock.scheduler.insight.statistics import Scope
from clickclock.scheduler.insight.summary import summarise
from clickclock.scheduler.jobs.trigger import ExitKind, State, StopReason, Trigger
from clickclock.scheduler.store import Store
from tests.stores import (
    LEASE,
    NODE,
    NOW,
    add_job,
    add_schedule,
    at,
    claim,
    ended,
    finish,
    heartbeat,
    job,
    plan,
    queue,
    start,
    states,
    triggers,
)


async def trigger_of(store: Store, name: str) -> Trigger:
    return await store.triggers.get(name.rpartition("-")[0])


async def test_an_attempt_that_was_seen_running_says_since_when_and_how_late(store: Store) -> None:
    await add_job(store)
    await queue(store)
    (launch,) = (await claim(store)).launches
    await store.queue.mark_running("lease-1", [(launch.name, "node-9", at(1.25))])
    trigger = await trigger_of(store, launch.name)
    assert (trigger.state, trigger.started_at, trigger.node) == (State.RUNNING, at(1.25), "node-9")
    assert (trigger.lag_ms, trigger.duration_ms) == (1250, None)


async def test_marking_is_fenced_by_lease_attempt_and_state(store: Store) -> None:
    await add_job(store, max_retries=1)
    await queue(store)
    (launch,) = (await claim(store)).launches
    await store.queue.mark_running("another", [(launch.name, "n", NOW)])
    await store.queue.mark_running("lease-1", [(launch.name[:-1] + "2", "n", NOW)])
    await store.queue.mark_running("lease-1", [("unknown-1", "n", NOW)])
    assert await states(store) == [State.STARTING]
    await finish(store, launch.name, ended(code=1), fraction=0.0)
    await store.queue.mark_running("lease-1", [(launch.name, "n", NOW)])
    assert await states(store) == [State.QUEUED]


async def test_an_end_is_written_with_all_that_is_known(store: Store) -> None:
    await add_job(store)
    name = await start(store, now=at(1))
    end = ended(at(5), started_at=at(2), cpu_seconds=0.5, max_memory_bytes=1000)
    conclusion = await finish(store, name, end)
    assert conclusion is not None
    assert conclusion.state is State.SUCCEEDED
    trigger = await trigger_of(store, name)
    assert (trigger.state, trigger.finished_at, trigger.started_at) == (State.SUCCEEDED, at(5), at(2))
    assert (trigger.duration_ms, trigger.exit_code, trigger.signal, trigger.retry_at) == (3000, 0, None, None)
    assert (trigger.cpu_seconds, trigger.max_memory_bytes) == (0.5, 1000)
    assert await store.queue.held("lease-1") == []


async def test_an_attempt_may_end_before_it_was_seen_running(store: Store) -> None:
    await add_job(store)
    await queue(store)
    (launch,) = (await claim(store)).launches
    await finish(store, launch.name, ended(at(3), started_at=at(2)))
    trigger = await trigger_of(store, launch.name)
    assert (trigger.state, trigger.lag_ms, trigger.duration_ms) == (State.SUCCEEDED, 2000, 1000)


async def test_what_was_not_measured_stays_unknown(store: Store) -> None:
    await add_job(store)
    await queue(store)
    (launch,) = (await claim(store)).launches
    await finish(store, launch.name, ended(at(3), kind=ExitKind.NOT_STARTED))
    trigger = await trigger_of(store, launch.name)
    assert (trigger.state, trigger.lag_ms, trigger.duration_ms) == (State.FAILED, None, None)
    assert (trigger.cpu_seconds, trigger.max_memory_bytes, trigger.exit_code) == (None, None, None)


async def test_the_measures_of_all_attempts_add_up(store: Store) -> None:
    await add_job(store, max_retries=1)
    name = await start(store)
    await finish(store, name, ended(at(1), code=1, cpu_seconds=0.5, max_memory_bytes=9), fraction=0.0)
    (again,) = (await claim(store, at(1))).launches
    await finish(store, again.name, ended(at(4), started_at=at(2), cpu_seconds=0.25, max_memory_bytes=7))
    trigger = await trigger_of(store, name)
    assert (trigger.cpu_seconds, trigger.max_memory_bytes, trigger.attempt) == (0.75, 9, 2)
    assert (trigger.lag_ms, trigger.duration_ms) == (0, 2000)  # the first start, the last run


async def test_a_failure_goes_back_to_the_queue_while_attempts_remain(store: Store) -> None:
    await add_job(store, max_retries=1)
    name = await start(store)
    conclusion = await finish(store, name, ended(at(2), code=1), fraction=0.25)
    assert conclusion is not None
    assert conclusion.retry_at == at(2.25)
    trigger = await trigger_of(store, name)
    assert (trigger.state, trigger.finished_at, trigger.retry_at) == (State.QUEUED, None, at(2.25))
    assert (trigger.message, trigger.exit_code) == ("The command ended with exit code 1.", 1)
    assert await store.statistics.rollups(Scope.of(), NOW, at(3600)) == []


async def test_what_runs_already_is_marked_running_once(store: Store) -> None:
    await add_job(store)
    name = await start(store)
    await store.queue.mark_running(LEASE, [(name, "node-2", at(5))])
    trigger = await trigger_of(store, name)
    assert (trigger.state, trigger.started_at, trigger.node) == (State.RUNNING, NOW, NODE)


async def test_a_late_replica_cannot_finish_a_rescued_attempt(store: Store, second: Store) -> None:
    await add_job(store, max_retries=1)
    name = await start(store)
    await second.queue.take_over(await second.queue.abandoned(NOW), "lease-2", "node-2")
    assert await finish(store, name, ended()) is None
    assert await states(store) == [State.RUNNING]
    await finish(second, name, ended(kind=ExitKind.LOST), lease="lease-2", fraction=0.0)
    (again,) = (await claim(second, lease="lease-2")).launches
    assert await finish(store, name, ended()) is None
    assert await finish(second, name, ended(), lease="lease-2") is None  # an earlier attempt of the same trigger
    assert await finish(second, again.name, ended(), lease="lease-2") is not None
    assert await states(store) == [State.SUCCEEDED]


async def test_an_end_told_twice_is_written_once(store: Store, second: Store) -> None:
    await add_job(store)
    name = await start(store)
    told = await asyncio.gather(*(finish(each, name, ended()) for each in (store, second) * 3))
    assert sum(each is not None for each in told) == 1
    ((_, rollup),) = await store.statistics.rollups(Scope.of(), NOW, at(3600))
    assert rollup.states[State.SUCCEEDED] == 1


async def test_many_ends_are_one_batch_and_foreign_ones_are_left_out(store: Store) -> None:
    await add_job(store)
    mine = [await start(store) for _ in range(5)]
    foreign = await start(store, lease="another")
    exits = {name: ended(at(1)) for name in (*mine, foreign, "unknown-1")}
    assert set(await store.queue.finish("lease-1", exits, lambda: 0.0)) == set(mine)
    assert await store.queue.finish("lease-1", exits, lambda: 0.0) == {}


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (StopReason.CANCELLED, "Cancelled."),
        (StopReason.REPLACED, "Replaced by the schedule's next time."),
        (StopReason.SHUTDOWN, "Stopped with the service (--stop-jobs)."),
    ],
)
async def test_a_stopped_attempt_ends_as_cancelled_and_says_why(store: Store, reason: StopReason, message: str) -> None:
    await add_job(store, max_retries=3)
    await add_schedule(store, overlap_policy="replace")
    await plan(store, at(60))
    (launch,) = (await claim(store, at(60))).launches
    if reason is StopReason.CANCELLED:
        await store.triggers.cancel(launch.name.rpartition("-")[0], at(61))
    elif reason is StopReason.REPLACED:
        await plan(store, at(120))
    else:
        await store.queue.stop_all("lease-1")
    (held,) = await store.queue.stopping("lease-1")
    assert held.stop_reason is reason
    await finish(store, launch.name, ended(at(121), kind=ExitKind.STOPPED))
    trigger = await trigger_of(store, launch.name)
    assert (trigger.state, trigger.message, trigger.stop_reason) == (State.CANCELLED, message, reason)


async def test_stopping_all_leaves_other_replicas_and_earlier_reasons_alone(store: Store) -> None:
    await add_job(store)
    cancelled, running = await start(store), await start(store)
    foreign = await start(store, lease="another")
    await store.triggers.cancel(cancelled.rpartition("-")[0], NOW)
    await store.queue.stop_all("lease-1")
    reasons = {each.name: each.stop_reason for each in await store.queue.held("lease-1")}
    assert reasons == {cancelled: StopReason.CANCELLED, running: StopReason.SHUTDOWN}
    assert (await trigger_of(store, foreign)).stop_reason is None


async def test_an_attempt_is_abandoned_when_the_lease_of_its_replica_runs_out(store: Store) -> None:
    await add_job(store)
    name = await start(store)
    await store.replicas.beat(heartbeat(lease_s=15))
    assert await store.queue.abandoned(at(14.999)) == []
    assert [each.name for each in await store.queue.abandoned(at(15))] == [name]
    await store.replicas.beat(heartbeat(now=at(10), lease_s=15))
    assert await store.queue.abandoned(at(20)) == []
    await store.replicas.leave("lease-1", at(20))
    assert [each.name for each in await store.queue.abandoned(at(20))] == [name]


async def test_what_a_node_left_behind_is_what_an_earlier_replica_of_it_held(store: Store) -> None:
    await add_job(store)
    name = await start(store, lease="before")
    assert [each.name for each in await store.queue.left_behind("node-1", "now", NOW)] == [name]
    assert await store.queue.left_behind("node-1", "before", NOW) == []
    assert await store.queue.left_behind("node-2", "now", NOW) == []


async def test_what_a_living_replica_took_over_is_not_left_behind(store: Store) -> None:
    await add_job(store)
    name = await start(store, lease="before")
    await store.replicas.beat(heartbeat("other", node="node-2"))
    await store.queue.take_over(await store.queue.abandoned(NOW), "other", NODE)
    assert await store.queue.left_behind(NODE, "now", at(1)) == []
    assert [each.name for each in await store.queue.left_behind(NODE, "now", at(60))] == [name]


async def test_the_output_of_an_attempt_is_kept_where_it_ran_or_by_who_watched_over_it(store: Store) -> None:
    await add_job(store, max_retries=2)
    name = await start(store)
    trigger_id = name[:-2]
    assert await store.replicas.keeper(trigger_id, 1) == NODE
    assert await store.replicas.keeper(trigger_id, 2) is None
    (held,) = await store.queue.held(LEASE)
    await store.queue.take_over([held], "other", "node-2")
    assert await store.replicas.keeper(trigger_id, 1) == "node-2"
    await finish(store, name, ended(code=1, node="a-machine-of-the-cluster"), lease="other")
    assert await store.replicas.keeper(trigger_id, 1) == "node-2"
    (again,) = (await claim(store, at(60))).launches
    await finish(store, again.name, ended(at(60)))
    assert [await store.replicas.keeper(trigger_id, number) for number in (1, 2)] == ["node-2", NODE]


async def test_of_two_that_take_over_an_attempt_one_gets_it(store: Store, second: Store) -> None:
    await add_job(store)
    for _ in range(5):
        await start(store, lease="gone")
    left = await store.queue.abandoned(NOW)
    await asyncio.gather(store.queue.take_over(left, "a", "node-1"), second.queue.take_over(left, "b", "node-2"))
    holders = [len(await store.queue.held(each)) for each in ("a", "b", "gone")]
    assert sum(holders) == 5
    assert holders[2] == 0
    await store.queue.take_over([], "a", "node-1")
    assert len(await store.queue.held("a")) == holders[0]


async def test_a_stale_list_takes_over_no_attempt_that_its_holder_began_since(store: Store) -> None:
    await add_job(store, max_retries=1)
    first = await start(store, lease="late")
    left = await store.queue.abandoned(NOW)
    assert [each.name for each in left] == [first]
    await finish(store, first, ended(code=1), lease="late")
    (again,) = (await claim(store, at(3600), lease="late")).launches
    await store.queue.take_over(left, "other", "node-2")
    assert [each.name for each in await store.queue.held("late")] == [again.name]
    assert await store.queue.held("other") == []


async def test_a_stale_list_takes_over_no_attempt_that_somebody_has_taken_since(store: Store) -> None:
    await add_job(store)
    name = await start(store, lease="gone")
    left = await store.queue.abandoned(NOW)
    await store.queue.take_over(left, "a", "node-1")
    await store.queue.take_over(left, "b", "node-2")
    assert [each.name for each in await store.queue.held("a")] == [name]
    assert await store.queue.held("b") == []


async def test_a_claimed_attempt_can_be_launched_again_under_its_name(store: Store) -> None:
    await add_job(store, parameters={"day": "x"}, command="run {{ parameters.day }}")
    await queue(store)
    (launch,) = (await claim(store)).launches
    assert await store.queue.relaunch("lease-1", [launch.name]) == ([launch], {})
    await finish(store, launch.name, ended())
    assert await store.queue.relaunch("lease-1", [launch.name]) == ([], {})
    assert await store.queue.relaunch("lease-1", []) == ([], {})


async def test_what_no_longer_fits_its_job_is_not_launched_again_and_says_why(store: Store) -> None:
    await add_job(store, parameters={"day": "x"})
    await queue(store)
    (launch,) = (await claim(store)).launches
    await store.jobs.put(job(command="run {{ parameters.hour }}", parameters={"hour": None}), NOW)
    launches, unstartable = await store.queue.relaunch("lease-1", [launch.name])
    assert launches == []
    assert "hour" in unstartable[launch.name]


async def test_the_ends_of_one_hour_are_one_rollup(store: Store) -> None:
    await add_job(store)
    names = [await start(store) for _ in range(4)]
    await asyncio.gather(*(finish(store, name, ended(at(1), code=code)) for code, name in enumerate(names)))
    rollups = await store.statistics.rollups(Scope.of(), NOW, at(3600))
    assert len(rollups) == 1
    summary = summarise(rollup for _, rollup in rollups)
    assert (summary.succeeded, summary.failed) == (1, 3)
    assert len(await triggers(store)) == 4


async def test_what_another_holds_by_now_is_not_made_again(store: Store) -> None:
    await add_job(store, max_retries=1, retry_backoff={"initial_seconds": 0})
    await queue(store)
    (first,) = (await claim(store, lease="lease-1")).launches
    await finish(store, first.name, ended(kind=ExitKind.LOST), lease="lease-1")
    (second,) = (await claim(store, at(1), lease="lease-2")).launches
    assert second.name == first.name[:-1] + "2"
    for lease in ("lease-1", "lease-2"):
        assert await store.queue.relaunch(lease, [first.name]) == ([], {})
    assert await store.queue.relaunch("lease-1", [second.name]) == ([], {})


async def test_live_attempts_are_told_from_what_was_given_up(store: Store) -> None:
    await add_job(store, max_retries=1, retry_backoff={"initial_seconds": 0})
    await queue(store)
    (first,) = (await claim(store, lease="lease-1")).launches
    assert await store.queue.live_among([first.name, "nothing-1"]) == {first.name}
    await finish(store, first.name, ended(kind=ExitKind.LOST), lease="lease-1")
    (second,) = (await claim(store, at(1), lease="lease-2")).launches
    assert await store.queue.live_among([first.name, second.name]) == {second.name}
    assert await store.queue.live_among([]) == set()

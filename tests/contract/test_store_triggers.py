"""Triggers as their users see them, in every store: asked for, listed, cancelled, pruned."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from clickclock.foundation.errors import Invalid
from clickclock.foundation.ids import new_id
from clickclock.scheduler.errors import JobIsDisabled, JobNotFound, TriggerIsFinished, TriggerNotFound
from clickclock.scheduler.insight.statistics import Scope
from clickclock.scheduler.insight.summary import summarise
from clickclock.scheduler.jobs.trigger import Attempt, Kind, NewTrigger, State, StopReason
from clickclock.scheduler.store import Store
from tests.stores import (
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
)

LATER = datetime(2090, 1, 1, tzinfo=UTC)
"""Ids carry the true time of their making; seen from here, all of them are old."""


async def test_a_call_queues_a_trigger_with_all_that_its_job_says(store: Store) -> None:
    await add_job(store, parameters={"day": "x", "hour": "1"}, max_retries=2, priority=80)
    new = NewTrigger(new_id(), "shop", "export", {"day": "y"}, requested_by="anna", reason="rerun", idempotency_key="k")
    made, created = await store.triggers.create(new, NOW)
    assert created
    assert made.model_copy(update={"attempts": []}) == await store.triggers.get(new.trigger_id)
    assert (made.kind, made.state, made.attempt, made.max_attempts) == (Kind.MANUAL, State.QUEUED, 0, 3)
    assert (made.parameters, made.priority, made.cluster) == ({"day": "y", "hour": "1"}, 80, None)
    assert (made.requested_by, made.reason, made.idempotency_key) == ("anna", "rerun", "k")
    assert (made.due_time, made.queued_at, made.retry_at, made.nominal_time) == (NOW, NOW, NOW, None)


async def test_a_call_may_say_its_priority_and_when_it_is_to_run(store: Store) -> None:
    await add_job(store)
    trigger_id = await queue(store, priority=3, run_at=at(100))
    await queue(store, run_at=at(-100))
    trigger = await store.triggers.get(trigger_id)
    assert (trigger.priority, trigger.due_time) == (3, at(100))
    claimed = await claim(store, at(99))
    assert len(claimed.launches) == 1
    assert claimed.next_ready == at(100)
    assert len((await claim(store, at(100))).launches) == 1


async def test_a_call_that_does_not_fit_is_refused(store: Store) -> None:
    with pytest.raises(JobNotFound):
        await queue(store)
    await add_job(store, parameters={"day": None})
    with pytest.raises(Invalid) as caught:
        await queue(store, parameters={"hour": "1"})
    assert {fault.field for fault in caught.value.faults} == {"parameters.day", "parameters.hour"}
    await store.jobs.put(job(enabled=False), NOW)
    with pytest.raises(JobIsDisabled):
        await queue(store)


async def test_a_repeated_key_brings_the_same_trigger_back(store: Store) -> None:
    await store.jobs.create([job(), job("other")], NOW)
    first = await queue(store, idempotency_key="k")
    again, created = await store.triggers.create(NewTrigger(new_id(), "shop", "export", {}, idempotency_key="k"), at(1))
    assert (again.trigger_id, created) == (first, False)
    assert await queue(store, "other", idempotency_key="k") != first
    assert await queue(store, idempotency_key="l") != first
    assert len(await states(store)) == 3


async def test_a_repeated_key_still_works_when_the_job_has_changed(store: Store) -> None:
    await add_job(store)
    first = await queue(store, idempotency_key="k")
    await store.jobs.put(job(enabled=False), NOW)
    assert await queue(store, idempotency_key="k") == first


async def test_calls_with_one_key_at_once_are_one_trigger(store: Store, second: Store) -> None:
    await add_job(store)
    ids = await asyncio.gather(*(queue(each, idempotency_key="k") for each in (store, second) * 8))
    assert len(set(ids)) == 1
    assert await states(store) == [State.QUEUED]


async def test_an_unknown_trigger_is_not_found(store: Store) -> None:
    with pytest.raises(TriggerNotFound):
        await store.triggers.get("unknown")
    with pytest.raises(TriggerNotFound):
        await store.triggers.cancel("unknown", NOW)


async def test_triggers_are_paged_newest_first(store: Store) -> None:
    await add_job(store)
    ids = [await queue(store) for _ in range(7)]
    seen: list[str] = []
    after = None
    while page := await store.triggers.find({}, after, 3):
        seen += [each.trigger_id for each in page]
        after = [seen[-1]]
    assert seen == ids[::-1]


async def test_triggers_are_found_by_what_they_are(store: Store) -> None:
    await store.jobs.create([job(), job("other")], NOW)
    await add_schedule(store, "s")
    await plan(store, at(60))
    first = await queue(store, now=at(70))
    running = await start(store, "other", at(80))
    await finish(store, await start(store, "other", at(90)), ended(at(91), code=2))

    async def found(**filters: object) -> int:
        return len(await store.triggers.find(filters, None, 10))

    assert await found() == 4
    assert await found(job_name="other") == 2
    assert await found(application="shop", schedule_id="s") == 1
    assert await found(kind=Kind.MANUAL) == 3
    assert await found(trigger_id=first) == 1
    assert await found(state=State.RUNNING) == 1
    assert await found(states=[State.RUNNING, State.FAILED]) == 2
    assert await found(states=[State.FAILED, State.LOST]) == 1
    assert await found(states=[State.SUCCEEDED]) == 0
    (live,) = await store.triggers.find({"states": [State.STARTING, State.RUNNING], "job_name": "other"}, None, 10)
    assert running == f"{live.trigger_id}-1"


async def test_one_trigger_is_shown_with_its_attempts(store: Store) -> None:
    await add_job(store, max_retries=1)
    name = await start(store)
    trigger_id = name.removesuffix("-1")
    end = ended(at(5), code=3, started_at=at(1), cpu_seconds=0.5, max_memory_bytes=1000)
    await finish(store, name, end, fraction=0.0)
    (again,) = (await claim(store, at(6))).launches
    await store.queue.mark_running("lease-1", [(again.name, "node-2", at(7))])
    shown = await store.triggers.get(trigger_id)
    assert shown.attempts is not None
    assert shown.attempts[0] == Attempt(
        attempt=1, state=State.FAILED, started_at=at(1), finished_at=at(5), exit_code=3, signal=None,
        message="The command ended with exit code 3.", cluster="local", node="node-1", cpu_seconds=0.5,
        max_memory_bytes=1000,
    )  # fmt: skip
    assert shown.attempts[1:] == [
        Attempt(attempt=2, state=State.RUNNING, started_at=at(7), cluster="local", node="node-2")
    ]


async def test_a_queued_trigger_is_cancelled_at_once_and_counted(store: Store) -> None:
    await add_job(store)
    trigger = await store.triggers.cancel(await queue(store), at(3))
    assert (trigger.state, trigger.finished_at, trigger.stop_reason) == (State.CANCELLED, at(3), StopReason.CANCELLED)
    assert trigger.message == "Cancelled before it started."
    assert (await claim(store, at(3))).launches == ()
    rollups = await store.statistics.rollups(Scope.of(), NOW, at(3600))
    assert summarise(rollup for _, rollup in rollups).cancelled == 1


async def test_a_running_trigger_is_asked_to_stop(store: Store) -> None:
    await add_job(store, grace_period_seconds=77)
    name = await start(store)
    trigger = await store.triggers.cancel(name.removesuffix("-1"), at(3))
    assert (trigger.state, trigger.finished_at, trigger.stop_reason) == (State.RUNNING, None, StopReason.CANCELLED)
    (held,) = await store.queue.stopping("lease-1")
    assert (held.name, held.grace_s, held.cluster, held.node) == (name, 77, "local", "node-1")
    await store.triggers.cancel(name.removesuffix("-1"), at(4))
    assert len(await store.queue.stopping("lease-1")) == 1
    assert await store.queue.stopping("lease-2") == []


async def test_a_finished_trigger_cannot_be_cancelled(store: Store) -> None:
    await add_job(store)
    name = await start(store)
    await finish(store, name, ended())
    with pytest.raises(TriggerIsFinished):
        await store.triggers.cancel(name.removesuffix("-1"), NOW)
    assert await states(store) == [State.SUCCEEDED]


async def test_a_trigger_that_is_cancelled_while_it_is_claimed_is_met_by_one_of_both(
    store: Store, second: Store
) -> None:
    await add_job(store)
    for round_ in range(10):
        trigger_id = await queue(store)
        claimed, _ = await asyncio.gather(claim(store, lease=f"l{round_}"), second.triggers.cancel(trigger_id, NOW))
        trigger = await store.triggers.get(trigger_id)
        expected = State.STARTING if claimed.launches else State.CANCELLED
        assert (trigger.state, trigger.stop_reason) == (expected, StopReason.CANCELLED)


async def test_only_what_has_been_finished_for_long_enough_is_pruned(store: Store) -> None:
    await store.jobs.create([job(), job("kept", max_retries=1)], LATER)
    old = [await start(store, now=LATER) for _ in range(3)]
    for name in old:
        await finish(store, name, ended(LATER))
    tried = await start(store, "kept", LATER)
    await finish(store, tried, ended(LATER, code=1), fraction=0.0)
    (again,) = (await claim(store, LATER)).launches
    await finish(store, again.name, ended(LATER, code=1))
    await start(store, now=LATER)
    await queue(store, now=LATER)
    tomorrow = LATER + timedelta(days=1)
    await store.statistics.count_all()
    limits = {("shop", "kept"): LATER}
    found = await store.triggers.prunable(limits, tomorrow, 10)
    assert found == [(name.removesuffix("-1"), 1) for name in old]
    assert await store.triggers.prunable(limits, tomorrow, 2) == found[:2]
    assert await store.triggers.prunable({}, LATER, 10) == []
    assert (tried.removesuffix("-1"), 2) in await store.triggers.prunable({}, tomorrow, 10)


async def test_pruning_leaves_the_unfinished_and_the_statistics(store: Store) -> None:
    await add_job(store)
    done, running = await start(store), await start(store)
    await finish(store, done, ended(at(2)))
    await store.statistics.count_all()
    await store.replicas.beat(heartbeat("gone", at(-9999)))
    await store.triggers.prune([done.removesuffix("-1"), running.removesuffix("-1")], at(-5000))
    assert await states(store) == [State.RUNNING]
    with pytest.raises(TriggerNotFound):
        await store.triggers.get(done.removesuffix("-1"))
    ((_, rollup),) = await store.statistics.rollups(Scope.of(), NOW, at(3600))
    assert rollup.states == {State.SUCCEEDED: 1, **dict.fromkeys(set(rollup.states) - {State.SUCCEEDED}, 0)}
    assert await store.replicas.living(at(-9998)) == []
    await store.triggers.prune([], at(3600))
    assert await store.statistics.rollups(Scope.of(), NOW, at(3600)) == []

"""Preemption in every store: one victim for one waiting trigger, whoever looks, and back to the queue it goes."""

import asyncio
from typing import Any

import pytest

from clickclock.scheduler.jobs.trigger import ExitKind, State, StopReason
from clickclock.scheduler.store import Store
from tests.stores import (
    LEASE,
    NODE,
    NOW,
    add_job,
    at,
    claim,
    ended,
    finish,
    group,
    job,
    new_schedule,
    plan,
    queue,
    start,
    triggers,
)


async def preempt(
    store: Store, seconds: float = 1, *, slots: int = 1, lease: str = LEASE, most: int = 5, cluster: str = "local"
) -> int:
    return await store.queue.preempt(
        at(seconds), cluster=cluster, node=NODE, lease_id=lease, slots=slots, preemptions_max=most
    )


async def stopping(store: Store, lease: str = LEASE) -> list[str]:
    return [each.name for each in await store.queue.stopping(lease)]


async def full(store: Store, **fields: Any) -> str:
    """One slot, taken by an attempt that may be preempted, and an urgent trigger that waits; the attempt's name."""
    await store.jobs.create([job("batch", preemption=True, priority=10), job("urgent", priority=90, **fields)], NOW)
    name = await start(store, "batch")
    await queue(store, "urgent", at(1))
    return name


async def test_a_full_cluster_makes_room_for_higher_priority_and_for_each_once(store: Store) -> None:
    name = await full(store)
    assert (await claim(store, at(1), slots=1)).blocked
    assert await preempt(store) == 1
    assert await stopping(store) == [name]
    assert await preempt(store, 2) == 0
    (batch, urgent) = await triggers(store)
    assert (batch.stop_reason, batch.preempted_by) == (StopReason.PREEMPTED, urgent.trigger_id)


async def test_the_preempted_goes_back_to_the_queue_and_the_room_to_who_asked_for_it(store: Store) -> None:
    name = await full(store)
    await add_job(store, "third", priority=50)
    await queue(store, "third", NOW)
    await preempt(store)
    await finish(store, name, ended(at(3), kind=ExitKind.STOPPED))
    assert await preempt(store, 3) == 0  # the room is there
    (launch,) = (await claim(store, at(3), slots=1)).launches
    batch, third, urgent = await triggers(store)
    assert launch.name == f"{urgent.trigger_id}-1"
    assert (batch.state, batch.attempt, batch.preemption_count) == (State.QUEUED, 1, 1)
    assert batch.preempted_by == urgent.trigger_id
    assert third.state is State.QUEUED
    (tried,) = (await store.triggers.get(batch.trigger_id)).attempts or []
    assert tried.preempted_by == urgent.trigger_id


async def test_a_preemption_uses_up_no_retry(store: Store) -> None:
    await store.jobs.create(
        [job("batch", preemption=True, priority=10, max_retries=1), job("urgent", priority=90)], NOW
    )
    name = await start(store, "batch")
    trigger_id = name.rpartition("-")[0]
    await queue(store, "urgent", at(1))
    await preempt(store)
    await finish(store, name, ended(at(2), kind=ExitKind.STOPPED))
    for attempt, state in ((2, State.QUEUED), (3, State.FAILED)):
        await claim(store, at(1000 * attempt))
        await finish(store, f"{trigger_id}-{attempt}", ended(at(1000 * attempt + 1), 1))
        assert (await store.triggers.get(trigger_id)).state is state


async def test_statistics_count_preemptions_apart_from_retries(store: Store) -> None:
    name = await full(store)
    await preempt(store)
    await finish(store, name, ended(at(2), kind=ExitKind.STOPPED))
    await claim(store, at(3))
    await finish(store, f"{name.rpartition('-')[0]}-2", ended(at(4)))
    await store.statistics.count_all()
    (batch, _) = await triggers(store)
    assert (batch.state, batch.preemption_count, batch.attempt) == (State.SUCCEEDED, 1, 2)


async def test_after_so_many_preemptions_a_trigger_is_left_in_peace(store: Store) -> None:
    name = await full(store)
    trigger_id = name.rpartition("-")[0]
    for number in (1, 2):
        assert await preempt(store, 100 * number, most=2) == 1
        await finish(store, f"{trigger_id}-{number}", ended(at(100 * number), kind=ExitKind.STOPPED))
        urgent = (await claim(store, at(100 * number), slots=1)).launches[0].name
        await finish(store, urgent, ended(at(100 * number + 1)))
        await claim(store, at(100 * number + 2), slots=1)
        await queue(store, "urgent", at(100 * number + 3))
    assert await preempt(store, 300, most=2) == 0
    assert await preempt(store, 300, most=3) == 1


@pytest.mark.parametrize("fields", [{"preemption": False, "priority": 10}, {"preemption": True, "priority": 90}])
async def test_who_is_not_preemptible_or_not_lower_is_never_a_victim(store: Store, fields: dict[str, Any]) -> None:
    await store.jobs.create([job("batch", **fields), job("urgent", priority=90)], NOW)
    await start(store, "batch")
    await queue(store, "urgent", at(1))
    assert await preempt(store) == 0


async def test_a_job_that_is_preemptible_no_longer_is_no_victim_even_while_it_runs(store: Store) -> None:
    await full(store)
    await store.jobs.put(job("batch", priority=10), NOW)
    assert await preempt(store) == 0


async def test_a_full_group_makes_room_wherever_its_attempts_run(store: Store) -> None:
    await store.groups.create(group(max_concurrent_triggers=1), NOW)
    await store.jobs.create(
        [
            job("alone", preemption=True, priority=0),
            job("batch", preemption=True, priority=10, group_name="exports"),
            job("urgent", priority=90, group_name="exports"),
        ],
        NOW,
    )
    await start(store, "alone")
    name = await start(store, "batch", lease="lease-2")
    await queue(store, "urgent", at(1))
    assert await preempt(store, slots=100) == 1
    assert await stopping(store, "lease-2") == [name]


async def test_a_jobs_own_cap_preempts_nobody(store: Store) -> None:
    await store.jobs.create([job("batch", preemption=True, priority=10, max_concurrent_triggers=1)], NOW)
    await start(store, "batch")
    await queue(store, "batch", at(1), priority=90)
    assert await preempt(store) == 0


async def test_what_is_being_cancelled_already_makes_room_enough(store: Store) -> None:
    name = await full(store)
    await store.triggers.cancel(name.rpartition("-")[0], NOW)
    await start(store, "batch")
    assert await preempt(store, slots=2) == 0
    assert await preempt(store, slots=1) == 1


async def test_who_is_cancelled_while_it_makes_room_does_not_come_back(store: Store) -> None:
    name = await full(store)
    await preempt(store)
    await store.triggers.cancel(name.rpartition("-")[0], at(2))
    await finish(store, name, ended(at(3), kind=ExitKind.STOPPED))
    batch = await store.triggers.get(name.rpartition("-")[0])
    assert (batch.state, batch.preemption_count, batch.preempted_by) == (State.CANCELLED, 0, None)


async def test_who_ends_by_itself_before_the_signal_was_not_preempted(store: Store) -> None:
    name = await full(store)
    await preempt(store)
    await finish(store, name, ended(at(2)))
    batch = await store.triggers.get(name.rpartition("-")[0])
    assert (batch.state, batch.preempted_by) == (State.SUCCEEDED, None)


async def test_two_full_replicas_find_one_victim_for_one_trigger(store: Store, second: Store) -> None:
    await store.jobs.create([job("batch", preemption=True, priority=10), job("urgent", priority=90)], NOW)
    for lease in ("north", "south"):
        await start(store, "batch", lease=lease)
    await queue(store, "urgent", at(1))
    asked = await asyncio.gather(*(preempt(each, lease=lease) for each, lease in ((store, "north"), (second, "south"))))
    assert sum(asked) == 1
    (victim,) = [*await stopping(store, "north"), *await stopping(store, "south")]
    holder, other = ("north", "south") if await stopping(store, "north") else ("south", "north")
    await finish(store, victim, ended(at(2), kind=ExitKind.STOPPED), lease=holder)
    # The room is the holder's, who has not yet come to use it: nobody makes more of it meanwhile.
    assert await preempt(second, 2, lease=other) == 0
    assert await preempt(second, 60, lease=other) == 1


async def test_a_trigger_that_waits_for_upstreams_evicts_nobody(store: Store) -> None:
    await store.jobs.create([job("up"), job("batch", preemption=True, priority=10)], NOW)
    await store.jobs.create([job("export", priority=90, depends_on=["up"])], NOW)
    await start(store, "batch")
    await store.schedules.create([new_schedule("s"), new_schedule("u", job_name="up", jitter_seconds=3600)], NOW)
    await plan(store, at(60))
    assert await preempt(store, 61) == 0

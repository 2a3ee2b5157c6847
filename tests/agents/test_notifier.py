"""The notifier: what is due is sent, what fails is tried again, and nobody waits for another."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.notifier import BATCH, LOOK_EVERY_S, Notifier
from clickclock.scheduler.jobs.notification import TRIES_MAX, WAITS_S, Delivery, Notification
from clickclock.scheduler.store import Store
from clickclock.scheduler.targets import Undelivered
from tests.agents.conftest import Calls
from tests.agents.scripted import ScriptedTarget
from tests.stores import NOW, at


@pytest.fixture
def ops() -> ScriptedTarget:
    return ScriptedTarget()


@pytest.fixture
def slow() -> ScriptedTarget:
    return ScriptedTarget()


@pytest.fixture
async def notifier(
    store: Store, clock: ManualClock, ops: ScriptedTarget, slow: ScriptedTarget
) -> AsyncIterator[Notifier]:
    made = Notifier(
        store, clock, {"ops": ops, "slow": slow}, lease_id="lease-1", fraction=lambda: 0.0, done=lambda: None
    )
    yield made
    await made.close()


async def the_one(store: Store) -> Notification:
    (found,) = await store.outbox.find({}, None, 10)
    return found


async def test_with_nothing_to_tell_it_looks_again_later(notifier: Notifier) -> None:
    assert await notifier.step() == LOOK_EVERY_S


async def test_what_is_due_is_sent_once(notifier: Notifier, store: Store, ops: ScriptedTarget) -> None:
    made = await store.outbox.add_test("ops", NOW)
    for _ in range(3):
        await notifier.step()
        await notifier.settle()
    assert [each for each, _ in ops.got] == [made.notification_id]
    assert ((await the_one(store)).state, (await the_one(store)).tries) == (Delivery.SENT, 1)


async def test_what_fails_is_tried_again_with_growing_waits_and_is_dead_in_the_end(
    notifier: Notifier, store: Store, clock: ManualClock, ops: ScriptedTarget
) -> None:
    await store.outbox.add_test("ops", NOW)
    ops.raises = Undelivered("The server answered with status 500.")
    for wait_s in WAITS_S:
        await notifier.step()
        await notifier.settle()
        assert ((await the_one(store)).state, (await the_one(store)).tries) == (Delivery.PENDING, len(ops.got))
        clock.advance(wait_s - 1)
        await notifier.step()
        await notifier.settle()
        clock.advance(1)
    await notifier.step()
    await notifier.settle()
    dead = await the_one(store)
    assert (dead.state, dead.tries, len(ops.got)) == (Delivery.DEAD, TRIES_MAX, TRIES_MAX)
    assert dead.last_error == "The server answered with status 500."
    assert len(set(ops.got)) == 1


async def test_a_target_that_says_when_to_come_back_is_not_asked_earlier(
    notifier: Notifier, store: Store, clock: ManualClock, ops: ScriptedTarget
) -> None:
    await store.outbox.add_test("ops", NOW)
    for retry_after_s, next_s in ((0.5, WAITS_S[0]), (600.0, WAITS_S[0] + 600.0)):
        ops.raises = Undelivered("The server answered with status 429.", retry_after_s=retry_after_s)
        await notifier.step()
        await notifier.settle()
        assert (await the_one(store)).next_try_at == at(next_s)
        clock.advance(next_s)


async def test_a_target_that_says_never_again_is_not_asked_again(
    notifier: Notifier, store: Store, ops: ScriptedTarget
) -> None:
    await store.outbox.add_test("ops", NOW)
    ops.raises = Undelivered("Gone.", for_good=True)
    await notifier.step()
    await notifier.settle()
    assert (await the_one(store)).state == Delivery.DEAD


async def test_more_than_one_batch_goes_on_as_soon_as_the_first_is_sent(
    store: Store, clock: ManualClock, ops: ScriptedTarget, calls: Calls
) -> None:
    notifier = Notifier(store, clock, {"ops": ops}, lease_id="lease-1", fraction=lambda: 0.0, done=calls)
    for _ in range(BATCH + 1):
        await store.outbox.add_test("ops", NOW)
    for batches, told in ((1, BATCH), (2, BATCH + 1)):
        await notifier.step()
        await notifier.settle()
        assert (calls.count, len(ops.got)) == (batches, told)
    await notifier.close()


async def test_a_target_that_is_not_configured_is_dead_at_once_and_says_so(notifier: Notifier, store: Store) -> None:
    await store.outbox.add_test("nowhere", NOW)
    await notifier.step()
    await notifier.settle()
    dead = await the_one(store)
    assert dead.state == Delivery.DEAD
    assert dead.last_error == ("There is no target 'nowhere' in the configuration; add it, then try this again.")


async def test_a_fault_of_a_target_is_that_targets_failure(
    notifier: Notifier, store: Store, ops: ScriptedTarget
) -> None:
    await store.outbox.add_test("ops", NOW)
    ops.raises = ZeroDivisionError("oh")
    await notifier.step()
    await notifier.settle()
    assert (await the_one(store)).last_error == "ZeroDivisionError: oh"


async def test_a_target_that_does_not_answer_holds_up_no_other(
    notifier: Notifier, store: Store, ops: ScriptedTarget, slow: ScriptedTarget
) -> None:
    slow.hold = asyncio.Event()
    for _ in range(BATCH + 1):
        await store.outbox.add_test("slow", NOW)
    await notifier.step()
    await store.outbox.add_test("ops", NOW)
    await notifier.step()
    ((_, task),) = [pair for pair in notifier._sending.items() if pair[0] == "ops"]
    await task
    assert (len(ops.got), len(slow.got)) == (1, BATCH)
    slow.hold.set()
    await notifier.settle()
    await notifier.step()
    await notifier.settle()
    assert len(slow.got) == BATCH + 1
    assert await store.outbox.counts() == {}


async def test_what_a_replica_held_when_it_died_is_sent_by_another_under_the_same_id(
    notifier: Notifier, store: Store, clock: ManualClock, slow: ScriptedTarget
) -> None:
    slow.hold = asyncio.Event()
    await store.outbox.add_test("slow", NOW)
    await notifier.step()
    other_slow = ScriptedTarget()
    other = Notifier(store, clock, {"slow": other_slow}, lease_id="lease-2", fraction=lambda: 0.0, done=lambda: None)
    await other.step()
    await other.settle()
    assert other_slow.got == []
    clock.step_to(at(60))
    await other.step()
    await other.settle()
    slow.hold.set()
    await notifier.settle()
    assert slow.got == other_slow.got
    assert (await the_one(store)).tries == 2
    await other.close()


async def test_closing_gives_up_what_is_being_sent_and_lets_go_of_the_targets(
    notifier: Notifier, store: Store, slow: ScriptedTarget
) -> None:
    slow.hold = asyncio.Event()
    await store.outbox.add_test("slow", NOW)
    await notifier.step()
    await notifier.close()
    assert slow.is_closed
    assert (await the_one(store)).state == Delivery.PENDING

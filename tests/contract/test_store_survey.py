"""What a survey sees, on every kind of store: what should not be, and nothing of what is well or over."""

from typing import Any

import pytest

from clickclock.scheduler.jobs.notification import Notifications
from clickclock.scheduler.store import Queued, Store, Survey
from clickclock.scheduler.store.finding_queries import FIRST, Some
from tests.stores import (
    NOW,
    add_job,
    add_schedule,
    at,
    claim,
    ended,
    finish,
    heartbeat,
    plan,
    queue,
    start,
)


async def survey(store: Store, seconds: float = 1, **said: Any) -> Survey:
    """What there is to see so long after the story began, of what was due or queued before that."""
    return await store.surveys.take(
        at(seconds), **{"overdue_before": at(seconds), "queued_before": at(seconds), "failures": 2, **said}
    )


async def test_where_all_is_well_nothing_is_seen(store: Store) -> None:
    assert await survey(store) == Survey(Some(), Some(), Some(), Some(), Some(), (), (), None)
    await add_job(store)
    await add_schedule(store)
    await store.replicas.beat(heartbeat())
    await finish(store, await start(store), ended(at(1)))
    seen = await survey(store)
    assert (seen.overdue, seen.stuck, seen.idle, seen.queued, seen.starting) == (Some(), Some(), Some(), (), ())
    assert seen.changed_at == at(1)


async def test_a_schedule_that_is_due_for_too_long_is_overdue(store: Store) -> None:
    await add_job(store)
    for number in range(FIRST + 1):
        await add_schedule(store, f"s{number}", schedule_name=f"n{number}")
    assert (await survey(store, 80, overdue_before=at(60))).overdue == Some()
    seen = (await survey(store, 80, overdue_before=at(61))).overdue
    assert (seen.count, len(seen.ids)) == (FIRST + 1, FIRST)
    await plan(store, at(80))
    assert (await survey(store, 80, overdue_before=at(61))).overdue == Some()


async def test_an_attempt_whose_replica_does_not_live_is_stuck(store: Store) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat())
    await start(store)
    name = await start(store, lease="gone")
    assert (await survey(store)).stuck == Some(1, (name.rpartition("-")[0],))
    assert (await survey(store, 20)).stuck.count == 2


async def test_what_waits_is_seen_with_where_it_could_run_and_what_waits_for_others_is_not(store: Store) -> None:
    await add_job(store, node="far")
    await add_job(store, "boxed", cluster="boxes")
    await add_job(store, "after", depends_on=[{"application": "shop", "jobName": "export"}])
    there = await queue(store)
    boxed = await queue(store, "boxed")
    await queue(store, "export", at(10))
    assert set((await survey(store)).queued) == {Queued(there, "", "far"), Queued(boxed, "boxes", None)}


async def test_what_is_claimed_and_does_not_run_yet_is_starting(store: Store) -> None:
    await add_job(store)
    await queue(store)
    (launch,) = (await claim(store)).launches
    assert (await survey(store)).starting == (launch.name,)
    await store.queue.mark_running("lease-1", [(launch.name, "node-1", NOW)])
    assert (await survey(store)).starting == ()


async def test_a_schedule_without_a_time_to_come_that_never_fired_is_idle_unless_it_is_paused(store: Store) -> None:
    await add_job(store)
    past: dict[str, Any] = {"kind": "once", "expression": "2020-01-01T00:00:00Z"}
    await add_schedule(store, "never", schedule_name="never", **past)
    await add_schedule(store, "rests", schedule_name="rests", paused=True, **past)
    await add_schedule(store, "fired", schedule_name="fired", kind="once", expression="2026-11-20T10:00:30Z")
    await plan(store, at(60))
    assert (await survey(store, 60)).idle == Some(1, ("never",))


async def test_a_notification_that_was_given_up_is_seen(store: Store) -> None:
    made = await store.outbox.add_test("ops", NOW)
    (parcel,), _ = await store.outbox.claim(NOW, lease_id="l", until=at(60), limit=9, busy=())
    assert (await survey(store)).dead_notifications == Some()
    await store.outbox.failed(parcel, "l", at(1), "no", None)
    assert (await survey(store)).dead_notifications == Some(1, (made.notification_id,))


@pytest.mark.parametrize("targets", [[], ["ops"]])
async def test_a_job_that_fails_again_and_again_is_unheard_if_nobody_is_told(store: Store, targets: list[str]) -> None:
    await add_job(store, notifications=Notifications(targets=targets))
    for number in range(2):
        assert (await survey(store)).unheard == Some()
        await finish(store, await start(store, now=at(number)), ended(at(number), code=1))
        await store.statistics.count_all()
    assert (await survey(store)).unheard == (Some() if targets else Some(1, ("shop/export",)))
    await finish(store, await start(store, now=at(9)), ended(at(9)))
    await store.statistics.count_all()
    assert (await survey(store)).unheard == Some()

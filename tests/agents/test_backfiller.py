"""The backfiller: how far one step leads, when it is to step again, and when a trigger that ended makes room."""

from datetime import timedelta

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.backfiller import LOOK_EVERY_S, Backfiller
from clickclock.scheduler.store import Store
from clickclock.scheduler.times.backfill import Backfill, BackfillState, count_times
from tests.agents.conftest import Calls
from tests.stores import NOW, add_job, add_schedule, claim, ended, finish, schedule

SINCE = NOW - timedelta(minutes=10)


async def begin(store: Store, **fields: object) -> None:
    await add_job(store)
    await add_schedule(store)
    asked = Backfill.model_validate(
        {"schedule_id": "s", "since": SINCE, "until": SINCE + timedelta(minutes=2), **fields}
    )
    counted = count_times(schedule().timetable(NOW), asked.since, asked.until, 10)
    await store.backfills.create(asked, counted, NOW)


async def test_without_backfills_it_waits_to_be_woken(store: Store, clock: ManualClock) -> None:
    backfiller = Backfiller(store, clock)
    assert await backfiller.step() is None
    assert not backfiller.may_go_on()


async def test_one_trigger_after_the_other_until_it_is_done(store: Store, clock: ManualClock, calls: Calls) -> None:
    await begin(store)
    backfiller = Backfiller(store, clock)
    store.on_queued = calls
    for _ in range(3):
        told = calls.count
        assert await backfiller.step() == 0.05
        assert calls.count == told + 1
        assert not backfiller.may_go_on()
        clock.advance(0.05)
        assert backfiller.may_go_on()
        assert await backfiller.step() == LOOK_EVERY_S
        (launch,) = (await claim(store, clock.now())).launches
        await finish(store, launch.name, ended(clock.now()))
        assert backfiller.may_go_on()
    assert await backfiller.step() is None
    (over,) = await store.backfills.find({}, None, 1)
    assert (over.state, over.done) == (BackfillState.DONE, 3)
    assert not backfiller.may_go_on()


async def test_a_pace_lets_it_sleep_until_the_next_may_come(store: Store, clock: ManualClock) -> None:
    await begin(store, max_concurrent_triggers=5, max_triggers_per_second=0.1)
    backfiller = Backfiller(store, clock)
    assert await backfiller.step() == 10.0
    clock.advance(4)
    assert await backfiller.step() == 6.0
    backfiller.look()
    assert backfiller.may_go_on()

"""The alarmer: it looks a moment after the start, and then again and again; what ended is noted first."""

from clickclock.foundation.clock import ManualClock
from clickclock.scheduler.agents.alarmer import FIRST_AFTER_S, LOOK_EVERY_S, Alarmer
from clickclock.scheduler.insight.alarm import AlarmKind
from clickclock.scheduler.store import Store
from tests.stores import add_job, ended, finish, start


async def test_after_a_start_it_lets_what_is_due_begin_first(store: Store, clock: ManualClock) -> None:
    await add_job(store, expected_within_seconds=1)
    clock.advance(3600)
    alarmer = Alarmer(store, clock)
    assert await alarmer.step() == FIRST_AFTER_S
    assert await store.alarms.find({}, None, 10) == []
    clock.advance(FIRST_AFTER_S)
    assert await alarmer.step() == LOOK_EVERY_S
    (alarm,) = await store.alarms.find({}, None, 10)
    assert alarm.kind == AlarmKind.MISSED


async def test_a_success_that_is_not_counted_yet_is_no_missed_run(store: Store, clock: ManualClock) -> None:
    await add_job(store, expected_within_seconds=60)
    alarmer = Alarmer(store, clock)
    clock.advance(59)
    await finish(store, await start(store, now=clock.now()), ended(clock.now()))
    clock.advance(30)
    await alarmer.step()
    assert await store.alarms.find({}, None, 10) == []

"""Calendars in every store: what schedules go by, what a change does to them, and that none is taken away."""

from datetime import date, timedelta

import pytest

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.errors import CalendarExists, CalendarInUse, CalendarNotFound, StaleVersion
from clickclock.scheduler.jobs.trigger import SkipReason, State
from clickclock.scheduler.store import Store
from clickclock.scheduler.times.business_days import Calendar, CalendarRule
from tests.stores import NOW, add_job, add_schedule, at, plan, states, triggers

TODAY = date(2026, 11, 20)


def calendar(**fields: object) -> Calendar:
    return Calendar.model_validate({"calendar_name": "shop", **fields})


async def test_a_calendar_is_created_once_and_changed_by_version(store: Store) -> None:
    assert (await store.calendars.create(calendar(), NOW)).version == 1
    with pytest.raises(CalendarExists):
        await store.calendars.create(calendar(), NOW)
    changed, created = await store.calendars.put(calendar(exclude_dates=[TODAY]), at(1), 1)
    assert (changed.version, changed.exclude_dates, created) == (2, [TODAY], False)
    with pytest.raises(StaleVersion):
        await store.calendars.put(calendar(), at(2), 1)
    assert [each.calendar_name for each in await store.calendars.find({}, None, 10)] == ["shop"]
    assert set(await store.calendars.named(["shop", "none"])) == {"shop"}


async def test_a_schedule_cannot_name_a_calendar_that_is_not_there(store: Store) -> None:
    await add_job(store)
    with pytest.raises(Invalid) as refused:
        await add_schedule(store, calendar_name="shop")
    assert [fault.field for fault in refused.value.faults] == ["calendarName"]


async def test_a_calendar_that_schedules_go_by_cannot_go_and_names_them(store: Store) -> None:
    await add_job(store)
    await store.calendars.create(calendar(), NOW)
    await add_schedule(store, calendar_name="shop")
    assert (await store.calendars.find({}, None, 10))[0].schedules == 1
    with pytest.raises(CalendarInUse) as refused:
        await store.calendars.delete("shop", at(1))
    assert refused.value.faults[0].message == "The schedule s of shop/export goes by it."
    await store.schedules.delete("s", NOW)
    await store.calendars.delete("shop", at(1))
    with pytest.raises(CalendarNotFound):
        await store.calendars.delete("shop", at(1))


async def test_a_time_on_a_day_that_the_calendar_leaves_out_is_a_skip_that_says_so(store: Store) -> None:
    await add_job(store)
    await store.calendars.create(calendar(exclude_dates=[TODAY]), NOW)
    await add_schedule(store, calendar_name="shop")
    await plan(store, at(60))
    (skipped,) = await triggers(store)
    assert (skipped.state, skipped.skip_reason) == (State.SKIPPED, SkipReason.EXCLUDED)
    assert skipped.message == "2026-11-20 is not a business day of the calendar shop."


async def test_a_schedule_may_run_on_the_other_days_alone(store: Store) -> None:
    await add_job(store)
    await store.calendars.create(calendar(exclude_dates=[TODAY]), NOW)
    await add_schedule(store, calendar_name="shop", calendar_rule=CalendarRule.OTHER_DAYS)
    await plan(store, at(60))
    assert await states(store) == [State.QUEUED]


async def test_a_change_of_a_calendar_counts_from_the_next_time_on_and_fires_nothing_that_is_past(store: Store) -> None:
    await add_job(store)
    await store.calendars.create(calendar(exclude_dates=[TODAY]), NOW)
    await add_schedule(store, calendar_name="shop")
    await plan(store, at(60))
    await store.calendars.put(calendar(), at(90))
    await plan(store, at(90))
    assert await states(store) == [State.SKIPPED]
    await plan(store, at(120))
    assert await states(store) == [State.SKIPPED, State.QUEUED]
    assert (await store.schedules.get("s")).next_fire_at == NOW + timedelta(minutes=3)

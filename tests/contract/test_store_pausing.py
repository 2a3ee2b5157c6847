"""Schedules that fail again and again, in every store: counted by their own times, paused once, begun anew."""

import asyncio
from typing import Any

from clickclock.scheduler.jobs.trigger import ExitKind, SkipReason, State
from clickclock.scheduler.store import NewSchedule, Store
from clickclock.scheduler.times.schedule import Schedule
from tests.stores import NOW, add_job, add_schedule, at, claim, ended, finish, new_schedule, plan, queue, triggers

ID = "s"


async def failing(store: Store, after: int = 3, **fields: Any) -> None:
    await add_job(store)
    await add_schedule(store, ID, pause_after_failures=after, **fields)


async def fire(store: Store, minute: int, code: int = 1, kind: ExitKind = ExitKind.CODE) -> None:
    """The schedule's next time, run to its end."""
    await plan(store, at(60 * minute))
    for launch in (await claim(store, at(60 * minute))).launches:
        await finish(store, launch.name, ended(at(60 * minute), code, kind))


async def is_failing(store: Store) -> bool:
    return await store.pausing.failing([ID]) == [ID]


async def change(store: Store, now: Any, **fields: Any) -> None:
    told = (await store.schedules.get(ID)).wire()
    known = {name: told[name] for name in told if name in {f.alias or n for n, f in Schedule.model_fields.items()}}
    await store.schedules.put(NewSchedule(Schedule.model_validate({**known, **fields}), ID), now)


async def test_so_many_failures_in_a_row_pause_it_and_say_why(store: Store) -> None:
    await failing(store)
    for minute in (1, 2):
        await fire(store, minute)
        assert not await is_failing(store)
    await fire(store, 3)
    assert await is_failing(store)
    newest = (await triggers(store))[-1].trigger_id
    reason = await store.pausing.pause(ID, at(181))
    paused = await store.schedules.get(ID)
    assert reason == f"Paused after 3 failures in a row, the last of them trigger {newest}."
    assert (paused.paused, paused.pause_reason, paused.version) == (True, reason, 2)
    await plan(store, at(240))
    assert (await triggers(store))[-1].skip_reason is SkipReason.PAUSED


async def test_it_is_paused_once_whoever_finds_it(store: Store) -> None:
    await failing(store, 1)
    await fire(store, 1)
    told = await asyncio.gather(*(store.pausing.pause(ID, at(61)) for _ in range(5)))
    assert [each is not None for each in told].count(True) == 1
    assert (await store.schedules.get(ID)).version == 2
    assert await store.pausing.failing_after("", 10) == ([], None)


async def test_time_outs_and_losses_are_failures_and_a_success_begins_anew(store: Store) -> None:
    await failing(store)
    await fire(store, 1, kind=ExitKind.TIMEOUT)
    await fire(store, 2, kind=ExitKind.LOST)
    await fire(store, 3, 0)
    await fire(store, 4)
    await fire(store, 5)
    assert not await is_failing(store)
    await fire(store, 6)
    assert await is_failing(store)


async def test_what_was_cancelled_or_skipped_neither_counts_nor_begins_anew(store: Store) -> None:
    await failing(store)
    await fire(store, 1)
    await plan(store, at(120))
    (waiting,) = [each for each in await triggers(store) if each.state is State.QUEUED]
    await store.triggers.cancel(waiting.trigger_id, at(120))
    await fire(store, 3)
    await plan(store, at(240))
    await plan(store, at(300))  # the one before has not finished: an overlap
    assert not await is_failing(store)
    (launch,) = (await claim(store, at(300))).launches
    await finish(store, launch.name, ended(at(300), 1))
    assert await is_failing(store)


async def test_a_retry_is_no_failure_yet(store: Store) -> None:
    await add_job(store, max_retries=1, retry_backoff={"initialSeconds": 0})
    await add_schedule(store, ID, pause_after_failures=1)
    await fire(store, 1)
    assert not await is_failing(store)
    (launch,) = (await claim(store, at(61))).launches
    await finish(store, launch.name, ended(at(61), 1))
    assert await is_failing(store)


async def test_what_is_called_by_hand_is_nobodys_time(store: Store) -> None:
    await failing(store, 2)
    await fire(store, 1)
    await queue(store, now=at(70))
    (launch,) = (await claim(store, at(70))).launches
    await finish(store, launch.name, ended(at(71), 1))
    assert not await is_failing(store)


async def test_who_resumes_it_begins_anew_and_fires_nothing_of_the_past(store: Store) -> None:
    await failing(store, 2)
    await fire(store, 1)
    await fire(store, 2)
    await store.pausing.pause(ID, at(121))
    await plan(store, at(600))
    await change(store, at(601), paused=False, pauseReason=None)
    await plan(store, at(602))
    assert [each.state for each in await triggers(store)].count(State.QUEUED) == 0
    await fire(store, 11)
    assert not await is_failing(store)
    await fire(store, 12)
    assert await is_failing(store)


async def test_the_conclusion_says_of_which_schedule_it_was_if_it_failed_for_good(store: Store) -> None:
    await failing(store)
    told: list[set[str]] = []
    store.queue.on_failure = told.append
    await fire(store, 1)
    await fire(store, 2, 0)
    await queue(store, now=at(130))
    (launch,) = (await claim(store, at(130))).launches
    await finish(store, launch.name, ended(at(131), 1))
    assert told == [{ID}]


async def test_only_schedules_that_say_so_are_looked_at_and_page_by_page(store: Store) -> None:
    await add_job(store)
    several = [new_schedule(f"s{number}", pause_after_failures=1) for number in range(5)]
    await store.schedules.create([*several, new_schedule("t")], NOW)
    await plan(store, at(60))
    for launch in (await claim(store, at(60))).launches:
        await finish(store, launch.name, ended(at(60), 1))
    first, last = await store.pausing.failing_after("", 3)
    rest, end = await store.pausing.failing_after(last or "", 3)
    assert (first + rest, end) == ([f"s{number}" for number in range(5)], None)
    assert (await store.surveys.take(at(61), overdue_before=at(0), queued_before=at(0), failures=3)).failing.count == 0
    await store.pausing.pause("s0", at(61))
    survey = await store.surveys.take(at(62), overdue_before=at(0), queued_before=at(0), failures=3)
    assert (survey.failing.count, survey.failing.ids) == (1, ("s0",))

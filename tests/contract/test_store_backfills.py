"""Backfills in every store: in steps, never doubled, behind what is live, paused, cancelled, and over."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.errors import BackfillIsOver, BackfillNotFound, ScheduleNotFound
from clickclock.scheduler.insight.event import Wanted
from clickclock.scheduler.insight.statistics import Scope
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import Kind, SkipReason, State
from clickclock.scheduler.store import Led, Store
from clickclock.scheduler.times.backfill import Backfill, BackfillState, StoredBackfill, count_times
from tests.stores import (
    NOW,
    add_job,
    add_schedule,
    at,
    claim,
    ended,
    finish,
    group,
    job,
    new_schedule,
    plan,
    queue,
    schedule,
    triggers,
)

HOUR_AGO = NOW - timedelta(hours=1)


async def begin(store: Store, now: datetime = NOW, minutes: int = 5, **fields: Any) -> StoredBackfill:
    """A backfill of the schedule `s`, of so many minutes from an hour ago; four of its triggers fit into one step."""
    until = HOUR_AGO + timedelta(minutes=minutes - 1)
    given = {"schedule_id": "s", "since": HOUR_AGO, "until": until, "max_triggers_per_second": 80, **fields}
    asked = Backfill.model_validate(given)
    times = schedule().timetable(NOW)
    return await store.backfills.create(asked, count_times(times, asked.since, asked.until, 10_000), now)


async def now_of(store: Store, backfill_id: str) -> StoredBackfill:
    (found,) = await store.backfills.find({"backfill_id": backfill_id}, None, 1)
    return found


async def lead(store: Store, seconds: float) -> Led:
    return await store.backfills.lead(at(seconds))


async def run_all(store: Store, seconds: float = 1) -> None:
    """Claim what may start, and let it succeed."""
    launches = (await claim(store, at(seconds))).launches
    for each in launches:
        await finish(store, each.name, ended(at(seconds)))


@pytest.fixture
async def prepared(store: Store) -> Store:
    """A store with a job, and a schedule of every minute."""
    await add_job(store)
    await add_schedule(store)
    return store


async def test_a_step_makes_no_more_triggers_than_may_run_at_once(prepared: Store) -> None:
    made = await begin(prepared, max_concurrent_triggers=2)
    assert (made.state, made.total, made.excluded, made.done) == (BackfillState.RUNNING, 5, 0, 0)
    assert (await lead(prepared, 1)).triggers == 2
    assert (await lead(prepared, 2)).triggers == 0
    first, second = await triggers(prepared)
    assert {first.nominal_time, second.nominal_time} == {HOUR_AGO, HOUR_AGO + timedelta(minutes=1)}
    assert (first.kind, first.state, first.priority) == (Kind.BACKFILL, State.QUEUED, -1)
    assert first.backfill_id == made.backfill_id
    assert first.due_time == at(1)
    await run_all(prepared)
    assert (await lead(prepared, 3)).triggers == 2


async def test_a_backfill_is_done_when_the_last_of_its_triggers_has_ended(prepared: Store) -> None:
    made = await begin(prepared, minutes=3, max_concurrent_triggers=3)
    await lead(prepared, 1)
    assert (await lead(prepared, 2)).running == 1
    await run_all(prepared)
    assert (await lead(prepared, 3)).running == 0
    over = await now_of(prepared, made.backfill_id)
    assert (over.state, over.done, over.failed, over.triggered) == (BackfillState.DONE, 3, 0, 3)
    assert over.ended_at == at(3)


async def test_a_pace_spreads_the_triggers_over_time(prepared: Store) -> None:
    await begin(prepared, max_concurrent_triggers=5, max_triggers_per_second=0.5)
    assert (await lead(prepared, 1)).triggers == 1
    waiting = await lead(prepared, 2)
    assert (waiting.triggers, waiting.next_at) == (0, at(3))
    assert (await lead(prepared, 3)).triggers == 1


async def test_a_time_that_ran_is_left_out_and_one_that_was_skipped_runs(prepared: Store) -> None:
    first = await begin(prepared, minutes=2, max_concurrent_triggers=2)
    await lead(prepared, 1)
    await run_all(prepared)
    again = await begin(prepared, minutes=4, max_concurrent_triggers=4)
    await lead(prepared, 2)
    found = await triggers(prepared)
    assert sorted(each.nominal_time for each in found if each.nominal_time) == [
        HOUR_AGO + timedelta(minutes=minute) for minute in range(4)
    ]
    assert [each.backfill_id for each in found].count(first.backfill_id) == 2
    assert (await now_of(prepared, again.backfill_id)).skipped == 2


async def missed(store: Store, minutes: int) -> datetime:
    """A schedule `s` of every minute that missed so many minutes; when it was made."""
    made = NOW - timedelta(minutes=minutes)
    await add_job(store, now=made)
    await add_schedule(store, now=made, catch_up={"policy": "none"})
    await plan(store, NOW)
    return made


async def of_missed(store: Store, since: datetime, until: datetime) -> StoredBackfill:
    pace = {"max_concurrent_triggers": 1000, "max_triggers_per_second": 200}
    asked = Backfill.model_validate({"schedule_id": "s", "since": since, "until": until, **pace})
    return await store.backfills.create(asked, count_times(schedule().timetable(NOW), since, until, 10_000), NOW)


async def test_a_skip_that_a_dependent_was_told_of_stays_when_a_backfill_runs_its_time(prepared: Store) -> None:
    await prepared.jobs.create([job("below", depends_on=["export"])], NOW)
    for seconds in (60, 120):
        await plan(prepared, at(seconds))
    await prepared.chains.follow(at(121), 10)
    (below,) = await triggers(prepared, job_name="below")
    asked = Backfill.model_validate({"schedule_id": "s", "since": at(120), "until": at(120)})
    counted = count_times(schedule().timetable(NOW), asked.since, asked.until, 10)
    await prepared.backfills.create(asked, counted, at(130))
    assert (await lead(prepared, 131)).triggers == 1
    assert below.upstream is not None
    (skipped,) = await triggers(prepared, trigger_id=below.upstream[0].trigger_id)
    assert (skipped.state, skipped.skip_reason, skipped.schedule_id) == (State.SKIPPED, SkipReason.OVERLAP, None)
    assert skipped.message == "Skipped at first; a backfill runs this time."
    for each in (await claim(prepared, at(132))).launches:
        if (await triggers(prepared, trigger_id=each.name.rpartition("-")[0]))[0].kind == "backfill":
            await finish(prepared, each.name, ended(at(132)))
    await prepared.chains.follow(at(133), 10)
    again = [each for each in await triggers(prepared, job_name="below") if each.state is State.QUEUED]
    assert [each.nominal_time for each in again] == [at(120)]


async def test_missed_times_that_share_one_row_give_it_up_one_after_the_other(store: Store) -> None:
    made = await missed(store, 150)
    (shared,) = await triggers(store, states=[State.SKIPPED])
    assert (shared.skip_reason, shared.skipped_count) == (SkipReason.CATCH_UP_WINDOW, 149)
    await of_missed(store, made + timedelta(minutes=1), NOW - timedelta(minutes=1))
    assert (await lead(store, 1)).triggers == 10
    (rest,) = await triggers(store, states=[State.SKIPPED])
    assert (rest.skipped_count, rest.nominal_time) == (139, made + timedelta(minutes=11))
    for second in range(2, 16):
        await lead(store, second)
    assert await triggers(store, states=[State.SKIPPED]) == []
    assert len({each.nominal_time for each in await triggers(store, kind=Kind.BACKFILL)}) == 149


async def skips_counted(store: Store) -> list[int]:
    """What the rollups of the job, of its application and of all say of skips; nothing where there is no rollup."""
    scopes = (Scope.of("shop", "export"), Scope.of("shop"), Scope.of())
    day = (NOW - timedelta(days=1), NOW + timedelta(days=1))
    found = [rollup for scope in scopes for _, rollup in await store.statistics.rollups(scope, *day)]
    return [rollup.states.get(State.SKIPPED, 0) for rollup in found]


async def test_a_skip_that_gives_way_to_a_run_is_counted_no_more(store: Store) -> None:
    made = await missed(store, 150)
    assert await skips_counted(store) == [149, 149, 149]
    await of_missed(store, made + timedelta(minutes=1), NOW - timedelta(minutes=1))
    assert (await lead(store, 1)).triggers == 10
    assert await skips_counted(store) == [139, 139, 139]
    for second in range(2, 16):
        await lead(store, second)
    assert await skips_counted(store) == []


async def test_the_planner_finds_a_time_that_a_backfill_took_and_does_not_run_it_again(prepared: Store) -> None:
    asked = Backfill.model_validate({"schedule_id": "s", "since": NOW, "until": at(60)})
    times = count_times(schedule().timetable(NOW), NOW, at(60), 10)
    await prepared.backfills.create(asked, times, at(60))
    await lead(prepared, 60)
    await run_all(prepared, 60)
    await lead(prepared, 61)
    await plan(prepared, at(61))
    found = await triggers(prepared)
    assert [(each.nominal_time, each.kind) for each in found] == [(NOW, Kind.BACKFILL), (at(60), Kind.BACKFILL)]


async def test_a_backfill_is_no_earlier_trigger_of_its_schedule(prepared: Store) -> None:
    await begin(prepared)
    await lead(prepared, 1)
    await claim(prepared, at(1))
    await plan(prepared, at(60))
    live = await triggers(prepared, kind=Kind.SCHEDULE)
    assert [each.state for each in live] == [State.QUEUED]


async def test_a_schedule_that_replaces_its_triggers_leaves_those_of_a_backfill(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="replace")
    await begin(store)
    await lead(store, 1)
    await plan(store, at(60))
    await plan(store, at(120))
    assert [each.state for each in await triggers(store, kind=Kind.BACKFILL)] == [State.QUEUED]


async def test_a_schedule_that_queues_its_triggers_does_not_wait_for_those_of_a_backfill(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="queue")
    await begin(store)
    await lead(store, 1)
    assert len((await claim(store, at(1))).launches) == 1
    await plan(store, at(60))
    assert len((await claim(store, at(60))).launches) == 1


async def test_live_triggers_start_first_and_a_quarter_of_the_slots_is_theirs(prepared: Store) -> None:
    await begin(prepared, minutes=10, max_concurrent_triggers=10, max_triggers_per_second=200)
    await lead(prepared, 1)
    live = await queue(prepared, now=at(2))
    claimed = await claim(prepared, at(2), slots=8)
    assert [each.name.startswith(live) for each in claimed.launches] == [True, *[False] * 5]
    assert claimed.blocked
    later = await queue(prepared, now=at(3))
    (started,) = (await claim(prepared, at(3), slots=8)).launches
    assert started.name.startswith(later)


async def test_the_last_slot_of_all_is_for_a_backfill_too_when_nothing_else_waits(prepared: Store) -> None:
    await begin(prepared)
    await lead(prepared, 1)
    assert len((await claim(prepared, at(1), slots=1)).launches) == 1


async def test_a_paused_backfill_makes_nothing_and_goes_on_where_it_was(prepared: Store) -> None:
    made = await begin(prepared)
    await lead(prepared, 1)
    paused = await prepared.backfills.change(made.backfill_id, at(2), paused=True, pace={})
    assert paused.state is BackfillState.PAUSED
    await run_all(prepared)
    assert (await lead(prepared, 3)) == Led(0, 0, 0, 0, None)
    await prepared.backfills.change(made.backfill_id, at(4), paused=False, pace={"max_concurrent": 2})
    assert (await lead(prepared, 4)).triggers == 2
    assert (await now_of(prepared, made.backfill_id)).max_concurrent_triggers == 2


async def test_a_cancelled_backfill_takes_its_queued_triggers_with_it_and_stops_the_others(prepared: Store) -> None:
    made = await begin(prepared, max_concurrent_triggers=2)
    await lead(prepared, 1)
    (running,) = (await claim(prepared, at(1), limit=1)).launches
    over = await prepared.backfills.cancel(made.backfill_id, at(2))
    assert (over.state, over.cancelled, over.running) == (BackfillState.CANCELLED, 1, 1)
    assert [each.name for each in await prepared.queue.stopping("lease-1")] == [running.name]
    with pytest.raises(BackfillIsOver):
        await prepared.backfills.change(made.backfill_id, at(3), paused=False, pace={})
    with pytest.raises(BackfillNotFound):
        await prepared.backfills.cancel("nobody", at(3))


async def test_triggers_of_a_backfill_are_noted_when_they_are_queued(prepared: Store) -> None:
    await begin(prepared, minutes=2, max_concurrent_triggers=2)
    await lead(prepared, 1)
    noted = await prepared.changes.recent(None, Wanted(types=frozenset({"trigger"})), 10)
    assert {each.subject for each in noted} == {each.trigger_id for each in await triggers(prepared)}
    assert {each.state for each in noted} == {State.QUEUED}


async def test_a_backfill_of_a_schedule_that_goes_is_cancelled_and_says_why(prepared: Store) -> None:
    made = await begin(prepared)
    await prepared.schedules.delete("s", at(2))
    await lead(prepared, 1)
    over = await now_of(prepared, made.backfill_id)
    assert (over.state, over.message) == (BackfillState.CANCELLED, "Its schedule was deleted.")
    with pytest.raises(ScheduleNotFound):
        await begin(prepared)


async def test_a_backfill_goes_by_its_schedule_as_it_was(prepared: Store) -> None:
    made = await begin(prepared, max_concurrent_triggers=10, max_triggers_per_second=100)
    await prepared.schedules.put(new_schedule("s", expression="0 0 1 1 *"), at(1))
    await lead(prepared, 1)
    assert (await now_of(prepared, made.backfill_id)).triggered == 5


async def test_a_backfill_waits_while_its_job_is_disabled_or_its_group_paused(store: Store) -> None:
    await store.groups.create(group(), NOW)
    await add_job(store, group_name="exports")
    await add_schedule(store)
    await begin(store)
    await store.jobs.put(job(group_name="exports", enabled=False), NOW)
    assert (await lead(store, 1)).triggers == 0
    await store.jobs.put(job(group_name="exports"), NOW)
    await store.groups.put(group(paused=True), NOW)
    assert (await lead(store, 2)).triggers == 0
    await store.groups.put(group(), NOW)
    assert (await lead(store, 3)).triggers == 1


async def test_a_backfill_whose_parameters_no_longer_fit_is_paused_and_says_why(store: Store) -> None:
    await add_job(store, parameters={"day": None})
    await add_schedule(store, parameters={"day": "today"})
    made = await begin(store)
    await store.jobs.put(Job.model_validate(job().model_dump()), NOW)
    await lead(store, 1)
    paused = await now_of(store, made.backfill_id)
    assert paused.state is BackfillState.PAUSED
    assert paused.message is not None
    assert "no longer fits the job" in paused.message


async def test_backfills_are_listed_newest_first_in_pages(prepared: Store) -> None:
    made = [(await begin(prepared)).backfill_id for _ in range(3)]
    assert [each.backfill_id for each in await prepared.backfills.find({}, None, 2)] == [made[2], made[1]]
    assert [each.backfill_id for each in await prepared.backfills.find({}, [made[1]], 2)] == [made[0]]
    assert await prepared.backfills.find({"state": BackfillState.DONE}, None, 2) == []


def test_a_range_with_too_many_times_is_refused_with_about_how_many_it_has() -> None:
    with pytest.raises(Invalid) as refused:
        count_times(schedule().timetable(NOW), NOW - timedelta(minutes=1_000_000), NOW, 10_000)
    assert refused.value.faults[0].message.startswith("The range has about 1,000,001 times")

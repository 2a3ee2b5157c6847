"""The log of changes: each is noted with what makes it, in an order that a listener can rely on."""

import asyncio

import pytest
import sqlalchemy as sa

from clickclock.scheduler.errors import JobExists
from clickclock.scheduler.insight.alarm import SilenceRequest
from clickclock.scheduler.insight.event import EVERYTHING, Wanted
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.notification import ApplicationDefaults
from clickclock.scheduler.jobs.trigger import ExitKind
from clickclock.scheduler.store import Store
from clickclock.scheduler.store.changes import note
from clickclock.scheduler.times.backfill import Backfill, count_times
from clickclock.scheduler.times.business_days import Calendar
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
    group,
    job,
    new_schedule,
    plan,
    queue,
    schedule,
    start,
)

FAR = 2**53


async def told(store: Store, about: str | None = None) -> list[str]:
    """What was noted, oldest first."""
    changes = await store.changes.read(0, FAR, EVERYTHING, 1000)
    return [f"{each.about}.{each.state}" for each in changes if about in {None, each.about}]


async def test_a_run_is_noted_from_its_queueing_to_its_end(store: Store) -> None:
    await add_job(store)
    name = await start(store)
    await finish(store, name, ended(at(5), code=3))
    changes = await store.changes.read(0, FAR, Wanted(types=frozenset({"trigger"})), 100)
    assert [each.state for each in changes] == ["queued", "starting", "running", "failed"]
    assert {each.subject for each in changes} == {name.rpartition("-")[0]}
    last = changes[-1]
    assert (last.at, last.application, last.job_name, last.attempt) == (at(5), "shop", "export", 1)
    assert (last.exit_code, last.started_at, last.finished_at) == (3, NOW, at(5))


async def test_an_attempt_that_is_tried_again_is_noted_and_so_is_when(store: Store) -> None:
    await add_job(store, max_retries=1, retry_backoff={"initialSeconds": 10})
    name = await start(store)
    await finish(store, name, ended(at(1), code=1))
    attempt, queued = (await store.changes.read(0, FAR, EVERYTHING, 100))[-2:]
    assert (attempt.type, attempt.attempt, attempt.exit_code) == ("clickclock.attempt.failed", 1, 1)
    assert (queued.type, queued.retry_at) == ("clickclock.trigger.queued", at(6))


async def test_what_is_marked_twice_or_is_no_longer_ours_is_noted_once(store: Store) -> None:
    await add_job(store)
    name = await start(store)
    await store.queue.mark_running(LEASE, [(name, NODE, at(1))])
    await store.queue.mark_running("another", [(name, NODE, at(1))])
    assert await finish(store, name, ended(at(2)), lease="another") is None
    assert await told(store, "trigger") == ["trigger.queued", "trigger.starting", "trigger.running"]


async def test_fires_skips_and_replacements_of_a_schedule_are_noted(store: Store) -> None:
    await add_job(store)
    await add_schedule(store, overlap_policy="replace")
    await plan(store, at(60))
    await plan(store, at(120))
    assert await told(store, "trigger") == ["trigger.queued", "trigger.cancelled", "trigger.queued"]
    await store.schedules.delete("s", at(121))
    await add_schedule(store, "t", at(121), overlap_policy="skip")
    await plan(store, at(180))
    await plan(store, at(240))
    assert (await told(store, "trigger"))[-1] == "trigger.skipped"


async def test_a_cancelled_trigger_is_noted_when_it_is_over(store: Store) -> None:
    await add_job(store)
    await store.triggers.cancel(await queue(store), at(1))
    running = await start(store)
    await store.triggers.cancel(running.rpartition("-")[0], at(2))
    assert (await told(store, "trigger"))[1] == "trigger.cancelled"
    await finish(store, running, ended(at(3), kind=ExitKind.STOPPED))
    assert (await told(store, "trigger"))[-1] == "trigger.cancelled"


async def test_what_becomes_of_dependents_is_noted_once_whoever_hears_of_an_end(store: Store) -> None:
    await store.jobs.create([job("a"), job("b", depends_on=["a"]), job("c", depends_on=["b"])], NOW)
    await store.schedules.create([new_schedule("sa", job_name="a"), new_schedule("sc", job_name="c")], NOW)
    await plan(store, at(60))
    (first,) = (await claim(store, at(60))).launches
    await finish(store, first.name, ended(at(61), code=1))
    await asyncio.gather(*(store.chains.follow(at(61), 10) for _ in range(3)))
    await asyncio.gather(*(store.chains.follow(at(62), 10) for _ in range(3)))
    await queue(store, "a", at(70), nominal_time=at(60))
    (second,) = (await claim(store, at(70))).launches
    await finish(store, second.name, ended(at(71)))
    await asyncio.gather(*(store.chains.follow(at(71), 10) for _ in range(3)))
    for job_name, states in {"b": ["skipped", "queued"], "c": ["queued", "skipped"]}.items():
        wanted = Wanted(job_name=job_name, types=frozenset({"trigger"}))
        assert [each.state for each in await store.changes.read(0, FAR, wanted, 100)] == states


async def test_who_made_room_is_noted_as_an_attempt_that_ended_and_is_queued_again(store: Store) -> None:
    await store.jobs.create([job("batch", preemption=True, priority=10), job("urgent", priority=90)], NOW)
    name = await start(store, "batch")
    await queue(store, "urgent", at(1))
    holder = {"cluster": "local", "node": NODE, "lease_id": LEASE}
    assert await store.queue.preempt(at(1), **holder, slots=1, preemptions_max=5) == 1
    await finish(store, name, ended(at(2), kind=ExitKind.STOPPED))
    attempt, queued = (await store.changes.read(0, FAR, EVERYTHING, 100))[-2:]
    assert (attempt.type, attempt.job_name, attempt.attempt) == ("clickclock.attempt.queued", "batch", 1)
    assert (queued.type, queued.retry_at) == ("clickclock.trigger.queued", at(2))


async def test_what_people_make_change_and_delete_is_noted(store: Store) -> None:
    await store.groups.create(group(), NOW)
    await store.groups.put(group(paused=True), NOW)
    await store.jobs.put(job(), NOW)
    await store.jobs.put(job(priority=1), NOW)
    await add_schedule(store)
    await store.schedules.put(new_schedule("s", expression="0 * * * *"), NOW)
    await store.jobs.delete("shop", "export", NOW, force=False)
    await store.groups.delete("exports", NOW)
    assert await told(store) == [
        *("group.created", "group.changed", "job.created", "job.changed", "schedule.created", "schedule.changed"),
        *("schedule.deleted", "job.deleted", "group.deleted"),
    ]


async def test_calendars_images_backfills_silences_and_defaults_are_noted_too(store: Store) -> None:
    for version in (1, 2):
        await store.calendars.put(Calendar(calendar_name="days"), at(version))
        await store.image_mappings.put(ImageMapping(prefix="python", image=f"python:{version}"), at(version))
    await store.calendars.delete("days", NOW)
    await store.image_mappings.delete("python", NOW)
    for _ in range(2):
        await store.alarms.put_defaults(ApplicationDefaults(application="shop"), NOW)
    await store.alarms.delete_defaults("shop", NOW)
    for name in ("a", "b"):
        await store.alarms.silence(SilenceRequest(group_name=name, seconds=60, silenced_by="ada"), NOW)
    await store.alarms.end_silence(None, None, "a", at(1))
    await store.alarms.look(at(60))
    assert await told(store) == [
        *("calendar.created", "commandPrefixImageMapping.created"),
        *("calendar.changed", "commandPrefixImageMapping.changed"),
        *("calendar.deleted", "commandPrefixImageMapping.deleted"),
        *("application.created", "application.changed", "application.deleted"),
        *("silence.created", "silence.created", "silence.ended", "silence.ended"),
    ]
    (first, *_, last) = await store.changes.read(0, FAR, EVERYTHING, 100)
    assert first.cloud_event()["data"] == {"state": "created", "calendarName": "days"}
    assert (last.group_name, last.application, last.at) == ("b", None, at(60))


async def test_what_becomes_of_a_backfill_is_noted(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    asked = Backfill.model_validate({"schedule_id": "s", "since": NOW, "until": NOW})
    counted = count_times(schedule().timetable(NOW), NOW, NOW, 10)
    first, second = [await store.backfills.create(asked, counted, NOW) for _ in range(2)]
    await store.backfills.change(first.backfill_id, at(1), paused=True, pace={})
    await store.backfills.change(first.backfill_id, at(1), paused=None, pace={"per_second": 1})
    await store.backfills.change(first.backfill_id, at(1), paused=False, pace={})
    await store.backfills.cancel(first.backfill_id, at(2))
    await store.backfills.lead(at(3))
    for each in (await claim(store, at(3))).launches:
        await finish(store, each.name, ended(at(3)))
    await store.backfills.lead(at(4))
    changes = await store.changes.read(0, FAR, Wanted(types=frozenset({"backfill"})), 100)
    assert [each.state for each in changes if each.subject == first.backfill_id] == [
        *("created", "paused", "changed", "resumed", "cancelled"),
    ]
    assert [each.state for each in changes if each.subject == second.backfill_id] == ["created", "done"]
    assert {(each.application, each.job_name, each.schedule_id) for each in changes} == {("shop", "export", "s")}


async def test_what_is_refused_was_never_noted(store: Store) -> None:
    await add_job(store)
    with pytest.raises(JobExists):
        await store.jobs.create([job("new"), job()], NOW)
    assert await told(store) == ["job.created"]


async def test_a_tail_tells_each_change_once_and_goes_on(store: Store, second: Store) -> None:
    tail = await store.changes.tail()
    assert await tail.settle()
    await add_job(second, "a")
    assert [each.job_name for each in await tail.read(10)] == ["a"]
    assert await tail.read(10) == []
    await asyncio.gather(*(add_job(each, f"{n}") for n in range(10) for each in [store, second][n % 2 : n % 2 + 1]))
    seen: list[str | None] = []
    while len(seen) < 10:
        seen += [each.job_name for each in await tail.read(3)]
    assert sorted(filter(None, seen)) == sorted(map(str, range(10)))
    assert await tail.read(10) == []


async def test_a_change_that_commits_late_is_told_before_those_that_took_their_places_after_it(
    store: Store, kind: str
) -> None:
    if kind == "sqlite":
        return  # it has one writer: nobody commits late
    await add_job(store, "before")
    tail = await store.changes.tail()
    assert await tail.settle()
    engine = store._database.engine
    with engine.connect() as late:
        late.begin()
        note(late, "job", "created", NOW, [{"application": "shop", "job_name": "late"}])
        await add_job(store, "after")
        assert await tail.read(10) == []
        started_meanwhile = await store.changes.tail()
        assert not await started_meanwhile.settle()
        late.commit()
    assert [each.job_name for each in await tail.read(10)] == ["late", "after"]
    assert await started_meanwhile.settle()


async def test_a_place_that_was_taken_back_holds_nobody_up(store: Store, kind: str) -> None:
    tail = await store.changes.tail()
    assert await tail.settle()
    engine = store._database.engine
    with engine.connect().execution_options(writing=True) as given_up:
        given_up.begin()
        note(given_up, "job", "created", NOW, [{"application": "shop", "job_name": "never"}])
        given_up.rollback()
    await add_job(store, "after")
    seen = [each.job_name for _ in range(2) for each in await tail.read(10)]
    assert seen == ["after"]


async def test_the_recent_past_comes_newest_first_by_filter_and_page(store: Store) -> None:
    for name in ("a", "b", "c"):
        await add_job(store, name)
    first = await store.changes.recent(None, Wanted(types=frozenset({"job.created"})), 2)
    assert [each.job_name for each in first] == ["c", "b"]
    assert [each.job_name for each in await store.changes.recent(first[-1].position, EVERYTHING, 2)] == ["a"]
    assert await store.changes.recent(None, Wanted(application="other"), 2) == []


async def test_what_is_old_or_too_much_goes_and_the_newest_stays(store: Store) -> None:
    for number in range(5):
        await add_job(store, f"{number}", at(number))
    assert await store.changes.prune(at(2), 1000) == 2
    assert await store.changes.prune(at(0), 2) == 1
    assert await store.changes.oldest() == (await store.changes.read(0, FAR, EVERYTHING, 1))[0].position
    await store.changes.prune(at(100), 1000)
    (newest,) = await store.changes.read(0, FAR, EVERYTHING, 10)
    assert newest.job_name == "4"
    await add_job(store, "5")
    assert (await store.changes.recent(None, EVERYTHING, 1))[0].position > newest.position


async def test_a_position_is_kept_when_the_store_is_opened_again(store: Store, url: str) -> None:
    await add_job(store, "a")
    (change,) = await store.changes.read(0, FAR, EVERYTHING, 10)
    again = await Store.open(url)
    await add_job(again, "b")
    assert [each.job_name for each in await again.changes.read(change.position, FAR, EVERYTHING, 10)] == ["b"]
    await again.close()


async def test_the_log_is_read_in_the_order_of_its_key(store: Store) -> None:
    """A listener that comes back reads from its place on, and nothing before it."""
    query = "EXPLAIN QUERY PLAN SELECT * FROM change WHERE position > 5 ORDER BY position LIMIT 5"
    if store.kind == "sqlite":
        with store._database.engine.connect() as connection:
            plan_ = " ".join(str(row) for row in connection.execute(sa.text(query)))
        assert "INTEGER PRIMARY KEY" in plan_
        assert "TEMP B-TREE" not in plan_

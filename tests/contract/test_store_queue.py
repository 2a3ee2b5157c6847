"""Claiming in every store: order, caps, slots, and that nothing is taken twice or starves."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from clickclock.foundation.record import rfc3339
from clickclock.scheduler.jobs.trigger import State, attempt_name, parse_attempt_name
from clickclock.scheduler.store import Claimed, Store
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.schema import schedule
from tests.contract.test_store_declared import apply
from tests.stores import NOW, add_job, add_schedule, at, claim, ended, finish, group, job, plan, queue, start, states


def jobs_of(claimed: Claimed) -> list[str]:
    return [each.environment["CLICKCLOCK_JOB_NAME"] for each in claimed.launches]


async def test_higher_priority_starts_first_and_then_who_was_ready_first(store: Store) -> None:
    await store.jobs.create([job(name) for name in ("low", "late", "early", "high")], NOW)
    await queue(store, "low", priority=10)
    await queue(store, "late", now=at(2))
    await queue(store, "early", now=at(1))
    await queue(store, "high", priority=90)
    assert jobs_of(await claim(store, at(3), limit=3)) == ["high", "early", "late"]
    assert jobs_of(await claim(store, at(3))) == ["low"]


async def test_a_claim_makes_an_attempt_that_is_ours(store: Store) -> None:
    await add_job(
        store, command="run --day {{ parameters.day }}", parameters={"day": "x"}, image="i", timeout_seconds=5,
        grace_period_seconds=3, environment={"A": "b"}, working_directory="/w", resources={"cpu": 2, "memory": "1Ki"},
    )  # fmt: skip
    trigger_id = await queue(store)
    claimed = await claim(store)
    (launch,) = claimed.launches
    assert (launch.name, launch.argv) == (attempt_name(trigger_id, 1), ("run", "--day", "x"))
    assert (launch.image, launch.timeout_s, launch.grace_s, launch.working_directory) == ("i", 5, 3, "/w")
    assert (launch.cpu, launch.memory_bytes) == (2, 1024)
    assert launch.environment["A"] == "b"
    assert launch.environment["CLICKCLOCK_ATTEMPT"] == "1"
    assert (claimed.unstartable, claimed.next_ready, claimed.blocked) == ((), None, False)
    trigger = await store.triggers.get(trigger_id)
    assert (trigger.state, trigger.attempt, trigger.cluster, trigger.node) == (State.STARTING, 1, "local", "node-1")
    assert (trigger.image, trigger.resolved_command) == ("i", ["run", "--day", "x"])
    (held,) = await store.queue.held("lease-1")
    assert (held.name, held.state, held.lease_id, held.stop_reason) == (launch.name, State.STARTING, "lease-1", None)
    assert (await claim(store)).launches == ()


async def test_the_group_says_what_the_job_leaves_unsaid(store: Store) -> None:
    await store.groups.create(group(defaults={"timeout_seconds": 7, "grace_period_seconds": 2}), NOW)
    await add_job(store, group_name="exports", grace_period_seconds=4)
    await queue(store)
    (launch,) = (await claim(store)).launches
    assert (launch.timeout_s, launch.grace_s) == (7, 4)


async def test_claimers_that_race_never_take_the_same(store: Store, second: Store) -> None:
    await add_job(store)
    ids = [await queue(store) for _ in range(60)]
    claims = await asyncio.gather(
        *(claim(each, lease=f"lease-{n}", limit=10) for n, each in enumerate((store, second) * 4))
    )
    taken = Counter(launch.name for each in claims for launch in each.launches)
    assert taken == {attempt_name(each, 1): 1 for each in ids}


async def test_no_more_is_claimed_than_there_are_slots(store: Store) -> None:
    await add_job(store)
    for _ in range(5):
        await queue(store)
    first = await claim(store, slots=3)
    assert (len(first.launches), first.blocked) == (3, True)
    assert ((await claim(store, slots=3)).launches, (await claim(store, slots=2)).launches) == ((), ())
    await finish(store, first.launches[0].name, ended())
    assert len((await claim(store, slots=3)).launches) == 1
    assert len((await claim(store, lease="another", slots=3)).launches) == 1  # a replica's slots are its own


async def test_a_limit_that_is_reached_is_no_blockade(store: Store) -> None:
    await add_job(store)
    for _ in range(3):
        await queue(store)
    claimed = await claim(store, limit=2)
    assert (len(claimed.launches), claimed.blocked) == (2, False)


async def test_a_job_never_runs_more_often_at_once_than_it_may(store: Store) -> None:
    await add_job(store, max_concurrent_triggers=2)
    for _ in range(5):
        await queue(store)
    claimed = await claim(store)
    assert (len(claimed.launches), claimed.blocked) == (2, True)
    assert (await claim(store)).launches == ()
    await finish(store, claimed.launches[0].name, ended())
    assert len((await claim(store)).launches) == 1


async def test_a_group_never_runs_more_often_at_once_than_it_may(store: Store) -> None:
    await store.groups.create(group(max_concurrent_triggers=3), NOW)
    await store.jobs.create([job("a", group_name="exports"), job("b", group_name="exports"), job("free")], NOW)
    for name in ("a", "b", "a", "b", "free"):
        await queue(store, name)
    assert jobs_of(await claim(store)) == ["a", "b", "a", "free"]
    assert (await claim(store)).launches == ()


async def test_replicas_that_race_never_exceed_a_cap(store: Store, second: Store) -> None:
    await store.groups.create(group(max_concurrent_triggers=5), NOW)
    await store.jobs.create([job("capped", max_concurrent_triggers=3), job("grouped", group_name="exports")], NOW)
    for _ in range(12):
        await queue(store, "capped")
        await queue(store, "grouped")
    claims = await asyncio.gather(
        *(claim(each, lease=f"lease-{n}", limit=4) for n, each in enumerate((store, second) * 4))
    )
    assert Counter(name for each in claims for name in jobs_of(each)) == {"capped": 3, "grouped": 5}


async def test_a_full_job_does_not_hold_up_those_behind_it(store: Store) -> None:
    await store.jobs.create([job("full", max_concurrent_triggers=1), job("free")], NOW)
    for _ in range(300):
        await queue(store, "full", priority=90)
    await queue(store, "free", priority=0)
    assert jobs_of(await claim(store, limit=10)) == ["full", "free"]


async def test_many_full_jobs_do_not_hold_up_those_behind_them_even_for_the_last_slot(store: Store) -> None:
    names = [f"full{number:03}" for number in range(150)]
    await store.jobs.create([*(job(each, max_concurrent_triggers=1) for each in names), job("free")], NOW)
    for each in names:
        await queue(store, each)
    await claim(store, limit=200)
    for each in names:
        await queue(store, each, priority=90)
    await queue(store, "free", priority=0)
    assert jobs_of(await claim(store, slots=151, limit=100)) == ["free"]


async def test_a_full_group_or_a_waiting_schedule_does_not_hold_up_others(store: Store) -> None:
    await store.groups.create(group(max_concurrent_triggers=1), NOW)
    await store.jobs.create([job("a", group_name="exports"), job(), job("free")], NOW)
    await add_schedule(store, overlap_policy="queue")
    for minute in range(1, 6):
        await plan(store, at(60 * minute))
        await queue(store, "a", priority=90)
    await queue(store, "free", now=at(600), priority=0)
    assert sorted(jobs_of(await claim(store, at(600), limit=3))) == ["a", "export", "free"]


async def test_the_queue_of_a_disabled_job_or_a_paused_group_waits_and_says_so(store: Store) -> None:
    await store.groups.create(group(), NOW)
    await store.jobs.create([job("disabled"), job("paused", group_name="exports"), job("free")], NOW)
    ids = [await queue(store, name) for name in ("disabled", "paused", "free")]
    await store.jobs.put(job("disabled", enabled=False), NOW)
    await store.groups.put(group(paused=True), NOW)
    assert [(await store.triggers.get(each)).message for each in ids] == [
        f"Its job is disabled: it is skipped unless that is enabled before {rfc3339(NOW)}.",
        "Waits until its group exports is resumed.",
        None,
    ]
    assert jobs_of(await claim(store)) == ["free"]
    await store.jobs.put(job("disabled"), NOW)
    await store.groups.put(group(), NOW)
    assert jobs_of(await claim(store)) == ["paused"]
    skipped = await store.triggers.get(ids[0])
    assert (skipped.state, skipped.skip_reason, skipped.finished_at) == (State.SKIPPED, "jobDisabled", NOW)


@pytest.mark.parametrize("is_applied", [False, True], ids=["PUT job", "declaration"])
async def test_enabling_a_job_starts_nothing_of_the_past(store: Store, *, is_applied: bool) -> None:
    said = job(max_retries=3, retry_backoff={"initial_seconds": 100})
    await store.jobs.create([said], NOW)
    attempt = await start(store)
    await finish(store, attempt, ended(at(1), 1))
    retry, _ = parse_attempt_name(attempt)
    past, future = await queue(store, run_at=at(60)), await queue(store, run_at=at(600))
    await store.jobs.put(said.model_copy(update={"enabled": False}), at(2))
    messages = {each: (await store.triggers.get(each)).message for each in (retry, past, future)}
    assert messages[retry] == f"Its job is disabled: it is skipped unless that is enabled before {rfc3339(at(51))}."
    assert messages[future] == f"Its job is disabled: it is skipped unless that is enabled before {rfc3339(at(600))}."
    assert (await claim(store, at(90))).launches == ()
    if is_applied:
        await apply(store, [said.model_copy(update={"enabled": True})], 90, prune=False)
    else:
        await store.jobs.put(said.model_copy(update={"enabled": True}), at(90))
    assert (await claim(store, at(90))).launches == ()
    fates = {each: (await store.triggers.get(each)) for each in (retry, past, future)}
    assert [(fates[each].state, fates[each].skip_reason) for each in (retry, past, future)] == [
        (State.SKIPPED, "jobDisabled"),
        (State.SKIPPED, "jobDisabled"),
        (State.QUEUED, None),
    ]
    assert fates[future].message is None
    assert [each.state for each in fates[retry].attempts or ()] == [State.FAILED]
    assert len((await claim(store, at(600))).launches) == 1


async def test_what_comes_due_after_a_job_is_enabled_again_is_not_skipped(store: Store) -> None:
    await add_job(store, enabled=True)
    later = await queue(store, run_at=at(100))
    for moment, enabled in ((10, False), (50, True)):
        await store.jobs.put(job(enabled=enabled), at(moment))
    await store.jobs.put(job(description="an edit"), at(101))
    assert [launch.name for launch in (await claim(store, at(102))).launches] == [f"{later}-1"]


async def test_a_cluster_takes_what_is_its_own_and_the_default_one_what_names_none(store: Store) -> None:
    await store.jobs.create([job("remote", cluster="remote"), job("any"), job("local", cluster="local")], NOW)
    for name in ("remote", "any", "local"):
        await queue(store, name)
    await queue(store, "remote", run_at=at(50))
    remote = await claim(store, cluster="remote")
    assert (jobs_of(remote), remote.next_ready) == (["remote"], at(50))
    local = await claim(store)
    assert (jobs_of(local), local.next_ready) == (["any", "local"], None)


async def test_what_no_longer_fits_its_job_is_ours_to_refuse(store: Store) -> None:
    await add_job(store, parameters={"day": "x"})
    trigger_id = await queue(store)
    await queue(store)
    await store.jobs.put(job(command="run {{ parameters.hour }}", parameters={"hour": None}), NOW)
    claimed = await claim(store, limit=1)
    assert claimed.launches == ()
    ((name, why),) = claimed.unstartable
    assert name == attempt_name(trigger_id, 1)
    assert "hour" in why
    assert len(await store.queue.held("lease-1")) == 1


async def test_a_retry_waits_for_its_time_and_counts_on(store: Store) -> None:
    await add_job(store, max_retries=2, retry_backoff={"initial_seconds": 8, "multiplier": 2})
    name = await start(store)
    await finish(store, name, ended(at(10), code=1), fraction=0.5)
    claimed = await claim(store, at(13.999))
    assert (claimed.launches, claimed.next_ready) == ((), at(14))
    (again,) = (await claim(store, at(14))).launches
    assert again.name == name[:-1] + "2"
    await finish(store, again.name, ended(at(20), code=1), fraction=0.5)
    assert (await claim(store, at(27))).next_ready == at(28)
    (last,) = (await claim(store, at(28))).launches
    await finish(store, last.name, ended(at(30), code=1))
    assert await states(store) == [State.FAILED]


async def test_a_retry_finds_a_slot_taken_and_waits_for_it(store: Store) -> None:
    await add_job(store, max_retries=1, max_concurrent_triggers=1)
    first = await start(store)
    other = await queue(store, now=at(1))
    await finish(store, first, ended(at(2), code=1), fraction=0.0)
    taken = await claim(store, at(3))
    assert [each.name for each in taken.launches] == [attempt_name(other, 1)]
    await finish(store, attempt_name(other, 1), ended(at(4)))
    assert [each.name for each in (await claim(store, at(5))).launches] == [first[:-1] + "2"]


async def test_a_retry_that_waits_is_not_overtaken_by_the_next_time_of_its_schedule(store: Store) -> None:
    await add_job(store, max_retries=1, retry_backoff={"initial_seconds": 100, "multiplier": 1})
    await add_schedule(store, overlap_policy="queue")
    await plan(store, at(60))
    (first,) = (await claim(store, at(60))).launches
    retry = await finish(store, first.name, ended(at(61), code=1), fraction=1.0)
    assert retry is not None
    assert retry.retry_at is not None
    await plan(store, at(120))
    assert (await claim(store, at(120))).launches == ()
    again = await claim(store, retry.retry_at)
    assert [each.name for each in again.launches] == [first.name[:-1] + "2"]
    assert again.blocked  # behind it there is one more: it is looked for again soon
    assert (await claim(store, at(1000))).launches == ()
    await finish(store, again.launches[0].name, ended(at(1000)))
    assert len((await claim(store, at(1000))).launches) == 1


async def test_a_job_that_is_bound_to_a_node_starts_nowhere_else(store: Store) -> None:
    await add_job(store, node="node-2", max_retries=1, retry_backoff={"initial_seconds": 0})
    await queue(store)
    assert (await claim(store, node="node-1")).launches == ()
    (launch,) = (await claim(store, node="node-2")).launches
    await finish(store, launch.name, ended(at(1), code=1))
    assert (await claim(store, at(2), node="node-1")).launches == ()
    assert len((await claim(store, at(2), node="node-2")).launches) == 1


async def test_a_trigger_whose_schedule_is_being_planned_is_passed_over_and_not_waited_for(
    store_url: Callable[[str], str],
) -> None:
    url = store_url("postgresql")
    store, planner = await Store.open(url), Database(url)
    await add_job(store)
    await add_schedule(store, overlap_policy="replace")
    await plan(store, at(60))
    with planner.engine.begin() as planning:  # a plan has it, and may be about to replace what is queued
        planning.execute(sa.select(schedule).where(schedule.c.schedule_id == "s").with_for_update())
        claimed = await claim(store, at(60))
    assert (claimed.launches, claimed.blocked) == ((), True)
    assert len((await claim(store, at(60))).launches) == 1
    planner.close()
    await store.close()

"""Jobs, groups and mappings in every store."""

import asyncio

import pytest

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.agents.planner import decide_due
from clickclock.scheduler.errors import (
    GroupExists,
    GroupInUse,
    GroupNotFound,
    JobExists,
    JobIsRunning,
    JobNotFound,
    MappingExists,
    MappingNotFound,
    ScheduleNotFound,
    StaleVersion,
)
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.trigger import State, StopReason
from clickclock.scheduler.store import Store, Taker
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
    plan,
    queue,
    start,
    states,
    triggers,
)


async def test_a_job_comes_back_as_it_was_said(store: Store) -> None:
    said = job(description="naïve ☃", parameters={"day": None}, labels={"tier": "gold"}, environment={"A": "b"})
    (created,) = await store.jobs.create([said], NOW)
    read = await store.jobs.get("shop", "export")
    assert read.definition == created.definition == {**read.definition, **said.wire()}
    assert (read.version, read.created_at, read.updated_at) == (1, NOW, NOW)


async def test_what_a_job_left_unsaid_keeps_following_its_default(store: Store) -> None:
    await store.groups.create(group(defaults={"priority": 70}), NOW)
    await add_job(store, group_name="exports")
    await queue(store)
    assert [each.priority for each in await store.triggers.find({}, None, 10)] == [70]
    assert "priority" not in (await store.jobs.get("shop", "export")).model_fields_set


async def test_a_batch_of_jobs_is_all_or_nothing_and_names_every_fault_by_its_place(store: Store) -> None:
    await add_job(store, "old")
    with pytest.raises(JobExists) as caught:
        await store.jobs.create([job("a"), job("old"), job("a")], NOW)
    assert {fault.field for fault in caught.value.faults} == {"[1].jobName", "[2].jobName"}
    with pytest.raises(Invalid) as refused:
        await store.jobs.create([job("a"), job("b", group_name="no"), job("c", group_name="never")], NOW)
    assert [fault.field for fault in refused.value.faults] == ["[1].groupName", "[2].groupName"]
    assert [each.job_name for each in await store.jobs.find({}, None, 10)] == ["old"]


async def test_a_fault_of_a_job_alone_has_no_place(store: Store) -> None:
    await add_job(store)
    with pytest.raises(JobExists) as caught:
        await store.jobs.create([job()], NOW)
    assert [fault.field for fault in caught.value.faults] == ["jobName"]


async def test_a_thousand_jobs_are_one_batch(store: Store) -> None:
    many = [job(f"j{number:04}") for number in range(1000)]
    assert len(await store.jobs.create(many, NOW)) == 1000
    with pytest.raises(JobExists) as caught:
        await store.jobs.create(many, NOW)
    assert len(caught.value.faults) == 1000


async def test_of_two_that_create_one_job_at_once_one_is_told_that_it_exists(store: Store, second: Store) -> None:
    results = await asyncio.gather(
        *(each.jobs.create([job()], NOW) for each in (store, second, store, second)), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["JobExists"] * 3 + ["list"]


async def test_of_two_that_put_one_new_job_at_once_both_succeed_and_one_created_it(store: Store, second: Store) -> None:
    results = await asyncio.gather(*(each.jobs.put(job(), NOW) for each in (store, second, store, second)))
    assert sorted(created for _, created in results) == [False, False, False, True]
    assert (await store.jobs.get("shop", "export")).version == 4


async def test_putting_a_job_creates_it_and_then_replaces_it(store: Store) -> None:
    made, created = await store.jobs.put(job(command="one"), NOW)
    assert (made.version, created) == (1, True)
    changed, created = await store.jobs.put(job(command="two"), at(1), if_version=1)
    assert (changed.version, changed.command, changed.created_at, changed.updated_at) == (2, "two", NOW, at(1))
    assert not created


async def test_a_stale_version_of_a_job_changes_nothing(store: Store) -> None:
    with pytest.raises(StaleVersion):
        await store.jobs.put(job(), NOW, if_version=1)
    await store.jobs.put(job(command="one"), NOW)
    await store.jobs.put(job(command="two"), NOW)
    with pytest.raises(StaleVersion):
        await store.jobs.put(job(command="three"), NOW, if_version=1)
    with pytest.raises(StaleVersion):
        await store.jobs.delete("shop", "export", NOW, force=False, if_version=1)
    assert (await store.jobs.get("shop", "export")).command == "two"


async def test_of_two_that_change_the_version_they_read_one_wins(store: Store, second: Store) -> None:
    await add_job(store)
    results = await asyncio.gather(
        *(each.jobs.put(job(), NOW, if_version=1) for each in (store, second)), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["StaleVersion", "tuple"]


async def test_an_unknown_job_is_not_found(store: Store) -> None:
    with pytest.raises(JobNotFound):
        await store.jobs.get("shop", "export")
    with pytest.raises(JobNotFound):
        await store.jobs.delete("shop", "export", NOW, force=True)


async def test_jobs_are_paged_by_name_and_filtered(store: Store) -> None:
    await store.groups.create(group(), NOW)
    names = [f"j{number}" for number in range(7)]
    await store.jobs.create([job(each, enabled=each != "j3", group_name="exports") for each in names[::-1]], NOW)
    seen: list[str] = []
    after = None
    while page := await store.jobs.find({"application": "shop"}, after, 3):
        seen += [each.job_name for each in page]
        after = page[-1].key
    assert seen == names
    assert [each.job_name for each in await store.jobs.find({"enabled": False}, None, 10)] == ["j3"]
    assert [each.job_name for each in await store.jobs.find({"job_name": "j5"}, None, 10)] == ["j5"]
    assert len(await store.jobs.find({"group_name": "exports"}, None, 10)) == 7
    assert await store.jobs.find({"application": "crm"}, None, 10) == []


async def test_a_job_goes_with_its_schedules_but_not_while_it_is_unfinished(store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    await queue(store)
    with pytest.raises(JobIsRunning):
        await store.jobs.delete("shop", "export", NOW, force=False)
    assert (await store.schedules.get("s")).schedule_id == "s"
    await store.jobs.delete("shop", "export", NOW, force=True)
    with pytest.raises(ScheduleNotFound):
        await store.schedules.get("s")
    assert await states(store) == [State.CANCELLED]


@pytest.mark.parametrize(("away_s", "is_refused"), [(0.4, False), (0.05, True), (-1, True)])
async def test_what_is_only_planned_keeps_no_job_and_is_cancelled_with_it(
    store: Store, away_s: float, is_refused: bool
) -> None:
    await add_job(store)
    await add_schedule(store)
    await store.queue.plan(at(60), 100, decide_due, at(120), Taker("local", NODE, LEASE, 10, 10))
    (held,) = await store.queue.held(LEASE)
    now = at(60 - away_s)
    if is_refused:
        with pytest.raises(JobIsRunning):
            await store.jobs.delete("shop", "export", now, force=False)
        return
    await store.jobs.delete("shop", "export", now, force=False)
    assert [each.name for each in await store.queue.stopping(LEASE)] == [held.name]


async def test_a_job_deleted_by_force_has_its_attempts_stopped_and_concluded(store: Store) -> None:
    await add_job(store, max_retries=3, grace_period_seconds=77)
    name = await start(store)
    await store.jobs.delete("shop", "export", NOW, force=True)
    (held,) = await store.queue.stopping("lease-1")
    assert (held.name, held.stop_reason) == (name, StopReason.CANCELLED)
    assert held.grace_s == 10  # the job's own wish went with it
    await finish(store, name, ended(at(1), code=3))
    (trigger,) = await store.triggers.find({}, None, 10)
    assert (trigger.state, trigger.exit_code) == (State.FAILED, 3)


async def test_a_deleted_job_keeps_its_history_and_may_be_created_again(store: Store) -> None:
    await add_job(store)
    await finish(store, await start(store), ended())
    await store.jobs.delete("shop", "export", NOW, force=False)
    assert await states(store) == [State.SUCCEEDED]
    await add_job(store)
    assert (await store.jobs.get("shop", "export")).version == 1


async def test_nothing_is_left_in_the_queue_of_a_job_that_is_deleted_while_others_plan(
    store: Store, second: Store
) -> None:
    for round_ in range(5):
        now = at(60 * (1 + round_))
        await add_job(store, now=at(60 * round_))
        await add_schedule(store, now=at(60 * round_), overlap_policy="allow")
        await asyncio.gather(
            plan(second, now), queue(second, now=now), store.jobs.delete("shop", "export", now, force=True),
            return_exceptions=True,
        )  # fmt: skip
        assert await states(store, state=State.QUEUED) == []


async def test_times_that_passed_while_a_job_was_disabled_stay_skipped(store: Store) -> None:
    await add_job(store, enabled=False)
    await add_schedule(store)
    await store.jobs.put(job(enabled=True), at(70))
    await plan(store, at(125))
    reasons = [(each.state, each.skip_reason) for each in await triggers(store)]
    assert reasons == [(State.SKIPPED, "jobDisabled"), (State.QUEUED, None)]
    await store.jobs.put(job(), at(130))
    await plan(store, at(180))
    assert await states(store) == [State.SKIPPED, State.QUEUED, State.SKIPPED]


async def test_queued_triggers_follow_their_job_into_another_group(store: Store) -> None:
    await store.groups.create(group("one"), NOW)
    await store.groups.create(group("two", max_concurrent_triggers=1), NOW)
    await add_job(store, group_name="one")
    await queue(store)
    await queue(store)
    await store.jobs.put(job(group_name="two"), NOW)
    assert {each.group_name: each.queued for each in await store.groups.find({}, None, 9)} == {"one": 0, "two": 2}
    assert len((await claim(store)).launches) == 1


async def test_a_group_is_created_once(store: Store, second: Store) -> None:
    results = await asyncio.gather(
        *(each.groups.create(group(), NOW) for each in (store, second, store, second)), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["GroupExists"] * 3 + ["StoredGroup"]
    with pytest.raises(GroupExists):
        await store.groups.create(group(), NOW)


async def test_a_group_is_put_with_its_version(store: Store) -> None:
    made, created = await store.groups.put(group(), NOW)
    assert (made.version, created) == (1, True)
    changed, created = await store.groups.put(group(description="d"), at(1), if_version=1)
    assert (changed.version, changed.description, created) == (2, "d", False)
    with pytest.raises(StaleVersion):
        await store.groups.put(group(), at(2), if_version=1)
    with pytest.raises(StaleVersion):
        await store.groups.put(group("new"), at(2), if_version=1)
    with pytest.raises(StaleVersion):
        await store.groups.delete("exports", NOW, if_version=1)


async def test_a_group_in_use_cannot_go(store: Store) -> None:
    await store.groups.create(group(), NOW)
    await add_job(store, group_name="exports")
    with pytest.raises(GroupInUse) as caught:
        await store.groups.delete("exports", NOW)
    assert "shop/export" in caught.value.faults[0].message
    await store.jobs.put(job(), NOW)
    await store.groups.delete("exports", NOW)
    with pytest.raises(GroupNotFound):
        await store.groups.delete("exports", NOW)


async def test_groups_are_paged_with_their_live_counts(store: Store) -> None:
    for name in ("a", "b", "c"):
        await store.groups.create(group(name, paused=name == "c"), NOW)
    await store.jobs.create([job("one", group_name="a"), job("two", group_name="a"), job("x", group_name="b")], NOW)
    await start(store, "one")
    await queue(store, "one")
    await queue(store, "two")
    first = await store.groups.find({}, None, 2)
    assert [(each.group_name, each.jobs, each.queued, each.running) for each in first] == [
        ("a", 2, 2, 1),
        ("b", 1, 0, 0),
    ]
    assert [each.group_name for each in await store.groups.find({}, ["b"], 2)] == ["c"]
    assert [each.group_name for each in await store.groups.find({"paused": True}, None, 2)] == ["c"]


async def test_while_a_group_is_paused_its_triggers_wait_and_its_times_are_skipped(store: Store) -> None:
    await store.groups.create(group(paused=True), NOW)
    await add_job(store, group_name="exports")
    await add_schedule(store)
    await queue(store)
    assert (await claim(store)).launches == ()
    await plan(store, at(60))
    await store.groups.put(group(), at(125))
    await plan(store, at(185))
    reasons = [each.skip_reason for each in await triggers(store, schedule_id="s")]
    assert reasons == ["groupPaused", "groupPaused", None]
    assert len((await claim(store, at(185))).launches) == 2


async def test_a_mapping_is_created_once_and_replaced_by_put(store: Store) -> None:
    python = ImageMapping(prefix="python", image="python:3.13")
    created = await store.image_mappings.create(python, NOW)
    assert (created.image, created.created_at) == ("python:3.13", NOW)
    with pytest.raises(MappingExists):
        await store.image_mappings.create(python, NOW)
    changed, is_new = await store.image_mappings.put(ImageMapping(prefix="python", image="python:3.14"), at(1))
    assert (changed.image, changed.created_at, changed.updated_at, is_new) == ("python:3.14", NOW, at(1), False)
    _, is_new = await store.image_mappings.put(ImageMapping(prefix="bash", image="bash"), at(1))
    assert is_new
    assert [each.prefix for each in await store.image_mappings.all()] == ["bash", "python"]
    await store.image_mappings.delete("bash", at(2))
    with pytest.raises(MappingNotFound):
        await store.image_mappings.delete("bash", at(2))


async def test_of_two_that_create_one_mapping_at_once_one_is_told_that_it_exists(store: Store, second: Store) -> None:
    mapping = ImageMapping(prefix="python", image="python:3.13")
    results = await asyncio.gather(
        *(each.image_mappings.create(mapping, NOW) for each in (store, second)), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["ImageMapping", "MappingExists"]

"""What is declared, in every store: all or nothing, fenced, and found again by its names."""

import asyncio
from collections.abc import Iterable, Sequence

import pytest

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.declarations.declaration import KINDS, Declarable, Key, Plan, Step, Terms, Wanted, compare
from clickclock.scheduler.errors import JobHasDependents, StaleVersion
from clickclock.scheduler.insight.event import EVERYTHING
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.notification import ApplicationDefaults, Notifications
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Store
from tests.stores import NOW, add_job, at, claim, group, job, plan, queue, schedule, states

KIND_OF = {kind.model: kind for kind in KINDS.values()}
FIRST: list[Declarable] = [
    group(managed_by="repo"),
    ImageMapping(prefix="python -m etl", image="etl:1", managed_by="repo"),
    ApplicationDefaults(application="shop", notifications=Notifications(targets=["ops"]), managed_by="repo"),
    job(group_name="exports", managed_by="repo"),
    job("re_port", managed_by="repo"),
    schedule(schedule_name="one", schedule_id="s-1", managed_by="repo"),
]


def wanted(records: Iterable[Declarable]) -> list[Wanted]:
    return [Wanted(KIND_OF[type(each)], each, f"[{place}]") for place, each in enumerate(records)]


def keys(records: Iterable[Declarable]) -> set[Key]:
    return {each.key for each in wanted(records)}


async def planned(store: Store, records: Sequence[Declarable], terms: Terms) -> Plan:
    return compare(wanted(records), await store.declared.read(keys(records), terms.set_name), terms)


async def apply(store: Store, records: Sequence[Declarable], seconds: float = 0, *, prune: bool = True) -> Plan:
    found = await planned(store, records, Terms("repo", prune=prune, allow_empty=True))
    await store.declared.write(found.steps, at(seconds), force=False, dry_run=False)
    return found


def told(steps: Sequence[Step]) -> list[tuple[str, str]]:
    return [(str(step.action), "/".join(step.key)) for step in steps]


async def test_everything_is_made_at_once_and_found_again(store: Store) -> None:
    assert len((await apply(store, FIRST)).steps) == len(FIRST)
    again = await planned(store, FIRST, Terms("repo", prune=True))
    assert (again.steps, again.unchanged) == ([], len(FIRST))
    kept = await store.declared.read(keys(FIRST), None)
    assert all(each.says(each.definition) for each in kept.values())
    assert kept.keys() == keys(FIRST)


async def test_what_is_made_is_planned_like_any_other(store: Store) -> None:
    await apply(store, FIRST)
    await plan(store, at(60))
    assert await states(store) == [State.QUEUED]


async def test_a_set_is_found_whatever_its_names_have_in_common(store: Store) -> None:
    await apply(store, FIRST)
    await add_job(store, "theirs", managed_by="repo-2")
    await add_job(store, "ours", managed_by=None)
    found = await store.declared.read(set(), "repo")
    assert found.keys() == keys(FIRST)


async def test_what_is_no_longer_named_goes_and_its_queued_triggers_with_it_only_by_force(store: Store) -> None:
    await apply(store, FIRST)
    found = await apply(store, FIRST[:1], 1)
    assert told(found.steps) == [
        ("delete", "schedule/shop/export/one"),
        ("delete", "job/shop/export"),
        ("delete", "job/shop/re_port"),
        ("delete", "application/shop"),
        ("delete", "commandPrefixImageMapping/python -m etl"),
    ]
    assert await store.jobs.find({}, None, 10) == []
    await add_job(store, managed_by="repo")
    await queue(store)
    last = await planned(store, FIRST[:1], Terms("repo", prune=True, allow_empty=True, force=True))
    await store.declared.write(last.steps, at(2), force=True, dry_run=False)
    assert await states(store) == [State.CANCELLED]


async def test_what_is_applied_is_noted_and_what_is_only_tried_is_not(store: Store) -> None:
    first = await planned(store, FIRST, Terms("repo"))
    await store.declared.write(first.steps, NOW, force=False, dry_run=True)
    assert await store.changes.recent(None, EVERYTHING, 100) == []
    await apply(store, FIRST)
    made = await store.changes.recent(None, EVERYTHING, 100)
    assert {each.state for each in made} == {"created"}
    assert {each.about for each in made} == {
        *("application", "commandPrefixImageMapping", "group", "job", "schedule"),
    }
    await apply(store, [], 1)
    gone = (await store.changes.recent(None, EVERYTHING, 100))[: -len(made)]
    assert {each.state for each in gone} == {"deleted"}
    assert sorted(each.about for each in gone) == sorted(each.about for each in made)


async def test_nothing_is_written_when_something_has_changed_since(store: Store) -> None:
    await apply(store, FIRST)
    changed = [*FIRST[:3], job("re_port", managed_by="repo", priority=70), job("new", managed_by="repo")]
    found = await planned(store, changed, Terms("repo"))
    await store.jobs.put(job("re_port", managed_by="repo", priority=60), at(1))
    with pytest.raises(StaleVersion):
        await store.declared.write(found.steps, at(2), force=False, dry_run=False)
    assert [each.job_name for each in await store.jobs.find({}, None, 10)] == ["export", "re_port"]


async def test_nothing_is_made_twice_when_two_apply_at_once(store: Store, second: Store) -> None:
    first, other = (
        await planned(store, FIRST, Terms("repo")),
        await planned(second, FIRST, Terms("repo")),
    )
    done = await asyncio.gather(
        store.declared.write(first.steps, at(1), force=False, dry_run=False),
        second.declared.write(other.steps, at(1), force=False, dry_run=False),
        return_exceptions=True,
    )
    assert [type(each) for each in done if each is not None] == [StaleVersion]
    assert len(await store.jobs.find({}, None, 10)) == 2


async def test_a_dry_run_leaves_nothing_and_harms_nobody_else(store: Store) -> None:
    found = await planned(store, FIRST, Terms("repo"))
    await asyncio.gather(
        store.declared.write(found.steps, NOW, force=False, dry_run=True),
        add_job(store, "beside"),
        store.declared.write(found.steps, NOW, force=False, dry_run=True),
    )
    assert [each.job_name for each in await store.jobs.find({}, None, 10)] == ["beside"]
    assert await store.groups.find({}, None, 10) == []


async def test_a_fault_in_one_thing_takes_all_back(store: Store) -> None:
    wrong = [*FIRST[:2], job(group_name="none")]
    with pytest.raises(Invalid) as caught:
        await apply(store, wrong)
    assert [fault.field for fault in caught.value.faults] == ["[2].groupName"]
    assert await store.groups.find({}, None, 10) == []


async def test_a_job_that_moves_takes_its_queued_triggers_into_its_new_group(store: Store) -> None:
    await apply(store, [group(managed_by="repo"), job()], prune=False)
    await queue(store)
    await apply(store, [job(group_name="exports")], 1, prune=False)
    (moved,) = await store.groups.find({}, None, 10)
    assert (moved.jobs, moved.queued) == (1, 1)
    await claim(store, at(2))
    (moved,) = await store.groups.find({}, None, 10)
    assert moved.running == 1


async def test_the_past_of_a_job_that_is_enabled_again_stays_skipped(store: Store) -> None:
    await apply(store, [job(enabled=False), schedule(schedule_name="one", schedule_id="s-1")], prune=False)
    await apply(store, [job(enabled=True)], 3600, prune=False)
    await plan(store, at(3600))
    assert set(await states(store)) == {State.SKIPPED}


async def test_jobs_depend_on_each_other_in_any_order_and_no_circle_is_applied(store: Store) -> None:
    first, second = job("a", managed_by="repo"), job("b", managed_by="repo", depends_on=["a"])
    await apply(store, [second, first])
    assert [each.job_name for each in await store.jobs.dependents("shop", "a")] == ["b"]
    with pytest.raises(Invalid) as refused:
        await apply(store, [job("a", managed_by="repo", depends_on=["b"]), second])
    assert refused.value.faults[0].field == "[0].dependsOn"
    with pytest.raises(JobHasDependents):
        await store.declared.write(
            [step for step in (await planned(store, [second], Terms("repo", prune=True))).steps if step.new is None],
            NOW,
            force=False,
            dry_run=False,
        )
    await apply(store, [first, job("b", managed_by="repo")])
    assert await store.jobs.dependents("shop", "a") == []
    await apply(store, [])
    assert await store.jobs.find({}, None, 10) == []

"""Dependencies in every store: who runs after whom, once, and what becomes of those whose upstream failed."""

import asyncio
from typing import Any

import pytest

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.errors import JobHasDependents
from clickclock.scheduler.jobs.trigger import ExitKind, Kind, SkipReason, State, Trigger
from clickclock.scheduler.store import Store
from tests.stores import (
    LEASE,
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
    triggers,
)


async def chain(store: Store, **upstreams: list[str]) -> None:
    """Jobs with what they depend on: a job of its own each, without a schedule."""
    await store.jobs.create([job(name, depends_on=above) for name, above in upstreams.items()], NOW)


async def tell(store: Store, seconds: float = 60) -> None:
    """Follow all that ended and look at all that waits, until nothing more comes of it."""
    while any([(await store.chains.follow(at(seconds), 2)).seen, (await store.chains.look(at(seconds), 50)).fires]):
        pass


async def end(store: Store, job_name: str, code: int = 0, seconds: float = 60) -> None:
    """Run the oldest queued trigger of a job to its end."""
    await claim(store, at(seconds))
    live = [each for each in await triggers(store, job_name=job_name) if each.state is State.STARTING]
    await finish(store, f"{live[0].trigger_id}-{live[0].attempt}", ended(at(seconds), code))
    await tell(store, seconds)


async def of(store: Store, job_name: str) -> list[Trigger]:
    return await triggers(store, job_name=job_name)


async def states_of(store: Store, job_name: str) -> list[State]:
    return [each.state for each in await of(store, job_name)]


async def test_a_dependent_runs_once_when_all_its_upstreams_have_succeeded_for_a_time(store: Store) -> None:
    await chain(store, a=[], b=[], c=["a", "b"])
    await store.schedules.create([new_schedule("sa", job_name="a"), new_schedule("sb", job_name="b")], NOW)
    await plan(store, at(60))
    await end(store, "a")
    assert await of(store, "c") == []
    await end(store, "b")
    (made,) = await of(store, "c")
    assert (made.kind, made.state, made.nominal_time) == (Kind.DEPENDENCY, State.QUEUED, at(60))
    assert made.run_id == "2026-11-20T10:01:00.000Z"
    assert [(each.job_name, each.state) for each in made.upstream or []] == [
        ("a", State.SUCCEEDED),
        ("b", State.SUCCEEDED),
    ]
    await tell(store)
    assert len(await of(store, "c")) == 1


async def test_two_replicas_that_hear_of_two_ends_at_once_make_one_trigger(store: Store) -> None:
    await chain(store, a=[], b=[], c=["a", "b"])
    await store.schedules.create([new_schedule("sa", job_name="a"), new_schedule("sb", job_name="b")], NOW)
    await plan(store, at(60))
    names = [each.name for each in (await claim(store, at(60))).launches]
    await asyncio.gather(*(finish(store, name, ended(at(60))) for name in names))
    await asyncio.gather(*(store.chains.follow(at(60), 10) for _ in range(6)))
    assert await states_of(store, "c") == [State.QUEUED]
    assert (await store.chains.follow(at(60), 10)).seen == 0


async def test_an_end_that_nobody_was_told_of_is_found_by_whoever_comes_next(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    await add_schedule(store, job_name="a")
    await plan(store, at(60))
    (launch,) = (await claim(store, at(60))).launches
    conclusion = await finish(store, launch.name, ended(at(60)))
    assert conclusion is not None
    assert conclusion.is_awaited
    await store.statistics.count_all()
    assert await store.triggers.prunable({}, at(10_000_000), 10) == []
    assert (await store.chains.follow(at(61), 10)).fires == 1
    assert len(await store.triggers.prunable({}, at(10_000_000), 10)) == 1


async def test_a_diamond_comes_together_in_one_run(store: Store) -> None:
    await chain(store, a=[], left=["a"], right=["a"], last=["left", "right"])
    await add_schedule(store, job_name="a")
    await plan(store, at(60))
    await end(store, "a")
    await end(store, "left")
    assert await of(store, "last") == []
    await end(store, "right")
    assert await states_of(store, "last") == [State.QUEUED]


async def test_a_failure_for_good_is_a_skip_all_the_way_down_and_names_the_trigger(store: Store) -> None:
    await store.jobs.create([job("a", max_retries=1, retry_backoff={"initialSeconds": 0})], NOW)
    await chain(store, b=["a"], c=["b"])
    await add_schedule(store, job_name="a")
    await plan(store, at(60))
    await end(store, "a", 1)
    assert await of(store, "b") == []  # a retry remains
    await end(store, "a", 1)
    ((failed,), (first,), (second,)) = [await of(store, name) for name in "abc"]
    for skipped, cause, word in ((first, failed, "failed"), (second, first, "was skipped")):
        assert (skipped.state, skipped.skip_reason) == (State.SKIPPED, SkipReason.UPSTREAM_FAILED)
        assert skipped.message == f"Its upstream shop/{cause.job_name} {word} (trigger {cause.trigger_id})."
        assert skipped.nominal_time == at(60)
        assert skipped.finished_at == at(60)


async def test_a_cancelled_and_a_skipped_upstream_skip_their_dependents(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    await add_schedule(store, job_name="a")
    await plan(store, at(60))
    (trigger,) = await of(store, "a")
    await store.triggers.cancel(trigger.trigger_id, at(60))
    await tell(store)
    await store.jobs.put(job("a", enabled=False), at(61))
    await plan(store, at(120))
    await tell(store, 120)
    assert [each.nominal_time for each in await of(store, "b")] == [at(60), at(120)]
    assert await states_of(store, "b") == [State.SKIPPED] * 2


async def test_many_times_that_share_a_skip_share_their_dependents_skip(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    await store.jobs.put(job("a", enabled=False), NOW)
    await add_schedule(store, job_name="a")
    await plan(store, at(60 * 300))
    await tell(store, 60 * 300)
    (above,), (below,) = await of(store, "a"), await of(store, "b")
    assert above.skipped_count == 300
    assert (below.skipped_count, below.skipped_through) == (above.skipped_count, above.skipped_through)


async def test_a_failure_says_nothing_to_who_has_no_part_in_that_time(store: Store) -> None:
    await chain(store, hourly=[], daily=[], both=["hourly", "daily"])
    await store.schedules.create(
        [new_schedule("h", job_name="hourly"), new_schedule("d", job_name="daily", expression="0 0 * * *")], NOW
    )
    await plan(store, at(60))
    await end(store, "hourly", 1)
    assert await of(store, "both") == []


async def test_a_late_success_by_hand_runs_those_that_were_skipped_and_nobody_twice(store: Store) -> None:
    await chain(store, a=[], b=["a"], c=["b"])
    await add_schedule(store, job_name="a")
    await plan(store, at(60))
    await end(store, "a", 1)
    for _ in range(2):
        await queue(store, "a", at(70), nominal_time=at(60))
        await end(store, "a", seconds=70)
    assert await states_of(store, "b") == [State.SKIPPED, State.STARTING]
    await finish(store, f"{(await of(store, 'b'))[1].trigger_id}-1", ended(at(71)))
    await tell(store, 71)
    assert await states_of(store, "c") == [State.SKIPPED, State.QUEUED]


async def test_a_call_carries_its_dependents_along_in_a_run_of_its_own(store: Store) -> None:
    await chain(store, a=[], x=[], left=["a", "x"], right=["a"], last=["left", "right"])
    trigger_id = await queue(store, "a", parameters={})
    await end(store, "a")
    await end(store, "left")
    await end(store, "right")
    (last,) = await of(store, "last")
    assert (last.run_id, last.nominal_time) == (trigger_id, NOW)
    await queue(store, "a", at(70))
    await end(store, "a", seconds=70)
    assert len(await of(store, "left")) == 2


async def test_a_call_may_say_that_nothing_follows(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    await queue(store, "a", dependents=False)
    await end(store, "a")
    assert await of(store, "b") == []


async def test_a_call_of_a_dependent_waits_for_nobody(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    await queue(store, "b")
    assert len((await claim(store)).launches) == 1


async def test_a_dependent_takes_its_upstreams_values_for_the_parameters_that_it_declares(store: Store) -> None:
    await store.jobs.create([job("a", parameters={"day": None}), job("b", parameters={"day": None, "mode": "x"})], NOW)
    await store.jobs.put(job("b", parameters={"day": None, "mode": "x"}, depends_on=["a"]), NOW)
    await queue(store, "a", parameters={"day": "friday"})
    await end(store, "a")
    (made,) = await of(store, "b")
    assert made.parameters == {"day": "friday", "mode": "x"}


async def test_a_dependent_that_lacks_a_value_fails_and_says_which(store: Store) -> None:
    """Where its upstream was skipped, it had no values."""
    after_all = [{"jobName": "a", "ifSkipped": "met"}]
    declared = {"parameters": {"day": None}}
    await store.jobs.create([job("a", enabled=False, **declared), job("b", depends_on=after_all, **declared)], NOW)
    await chain(store, c=["b"])
    await add_schedule(store, job_name="a", parameters={"day": "friday"})
    await plan(store, at(60))
    await tell(store)
    (made,), (below,) = await of(store, "b"), await of(store, "c")
    assert made.state is State.FAILED
    assert "day" in (made.message or "")
    assert below.skip_reason is SkipReason.UPSTREAM_FAILED


@pytest.mark.parametrize("reason", [SkipReason.JOB_DISABLED, SkipReason.GROUP_PAUSED])
async def test_a_dependent_that_may_not_run_is_skipped_for_its_own_reason(store: Store, reason: SkipReason) -> None:
    await store.groups.create(group(paused=reason is SkipReason.GROUP_PAUSED), NOW)
    await chain(store, a=[])
    enabled = reason is not SkipReason.JOB_DISABLED
    await store.jobs.create([job("b", depends_on=["a"], enabled=enabled, group_name="exports")], NOW)
    await queue(store, "a")
    await end(store, "a")
    (made,) = await of(store, "b")
    assert (made.state, made.skip_reason) == (State.SKIPPED, reason)


# Dependents with a schedule of their own.


async def scheduled_pair(store: Store, **fields: Any) -> None:
    await chain(store, a=[], b=["a"])
    await store.schedules.create([new_schedule("sa", job_name="a", **fields), new_schedule("sb", job_name="b")], NOW)


async def test_a_dependent_with_a_schedule_waits_in_the_queue_for_the_same_time(store: Store) -> None:
    await scheduled_pair(store)
    await plan(store, at(60))
    await tell(store)
    assert [each.name for each in (await claim(store, at(61))).launches] == [
        f"{(await of(store, 'a'))[0].trigger_id}-1"
    ]
    (waiting,) = await of(store, "b")
    assert (waiting.state, waiting.message) == (State.QUEUED, "Waits for shop/a.")
    await finish(store, f"{(await of(store, 'a'))[0].trigger_id}-1", ended(at(65)))
    await tell(store, 66)
    (released,) = await of(store, "b")
    assert (released.kind, released.message, released.due_time) == (Kind.SCHEDULE, None, at(66))
    assert len((await claim(store, at(66))).launches) == 1


async def test_a_dependent_with_a_schedule_is_skipped_when_its_upstream_fails_and_may_run_later(store: Store) -> None:
    await scheduled_pair(store)
    await plan(store, at(60))
    await end(store, "a", 1)
    (skipped,) = await of(store, "b")
    assert (skipped.state, skipped.skip_reason) == (State.SKIPPED, SkipReason.UPSTREAM_FAILED)
    await queue(store, "a", at(70), nominal_time=at(60))
    await end(store, "a", seconds=70)
    assert [(each.kind, each.state) for each in await of(store, "b")] == [
        (Kind.SCHEDULE, State.SKIPPED),
        (Kind.DEPENDENCY, State.QUEUED),
    ]


async def test_a_dependent_with_a_schedule_does_not_wait_for_who_has_no_such_time(store: Store) -> None:
    await scheduled_pair(store, expression="0 0 * * *")
    await plan(store, at(60))
    await tell(store)
    assert len((await claim(store, at(60))).launches) == 1


async def test_a_dependent_with_a_schedule_waits_for_an_upstream_that_has_yet_to_come_to_its_time(store: Store) -> None:
    """Jitter, or another replica that plans a moment later: what is not there yet is not forgotten."""
    await scheduled_pair(store, jitter_seconds=3600)
    await plan(store, at(60))
    await tell(store)
    assert await of(store, "a") == []
    assert (await claim(store, at(61))).launches == ()


async def test_a_dependent_with_a_schedule_waits_through_jobs_that_have_none(store: Store) -> None:
    await chain(store, a=[], middle=["a"], b=["middle"])
    await store.schedules.create([new_schedule("sa", job_name="a"), new_schedule("sb", job_name="b")], NOW)
    await plan(store, at(60))
    await tell(store)
    await end(store, "a")
    assert (await of(store, "b"))[0].message == "Waits for shop/middle."
    await end(store, "middle")
    assert (await of(store, "b"))[0].message is None


async def test_who_waits_for_what_was_taken_away_is_let_go(store: Store) -> None:
    await scheduled_pair(store)
    await plan(store, at(60))
    await tell(store)
    await store.jobs.put(job("b"), at(61))
    assert (await store.chains.look(at(62), 10)).fires == 1


@pytest.mark.parametrize("one_by_one", [True, False])
async def test_who_ends_after_its_schedule_was_deleted_is_followed_like_any_other(
    store: Store, one_by_one: bool
) -> None:
    await chain(store, a=[], b=[], c=["a", "b"])
    await store.schedules.create([new_schedule("sa", job_name="a"), new_schedule("sb", job_name="b")], NOW)
    await plan(store, at(60))
    for schedule_id in ("sa", "sb"):
        await store.schedules.delete(schedule_id, at(60))
    for launch in (await claim(store, at(60))).launches:
        await finish(store, launch.name, ended(at(60)))
        if one_by_one:
            await tell(store)
    await tell(store)
    assert await states_of(store, "c") == [State.QUEUED]


async def test_who_waits_can_be_cancelled(store: Store) -> None:
    await scheduled_pair(store)
    await plan(store, at(60))
    await tell(store)
    (waiting,) = await of(store, "b")
    await store.triggers.cancel(waiting.trigger_id, at(61))
    await end(store, "a", seconds=62)
    assert await states_of(store, "b") == [State.CANCELLED]


# What jobs may depend on.


async def test_a_circle_is_refused_and_named(store: Store) -> None:
    await chain(store, a=[], b=["a"], c=["b"])
    with pytest.raises(Invalid) as refused:
        await store.jobs.put(job("a", depends_on=["c"]), NOW)
    (fault,) = refused.value.faults
    assert fault.field == "dependsOn"
    assert "shop/a → shop/b → shop/c → shop/a" in fault.message
    assert (await store.jobs.get("shop", "a")).depends_on == []


async def test_a_circle_among_new_jobs_and_unknown_upstreams_are_refused_together(store: Store) -> None:
    with pytest.raises(Invalid) as refused:
        await chain(store, a=["b"], b=["a"], c=["nowhere"])
    assert [fault.field for fault in refused.value.faults] == ["[2].dependsOn[0]", "[0].dependsOn"]
    assert await store.jobs.find({}, None, 10) == []


async def test_two_halves_of_a_circle_that_come_at_once_do_not_close_it(store: Store) -> None:
    await chain(store, a=[], b=[])
    halves = [job("a", depends_on=["b"]), job("b", depends_on=["a"])]
    results = await asyncio.gather(*(store.jobs.put(half, NOW) for half in halves), return_exceptions=True)
    assert sum(isinstance(each, Invalid) for each in results) == 1


async def test_a_job_that_others_depend_on_is_kept_unless_forced(store: Store) -> None:
    await chain(store, a=[], b=["a"], c=["a"])
    with pytest.raises(JobHasDependents) as refused:
        await store.jobs.delete("shop", "a", NOW, force=False)
    assert [fault.message for fault in refused.value.faults] == ["shop/b depends on it.", "shop/c depends on it."]
    await store.jobs.delete("shop", "a", NOW, force=True)
    upstream = (await store.jobs.get("shop", "b")).depends_on
    assert await store.jobs.existing([each.key for each in upstream]) == set()
    await add_job(store, "a")
    assert [each.job_name for each in await store.jobs.dependents("shop", "a")] == ["b", "c"]


async def test_deleting_a_dependent_takes_its_edges_along(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    await store.jobs.delete("shop", "b", NOW, force=False)
    await store.jobs.delete("shop", "a", NOW, force=False)
    assert await store.jobs.find({}, None, 10) == []


async def test_a_dependent_that_was_deleted_meanwhile_gets_no_trigger(store: Store) -> None:
    await chain(store, a=[], b=["a"])
    await queue(store, "a")
    (launch,) = (await claim(store)).launches
    await finish(store, launch.name, ended())
    await store.jobs.delete("shop", "b", NOW, force=True)
    await tell(store)
    assert await of(store, "b") == []


async def test_who_has_no_dependents_is_not_marked(store: Store) -> None:
    await add_job(store, "a")
    await queue(store, "a")
    (launch,) = (await claim(store)).launches
    conclusion = await finish(store, launch.name, ended(kind=ExitKind.LOST), LEASE)
    assert conclusion is not None
    assert not conclusion.is_awaited
    assert (await store.chains.follow(NOW, 10)).seen == 0

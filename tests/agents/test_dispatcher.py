"""The dispatcher: queued triggers become started attempts, and what was claimed is never forgotten."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from clickclock.foundation.bearer import digest
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.scheduler.agents.dispatcher import BLOCKED_LOOK_S, CLAIM_MAX, Dispatcher
from clickclock.scheduler.agents.planner import decide_due
from clickclock.scheduler.executors import Executor
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.trigger import ExitKind, State
from clickclock.scheduler.store import Claimed, Planned, Store, Taker
from clickclock.scheduler.vault import Vault
from tests.agents.scripted import ScriptedExecutor
from tests.stores import LEASE, NODE, NOW, add_job, add_schedule, at, claim, ended, finish, job, queue, states

Build = Callable[..., Dispatcher]


@pytest.fixture
def build(store: Store, clock: ManualClock) -> Build:
    def make(**executors: Executor) -> Dispatcher:
        return Dispatcher(store, clock, executors, node=NODE, lease_id=LEASE, fraction=lambda: 0.5)

    return make


@pytest.fixture
def dispatcher(build: Build, executor: ScriptedExecutor) -> Dispatcher:
    return build(local=executor)


async def test_with_an_empty_queue_the_dispatcher_waits_to_be_woken(dispatcher: Dispatcher, store: Store) -> None:
    assert await dispatcher.step() is None
    assert not store.queue.backlog.waits_for_slots


async def test_a_queued_trigger_is_started_under_its_name(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store, command="run me")
    trigger_id = await queue(store)
    await dispatcher.step()
    assert executor.starts == [f"{trigger_id}-1"]
    assert executor.launches[f"{trigger_id}-1"].argv == ("run", "me")
    assert await states(store) == [State.STARTING]


async def test_the_dispatcher_sleeps_until_the_next_trigger_is_ready(dispatcher: Dispatcher, store: Store) -> None:
    await add_job(store)
    await queue(store, run_at=at(42))
    assert await dispatcher.step() == 42.0


async def test_a_trigger_is_handed_over_a_moment_ahead_with_its_moment(
    store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    dispatcher = Dispatcher(
        store, clock, {"local": executor}, node=NODE, lease_id=LEASE, fraction=lambda: 0.5, ahead_s=0.5
    )
    await add_job(store)
    trigger_id = await queue(store, run_at=at(42))
    assert await dispatcher.step() == 41.5
    clock.advance(41.5)
    assert await dispatcher.step() is None
    assert executor.launches[f"{trigger_id}-1"].not_before == at(42)


async def test_a_full_batch_is_followed_by_the_next_at_once(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    for _ in range(CLAIM_MAX + 1):
        await queue(store)
    assert await dispatcher.step() == 0.0
    assert await dispatcher.step() is None
    assert len(executor.running) == CLAIM_MAX + 1


async def test_while_all_slots_are_taken_the_dispatcher_looks_again(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    executor.slots = 1
    await add_job(store)
    await queue(store)
    await queue(store)
    assert await dispatcher.step() == BLOCKED_LOOK_S
    assert store.queue.backlog.waits_for_slots
    assert len(executor.running) == 1


async def test_what_could_not_be_handed_over_is_handed_over_again_and_runs_once(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    ids = [await queue(store) for _ in range(3)]
    executor.takes_starts = False
    for _ in range(2):
        with pytest.raises(ExecutorUnreachable):
            await dispatcher.step()
    assert executor.starts == []
    executor.takes_starts = True
    await dispatcher.step()
    await dispatcher.step()
    assert executor.starts == [f"{each}-1" for each in ids]


async def test_what_an_earlier_life_claimed_and_never_started_is_started_first(
    store: Store, executor: ScriptedExecutor, build: Build
) -> None:
    await add_job(store)
    await queue(store)
    (launch,) = (await claim(store)).launches
    await build(local=executor).step()
    assert executor.starts == [launch.name]
    assert executor.launches[launch.name] == launch


async def test_what_was_cancelled_before_it_could_be_handed_over_never_starts(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    trigger_id = await queue(store)
    executor.takes_starts = False
    with pytest.raises(ExecutorUnreachable):
        await dispatcher.step()
    await store.triggers.cancel(trigger_id, NOW)
    executor.takes_starts = True
    await dispatcher.step()
    assert executor.starts == []
    assert await states(store) == [State.CANCELLED]


async def test_nothing_is_claimed_for_a_cluster_that_is_away(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await queue(store)
    executor.reachable = False
    with pytest.raises(ExecutorUnreachable, match="away"):
        await dispatcher.step()
    assert await states(store) == [State.QUEUED]


async def test_what_no_longer_fits_its_job_fails_and_holds_up_no_other(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await store.jobs.create([job(parameters={"day": "x"}), job("other")], NOW)
    bad = await queue(store)
    await queue(store, "other")
    await store.jobs.put(job(command="run {{ parameters.hour }}", parameters={"hour": None}), NOW)
    await dispatcher.step()
    trigger = await store.triggers.get(bad)
    assert trigger.state is State.FAILED
    assert "hour" in (trigger.message or "")
    assert len(executor.running) == 1


async def test_what_no_longer_fits_its_job_fails_even_if_the_cluster_went_away_meanwhile(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await store.jobs.create([job(parameters={"day": "x"}), job("other")], NOW)
    bad = await queue(store)
    await queue(store, "other")
    await store.jobs.put(job(command="run {{ parameters.hour }}", parameters={"hour": None}), NOW)
    executor.takes_starts = False
    with pytest.raises(ExecutorUnreachable):
        await dispatcher.step()
    executor.takes_starts = True
    await dispatcher.step()
    assert (await store.triggers.get(bad)).state is State.FAILED
    assert len(executor.running) == 1


async def test_each_cluster_gets_its_own(store: Store, clock: ManualClock, build: Build) -> None:
    near, far = ScriptedExecutor(clock), ScriptedExecutor(clock, node="far")
    await store.jobs.create([job(), job("remote", cluster="remote")], NOW)
    here, there = await queue(store), await queue(store, "remote")
    await build(local=near, remote=far).step()
    assert (near.starts, far.starts) == ([f"{here}-1"], [f"{there}-1"])


async def test_a_cluster_that_fails_holds_up_no_other_and_rests_longer_each_time(
    store: Store, clock: ManualClock, build: Build
) -> None:
    away, near = ScriptedExecutor(clock), ScriptedExecutor(clock)
    away.reachable = False
    dispatcher = build(away=away, near=near)
    await add_job(store, cluster="near")
    pauses_s = []
    for number in range(3):
        await queue(store)
        pauses_s.append(await dispatcher.step())
        assert len(near.starts) == number + 1
        clock.advance(pauses_s[-1] or 0.0)
    assert pauses_s == [0.1, 0.2, 0.4]
    assert dispatcher.clusters.trouble("away") == "It is away."
    away.reachable = True
    await dispatcher.step()
    assert dispatcher.clusters.trouble("away") is None


async def test_a_claim_that_took_too_long_is_looked_up_again_before_it_is_started(
    store: Store, clock: ManualClock, executor: ScriptedExecutor, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = build(local=executor)
    await dispatcher.step()
    await add_job(store, max_retries=1, retry_backoff={"initial_seconds": 0})
    trigger_id = await queue(store)
    claim_it = store.queue.claim

    async def stand_still(*arguments: Any, **named: Any) -> Claimed:
        claimed = await claim_it(*arguments, **named)
        clock.advance(120)
        await finish(store, f"{trigger_id}-1", ended(kind=ExitKind.LOST))  # as another replica does it
        return claimed

    monkeypatch.setattr(store.queue, "claim", stand_still)
    assert await dispatcher.step() == 0.0
    monkeypatch.setattr(store.queue, "claim", claim_it)
    await dispatcher.step()
    assert executor.starts == [f"{trigger_id}-2"]


async def test_a_cluster_that_is_away_holds_up_no_other(
    build: Build, store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    away = ScriptedExecutor(clock)
    away.reachable = False
    dispatcher = build(away=away, local=executor)
    await add_job(store)
    await add_job(store, "elsewhere", cluster="away")
    here, elsewhere = await queue(store), await queue(store, "elsewhere")
    rests_s = await dispatcher.step()
    assert rests_s == 0.1
    assert (executor.starts, away.starts) == ([f"{here}-1"], [])
    away.reachable = True
    clock.advance(rests_s)
    assert await dispatcher.step() is None
    assert away.starts == [f"{elsewhere}-1"]


async def test_where_attempts_run_in_images_a_command_gets_its_own(
    build: Build, store: Store, clock: ManualClock
) -> None:
    boxes = ScriptedExecutor(clock, wants_image=True)
    for prefix in ("python", "python -m etl"):
        await store.image_mappings.create(ImageMapping(prefix=prefix, image=f"for:{len(prefix)}"), NOW)
    await add_job(store, command="python -m etl load")
    await add_job(store, "other", command="ruby x")
    etl, other = await queue(store), await queue(store, "other")
    await build(local=boxes).step()
    assert boxes.launches[f"{etl}-1"].image == "for:13"
    assert f"{other}-1" not in boxes.launches
    failed = await store.triggers.get(other)
    assert failed.state is State.FAILED
    assert "no prefix fits `ruby`" in (failed.message or "")


async def test_what_is_handed_over_again_gets_the_same_image(build: Build, store: Store, clock: ManualClock) -> None:
    boxes = ScriptedExecutor(clock, wants_image=True)
    await store.image_mappings.create(ImageMapping(prefix="true", image="for:true"), NOW)
    await add_job(store)
    await queue(store)
    (launch,) = (await claim(store)).launches
    await build(local=boxes).step()
    assert boxes.launches[launch.name].image == "for:true"


async def test_a_secret_is_read_at_the_start_and_a_missing_one_fails_the_attempt_alone(
    store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    vault = Vault(None, {"KEY": "the key"})
    dispatcher = Dispatcher(
        store, clock, {"local": executor}, node=NODE, lease_id=LEASE, fraction=lambda: 0.5, vault=vault
    )
    await add_job(store, secretRefs=[{"name": "V", "environment": "KEY"}])
    await add_job(store, "lacking", secretRefs=[{"name": "V", "environment": "NONE"}])
    good, lacking = await queue(store), await queue(store, "lacking")
    await dispatcher.step()
    assert executor.launches[f"{good}-1"].secrets == {"V": "the key"}
    assert f"{lacking}-1" not in executor.launches
    failed = await store.triggers.get(lacking)
    assert (failed.state, failed.attempt) == (State.FAILED, 1)
    assert "no variable NONE for jobs" in (failed.message or "")


async def test_a_user_who_is_not_allowed_any_more_ends_the_attempt_alone(
    store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    dispatcher = Dispatcher(
        store, clock, {"local": executor}, node=NODE, lease_id=LEASE, fraction=lambda: 0.5, users=["reports"]
    )
    await add_job(store, user="reports")
    await add_job(store, "other", user="shop")
    good, refused = await queue(store), await queue(store, "other")
    await dispatcher.step()
    assert executor.launches[f"{good}-1"].user == "reports"
    assert f"{refused}-1" not in executor.launches
    failed = await store.triggers.get(refused)
    assert (failed.state, failed.message) == (State.FAILED, "Jobs may not run as 'shop' here; allowed are reports.")


async def _plan(store: Store, taker: Taker | None) -> Planned:
    return await store.queue.plan(at(60), 100, decide_due, at(120), taker)


async def test_what_is_planned_is_started_without_a_step(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await dispatcher.step()
    await add_job(store)
    await add_schedule(store)
    planned, needs_step = await dispatcher.start_with(partial(_plan, store))
    assert executor.starts == [each.name for each in planned.launches] != []
    assert not needs_step


async def test_before_the_first_step_what_is_planned_is_queued(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await add_job(store)
    await add_schedule(store)
    planned, needs_step = await dispatcher.start_with(partial(_plan, store))
    assert (planned.launches, planned.queued, needs_step, executor.starts) == ((), 1, False, [])


async def test_where_attempts_need_images_what_is_planned_is_queued(
    build: Build, store: Store, clock: ManualClock
) -> None:
    dispatcher = build(local=ScriptedExecutor(clock, wants_image=True))
    await dispatcher.step()
    await add_job(store)
    await add_schedule(store)
    planned, needs_step = await dispatcher.start_with(partial(_plan, store))
    assert (planned.launches, planned.queued, needs_step) == ((), 1, False)


async def test_what_was_taken_and_could_not_be_handed_over_is_started_by_a_step(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await dispatcher.step()
    await add_job(store)
    await add_schedule(store)
    executor.takes_starts = False
    planned, needs_step = await dispatcher.start_with(partial(_plan, store))
    assert (needs_step, executor.launches) == (True, {})
    executor.takes_starts = True
    await dispatcher.step()
    assert list(executor.launches) == [each.name for each in planned.launches] != []


async def test_what_is_taken_and_on_its_way_is_not_taken_for_left_over(
    dispatcher: Dispatcher, store: Store, executor: ScriptedExecutor
) -> None:
    await dispatcher.step()
    await add_job(store)
    await add_schedule(store)

    async def plan(taker: Taker | None) -> Planned:
        planned = await _plan(store, taker)
        executor.takes_starts = False
        await queue(store)
        with pytest.raises(ExecutorUnreachable):
            await dispatcher.step()  # it fails, and leaves what it claimed in doubt
        executor.takes_starts = True
        await dispatcher.step()
        assert executor.launches == {}
        return planned

    planned, needs_step = await dispatcher.start_with(plan)
    assert list(executor.launches) == [each.name for each in planned.launches] != []
    assert needs_step
    await dispatcher.step()
    assert len(executor.launches) == 2


async def test_an_attempt_whose_job_asks_for_it_gets_a_token_that_is_known_before_it_starts(
    store: Store, clock: ManualClock, executor: ScriptedExecutor
) -> None:
    tokens = iter(["cck_1", "cck_2"])
    dispatcher = Dispatcher(
        store, clock, {"local": executor}, node=NODE, lease_id=LEASE, fraction=lambda: 0.5, mint=lambda: next(tokens)
    )
    await add_job(store, token="operator")
    await add_job(store, "plain")
    trigger_id = await queue(store)
    plain_id = await queue(store, "plain")
    executor.takes_starts = False
    with pytest.raises(ExecutorUnreachable):
        await dispatcher.step()
    executor.takes_starts = True
    await dispatcher.step()  # handed over again, it gets another one
    assert dict(executor.launches[f"{trigger_id}-1"].secrets) == {"CLICKCLOCK_TOKEN": "cck_2"}
    assert "cck_2" not in repr(executor.launches)
    assert dict(executor.launches[f"{plain_id}-1"].secrets) == {}
    who = await store.attempt_tokens.by_digest(digest("cck_2"))
    assert who is not None
    assert who.id == f"{trigger_id}-1"

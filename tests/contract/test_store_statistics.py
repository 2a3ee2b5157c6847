"""What the store counts: rollups, pulses, live counts, census, replicas."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from clickclock.scheduler.insight.ranking import Rank
from clickclock.scheduler.insight.statistics import Ending, Key, Rollup, Scope, roll_up, total
from clickclock.scheduler.insight.summary import summarise
from clickclock.scheduler.insight.window import dividing
from clickclock.scheduler.jobs.trigger import FINISHED, ExitKind, State, Trigger
from clickclock.scheduler.store import Census, Store, windows
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rollups import hold_counts
from tests.conftest import Databases
from tests.stores import (
    NOW,
    add_job,
    add_schedule,
    at,
    claim,
    ended,
    finish,
    group,
    heartbeat,
    job,
    plan,
    queue,
    start,
    triggers,
)

FOREVER = (at(-10 * 86400), at(10 * 86400))


def endings_of(trigger: Trigger) -> list[Ending]:
    """What a finished row says of itself."""
    assert trigger.finished_at is not None
    return [
        Ending(
            trigger.application, trigger.job_name, trigger.state, trigger.finished_at, None, 1, trigger.attempt,
            trigger.preemption_count, trigger.duration_ms, trigger.lag_ms, trigger.cpu_seconds,
            trigger.max_memory_bytes, node=trigger.node,
        )
    ] * (trigger.skipped_count or 1)  # fmt: skip


async def live_a_little(store: Store, dice: random.Random) -> None:
    """Three hours of all that can happen to the triggers of three jobs."""
    jobs = [job(name, max_retries=dice.randrange(3)) for name in ("a", "b", "c")]
    await store.jobs.create(jobs, NOW)
    await add_schedule(store, "s", job_name="a", overlap_policy=dice.choice(["skip", "queue", "replace", "allow"]))
    await add_schedule(
        store, "t", job_name="b", kind="interval", expression="7", catch_up={"policy": dice.choice(["all", "none"])}
    )
    kinds = [ExitKind.CODE] * 4 + [ExitKind.SIGNAL, ExitKind.TIMEOUT, ExitKind.LOST, ExitKind.NOT_STARTED]
    now: datetime = NOW
    for _ in range(40):
        now += timedelta(milliseconds=dice.randrange(600_000))
        await plan(store, now)
        for _ in range(dice.randrange(3)):
            await queue(store, dice.choice("abc"), now)
        for each in await store.triggers.find({"states": [State.QUEUED, State.RUNNING]}, None, 20):
            if dice.random() < 0.2:
                await store.triggers.cancel(each.trigger_id, now)
        for launch in (await claim(store, now, limit=dice.randrange(1, 8))).launches:
            if dice.random() < 0.7:
                await store.queue.mark_running("lease-1", [(launch.name, "n", now + timedelta(milliseconds=7))])
        for held in await store.queue.held("lease-1"):
            if dice.random() < 0.6:
                end = ended(
                    now + timedelta(milliseconds=dice.randrange(1000)),
                    code=dice.randrange(2),
                    kind=ExitKind.STOPPED if held.stop_reason else dice.choice(kinds),
                    started_at=dice.choice([None, now]),
                    cpu_seconds=dice.choice([None, 0.125, 4.5]),
                    max_memory_bytes=dice.choice([None, 1000, 5000]),
                )
                await finish(store, held.name, end, fraction=dice.random())


def as_numbers(rollup: Rollup) -> tuple[object, ...]:
    spreads = [
        (each.count, round(each.sum_ms, 3), each.min_ms, each.max_ms, dict(each.buckets))
        for each in (rollup.duration, rollup.lag)
    ]
    states = {state: count for state, count in rollup.states.items() if count}
    return states, rollup.retry_count, round(rollup.cpu_seconds, 6), rollup.max_memory_bytes, spreads


@pytest.fixture(scope="module", params=[f"{kind}-{seed}" for kind in ("sqlite", "postgresql") for seed in range(4)])
def lived_in(request: pytest.FixtureRequest, databases: Databases) -> Iterator[str]:
    """Where a store is that has lived a little. Whoever is given it only reads."""
    kind, _, seed = request.param.partition("-")
    url = databases.copy(kind)

    async def live() -> None:
        store = await Store.open(url)
        await live_a_little(store, random.Random(int(seed)))
        await store.close()

    asyncio.run(live())
    yield url
    databases.drop(url)


@pytest.fixture
async def old_store(lived_in: str) -> AsyncIterator[Store]:
    """A store that has lived a little."""
    opened = await Store.open(lived_in)
    yield opened
    await opened.close()


async def test_the_rollups_are_what_the_triggers_add_up_to(old_store: Store) -> None:
    finished = [each for each in await triggers(old_store) if each.state in FINISHED]
    assert len({each.state for each in finished}) >= 4
    expected = roll_up(ending for each in finished for ending in endings_of(each))
    scopes = [Scope.of("shop", "a"), Scope.of("shop", "b"), Scope.of("shop", "c"), Scope.of("shop"), Scope.of()]
    by_hour = {
        Key(scope, hour): as_numbers(rollup)
        for scope in scopes
        for hour, rollup in await old_store.statistics.rollups(scope, *FOREVER)
    }
    found = await old_store.statistics.nodes(None, *FOREVER)
    assert found
    for node, hours in found.items():
        by_hour |= {Key(Scope.on(node, "shop"), hour): as_numbers(rollup) for hour, rollup in hours}
    assert by_hour == {key: as_numbers(rollup) for key, rollup in expected.items()}


async def test_rollups_are_of_the_hours_that_begin_in_the_window(store: Store) -> None:
    await add_job(store)
    for seconds in (1, 3601, 7201):
        await finish(store, await start(store, now=at(seconds)), ended(at(seconds)))
    assert [hour for hour, _ in await store.statistics.rollups(Scope.of(), NOW, at(7200))] == [NOW, at(3600)]
    assert [hour for hour, _ in await store.statistics.rollups(Scope.of(), at(1), at(9000))] == [at(3600), at(7200)]
    assert await store.statistics.rollups(Scope.of(), at(9999), at(99999)) == []


async def test_machines_have_the_hours_that_begin_in_the_window_of_the_applications_asked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.jobs.create([job("b", application="crm")], NOW)
    await add_job(store, "a")
    for seconds, name in ((1, "a"), (3601, "a"), (3602, "b"), (7201, "a")):
        trigger = await start(store, name, at(seconds), application="crm" if name == "b" else "shop")
        await finish(store, trigger, ended(at(seconds), node=f"host-{name}"))

    async def totals(applications: set[str] | None, since: datetime, until: datetime) -> object:
        found = await store.statistics.nodes(applications, since, until)
        return found and {node: {hour: sum(each.states.values()) for hour, each in of} for node, of in found.items()}

    assert await totals(None, NOW, at(7200)) == {"host-a": {NOW: 1, at(3600): 1}, "host-b": {at(3600): 1}}
    assert await totals({"crm", "none"}, NOW, at(7200)) == {"host-b": {at(3600): 1}}
    assert await totals({"none"}, NOW, at(7200)) == await totals(None, at(9999), at(99999)) == {}
    monkeypatch.setattr(windows, "NODES_MAX", 1)
    assert await totals(None, NOW, at(7200)) is None


async def test_any_window_counts_exactly_the_triggers_that_ended_in_it(old_store: Store) -> None:
    dice = random.Random(7)
    finished = [each for each in await triggers(old_store) if each.state in FINISHED]
    for _ in range(10):
        since, until = sorted(at(dice.uniform(-600, 4 * 3600)) for _ in range(2))
        inside = [each for each in finished if each.finished_at and since <= each.finished_at < until]
        cuts = dividing([since, until, at(5400)])
        for scope, mine in ((Scope.of(), inside), (Scope.of("shop", "a"), [e for e in inside if e.job_name == "a"])):
            counted = await old_store.statistics.window(scope, since, until, cuts)
            exact = total(roll_up_all(mine))
            assert as_numbers(total(each for _, each in counted.rollups)) == as_numbers(exact)
            assert counted.undivided == []


def roll_up_all(finished: list[Trigger]) -> list[Rollup]:
    endings = [ending for each in finished for ending in endings_of(each)]
    return [each for key, each in roll_up(endings).items() if key.scope == Scope.of()]


async def test_an_hour_whose_triggers_are_gone_is_counted_whole_and_told(store: Store) -> None:
    await add_job(store)
    for seconds in (60, 1860, 3660):
        await finish(store, await start(store, now=at(seconds)), ended(at(seconds)))
    half = at(1800)
    counted = await store.statistics.window(Scope.of(), half, at(7200), [half])
    assert [(begins, each.states[State.SUCCEEDED]) for begins, each in counted.rollups] == [(half, 1), (at(3600), 1)]
    first = (await triggers(store))[0]
    await store.triggers.prune([first.trigger_id], at(-86400))
    counted = await store.statistics.window(Scope.of(), half, at(7200), [half])
    assert [(begins, each.states[State.SUCCEEDED]) for begins, each in counted.rollups] == [(NOW, 2), (at(3600), 1)]
    assert counted.undivided == [NOW]


async def test_an_hour_of_too_many_triggers_is_counted_whole_and_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "TRIGGERS_MAX", 2)
    await add_job(store)
    for seconds in (60, 1860, 3660, 5460, 7000):
        await finish(store, await start(store, now=at(seconds)), ended(at(seconds)))
    counted = await store.statistics.window(Scope.of(), at(1800), at(5400), [at(1800), at(5400)])
    assert [begins for begins, _ in counted.rollups] == [at(1800), at(3600)]
    assert counted.undivided == [at(3600)]


async def test_flips_are_counted_across_batches_and_remembered_by_their_triggers(store: Store) -> None:
    await store.jobs.create([job(), job("other")], NOW)
    for second, code in enumerate((0, 1, 1, 0)):
        await finish(store, await start(store, now=at(second)), ended(at(second), code=code))
        await finish(store, await start(store, "other", now=at(second)), ended(at(second), code=1))
        await store.statistics.count()
    for scope in (Scope.of("shop", "export"), Scope.of("shop"), Scope.of()):
        ((_, rollup),) = await store.statistics.rollups(scope, *FOREVER)
        assert (rollup.flips, rollup.recovered, rollup.flaky) == (2, 0, 2)
    counted = await store.statistics.window(Scope.of(), at(0.5), at(2.5), [at(0.5), at(2.5)])
    ((_, part),) = counted.rollups
    assert part.flips == 1


async def test_a_ranking_is_of_the_jobs_asked_for_and_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.groups.create(group(), NOW)
    await store.jobs.create([job("a", group_name="exports"), job("b"), job("c"), job("idle")], NOW)
    for seconds, name, took in ((0, "a", 5), (10, "b", 7), (3620, "b", 9), (40, "c", 1)):
        await finish(store, await start(store, name, now=at(seconds)), ended(at(seconds + took)))

    async def slowest(filters: dict[str, str], hours: int = 2) -> list[tuple[str, int]] | None:
        ranked = await store.statistics.ranking(Rank.SLOWEST, filters, NOW, at(3600 * hours), 2)
        return None if ranked is None else [(name, sums.states[State.SUCCEEDED]) for (_, name), sums in ranked]

    assert await slowest({}) == [("b", 2), ("a", 1)]
    assert await slowest({"application": "shop"}, 1) == [("b", 1), ("a", 1)]
    assert await slowest({"group_name": "exports"}) == [("a", 1)]
    assert await slowest({"application": "crm"}) == []
    monkeypatch.setattr(windows, "OUTLINES_MAX", 3)
    assert await slowest({}) is None


async def test_what_concluded_counts_exactly_once_however_often_it_is_counted(store: Store, second: Store) -> None:
    await add_job(store)
    for _ in range(3):
        await finish(store, await start(store), ended())
    counted = await asyncio.gather(*(each.statistics.count() for each in (store, second, store, second)))
    assert sum(counted) == 3
    assert await store.statistics.count() == 0
    ((_, rollup),) = await second.statistics.rollups(Scope.of("shop", "export"), *FOREVER)
    assert sum(rollup.states.values()) == 3


async def test_who_asks_waits_for_what_another_replica_is_counting(
    store_url: Callable[[str], str], postgresql_console: Any
) -> None:
    url = store_url("postgresql")
    store = await Store.open(url)
    await add_job(store)
    await finish(store, await start(store), ended())
    another = Database(url)
    with another.engine.begin() as counting:
        hold_counts(counting, waits=True)
        assert await store.statistics.count() == 0  # who only helps leaves it to the other one
        asked = asyncio.create_task(store.statistics.rollups(Scope.of(), *FOREVER))
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not asked.done() and (await asyncio.to_thread(postgresql_console.execute, waiting)).fetchone() == (0,):
            pass
    ((_, counted),) = await asked
    assert counted.states == {State.SUCCEEDED: 1}
    another.close()
    await store.close()


async def test_rollups_sum_over_an_application_or_a_group(store: Store) -> None:
    await store.groups.create(group(), NOW)
    await store.jobs.create([job("a", group_name="exports"), job("b", group_name="exports"), job("c")], NOW)
    for name in ("a", "b", "c"):
        await finish(store, await start(store, name), ended())

    async def succeeded(scope: Scope) -> int:
        rollups = await store.statistics.rollups(scope, *FOREVER)
        return summarise(rollup for _, rollup in rollups).succeeded

    assert await succeeded(Scope.of("shop")) == 3
    assert await succeeded(Scope.of(group_name="exports")) == 2
    assert await succeeded(Scope.of("crm")) == 0


async def test_the_pulse_is_the_streak_and_the_last_success_and_failure(store: Store) -> None:
    await add_job(store)
    assert await store.statistics.pulse("shop", "export") is None
    names = []
    for second, code in enumerate((0, 0, 1, 1, 1)):
        names.append(await start(store, now=at(second)))
        await finish(store, names[-1], ended(at(second), code=code))
    await store.triggers.cancel(await queue(store), at(9))
    pulse = await store.statistics.pulse("shop", "export")
    assert pulse is not None
    assert (pulse["streak"], pulse["last_success_at"], pulse["last_failure_at"]) == (-3, at(1), at(4))
    assert [f"{pulse['last_success_id']}-1", f"{pulse['last_failure_id']}-1"] == [names[1], names[4]]
    await finish(store, await start(store, now=at(10)), ended(at(11)))
    pulse = await store.statistics.pulse("shop", "export")
    assert pulse is not None
    assert (pulse["streak"], pulse["last_success_at"], pulse["last_failure_at"]) == (1, at(11), at(4))


async def test_live_counts_are_of_what_is_queued_and_of_what_starts_or_runs(store: Store) -> None:
    await store.jobs.create([job(), job("other")], NOW)
    await start(store)
    await finish(store, await start(store), ended())
    await queue(store)
    await queue(store)
    await queue(store, "other")
    assert await store.statistics.live_counts({}) == (3, 1)
    assert await store.statistics.live_counts({"job_name": "other"}) == (1, 0)
    assert await store.statistics.live_counts({"application": "crm"}) == (0, 0)


async def test_the_census_counts(store: Store) -> None:
    assert await store.replicas.census({}) == Census(0, 0, 0, 0)
    await store.jobs.create([job(), job("other")], NOW)
    await add_schedule(store)
    await start(store)
    await start(store, lease="gone")
    await queue(store)
    assert await store.replicas.census({}) == Census(2, 1, 1, 2)


async def test_replicas_live_as_long_as_their_lease(store: Store) -> None:
    await store.replicas.beat(heartbeat("new", at(1)))
    await store.replicas.beat(heartbeat("old", NOW))
    assert [each.replica_id for each in await store.replicas.living(at(2))] == ["old", "new"]
    assert [each.replica_id for each in await store.replicas.living(at(15))] == ["new"]
    renewed = heartbeat("old", at(15))
    await store.replicas.beat(renewed)
    assert (await store.replicas.living(at(16)))[0] in (renewed, heartbeat("new", at(1)))
    await store.replicas.leave("new", at(15.5))
    assert await store.replicas.living(at(15.9)) == [renewed]

"""The scanner: each thing that can be wrong is made so, is found with what to do, and is told no more once mended."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import StoreUnreachable
from clickclock.scheduler.agents.scanner import MADE_UP_S, SCAN_EVERY_S, Scanner
from clickclock.scheduler.insight.finding import (
    FAILURES_UNHEARD,
    IDS_MAX,
    JUMP_TOLD_S,
    RULES,
    STARTING_TOO_LONG_S,
    Finding,
    FindingCode,
    Severity,
    finding,
)
from clickclock.scheduler.store import Store
from tests.stores import add_job, add_schedule, at, claim, ended, finish, heartbeat, plan, queue, start

WELL: Mapping[str, Any] = {"cluster": "local", "reachable": True, "message": None}


class Clusters:
    """What this replica's own clusters say."""

    def __init__(self) -> None:
        self.told = [dict(WELL)]

    async def __call__(self) -> list[dict[str, Any]]:
        return self.told


@pytest.fixture
def clusters() -> Clusters:
    return Clusters()


@pytest.fixture
def scanner(store: Store, clock: ManualClock, clusters: Clusters) -> Scanner:
    return Scanner(store, clock, node="node-1", replica_id="lease-1", default_cluster="local", capacities=clusters)


async def codes(scanner: Scanner) -> list[FindingCode]:
    return [each.code for each in await scanner.look()]


async def the_one(scanner: Scanner, code: FindingCode) -> Finding:
    (found,) = await scanner.look()
    assert (found.code, found.severity, found.remedy) == (code, RULES[code].severity, RULES[code].remedy)
    return found


async def test_where_all_is_well_nothing_is_found(scanner: Scanner, store: Store) -> None:
    await add_job(store)
    await add_schedule(store)
    await store.replicas.beat(heartbeat())
    await start(store)
    assert await scanner.step() == SCAN_EVERY_S
    assert scanner.last is not None
    assert scanner.last.findings == ()


async def test_overdue_schedules_are_found_until_they_are_planned(
    scanner: Scanner, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await add_schedule(store)
    clock.advance(121)
    found = await the_one(scanner, FindingCode.OVERDUE_SCHEDULES)
    assert (found.count, found.ids) == (1, ["s"])
    await plan(store, clock.now())
    assert await codes(scanner) == []


async def test_what_was_missed_while_nobody_was_here_is_found_once_there_was_time_to_make_up_for_it(
    scanner: Scanner, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await add_schedule(store)
    clock.advance(121)
    await scanner.step()
    assert scanner.last is not None
    assert scanner.last.findings == ()
    clock.advance(MADE_UP_S)
    assert await codes(scanner) == [FindingCode.OVERDUE_SCHEDULES]


async def test_attempts_that_no_living_replica_holds_are_found_and_so_is_who_fell_silent(
    scanner: Scanner, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    await store.replicas.beat(heartbeat("other", node="node-2"))
    name = await start(store, lease="other")
    clock.advance(20)
    silent, stuck = await scanner.look()
    assert (silent.code, silent.ids) == (FindingCode.SILENT_REPLICA, ["node-2"])
    assert "holds 1 attempts" in silent.message
    assert (stuck.code, stuck.ids) == (FindingCode.STUCK_ATTEMPTS, [name.rpartition("-")[0]])
    await store.replicas.beat(heartbeat("other", clock.now(), node="node-2"))
    assert await codes(scanner) == []


async def test_who_fell_silent_is_told_of_until_its_node_lives_again(
    scanner: Scanner, store: Store, clock: ManualClock
) -> None:
    await store.replicas.beat(heartbeat("other", node="node-2"))
    clock.advance(20)
    assert await codes(scanner) == []  # none lives that could say so
    await store.replicas.beat(heartbeat("mine", clock.now(), node="node-1"))
    found = await the_one(scanner, FindingCode.SILENT_REPLICA)
    assert (found.ids, "holds 0 attempts" in found.message) == (["node-2"], True)
    await store.replicas.beat(heartbeat("another", clock.now(), node="node-2"))
    assert await codes(scanner) == []


async def test_a_loop_that_stalls_is_found_by_its_replica(scanner: Scanner, store: Store) -> None:
    loops = [{"name": "planner", "stalled": True, "error": "The disk is full."}]
    await store.replicas.beat(replace(heartbeat(), loops=loops))
    found = await the_one(scanner, FindingCode.STALLED_LOOP)
    assert found.message == "The planner loop of node-1 is stalled: The disk is full."


async def test_a_cluster_that_does_not_answer_is_found_once_whoever_says_so(
    scanner: Scanner, store: Store, clusters: Clusters
) -> None:
    trouble = {"cluster": "boxes", "reachable": False, "message": "The engine does not answer."}
    clusters.told = [dict(WELL), trouble]
    await store.replicas.beat(replace(heartbeat("other"), clusters=[trouble]))
    found = await the_one(scanner, FindingCode.UNREACHABLE_CLUSTER)
    assert found.message == "The cluster boxes has trouble: The engine does not answer."
    clusters.told = [dict(WELL)]
    assert await codes(scanner) == [FindingCode.UNREACHABLE_CLUSTER]
    await store.replicas.beat(replace(heartbeat("other"), clusters=[{**trouble, "reachable": True, "message": None}]))
    assert await codes(scanner) == []


@pytest.mark.parametrize("fields", [{"cluster": "boxes"}, {"node": "node-2"}])
async def test_what_waits_for_a_cluster_or_a_node_that_nobody_has_is_found(
    scanner: Scanner, store: Store, clock: ManualClock, fields: dict[str, Any]
) -> None:
    await add_job(store, **fields)
    waiting = await queue(store)
    assert await codes(scanner) == []
    clock.advance(61)
    assert (await the_one(scanner, FindingCode.QUEUED_NOWHERE)).ids == [waiting]
    there = replace(heartbeat("other", clock.now(), node="node-2"), clusters=[{"cluster": "boxes"}])
    await store.replicas.beat(there)
    assert await codes(scanner) == []


async def test_what_waits_for_room_alone_is_not_told_of(scanner: Scanner, store: Store, clock: ManualClock) -> None:
    await add_job(store)
    await queue(store)
    clock.advance(3600)
    assert FindingCode.QUEUED_NOWHERE not in await codes(scanner)


async def test_an_attempt_that_stays_in_its_start_is_found(scanner: Scanner, store: Store, clock: ManualClock) -> None:
    await add_job(store)
    await queue(store)
    (launch,) = (await claim(store)).launches
    await scanner.look()
    clock.advance(STARTING_TOO_LONG_S + 1)
    await store.replicas.beat(heartbeat(now=clock.now()))
    assert (await the_one(scanner, FindingCode.SLOW_STARTS)).ids == [launch.name.rpartition("-")[0]]
    await store.queue.mark_running("lease-1", [(launch.name, "node-1", clock.now())])
    assert await codes(scanner) == []


async def test_a_clock_behind_the_last_change_is_found(scanner: Scanner, store: Store, clock: ManualClock) -> None:
    await add_job(store, now=at(0))
    clock.step_to(at(-90))
    found = await the_one(scanner, FindingCode.CLOCK_SET_BACK)
    assert found.message == "The clock is 90 s behind the last change in the store."
    clock.advance(90)
    assert await codes(scanner) == []


async def test_a_clock_that_was_set_back_is_found_until_schedules_go_on_whatever_changes_meanwhile(
    scanner: Scanner, store: Store, clock: ManualClock, clusters: Clusters
) -> None:
    await add_job(store, now=at(0))
    await add_schedule(store, now=at(0))
    clock.step_to(at(-90))
    assert await codes(scanner) == [FindingCode.CLOCK_SET_BACK]
    await add_job(store, "another", now=at(-90))
    restarted = Scanner(store, clock, node="node-1", replica_id="lease-1", default_cluster="local", capacities=clusters)
    for each in (scanner, restarted):
        found = await the_one(each, FindingCode.CLOCK_SET_BACK)
        assert found.message == "The clock is 90 s behind the last change in the store."
    await store.schedules.delete("s", at(-90))
    await add_schedule(store, now=at(-90))
    assert await codes(scanner) == []


async def test_every_jump_of_the_clock_is_logged(
    scanner: Scanner, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    for seconds in (0, 3600, 3600, 0):
        clock.step_to(at(seconds))
        await scanner.step()
    told = [each.message.partition(" jumped by ")[2].split(" s ")[0] for each in caplog.records]
    assert [each for each in told if each] == ["+3600.0", "-3600.0"]


async def test_a_clock_that_jumps_is_told_of_for_an_hour(scanner: Scanner, clock: ManualClock) -> None:
    assert await codes(scanner) == []
    clock.advance(30)
    assert await codes(scanner) == []
    clock.step_to(at(40))
    found = await the_one(scanner, FindingCode.CLOCK_JUMPED)
    assert found.message == "The clock of node-1 jumped by +10.0 s within the last hour."
    clock.advance(JUMP_TOLD_S)
    assert await codes(scanner) == []


async def test_a_machine_whose_clock_is_off_is_found(scanner: Scanner, store: Store) -> None:
    await store.replicas.beat(replace(heartbeat(), clock_skew_ms=5000.0))
    found = await the_one(scanner, FindingCode.SKEWED_CLOCK)
    assert found.message == "The clock of node-1 is 5.0 s behind the database's, which counts."


async def test_notifications_that_were_given_up_are_found_until_they_are_tried_again(
    scanner: Scanner, store: Store, clock: ManualClock
) -> None:
    made = await store.outbox.add_test("ops", clock.now())
    (parcel,), _ = await store.outbox.claim(clock.now(), lease_id="l", until=at(60), limit=9, busy=())
    await store.outbox.failed(parcel, "l", clock.now(), "no", None)
    assert (await the_one(scanner, FindingCode.DEAD_NOTIFICATIONS)).ids == [made.notification_id]
    await store.outbox.try_again(made.notification_id, clock.now())
    assert await codes(scanner) == []


async def test_a_schedule_that_never_fires_is_found(scanner: Scanner, store: Store) -> None:
    await add_job(store)
    await add_schedule(store, "never", kind="once", expression="2020-01-01T00:00:00Z")
    assert (await the_one(scanner, FindingCode.IDLE_SCHEDULES)).ids == ["never"]


async def test_a_job_that_always_fails_and_tells_nobody_is_found(
    scanner: Scanner, store: Store, clock: ManualClock
) -> None:
    await add_job(store)
    for number in range(FAILURES_UNHEARD):
        assert await codes(scanner) == []
        await finish(store, await start(store, now=clock.now()), ended(clock.now(), code=1))
        await store.statistics.count_all()
        clock.advance(number)
    assert (await the_one(scanner, FindingCode.UNHEARD_FAILURES)).ids == ["shop/export"]


async def test_a_store_that_is_away_is_a_finding_and_hides_no_other(
    scanner: Scanner, store: Store, clock: ManualClock, clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await add_job(store)
    await add_schedule(store)
    await scanner.step()
    clock.advance(121)
    await scanner.step()

    async def away() -> list[dict[str, Any]]:
        raise StoreUnreachable

    scanner._capacities = away
    with pytest.raises(StoreUnreachable):
        await scanner.step()
    assert scanner.last is not None
    assert [each.code for each in scanner.last.findings] == [FindingCode.STORE_UNREACHABLE]
    assert "resolved" not in caplog.text
    scanner._capacities = clusters
    caplog.clear()
    await scanner.step()
    assert [each.getMessage().partition(": The")[0] for each in caplog.records] == ["storeUnreachable: resolved"]
    scanner._capacities = away
    with pytest.raises(StoreUnreachable):
        await scanner.step()
    await plan(store, clock.now())
    scanner._capacities = clusters
    caplog.clear()
    await scanner.step()
    told = sorted(each.getMessage().partition(": resolved")[0] for each in caplog.records)
    assert told == ["overdueSchedules", "storeUnreachable"]


async def test_the_log_tells_when_something_appears_and_when_it_is_gone_and_not_in_between(
    scanner: Scanner, store: Store, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await add_job(store)
    await add_schedule(store)
    await scanner.step()
    clock.advance(121)
    for _ in range(3):
        await scanner.step()
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("overdueSchedules: Schedules that have been due for more than 60 s: 1. Look")
    caplog.clear()
    await plan(store, clock.now())
    for _ in range(2):
        await scanner.step()
    (record,) = caplog.records
    assert (record.levelno, "overdueSchedules: resolved" in record.getMessage()) == (logging.INFO, True)


async def test_what_fails_comes_before_what_is_worth_a_look(scanner: Scanner, store: Store, clock: ManualClock) -> None:
    await store.replicas.beat(replace(heartbeat(), clock_skew_ms=5000.0))
    await add_job(store)
    await add_schedule(store)
    clock.advance(1)
    clock.step_to(at(121))
    await store.replicas.beat(replace(heartbeat(now=at(121)), clock_skew_ms=5000.0))
    assert [each.severity for each in await scanner.look()] == [Severity.FAIL, Severity.WARN]


def test_only_the_first_few_ids_are_told() -> None:
    assert len(finding(FindingCode.SLOW_STARTS, [str(number) for number in range(100)]).ids) == IDS_MAX

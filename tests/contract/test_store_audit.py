"""The audit trail on every store: a record for each change that somebody asked for, in its transaction, in a chain."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.hash_chain import BEGINNING, fault_of
from clickclock.scheduler.access.audit import Act, AuditRecord, Outcome, Resource
from clickclock.scheduler.errors import JobExists
from clickclock.scheduler.insight.alarm import SilenceRequest
from clickclock.scheduler.store import Store
from clickclock.scheduler.store.auditing import acting
from clickclock.scheduler.store.schema_audit import audit, audit_chain
from tests.stores import NOW, add_job, add_schedule, at, claim, ended, engine_of, finish, group, job, plan, queue

BEGUN = SystemClock().now().replace(microsecond=0) - timedelta(minutes=10)
"""Ids carry the true time of their making, and so do these records."""
ADA = Act(BEGUN, "PUT job", "job.write", "ada", "person:1", "session", "203.0.113.7", "r-1")
BOB = Act(BEGUN + timedelta(seconds=60), "POST jobTrigger", "trigger.create", "bob", "token:2", "token")


async def records(store: Store, **filters: Any) -> list[AuditRecord]:
    """Oldest first."""
    return (await store.audit.find(filters, None, 1000))[::-1]


async def test_a_change_is_recorded_with_who_made_it_and_what_it_changed(store: Store) -> None:
    await add_job(store)
    with acting(ADA):
        await store.jobs.put(job(priority=70, environment={"DB": "postgresql://me:hush@db/x"}), NOW)
    (record,) = await records(store)
    assert (record.principal, record.principal_id, record.proof) == ("ada", "person:1", "session")
    assert (record.address, record.request_id) == ("203.0.113.7", "r-1")
    assert (record.operation, record.permission, record.outcome, record.count) == ("PUT job", "job.write", "done", 1)
    assert (record.resource, record.resource_id) == ("job", "shop/export")
    assert (record.application, record.job_name, record.at) == ("shop", "export", BEGUN)
    assert record.changes == {
        "priority": {"after": 70},
        "environment": {"after": {"DB": "postgresql://me:**********@db/x"}},
    }


async def test_what_the_service_does_of_its_own_accord_is_not_recorded(store: Store) -> None:
    await add_job(store, max_retries=1)
    await add_schedule(store)
    await plan(store, at(60))
    (launch,) = (await claim(store, at(60))).launches
    await finish(store, launch.name, ended(at(61), code=1))
    assert await records(store) == []


async def test_what_is_refused_or_only_tried_leaves_neither_change_nor_record(store: Store) -> None:
    await add_job(store)
    with acting(ADA), pytest.raises(JobExists):
        await store.jobs.create([job("new"), job()], NOW)
    assert await records(store) == []
    with acting(ADA):
        await asyncio.gather(*(store.jobs.create([job(f"job-{n}")], NOW) for n in range(20)))
    assert len(await records(store)) == 20


async def test_every_change_of_a_schedule_and_what_goes_with_its_job_is_recorded(store: Store) -> None:
    with acting(ADA):
        await add_job(store)
        await add_schedule(store, "s")
        await store.schedules.delete("s", NOW)
        await add_schedule(store, "t")
        await store.jobs.delete("shop", "export", NOW, force=False)
    told = [(each.resource, each.resource_id, sorted(each.changes["expression"])) for each in (await records(store))
            if each.resource == "schedule" and each.changes]  # fmt: skip
    assert told == [
        ("schedule", "s", ["after"]),
        ("schedule", "s", ["before"]),
        ("schedule", "t", ["after"]),
        ("schedule", "t", ["before"]),
    ]


async def test_records_are_found_by_whatever_they_are_asked_by(store: Store) -> None:
    with acting(ADA):
        await add_job(store)
        await store.groups.create(group(), NOW)
        await store.alarms.silence(SilenceRequest(group_name="exports", seconds=60, silenced_by="ada"), NOW)
    with acting(BOB):
        trigger = await queue(store)
        await store.audit.note(Resource.AUDIT, "all", Outcome.REFUSED, 3)

    async def found(**filters: Any) -> list[str]:
        return [each.resource for each in await records(store, **filters)]

    assert await found(principal="ada") == ["job", "group", "silence"]
    assert await found(permission="trigger.create") == ["trigger", "audit"]
    assert await found(resource_id=trigger) == ["trigger"]
    assert await found(application="shop", job_name="export") == ["job", "trigger"]
    assert await found(resource="group", principal="bob") == []
    assert await found(since=BEGUN + timedelta(seconds=1)) == ["trigger", "audit"]
    assert await found(until=BEGUN + timedelta(seconds=1)) == ["job", "group", "silence"]
    (refused,) = await records(store, outcome="refused")
    assert (refused.count, refused.changes) == (3, None)


async def verified(store: Store) -> list[str]:
    """What is wrong with the chains, as whoever reads them finds it."""
    faults = []
    for chain in await store.audit.chains():
        previous, position = chain.removed_hash, chain.removed_through
        for record in await records(store, chain=chain.chain):
            told = record.wire()
            if (fault := fault_of(previous, position, told)) is not None:
                faults.append(f"{record.position} {fault}")
            previous, position = record.hash, record.position
    return faults


async def change_many(store: Store, count: int = 12) -> None:
    """Changes of one replica, at once."""
    with acting(ADA):
        await asyncio.gather(*(store.jobs.put(job(f"j{n}", description="ü\U0001f600"), NOW) for n in range(count)))


async def test_each_replica_s_records_make_chains_without_gaps(store: Store, second: Store) -> None:
    store.audit.node, second.audit.node = "one", "two"
    await asyncio.gather(change_many(store), change_many(second))
    assert {each.chain.split("/")[0] for each in await store.audit.chains()} == {"one", "two"}
    assert len(await records(store)) == 24
    assert await verified(store) == []


async def test_two_that_bear_one_name_still_make_one_chain(store: Store, second: Store) -> None:
    await asyncio.gather(*(change_many(each, 3) for each in (store, second)))
    assert len(await records(store)) == 6
    assert await verified(store) == []


async def test_two_that_write_in_turns_each_go_on_where_the_other_ended(store: Store, second: Store) -> None:
    for each in (store, second, store, second):
        await change_many(each, 2)
    assert len(await records(store)) == 8
    assert await verified(store) == []


FORGERIES: dict[str, Callable[[str], sa.sql.dml.UpdateBase]] = {
    "was changed": lambda chain: (
        sa.update(audit).where(audit.c.chain == chain, audit.c.position == 2).values(principal="eve")
    ),
    "is gone": lambda chain: sa.delete(audit).where(audit.c.chain == chain, audit.c.position == 2),
    "comes after": lambda chain: (
        sa.update(audit_chain).where(audit_chain.c.chain == chain).values(removed_through=1, removed_hash=BEGINNING)
    ),
}


@pytest.mark.parametrize("finding", FORGERIES)
async def test_a_forged_trail_does_not_verify(store: Store, finding: str) -> None:
    for _ in range(14):  # six writers: one of them writes three
        await change_many(store, 1)
    lengths = {each.chain: len(await records(store, chain=each.chain)) for each in await store.audit.chains()}
    longest = max(lengths, key=lambda name: lengths[name])
    assert await verified(store) == []
    with engine_of(store).begin() as connection:
        connection.execute(FORGERIES[finding](longest))
    faults = await verified(store)
    assert [finding in each for each in faults[:1]] == [True]


async def test_retention_leaves_a_signed_head_and_what_is_left_verifies(store: Store) -> None:
    store.audit.key = b"key"
    with acting(ADA):
        for number in range(5):
            await add_job(store, f"old-{number}")
    with acting(BOB):
        await add_job(store, "new")
    before = len(await records(store))
    removed = await store.audit.prune(BEGUN + timedelta(seconds=30), at(90))
    left = await records(store)
    assert (before, len(left), left[-1].principal) == (6, 6 - removed, "bob")
    assert removed == 5
    assert await verified(store) == []
    heads = [each for each in await store.audit.chains() if each.removed_through]
    assert sum(each.removed_through for each in heads) == 5
    assert all(each.is_signed and each.removed_at == at(90) for each in heads)
    store.audit.key = b"another"
    assert not any(each.is_signed for each in await store.audit.chains())
    # What goes on after all has gone goes on where it ended.
    await store.audit.prune(BEGUN + timedelta(days=1), at(3600))
    assert await records(store) == []
    await change_many(store)
    assert await verified(store) == []

"""The auditor: refusals are counted, and an attack costs a bounded number of records."""

import pytest
from msgspec.structs import replace

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import StoreUnreachable
from clickclock.scheduler.access.audit import Act, Resource
from clickclock.scheduler.agents.auditor import KINDS_MAX, OTHERS, WRITE_EVERY_S, Auditor
from clickclock.scheduler.store import Store
from tests.stores import NOW, at, engine_of

EVE = Act(NOW, "PUT job", "job.write", "nobody", "nobody:", "none", "203.0.113.66", "r-1")


async def counts(store: Store) -> dict[tuple[str, str | None], int]:
    found = await store.audit.find({"outcome": "refused"}, None, 100)
    assert {(each.resource, each.changes) for each in found} <= {(Resource.REQUEST.value, None)}
    return {(each.operation, each.address): each.count for each in found}


async def test_refusals_that_differ_only_in_time_are_one_record(store: Store) -> None:
    auditor = Auditor(store, ManualClock(NOW))
    assert (await auditor.step(), await counts(store)) == (WRITE_EVERY_S, {})
    for number in range(1000):
        auditor.refused(replace(EVE, at=at(number), request_id=f"r-{number}"))
    auditor.refused(replace(EVE, operation="DELETE job"))
    await auditor.step()
    assert await counts(store) == {("PUT job", EVE.address): 1000, ("DELETE job", EVE.address): 1}
    (first,) = await store.audit.find({"resource_id": "PUT job"}, None, 10)
    assert (first.at, first.request_id, first.permission, first.principal) == (NOW, None, "job.write", "nobody")
    await auditor.step()
    assert len(await counts(store)) == 2


async def test_an_attack_from_everywhere_costs_a_bounded_number_of_records(store: Store) -> None:
    auditor = Auditor(store, ManualClock(NOW))
    for number in range(5000):
        auditor.refused(replace(EVE, address=f"2001:db8::{number:x}"))
    await auditor.step()
    found = await counts(store)
    assert len(found) == KINDS_MAX + 1
    assert found[OTHERS, None] == 5000 - KINDS_MAX


async def test_what_cannot_be_written_is_counted_on(store: Store) -> None:
    auditor = Auditor(store, ManualClock(NOW))
    auditor.refused(EVE)

    with engine_of(store).begin() as connection:
        connection.exec_driver_sql("ALTER TABLE audit RENAME TO away")
    with pytest.raises(StoreUnreachable):
        await auditor.step()
    with engine_of(store).begin() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO audit")
    auditor.refused(EVE)
    await auditor.step()
    assert await counts(store) == {("PUT job", EVE.address): 2}

"""A change and its record are both there or both not, wherever the process that makes them is killed."""

import signal
from collections.abc import Callable

import pytest

from clickclock.foundation.hash_chain import fault_of
from clickclock.scheduler.store import Store
from tests.crash.mortal import Death
from tests.crash.mortal_audited import ADA
from tests.crash.nursery import Child
from tests.stores import NOW, job

STORE = "clickclock.scheduler.store"
STEPS = [
    *((f"{STORE}.jobs:note", moment) for moment in ("before", "after")),
    *((f"{STORE}.auditing:_write", moment) for moment in ("before", "after")),
    *((f"{STORE}.session:Session.commit", moment) for moment in ("before", "after")),
]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_change_and_its_record_are_both_there_or_both_not(kind: str, store_url: Callable[[str], str]) -> None:
    url = store_url(kind)
    store = await Store.open(url)
    with store.audit.by(ADA):
        await store.jobs.create([job()], NOW)
    found = []
    for target, moment in STEPS:
        child = Child("mortal_audited", {"url": url, "death": Death(target, moment).as_json()})
        assert child.wait(60) == -signal.SIGKILL
        child.stdout.close()
        stored = await store.jobs.get("shop", "export")
        records = await store.audit.find({"resource": "job"}, None, 100)
        assert stored.version == len(records)
        found.append(stored.version)
    assert found == [1, 1, 1, 1, 1, 2]
    for chain in await store.audit.chains():
        previous, position = chain.removed_hash, chain.removed_through
        for record in (await store.audit.find({"chain": chain.chain}, None, 100))[::-1]:
            assert fault_of(previous, position, record.wire()) is None
            previous, position = record.hash, record.position
    await store.close()

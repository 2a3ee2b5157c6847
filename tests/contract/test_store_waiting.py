"""What is around a queued trigger: the same on every store, and what the claim goes by."""

from collections.abc import Iterable

from clickclock.scheduler.jobs.waiting import reasons
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
    heartbeat,
    plan,
    queue,
    start,
)
from tests.stores import triggers as all_triggers


async def told(store: Store, trigger_id: str, seconds: float = 0) -> list[str]:
    facts = await store.triggers.circumstances(trigger_id, at(seconds), "local")
    assert facts is not None
    return [each.reason for each in reasons(facts)]


async def beat(store: Store, slots: int = 10, nodes: Iterable[str] = ("node-1",)) -> None:
    for node in nodes:
        said = heartbeat(LEASE if node == "node-1" else node, node=node, lease_s=3600)
        cluster = {"cluster": "local", "total": slots, "reachable": True, "message": None}
        await store.replicas.beat(
            type(said)(**{**{n: getattr(said, n) for n in said.__struct_fields__}, "clusters": [cluster]})
        )


async def test_a_trigger_that_could_start_waits_for_nothing_and_one_that_runs_does_not_wait(store: Store) -> None:
    await add_job(store)
    await beat(store)
    trigger_id = await queue(store)
    assert await told(store, trigger_id) == []
    await claim(store)
    assert await store.triggers.circumstances(trigger_id, NOW, "local") is None


async def test_caps_of_job_group_and_cluster_are_told_with_those_who_hold_them(store: Store) -> None:
    await store.groups.create(group(max_concurrent_triggers=1), NOW)
    await add_job(store, group_name="exports", max_concurrent_triggers=1)
    await add_job(store, "other")
    await beat(store, slots=2)
    running = await start(store)
    second, third = await queue(store, now=at(1)), await queue(store, now=at(2))
    facts = await store.triggers.circumstances(third, at(3), "local")
    assert facts is not None
    assert [each.reason for each in reasons(facts)] == ["jobFull", "groupFull"]
    assert facts.job_live == facts.group_live == [running.rpartition("-")[0]]
    await start(store, "other", at(3))
    facts = await store.triggers.circumstances(third, at(4), "local")
    assert facts is not None
    assert [each.reason for each in reasons(facts)] == ["jobFull", "groupFull", "slots"]
    assert facts.ahead == 1
    assert not (await claim(store, at(4), slots=2)).launches, "the claim sees it alike"
    await finish(store, running, ended(at(5)))
    assert await told(store, second, 6) == []


async def test_time_retries_pauses_nodes_and_replicas_are_told(store: Store) -> None:
    await store.groups.create(group(paused=True), NOW)
    await add_job(store, max_retries=1)
    await add_job(store, "held", group_name="exports")
    await add_job(store, "there", node="node-2")
    later = await queue(store, run_at=at(60))
    assert await told(store, later) == ["notYet", "noReplica"]
    await beat(store)
    assert await told(store, later) == ["notYet"]
    assert await told(store, await queue(store, "held")) == ["groupPaused"]
    elsewhere = await queue(store, "there")
    assert await told(store, elsewhere) == ["noReplica"]
    await beat(store, nodes=["node-2"])
    assert await told(store, elsewhere) == []
    name = await start(store)
    await finish(store, name, ended(at(1), code=1), fraction=1)
    assert await told(store, name.rpartition("-")[0], 1) == ["retry"]


async def test_a_schedules_triggers_that_run_one_after_the_other_and_upstreams_are_told(store: Store) -> None:
    await add_job(store)
    await add_job(store, "below", depends_on=["export"])
    await add_schedule(store, "s", overlap_policy="queue")
    await beat(store)
    await plan(store, at(60))
    await claim(store, at(60))
    await plan(store, at(120))
    first, second = await all_triggers(store, schedule_id="s")
    facts = await store.triggers.circumstances(second.trigger_id, at(121), "local")
    assert facts is not None
    assert facts.schedule_live == [first.trigger_id]
    assert await told(store, second.trigger_id, 121) == ["scheduleBusy"]
    await add_schedule(store, "d", at(121), job_name="below")
    await plan(store, at(180))
    (below,) = await all_triggers(store, schedule_id="d")
    assert await told(store, below.trigger_id, 181) == ["upstream"]

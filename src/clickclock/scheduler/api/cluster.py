"""`/schedulerService/cluster`: who serves, where attempts run, how the store does, and whether all is as it should be.

Parse, call, render.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import StoreUnreachable
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Query
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.insight.backup_age import BackupAge
from clickclock.scheduler.insight.finding import Finding, FindingCode
from clickclock.scheduler.jobs.notification import Delivery
from clickclock.scheduler.store import Heartbeat

UNNAMED = ""
"""The cluster of triggers whose jobs name none, in the store."""


class LoopState(Record):
    """One loop of a replica."""

    name: str = Field(description="What it does.", examples=["planner"])
    stalled: bool = Field(description="Whether it has not finished a step for more than 10 s.", examples=[False])
    error: str | None = Field(None, description="Its last error, if it still stands.", examples=["The disk is full."])


class ReplicaState(Record):
    """One replica that serves now."""

    replica_id: str = Field(description="Its id, new at every start.", examples=[EXAMPLE_ID])
    node: str = Field(description="Its data folder's name among others.", examples=["web-1-5f0c6c1d9a11"])
    host: str = Field(description="The machine it runs on.", examples=["web-1"])
    version: str = Field(description="The program's version.", examples=["0.1.0"])
    url: str | None = Field(None, description="Where other replicas reach it.", examples=["http://web-1:8080"])
    started_at: Instant = Field(description="When it started.", examples=["2026-11-20T08:00:00.000Z"])
    heartbeat_at: Instant = Field(description="Its last heartbeat.", examples=["2026-11-20T10:00:00.000Z"])
    clock_skew_ms: float | None = Field(
        None, description="How far the clock that counts is ahead of its machine's, in ms.", examples=[0.0]
    )
    loops: list[LoopState] = Field(description="Its loops.")


class ClusterState(Record):
    """One place that runs attempts."""

    cluster: str = Field(description="Its name.", examples=["local"])
    executor: str | None = Field(
        None, description="The kind of executor; null where only other replicas have it.", examples=["process"]
    )
    capacity: int = Field(description="Attempts that it runs at once.", examples=[1000])
    running: int = Field(description="Triggers that start or run there now.", examples=[3])
    queued: int = Field(description="Triggers that wait for it.", examples=[0])
    reachable: bool = Field(description="Whether it answers.", examples=[True])
    nodes: list[str] = Field(description="Its machines.", examples=[["web-1-5f0c6c1d9a11"]])
    message: str | None = Field(None, description="What there is to say.", examples=["The supervisor does not answer."])


class StoreState(Record):
    """How the store does."""

    kind: str = Field(description="Its kind.", examples=["sqlite"])
    latency_ms: float = Field(description="What an empty transaction that may write takes, in ms.", examples=[1.2])
    clock_skew_ms: float = Field(
        description="How far its clock is ahead of this machine's, in ms; 0 where it is the same one.", examples=[0.0]
    )


class Totals(Record):
    """What there is."""

    jobs: int = Field(description="Jobs.", examples=[12])
    schedules: int = Field(description="Schedules.", examples=[20])
    queued: int = Field(description="Triggers that wait.", examples=[0])
    running: int = Field(description="Triggers that start or run.", examples=[3])


class Invariants(Record):
    """What should be 0."""

    overdue_schedules: int = Field(description="Schedules due for more than 60 s.", examples=[0])
    stuck_attempts: int = Field(description="Attempts that no living replica holds.", examples=[0])


class AlarmState(Record):
    """What people should look at."""

    open: int = Field(description="Alarms that are open.", examples=[0])
    targets: list[str] = Field(description="Targets that can be notified, by name.", examples=[["ops"]])
    pending_notifications: int = Field(description="Notifications on their way.", examples=[0])
    dead_notifications: int = Field(description="Notifications that were given up.", examples=[0])


class ClusterInformation(Record):
    """The whole installation."""

    replicas: list[ReplicaState] = Field(description="Replicas whose lease holds, oldest first.")
    clusters: list[ClusterState] = Field(description="Places that run attempts.")
    store: StoreState = Field(description="The store.")
    totals: Totals = Field(description="What there is.")
    invariants: Invariants = Field(description="What should be 0.")
    alarms: AlarmState = Field(description="What people should look at.")
    backup: BackupAge | None = Field(
        None, description="How old the last verified backup is; null where no backups are configured."
    )
    findings: list[Finding] = Field(description="What is wrong now, by a code, and what to do about it.")
    problems: list[str] = Field(
        description="What is wrong now, a sentence each; empty when all is well.",
        examples=[["The clock of web-2 is 5.0 s behind the database's, which counts."]],
    )


async def read(call: Call[Query]) -> Response:
    """GET: as it is now."""
    engine, store, now = call.engine, call.engine.store, call.engine.clock.now()
    seen = call.seen(Permission.CLUSTER_READ)
    within: dict[str, Any] = {} if seen is None else {"application": sorted(seen)}
    beats = await store.replicas.living(now)
    census = await store.replicas.census(within)
    told = await engine.capacities()
    findings = await (engine.scanner.look(told) if seen is None else engine.scanner.look_within(seen))
    counts = {each.code: each.count for each in findings}
    latency_s = await store.ping_s()
    clusters = await _clusters(engine, beats, told, within)
    information = ClusterInformation(
        replicas=[
            ReplicaState(
                replica_id=beat.replica_id,
                node=beat.node,
                host=beat.host,
                version=beat.version,
                url=beat.url,
                started_at=beat.started_at,
                heartbeat_at=beat.heartbeat_at,
                clock_skew_ms=None if beat.clock_skew_ms is None else round(beat.clock_skew_ms, 3),
                loops=[LoopState.model_validate(loop) for loop in beat.loops],
            )
            for beat in (beats if seen is None else ())
        ],
        clusters=clusters,
        store=StoreState(
            kind=store.kind,
            latency_ms=round(latency_s * 1000, 3),
            clock_skew_ms=round(engine.clock_skew_ms, 3),
        ),
        totals=Totals(jobs=census.jobs, schedules=census.schedules, queued=census.queued, running=census.running),
        invariants=Invariants(
            overdue_schedules=counts.get(FindingCode.OVERDUE_SCHEDULES, 0),
            stuck_attempts=counts.get(FindingCode.STUCK_ATTEMPTS, 0),
        ),
        alarms=await _alarms(engine, within),
        backup=engine.scanner.backup(),
        findings=findings,
        problems=[each.message for each in findings],
    )
    return success(cluster=information)


async def _alarms(engine: Engine, within: Mapping[str, Any]) -> AlarmState:
    counts = {} if within else await engine.store.outbox.counts()
    return AlarmState(
        open=await engine.store.alarms.open_count(within),
        targets=sorted(engine.notifier.targets),
        pending_notifications=counts.get(Delivery.PENDING, 0),
        dead_notifications=counts.get(Delivery.DEAD, 0),
    )


async def _clusters(
    engine: Engine, beats: list[Heartbeat], told: Sequence[Mapping[str, Any]], within: Mapping[str, Any]
) -> list[ClusterState]:
    """Each cluster once: what the replicas that have it say, added up; with the triggers that the caller may see."""
    said: dict[str, list[Mapping[str, Any]]] = {each["cluster"]: [each] for each in told}
    for beat in beats:
        if beat.replica_id != engine.replica_id:
            for each in beat.clusters:
                said.setdefault(each["cluster"], []).append(each)
    clusters = []
    for name, states in said.items():
        queued, running = await engine.store.statistics.live_counts({"cluster": name, **within})
        if name == engine.default_cluster:
            more_queued, more_running = await engine.store.statistics.live_counts({"cluster": UNNAMED, **within})
            queued, running = queued + more_queued, running + more_running
        kind = (
            type(engine.executors[name]).__name__.removesuffix("Executor").lower() if name in engine.executors else None
        )
        by_nodes = {tuple(state["nodes"]): state for state in states}
        clusters.append(
            ClusterState(
                cluster=name,
                executor=kind,
                capacity=sum(state["total"] for state in by_nodes.values()),
                running=running,
                queued=queued,
                reachable=any(state["reachable"] for state in states),
                nodes=sorted({node for state in states for node in state["nodes"]}),
                message=next((state["message"] for state in states if state["message"]), None),
            )
        )
    return clusters


OPERATIONS = (
    Operation(
        "GET",
        "Read about the installation",
        Permission.CLUSTER_READ,
        read,
        Query,
        {200: {"cluster": ClusterInformation}},
        description="Replicas, clusters, store, totals, the invariants, all of which should be 0, and what is wrong, "
        "with what to do about it. A caller who may see some applications alone gets theirs, and no replicas.",
        errors=(StoreUnreachable,),
    ),
)

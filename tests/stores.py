"""What tests of the store and the agents begin with: jobs, schedules, triggers and attempts in a sentence each.

Never hides what is tested: each function makes one thing through the store's own door, and returns it.
Invariant: nothing here reads a clock; `NOW` is when every story begins.

>>> made = job("export", priority=70)
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.ids import new_id
from clickclock.scheduler.agents.planner import decide_due
from clickclock.scheduler.jobs.group import Group
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import Conclusion, Exit, ExitKind, NewTrigger, State, Trigger
from clickclock.scheduler.store import Claimed, Heartbeat, NewSchedule, Planned, Store
from clickclock.scheduler.times.schedule import Schedule, upcoming

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
LEASE = "lease-1"
NODE = "node-1"


def at(seconds: float) -> datetime:
    """So many seconds after the story began."""
    return NOW + timedelta(seconds=seconds)


def job(job_name: str = "export", **fields: Any) -> Job:
    """A job of the application `shop`."""
    return Job.model_validate({"application": "shop", "job_name": job_name, "command": "true", **fields})


def group(group_name: str = "exports", **fields: Any) -> Group:
    """A group."""
    return Group.model_validate({"group_name": group_name, **fields})


def schedule(**fields: Any) -> Schedule:
    """A schedule of `shop/export`: every minute, if nothing else is said."""
    said = {"application": "shop", "job_name": "export", "expression": "* * * * *", **fields}
    return Schedule.model_validate(said)


def new_schedule(schedule_id: str, now: datetime = NOW, **fields: Any) -> NewSchedule:
    """A schedule as the store takes it, with the first time it waits for."""
    made = schedule(**fields)
    return NewSchedule(made, schedule_id, upcoming(made, schedule_id, made.timetable(now), now))


def engine_of(store: Store) -> sa.Engine:
    """The store's engine, to look at what it sends and has."""
    return store._database.engine


async def add_job(store: Store, job_name: str = "export", now: datetime = NOW, **fields: Any) -> None:
    """Create a job."""
    await store.jobs.create([job(job_name, **fields)], now)


async def add_schedule(store: Store, schedule_id: str = "s", now: datetime = NOW, **fields: Any) -> None:
    """Create a schedule."""
    await store.schedules.create([new_schedule(schedule_id, now, **fields)], now)


async def queue(store: Store, job_name: str = "export", now: datetime = NOW, **fields: Any) -> str:
    """Ask for a run; the trigger's id."""
    given = {"trigger_id": new_id(), "application": "shop", "job_name": job_name, "parameters": {}, **fields}
    trigger, _ = await store.triggers.create(NewTrigger(**given), now)
    return trigger.trigger_id


async def plan(store: Store, now: datetime, limit: int = 100) -> Planned:
    """Plan what is due."""
    return await store.queue.plan(now, limit, decide_due, now + timedelta(minutes=1))


async def claim(
    store: Store,
    now: datetime = NOW,
    *,
    cluster: str = "local",
    lease: str = LEASE,
    node: str = NODE,
    slots: int = 1000,
    limit: int = 100,
) -> Claimed:
    """Claim what may start."""
    return await store.queue.claim(now, cluster=cluster, node=node, lease_id=lease, slots=slots, limit=limit)


async def start(store: Store, job_name: str = "export", now: datetime = NOW, lease: str = LEASE, **fields: Any) -> str:
    """Queue a trigger, claim it and see it running; the attempt's name."""
    trigger_id = await queue(store, job_name, now, **fields)
    claimed = await claim(store, now, lease=lease)
    (name,) = [each.name for each in claimed.launches if each.name.startswith(trigger_id)]
    await store.queue.mark_running(lease, [(name, NODE, now)])
    return name


def ended(now: datetime = NOW, code: int | None = 0, kind: ExitKind = ExitKind.CODE, **fields: Any) -> Exit:
    """An attempt's end."""
    return Exit(kind, now, code=code if kind is ExitKind.CODE else None, **fields)


async def finish(store: Store, name: str, exit_: Exit, lease: str = LEASE, fraction: float = 0.5) -> Conclusion | None:
    """Conclude one attempt; None if it was not ours."""
    return (await store.queue.finish(lease, {name: exit_}, lambda: fraction)).get(name)


async def triggers(store: Store, **filters: Any) -> list[Trigger]:
    """All triggers, by due time."""
    return sorted(await store.triggers.find(filters, None, 100_000), key=lambda each: (each.due_time, each.trigger_id))


async def states(store: Store, **filters: Any) -> list[State]:
    """The states of all triggers, by due time."""
    return [each.state for each in await triggers(store, **filters)]


def heartbeat(replica_id: str = LEASE, now: datetime = NOW, lease_s: float = 15, node: str = NODE) -> Heartbeat:
    """A replica's sign of life."""
    return Heartbeat(
        replica_id=replica_id,
        node=node,
        host="host",
        version="0",
        started_at=now,
        heartbeat_at=now,
        lease_until=now + timedelta(seconds=lease_s),
        clusters=[{"cluster": "local"}],
        loops=[],
    )

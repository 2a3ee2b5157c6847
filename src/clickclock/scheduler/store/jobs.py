"""Jobs in the store.

Never starts or plans anything. Invariants: (`application`, `jobName`) is unique in the schema; a batch is all or
nothing; a version that moved on is refused.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.errors import JobExists, JobHasDependents, JobIsRunning, JobNotFound, no_group
from clickclock.scheduler.jobs.dependency import Key, shown
from clickclock.scheduler.jobs.job import Job, StoredJob, Upstream
from clickclock.scheduler.jobs.trigger import SkipReason, State
from clickclock.scheduler.store.auditing import audited_job, audited_schedule, principal
from clickclock.scheduler.store.changes import note, note_schedules, note_triggers
from clickclock.scheduler.store.conditions import IS_AWAITED
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.dependencies import (
    conditions_on,
    dependents_of,
    existing,
    lacking_faults,
    lock_edges,
    remove_edges,
    upstream_faults,
    write_edges,
)
from clickclock.scheduler.store.rows import (
    definition_of,
    effective_job,
    equal,
    page,
    put_row,
    refuse_stale,
    stored_job,
)
from clickclock.scheduler.store.schema import QUEUED_ROWS, UNFINISHED_ROWS, job, job_group, job_trigger, schedule
from clickclock.scheduler.store.triggers import cancel_rows

KEYS_PER_QUERY = 400
TAKEN_BACK_WITHIN = timedelta(seconds=0.1)
"""An attempt that is held for a nearer moment counts as begun: a request to stop it may take so long."""


def keyed(keys: Sequence[tuple[str, str]], table: sa.Table = job) -> list[sa.ColumnElement[bool]]:
    """Conditions that together select `keys`, each small enough for the databases' limits."""
    chunks = (keys[start : start + KEYS_PER_QUERY] for start in range(0, len(keys), KEYS_PER_QUERY))
    return [sa.tuple_(table.c.application, table.c.job_name).in_(chunk) for chunk in chunks]


class Jobs:
    """Create, read, replace, delete."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, jobs: Sequence[Job], now: datetime) -> list[StoredJob]:
        """All of them or none. Raises `JobExists` or `Invalid`, naming each fault by its place in `jobs`."""

        def work(connection: sa.Connection) -> list[StoredJob]:
            _refuse_existing(connection, jobs)
            refuse_misfits(connection, jobs)
            rows = [{**job_row(each, now, None), "version": 1, "created_at": now} for each in jobs]
            connection.execute(sa.insert(job), rows)
            write_edges(connection, jobs)
            note(connection, "job", "created", now, [noted(each) for each in jobs])
            for row in rows:
                audited_job(row["application"], row["job_name"], None, row["definition"])
            made = {"version": 1, "created_at": now, "updated_at": now, "updated_by": principal()}
            return [StoredJob.trusted(**vars(each), **made) for each in jobs]

        return await self._database.write(work)

    async def put(self, new: Job, now: datetime, if_version: int | None = None) -> tuple[StoredJob, bool]:
        """Create or replace; the second value says whether it was created. Raises `StaleVersion`, `Invalid`."""

        def work(connection: sa.Connection) -> tuple[StoredJob, bool]:
            refuse_misfits(connection, [new])
            mine = sa.and_(*keyed([new.key]))

            def row(old: Any) -> dict[str, Any]:
                return job_row(new if old is None else new.leaving_unsaid(stored_job(old)), now, old)

            old = put_row(connection, job, mine, row, now, if_version)
            if old is not None:
                regroup(connection, new)
                if new.enabled and not old.enabled:
                    skip_missed(connection, [new.key], now)
                remove_edges(connection, new.key)
            write_edges(connection, [new])
            note(connection, "job", "created" if old is None else "changed", now, [noted(new)])
            written = connection.execute(sa.select(job).where(mine)).one()
            audited_job(*new.key, old and old.definition, written.definition)
            return stored_job(written), old is None

        return await self._database.write(work)

    async def get(self, application: str, job_name: str) -> StoredJob:
        """One job. Raises `JobNotFound`."""
        condition = keyed([(application, job_name)])
        row = await self._database.read(lambda c: c.execute(sa.select(job).where(*condition)).one_or_none())
        if row is None:
            raise JobNotFound
        return stored_job(row)

    async def dependents(self, application: str, job_name: str) -> list[Upstream]:
        """The jobs that depend on this one, by name, each with its condition on this one."""
        key = (application, job_name)
        found = await self._database.read(lambda c: conditions_on(c, [key]).get(key, {}))
        return [
            Upstream(application=application, job_name=job_name, when=each.when, if_skipped=each.if_skipped)
            for (application, job_name), each in found.items()
        ]

    async def existing(self, keys: Collection[Key]) -> set[Key]:
        """Those of these jobs that there are."""
        return await self._database.read(lambda c: existing(c, keys)) if keys else set()

    async def parameters(self, keys: Collection[Key]) -> dict[Key, Mapping[str, str | None]]:
        """What those of these jobs that there are declare."""

        def work(connection: sa.Connection) -> dict[Key, Mapping[str, str | None]]:
            columns = sa.select(job.c.application, job.c.job_name, job.c.definition)
            rows = [row for each in keyed(sorted(keys)) for row in connection.execute(columns.where(each))]
            return {(row.application, row.job_name): effective_job(row.definition, None).parameters for row in rows}

        return await self._database.read(work) if keys else {}

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> list[StoredJob]:
        """Jobs whose columns equal `filters` (application, job_name, group_name, enabled), by name."""
        query = page(sa.select(job).where(*equal(job, filters)), [job.c.application, job.c.job_name], after, limit)
        return [stored_job(row) for row in await self._database.read(lambda c: c.execute(query).all())]

    async def delete(
        self, application: str, job_name: str, now: datetime, *, force: bool, if_version: int | None = None
    ) -> None:
        """Delete with its schedules, and with what is only planned ahead for them.

        `force` cancels whatever else is unfinished, and leaves dependents without it.

        Raises `JobNotFound`, `JobIsRunning`, `JobHasDependents`.
        """

        def work(connection: sa.Connection) -> None:
            key = (application, job_name)
            mine = keyed([key])
            lock_edges(connection)
            old = connection.execute(sa.select(job.c.version).where(*mine).with_for_update()).one_or_none()
            if old is None:
                raise JobNotFound
            refuse_stale(old.version, if_version)
            if not force and (dependents := dependents_of(connection, [key]).get(key)):
                raise JobHasDependents(
                    faults=[Fault("jobName", f"{shown(each)} depends on it.") for each in dependents]
                )
            busy = sa.select(job_trigger.c.trigger_id).where(*keyed([key], job_trigger), busy_rows(now)).limit(1)
            if not force and connection.execute(busy).first():
                raise JobIsRunning
            delete_job(connection, application, job_name, now)

        await self._database.write(work)


def job_row(new: Job, now: datetime, old: Any) -> dict[str, Any]:
    """A job's columns; `old` is its row, if there is one."""
    # Re-enabled: what was due while it was disabled stays skipped.
    enabled_since = None if old is None else now if new.enabled and not old.enabled else old.enabled_since
    return {
        "application": new.application,
        "job_name": new.job_name,
        "definition": definition_of(new),
        "group_name": new.group_name,
        "enabled": new.enabled,
        "enabled_since": enabled_since,
        "max_concurrent": new.max_concurrent_triggers,
        "expected_within_ms": None if (within := new.expected_within_seconds) is None else round(within * 1000),
        "node": new.node,
        "updated_at": now,
        "updated_by": principal(),
    }


def delete_job(
    connection: sa.Connection, application: str, job_name: str, now: datetime, *, permission: str | None = None
) -> None:
    """Delete a job with its schedules, cancel what is unfinished, and forget on what it depends.

    `permission` is the one that this needs, if it is another than the request's.
    """
    key = [(application, job_name)]
    # Schedules first: this waits for a planner that holds one, and what it queued is then cancelled too.
    its_schedules = keyed(key, schedule)
    going = connection.execute(sa.select(schedule).where(*its_schedules)).all()
    note_schedules(connection, "deleted", [row.schedule_id for row in going], now)
    connection.execute(sa.delete(schedule).where(*its_schedules))
    cancel_rows(connection, _unfinished(application, job_name), now, "The job was deleted.")
    remove_edges(connection, key[0])
    gone = connection.execute(sa.delete(job).where(*keyed(key)).returning(job.c.definition)).scalar_one()
    note(connection, "job", "deleted", now, [{"application": application, "job_name": job_name}])
    for row in going:
        audited_schedule(row, None, permission=permission)
    audited_job(application, job_name, gone, None, permission=permission)


def busy_rows(now: datetime) -> sa.ColumnElement[bool]:
    """Unfinished triggers, but for those that are held for a moment to come: nobody has asked for them or seen them."""
    is_held = sa.and_(job_trigger.c.state == State.STARTING, job_trigger.c.due_time > now + TAKEN_BACK_WITHIN)
    return sa.and_(UNFINISHED_ROWS, sa.not_(is_held))


def skip_missed(connection: sa.Connection, keys: Sequence[tuple[str, str]], now: datetime) -> None:
    """End what was to start while these jobs were disabled: by a schedule, `runAt`, a retry or a place in the queue.

    They are enabled in the same transaction. What waits for upstreams waits on, and so does a backfill: it is about the
    past.
    """
    due = sa.and_(QUEUED_ROWS, job_trigger.c.ready_at <= now, job_trigger.c.waits.is_(None))
    skipped = (
        sa.update(job_trigger)
        .where(due, job_trigger.c.backfill_id.is_(None))
        .values(
            state=State.SKIPPED,
            skip_reason=SkipReason.JOB_DISABLED,
            started_at=None,
            finished_at=now,
            message="Its job was disabled when it was to start.",
            unfollowed=sa.case((IS_AWAITED, True), else_=None),
        )
        .returning(job_trigger.c.trigger_id)
    )
    for mine in keyed(keys, job_trigger):
        note_triggers(connection, connection.execute(skipped.where(mine)).scalars().all(), now)


def _unfinished(application: str, job_name: str) -> sa.ColumnElement[bool]:
    return sa.and_(*keyed([(application, job_name)], job_trigger), UNFINISHED_ROWS)


def noted(new: Job) -> dict[str, Any]:
    """What the log of changes has of a job."""
    return {"application": new.application, "job_name": new.job_name, "group_name": new.group_name}


def regroup(connection: sa.Connection, new: Job) -> None:
    """Queued triggers follow their job into its new group, whose cap counts them."""
    connection.execute(
        sa.update(job_trigger).where(*keyed([new.key], job_trigger), UNFINISHED_ROWS).values(group_name=new.group_name)
    )


def _refuse_existing(connection: sa.Connection, jobs: Sequence[Job]) -> None:
    places: dict[tuple[str, str], int] = {}
    faults: list[Fault] = []
    for place, each in enumerate(jobs):
        if places.setdefault(each.key, place) != place:
            faults.append(Fault(_at(jobs, place, "jobName"), f"{each.application}/{each.job_name} is given twice."))
    for condition in keyed(list(places)):
        for row in connection.execute(sa.select(job.c.application, job.c.job_name).where(condition)):
            place = places[row.application, row.job_name]
            faults.append(Fault(_at(jobs, place, "jobName"), f"{row.application}/{row.job_name} exists already."))
    if faults:
        raise JobExists(faults=faults)


def refuse_misfits(connection: sa.Connection, jobs: Sequence[Job], going: Collection[Key] = ()) -> None:
    """Raises `Invalid` where a job does not fit what is there, or stays: jobs that are `going` do not count.

    It names a group or an upstream that does not exist, closes a circle, or leaves a required parameter without value.
    """
    faults = _unknown_groups(connection, jobs)
    of_upstreams = upstream_faults(connection, jobs, [_at(jobs, place, "dependsOn") for place in range(len(jobs))])
    places = [_at(jobs, place, "parameters") for place in range(len(jobs))]
    of_upstreams += lacking_faults(connection, jobs, places, going)
    if faults and not of_upstreams:
        raise Invalid("A job names a group that does not exist.", faults)
    if of_upstreams:
        raise Invalid("A job depends on what it cannot depend on.", [*faults, *of_upstreams])


def _unknown_groups(connection: sa.Connection, jobs: Sequence[Job]) -> list[Fault]:
    wanted = {each.group_name for each in jobs if each.group_name is not None}
    if not wanted:
        return []
    known = set(connection.execute(sa.select(job_group.c.group_name)).scalars())
    return [
        Fault(_at(jobs, place, "groupName"), no_group(each.group_name))
        for place, each in enumerate(jobs)
        if each.group_name is not None and each.group_name not in known
    ]


def _at(items: Sequence[Any], place: int, field: str) -> str:
    """The field's path in the request: `[3].jobName` in an array, `jobName` alone."""
    return f"[{place}].{field}" if len(items) > 1 else field

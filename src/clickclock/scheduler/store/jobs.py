"""Jobs in the store.

Never starts or plans anything. Invariants: (`application`, `jobName`) is unique in the schema; a batch is all or
nothing; a version that moved on is refused.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.errors import JobExists, JobIsRunning, JobNotFound, StaleVersion
from clickclock.scheduler.job import Job, StoredJob
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import definition_of, page, stored_job
from clickclock.scheduler.store.schema import UNFINISHED_ROWS, job, job_group, job_trigger, schedule
from clickclock.scheduler.store.triggers import cancel_rows

KEYS_PER_QUERY = 400


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
            refuse_unknown_groups(connection, jobs)
            rows = [{**job_row(each, now), "version": 1, "created_at": now} for each in jobs]
            connection.execute(sa.insert(job), rows)
            return [StoredJob.trusted(**vars(each), version=1, created_at=now, updated_at=now) for each in jobs]

        return await self._database.write(work)

    async def put(self, new: Job, now: datetime, if_version: int | None = None) -> tuple[StoredJob, bool]:
        """Create or replace; the second value says whether it was created. Raises `StaleVersion`, `Invalid`."""

        def work(connection: sa.Connection) -> tuple[StoredJob, bool]:
            refuse_unknown_groups(connection, [new])
            old = connection.execute(sa.select(job).where(*keyed([new.key])).with_for_update()).one_or_none()
            if if_version is not None and (old is None or old.version != if_version):
                raise StaleVersion
            row = job_row(new if old is None else new.leaving_unsaid(stored_job(old)), now)
            if old is None:
                connection.execute(sa.insert(job).values(**row, version=1, created_at=now))
            else:
                # Re-enabled: what was due while it was disabled stays skipped.
                row["enabled_since"] = now if new.enabled and not old.enabled else old.enabled_since
                connection.execute(sa.update(job).where(*keyed([new.key])).values(**row, version=old.version + 1))
                regroup(connection, new)
            return stored_job(connection.execute(sa.select(job).where(*keyed([new.key]))).one()), old is None

        return await self._database.write(work)

    async def get(self, application: str, job_name: str) -> StoredJob:
        """One job. Raises `JobNotFound`."""
        condition = keyed([(application, job_name)])
        row = await self._database.read(lambda c: c.execute(sa.select(job).where(*condition)).one_or_none())
        if row is None:
            raise JobNotFound
        return stored_job(row)

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> list[StoredJob]:
        """Jobs whose columns equal `filters` (application, job_name, group_name, enabled), by name."""
        query = page(
            sa.select(job).where(*(job.c[name] == value for name, value in filters.items())),
            [job.c.application, job.c.job_name],
            after,
            limit,
        )
        return [stored_job(row) for row in await self._database.read(lambda c: c.execute(query).all())]

    async def delete(
        self, application: str, job_name: str, now: datetime, *, force: bool, if_version: int | None = None
    ) -> None:
        """Delete with its schedules; `force` cancels what is unfinished. Raises `JobNotFound`, `JobIsRunning`."""

        def work(connection: sa.Connection) -> None:
            mine = keyed([(application, job_name)])
            old = connection.execute(sa.select(job.c.version).where(*mine).with_for_update()).one_or_none()
            if old is None:
                raise JobNotFound
            if if_version is not None and old.version != if_version:
                raise StaleVersion
            unfinished = sa.and_(*keyed([(application, job_name)], job_trigger), UNFINISHED_ROWS)
            if not force and connection.execute(sa.select(job_trigger.c.trigger_id).where(unfinished).limit(1)).first():
                raise JobIsRunning
            # Schedules first: this waits for a planner that holds one, and what it queued is then cancelled too.
            connection.execute(sa.delete(schedule).where(*keyed([(application, job_name)], schedule)))
            cancel_rows(connection, unfinished, now, "The job was deleted.")
            connection.execute(sa.delete(job).where(*mine))

        await self._database.write(work)


def job_row(new: Job, now: datetime) -> dict[str, Any]:
    """A job's columns, as of one that was never disabled."""
    return {
        "application": new.application,
        "job_name": new.job_name,
        "definition": definition_of(new),
        "group_name": new.group_name,
        "enabled": new.enabled,
        "enabled_since": None,
        "max_concurrent": new.max_concurrent_triggers,
        "node": new.node,
        "updated_at": now,
    }


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


def refuse_unknown_groups(connection: sa.Connection, jobs: Sequence[Job]) -> None:
    """Raises `Invalid` where a job names a group that does not exist."""
    wanted = {each.group_name for each in jobs if each.group_name is not None}
    if not wanted:
        return
    known = set(connection.execute(sa.select(job_group.c.group_name)).scalars())
    faults = [
        Fault(_at(jobs, place, "groupName"), f"There is no group {each.group_name!r}; create it with POST group.")
        for place, each in enumerate(jobs)
        if each.group_name is not None and each.group_name not in known
    ]
    if faults:
        raise Invalid("A job names a group that does not exist.", faults)


def _at(items: Sequence[Any], place: int, field: str) -> str:
    """The field's path in the request: `[3].jobName` in an array, `jobName` alone."""
    return f"[{place}].{field}" if len(items) > 1 else field

"""Groups and command-prefix mappings in the store.

Never starts or stops anything. Invariant: a group that jobs name cannot go.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.errors import Fault
from clickclock.scheduler.access.audit import Resource
from clickclock.scheduler.errors import (
    GroupExists,
    GroupInUse,
    GroupNotFound,
    MappingExists,
    MappingNotFound,
)
from clickclock.scheduler.jobs.group import Group, StoredGroup
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.trigger import LIVE, State
from clickclock.scheduler.store.auditing import audited
from clickclock.scheduler.store.changes import note
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import (
    definition_of,
    equal,
    page,
    put_row,
    refuse_stale,
    stored_group,
    stored_mapping,
    upsert,
)
from clickclock.scheduler.store.schema import (
    UNFINISHED_ROWS,
    UNLED_GROUP,
    image_mapping,
    job,
    job_group,
    job_trigger,
)


class Groups:
    """Create, read, replace, delete; with live counts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: Group, now: datetime) -> StoredGroup:
        """Raises `GroupExists`."""
        stored, created = await self._put(new, now, None, replace=False)
        if not created:
            raise GroupExists(faults=[Fault("groupName", f"There is a group {new.group_name!r} already.")])
        return stored

    async def put(self, new: Group, now: datetime, if_version: int | None = None) -> tuple[StoredGroup, bool]:
        """Create or replace; the second value says whether it was created. Raises `StaleVersion`."""
        return await self._put(new, now, if_version, replace=True)

    async def _put(
        self, new: Group, now: datetime, if_version: int | None, *, replace: bool
    ) -> tuple[StoredGroup, bool]:
        def work(connection: sa.Connection) -> tuple[StoredGroup, bool]:
            mine = job_group.c.group_name == new.group_name
            row = partial(group_row, new, now)
            old = put_row(connection, job_group, mine, row, now, if_version, replace=replace)
            if old is None or replace:
                told = "created" if old is None else "changed"
                note(connection, "group", told, now, [{"group_name": new.group_name}])
                audited(Resource.GROUP, new.group_name, old and old.definition, definition_of(new))
            return _with_counts(connection, connection.execute(sa.select(job_group).where(mine)).all())[0], old is None

        return await self._database.write(work)

    async def find(
        self,
        filters: Mapping[str, Any],
        after: Sequence[str] | None,
        limit: int,
        within: Collection[str] | None = None,
    ) -> list[StoredGroup]:
        """Groups whose columns equal `filters` (group_name, paused), by name, with live counts.

        The counts are `within` some applications, or of all.
        """
        query = page(sa.select(job_group).where(*equal(job_group, filters)), [job_group.c.group_name], after, limit)
        return await self._database.read(lambda c: _with_counts(c, c.execute(query).all(), within))

    async def existing(self, names: Collection[str]) -> set[str]:
        """Those of these groups that there are."""
        if not names:
            return set()
        known = await self._database.read(lambda c: c.execute(sa.select(job_group.c.group_name)).scalars().all())
        return set(names) & set(known)

    async def delete(self, group_name: str, now: datetime, if_version: int | None = None) -> None:
        """Raises `GroupNotFound`, `StaleVersion`, `GroupInUse`."""

        def work(connection: sa.Connection) -> None:
            mine = job_group.c.group_name == group_name
            old = connection.execute(sa.select(job_group).where(mine).with_for_update()).one_or_none()
            if old is None:
                raise GroupNotFound
            refuse_stale(old.version, if_version)
            members = sa.select(job.c.application, job.c.job_name).where(job.c.group_name == group_name)
            if used := connection.execute(members.limit(10)).all():
                raise GroupInUse(
                    faults=[Fault("groupName", f"{row.application}/{row.job_name} is in the group.") for row in used]
                )
            connection.execute(sa.delete(job_group).where(mine))
            note(connection, "group", "deleted", now, [{"group_name": group_name}])
            audited(Resource.GROUP, group_name, old.definition, None)

        await self._database.write(work)


def _with_counts(
    connection: sa.Connection, rows: Sequence[Any], within: Collection[str] | None = None
) -> list[StoredGroup]:
    names = [row.group_name for row in rows]
    seen: dict[str, Any] = {} if within is None else {"application": sorted(within)}
    in_groups = sa.select(job.c.group_name, sa.func.count()).where(job.c.group_name.in_(names), *equal(job, seen))
    members: dict[Any, int] = dict(connection.execute(in_groups.group_by(job.c.group_name)).all())
    queued: dict[str, int] = {}
    running: dict[str, int] = {}
    counts = (
        sa.select(job_trigger.c.group_name, job_trigger.c.state, sa.func.count())
        .where(UNLED_GROUP.in_(names), UNFINISHED_ROWS, *equal(job_trigger, seen))
        .group_by(job_trigger.c.group_name, job_trigger.c.state)
    )
    for name, state, count in connection.execute(counts):
        counter = running if State(state) in LIVE else queued
        counter[name] = counter.get(name, 0) + count
    return [
        stored_group(row, members.get(row.group_name, 0), queued.get(row.group_name, 0), running.get(row.group_name, 0))
        for row in rows
    ]


class ImageMappings:
    """Which image a command's prefix gets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[ImageMapping]:
        """Every mapping, by prefix."""
        query = sa.select(image_mapping).order_by(image_mapping.c.prefix)
        return [stored_mapping(row) for row in await self._database.read(lambda c: c.execute(query).all())]

    async def create(self, new: ImageMapping, now: datetime) -> ImageMapping:
        """Raises `MappingExists`."""
        row = {**mapping_row(new, now), "version": 1, "created_at": now}

        def work(connection: sa.Connection) -> ImageMapping:
            inserted = connection.execute(
                upsert(connection, image_mapping).values(row).on_conflict_do_nothing().returning(image_mapping)
            ).one_or_none()
            if inserted is None:
                raise MappingExists(faults=[Fault("prefix", f"{new.prefix!r} is mapped already.")])
            _note_mapping(connection, "created", new.prefix, now)
            audited(Resource.MAPPING, new.prefix, None, row["definition"])
            return stored_mapping(inserted)

        return await self._database.write(work)

    async def put(self, new: ImageMapping, now: datetime) -> tuple[ImageMapping, bool]:
        """Create or replace; the second value says whether it was created."""
        row = mapping_row(new, now)

        def work(connection: sa.Connection) -> tuple[ImageMapping, bool]:
            was = sa.select(image_mapping.c.definition).where(image_mapping.c.prefix == new.prefix).with_for_update()
            before = connection.execute(was).scalar()
            written = connection.execute(
                upsert(connection, image_mapping)
                .values(**row, version=1, created_at=now)
                .on_conflict_do_update(index_elements=["prefix"], set_={**row, "version": image_mapping.c.version + 1})
                .returning(image_mapping)
            ).one()
            _note_mapping(connection, "created" if written.version == 1 else "changed", new.prefix, now)
            audited(Resource.MAPPING, new.prefix, before, row["definition"])
            return stored_mapping(written), written.version == 1

        return await self._database.write(work)

    async def delete(self, prefix: str, now: datetime) -> None:
        """Raises `MappingNotFound`."""

        def work(connection: sa.Connection) -> None:
            mine = sa.delete(image_mapping).where(image_mapping.c.prefix == prefix)
            gone = connection.execute(mine.returning(image_mapping.c.definition)).scalar()
            if gone is None:
                raise MappingNotFound
            _note_mapping(connection, "deleted", prefix, now)
            audited(Resource.MAPPING, prefix, gone, None)

        await self._database.write(work)


def _note_mapping(connection: sa.Connection, state: str, prefix: str, now: datetime) -> None:
    note(connection, "commandPrefixImageMapping", state, now, [{"subject": prefix}])


def group_row(new: Group, now: datetime, old: Any) -> dict[str, Any]:
    """A group's columns; `old` is its row, if there is one."""
    resumed_at = None if old is None else now if old.paused and not new.paused else old.resumed_at
    return {
        "group_name": new.group_name,
        "definition": definition_of(new),
        "paused": new.paused,
        "resumed_at": resumed_at,
        "max_concurrent": new.max_concurrent_triggers,
        "updated_at": now,
    }


def mapping_row(new: ImageMapping, now: datetime) -> dict[str, Any]:
    """A mapping's columns."""
    return {"prefix": new.prefix, "definition": definition_of(new), "updated_at": now}

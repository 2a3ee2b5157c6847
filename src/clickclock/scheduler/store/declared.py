"""Declared things in the store: read what a declaration is about, and write all that has to change at once.

Never decides what has to change (`declaration.py`). Invariants: one transaction, all or nothing; every row is as it
was when the plan was made, or nothing is written; nothing that is past fires.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from pydantic_core import from_json
from sqlalchemy.dialects import postgresql

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.access.audit import WRITES, Resource
from clickclock.scheduler.declarations.declaration import KINDS, Declarable, Kept, Key, Kind, Step
from clickclock.scheduler.errors import CalendarInUse, GroupInUse, JobHasDependents, JobIsRunning, StaleVersion
from clickclock.scheduler.jobs.dependency import shown
from clickclock.scheduler.jobs.group import Group
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.notification import ApplicationDefaults
from clickclock.scheduler.store import alarms, calendars, dependencies, groups, jobs, schedules
from clickclock.scheduler.store.auditing import audited, audited_job, audited_schedule
from clickclock.scheduler.store.changes import note, note_schedules
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import among, equal, page
from clickclock.scheduler.store.schema import calendar, image_mapping, job, job_group, job_trigger, schedule
from clickclock.scheduler.store.schema_alarms import application
from clickclock.scheduler.times.business_days import Calendar
from clickclock.scheduler.times.schedule import Schedule, upcoming

USERS_TOLD = 10


class _Table(msgspec.Struct, frozen=True):
    """Where one kind is kept: its key's columns, columns that are no part of the definition, how a row is made."""

    table: sa.Table
    key: tuple[str, ...]
    row: Callable[[sa.Connection, Any, Any, datetime], dict[str, Any]]
    own: Mapping[str, str]
    """Wire names of fields whose values are columns."""

    @property
    def read(self) -> list[sa.Column[Any]]:
        """The columns that say what is kept: definition, version, when it was made; its key; its own."""
        names = ("definition", "version", "created_at", *self.key, *self.own.values())
        return [self.table.c[name] for name in names]


def _schedule_row(connection: sa.Connection, new: Schedule, old: Any, now: datetime) -> dict[str, Any]:
    assert new.schedule_id is not None
    if old is not None:
        row = schedules.schedule_row(schedules.NewSchedule(new, new.schedule_id))
        return row | {"updated_at": now} | schedules.amended(connection, old, new, now)
    first = upcoming(new, new.schedule_id, new.timetable(now), now)
    row = schedules.schedule_row(schedules.NewSchedule(new, new.schedule_id, first))
    return row | {"updated_at": now, "high_water": now}


_TABLES: Mapping[str, _Table] = {
    "group": _Table(job_group, ("group_name",), lambda _, new, old, now: groups.group_row(new, now, old), {}),
    "calendar": _Table(calendar, ("calendar_name",), lambda _, new, __, now: calendars.calendar_row(new, now), {}),
    "commandPrefixImageMapping": _Table(
        image_mapping, ("prefix",), lambda _, new, __, now: groups.mapping_row(new, now), {}
    ),
    "application": _Table(application, ("application",), lambda _, new, __, now: alarms.application_row(new, now), {}),
    "job": _Table(job, ("application", "job_name"), lambda _, new, old, now: jobs.job_row(new, now, old), {}),
    "schedule": _Table(
        schedule,
        ("application", "job_name", "schedule_name"),
        _schedule_row,
        {"scheduleId": "schedule_id", "scheduleName": "schedule_name"},
    ),
}
"""Where each of `KINDS` is kept."""


class _TakenBack(Exception):
    """The transaction of a dry run, which leaves nothing behind."""


class Declared:
    """Everything that can be declared."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, keys: Collection[Key], set_name: str | None) -> dict[Key, Kept]:
        """The things under these keys, and everything that the set holds, if one is named."""

        def work(connection: sa.Connection) -> dict[Key, Kept]:
            kept: dict[Key, Kept] = {}
            for kind in KINDS.values():
                if set_name is not None:
                    of_set = _kept(kind, connection.execute(_of_set(kind, set_name)).all())
                    kept |= {key: each for key, each in of_set if each.definition.get("managedBy") == set_name}
                wanted = [key for key in keys if key[0] == kind.name and key not in kept]
                if wanted:
                    query, values = _of_keys(connection, kind, wanted, _TABLES[kind.name].read)
                    kept |= _kept(kind, connection.execute(query, values).all())
            return kept

        return await self._database.read(work)

    async def write(
        self, steps: Sequence[Step], now: datetime, *, force: bool, dry_run: bool, faults: Sequence[Fault] = ()
    ) -> None:
        """Take all steps, in their order, or none.

        Raises `StaleVersion`, `Invalid`, `JobIsRunning`, `JobHasDependents`, `GroupInUse`, `CalendarInUse`.
        With `dry_run` all is done and taken back, so that it is refused exactly when it would be. `faults` are known
        already: nothing is written, and they are reported together with all other faults.
        """

        def work(connection: sa.Connection) -> None:
            for kind in KINDS.values():
                mine = [step for step in steps if step.kind is kind and step.new is not None]
                if kind.name == "job":
                    _refuse_what_does_not_fit(connection, steps, faults)
                _write(connection, kind, mine, now)
            going = [step for step in steps if step.new is None]
            _refuse_what_is_in_use(connection, going, now, force=force)
            for kind in reversed(list(KINDS.values())):
                _delete(connection, kind, [step for step in going if step.kind is kind], now)
            if dry_run:
                raise _TakenBack

        try:
            await self._database.write(work)
        except _TakenBack:
            return

    async def find(
        self, kind: Kind, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int
    ) -> list[Declarable]:
        """Things of a kind by their key; those of the `filters` count that are parts of the key."""
        table = _TABLES[kind.name]
        columns = [table.table.c[name] for name in table.key]
        own = {name: value for name, value in filters.items() if name in table.key}
        query = page(sa.select(table.table).where(*equal(table.table, own)), columns, after, limit)
        return [_record(kind, row) for row in await self._database.read(lambda c: c.execute(query).all())]

    async def schedules_of(self, keys: Sequence[tuple[str, str]]) -> list[Schedule]:
        """The schedules of these jobs, by name."""
        query = [
            sa.select(schedule).where(condition).order_by(*(schedule.c[name] for name in _TABLES["schedule"].key))
            for condition in jobs.keyed(keys, schedule)
        ]
        rows = await self._database.read(lambda c: [row for each in query for row in c.execute(each)])
        return [record for row in rows if isinstance(record := _record(KINDS["schedule"], row), Schedule)]


def _of_keys(
    connection: sa.Connection, kind: Kind, keys: Sequence[Key], columns: Iterable[sa.Column[Any]]
) -> tuple[sa.Select[Any], dict[str, Any]]:
    """The rows of these keys: one look into the index for each, however many there are; and the query's values."""
    table = _TABLES[kind.name]
    if connection.dialect.name == "sqlite":
        listed = sa.func.json_each(sa.bindparam("keys", type_=sa.JSON)).table_valued("value")
        parts: list[sa.ColumnElement[Any]] = [
            sa.func.json_extract(listed.c.value, f"$[{place}]") for place in range(len(table.key))
        ]
        values: dict[str, Any] = {"keys": [key[1:] for key in keys]}
    else:
        names = [f"key_{place}" for place in range(len(table.key))]
        arrays = [sa.bindparam(name, type_=postgresql.ARRAY(sa.Text)) for name in names]
        unnested = sa.func.unnest(*arrays).table_valued(*names).render_derived()
        parts = [unnested.c[name] for name in names]
        values = {name: [key[1 + place] for key in keys] for place, name in enumerate(names)}
    matching = [table.table.c[name] == part for name, part in zip(table.key, parts, strict=True)]
    return sa.select(*columns).where(*matching), values


def _of_set(kind: Kind, set_name: str) -> sa.Select[Any]:
    """The rows of a set, and perhaps others, whose definition has the same words elsewhere."""
    table = _TABLES[kind.name]
    words = f'"managedBy":{json.dumps(set_name)}'
    return sa.select(*table.read).where(table.table.c.definition.contains(words, autoescape=True))


def _kept(kind: Kind, rows: Iterable[Any]) -> Iterator[tuple[Key, Kept]]:
    names = len(_TABLES[kind.name].key)
    own = tuple(_TABLES[kind.name].own)
    for definition, version, created_at, *values in rows:
        said = from_json(definition)
        said.update(zip(own, values[names:], strict=True))
        yield (kind.name, *values[:names]), Kept(kind, said, version, created_at)


def _record(kind: Kind, row: Any) -> Declarable:
    own = {name: getattr(row, column) for name, column in _TABLES[kind.name].own.items()}
    return kind.model.model_validate({**from_json(row.definition), **own})


def _locked(connection: sa.Connection, kind: Kind, steps: Sequence[Step]) -> dict[Key, Any]:
    """The rows that the steps are about, held until the end. Raises `StaleVersion` if one is not as it was."""
    table = _TABLES[kind.name]
    query, values = _of_keys(connection, kind, [step.key for step in steps], table.table.c)
    found = connection.execute(query.with_for_update(of=table.table), values)
    rows = {(kind.name, *(getattr(row, name) for name in table.key)): row for row in found}
    for step in steps:
        row = rows.get(step.key)
        if (row and row.version) != (step.old and step.old.version):
            raise StaleVersion
    return rows


def _write(connection: sa.Connection, kind: Kind, steps: Sequence[Step], now: datetime) -> None:
    if not steps:
        return
    table = _TABLES[kind.name]
    old = _locked(connection, kind, steps)
    made = [table.row(connection, step.new, None, now) for step in steps if step.old is None]
    if made:
        connection.execute(sa.insert(table.table), [{**row, "version": 1, "created_at": now} for row in made])
    changed = [
        {**table.row(connection, step.new, old[step.key], now), "version": old[step.key].version + 1}
        for step in steps
        if step.old is not None
    ]
    if changed:
        mine = [table.table.c[name] == sa.bindparam(f"key_{name}") for name in table.key]
        columns: Any = {name: sa.bindparam(f"new_{name}") for name in changed[0] if name not in table.key}
        values = [
            {f"key_{name}" if name in table.key else f"new_{name}": value for name, value in row.items()}
            for row in changed
        ]
        connection.execute(sa.update(table.table).where(*mine).values(columns), values)
    for step, row in zip((step for step in steps if step.old is None), made, strict=True):
        _audit(step, None, row)
    for step, row in zip((step for step in steps if step.old is not None), changed, strict=True):
        _audit(step, old[step.key], row)
    enabled = [step.key for step in steps if isinstance(step.new, Job) and _is_enabled_again(old.get(step.key), step)]
    jobs.skip_missed(connection, [(application, name) for _, application, name in enabled], now)
    for step in steps:
        was = step.old and step.old.record
        if isinstance(step.new, Job) and isinstance(was, Job) and was.group_name != step.new.group_name:
            jobs.regroup(connection, step.new)
        if isinstance(was, Job) and was.depends_on:
            dependencies.remove_edges(connection, was.key)
    dependencies.write_edges(connection, [step.new for step in steps if isinstance(step.new, Job)])
    _note(connection, "created", [step.new for step in steps if step.old is None], now)
    _note(connection, "changed", [step.new for step in steps if step.old is not None], now)


def _is_enabled_again(old: Any, step: Step) -> bool:
    return old is not None and not old.enabled and isinstance(step.new, Job) and step.new.enabled


def _note(connection: sa.Connection, state: str, records: Sequence[Declarable | None], now: datetime) -> None:
    """These have just become that, or schedules are about to."""
    ids = [each.schedule_id for each in records if isinstance(each, Schedule) and each.schedule_id is not None]
    note_schedules(connection, state, ids, now)
    note(connection, "job", state, now, [jobs.noted(each) for each in records if isinstance(each, Job)])
    of_groups = [{"group_name": each.group_name} for each in records if isinstance(each, Group)]
    note(connection, "group", state, now, of_groups)
    of_calendars = [{"subject": each.calendar_name} for each in records if isinstance(each, Calendar)]
    note(connection, "calendar", state, now, of_calendars)
    of_mappings = [{"subject": each.prefix} for each in records if isinstance(each, ImageMapping)]
    note(connection, "commandPrefixImageMapping", state, now, of_mappings)
    of_applications = [{"application": each.application} for each in records if isinstance(each, ApplicationDefaults)]
    note(connection, "application", state, now, of_applications)


def _delete(connection: sa.Connection, kind: Kind, steps: Sequence[Step], now: datetime) -> None:
    if not steps:
        return
    table = _TABLES[kind.name]
    rows = _locked(connection, kind, steps)
    if kind.name != "job":
        _note(connection, "deleted", [step.old.record for step in steps if step.old is not None], now)
    for step in steps:
        if kind.name == "job":
            jobs.delete_job(connection, step.key[1], step.key[2], now, permission=WRITES["job"])
            continue
        mine = [table.table.c[name] == value for name, value in zip(table.key, step.key[1:], strict=True)]
        connection.execute(sa.delete(table.table).where(*mine))
        _audit(step, rows[step.key], None)


def _audit(step: Step, before: Any, after: Mapping[str, Any] | None) -> None:
    """Record a step; these are its columns, before and after."""
    kind, name, needs = step.kind.name, step.key[1], WRITES[step.kind.name]
    said = before and before.definition, after and after["definition"]
    if kind == "job":
        audited_job(name, step.key[2], *said, permission=needs)
    elif kind == "schedule":
        audited_schedule(before, after, permission=needs)
    else:
        audited(Resource(kind), name, *said, {"application": name} if kind == "application" else None, permission=needs)


def _refuse_what_does_not_fit(connection: sa.Connection, steps: Sequence[Step], faults: Sequence[Fault]) -> None:
    """Jobs name groups and upstreams that there are; schedules fit their jobs; their ids are theirs.

    Raises `Invalid` naming all that does not fit, after the `faults` that are known. What jobs and schedules need is
    written by now, they themselves are not.
    """
    of_jobs = [step for step in steps if isinstance(step.new, Job)]
    of_schedules = [step for step in steps if isinstance(step.new, Schedule)]
    beside = [step.new for step in of_jobs if isinstance(step.new, Job)]
    going = [(step.key[1], step.key[2]) for step in steps if step.new is None and step.kind.name == "job"]
    found = [
        *faults,
        *_at_their_places(of_jobs, lambda new: jobs.refuse_misfits(connection, new, going)),
        *_at_their_places(of_schedules, lambda new: schedules.refuse_misfits(connection, new, beside)),
        *_taken_ids(connection, of_schedules),
    ]
    if found:
        raise Invalid(faults=list(dict.fromkeys(found)))


def _taken_ids(connection: sa.Connection, steps: Sequence[Step]) -> list[Fault]:
    """Chosen ids that several schedules would have, that are other schedules', or not those that theirs have."""
    taken: list[Fault] = []
    ids: dict[str, list[Step]] = {}
    for step in steps:
        if isinstance(step.new, Schedule) and step.new.schedule_id:
            ids.setdefault(step.new.schedule_id, []).append(step)
    for schedule_id, several in ids.items():
        if len(several) > 1:
            sentence = f"The id {schedule_id!r} is given {len(several)} times; give each schedule its own."
            taken += [Fault(f"{step.place}.scheduleId", sentence) for step in several]
    query = sa.select(schedule).where(among(connection.dialect.name, schedule.c.schedule_id, "ids"))
    for row in connection.execute(query, {"ids": list(ids)}) if ids else ():
        holder = (row.application, row.job_name, row.schedule_name)
        sentence = f"The id {row.schedule_id!r} is that of {'/'.join(holder)}."
        others = [step for step in ids[row.schedule_id] if step.key[1:] != holder]
        taken += [Fault(f"{step.place}.scheduleId", sentence) for step in others]
    for step in steps:
        old, new = step.old and step.old.record, step.new
        if isinstance(old, Schedule) and isinstance(new, Schedule) and old.schedule_id != new.schedule_id:
            sentence = f"The schedule has the id {old.schedule_id!r}, which stays; leave this out."
            taken.append(Fault(f"{step.place}.scheduleId", sentence))
    return taken


def _at_their_places(steps: Sequence[Step], check: Callable[[list[Any]], None]) -> list[Fault]:
    """What a check over records finds; its faults, which name records by number, name their places instead."""
    faults: list[Fault] = []
    try:
        if steps:
            check([step.new for step in steps])
    except Invalid as invalid:
        for fault in invalid.faults:
            number, _, name = fault.field.removeprefix("[").partition("].")
            place, rest = (steps[int(number)].place, name) if name else (steps[0].place, fault.field)
            faults.append(Fault(f"{place}.{rest}", fault.message))
    return faults


def _refuse_what_is_in_use(connection: sa.Connection, going: Sequence[Step], now: datetime, *, force: bool) -> None:
    """Jobs that are to go have neither unfinished triggers nor schedules of others; groups have no jobs left."""
    leaving = {step.key for step in going}
    keys = [(step.key[1], step.key[2]) for step in going if step.kind.name == "job"]
    faults: list[Fault] = []
    for condition in [] if force else jobs.keyed(keys, job_trigger):
        its_job = (job_trigger.c.application, job_trigger.c.job_name)
        busy = sa.select(*its_job).where(condition, jobs.busy_rows(now)).distinct()
        faults += [Fault("force", f"{row[0]}/{row[1]} has unfinished triggers.") for row in connection.execute(busy)]
    for condition in [] if force else jobs.keyed(keys, schedule):
        named = sa.select(schedule.c.application, schedule.c.job_name, schedule.c.schedule_name).where(condition)
        faults += [
            Fault("force", f"{row[0]}/{row[1]} has the schedule {row[2]!r}, which this set did not make.")
            for row in connection.execute(named)
            if ("schedule", *row) not in leaving
        ]
    below = dependencies.dependents_of(connection, keys) if keys and not force else {}
    waiting = [(up, each) for up, found in below.items() for each in found if ("job", *each) not in leaving]
    if waiting:
        raise JobHasDependents(
            faults=[Fault("force", f"{shown(each)} depends on {shown(up)}.") for up, each in waiting]
        )
    if faults:
        raise JobIsRunning("A job that would go is still in use; wait, or say force=true.", faults)
    calendars = [step.key[1] for step in going if step.kind.name == "calendar"]
    users = sa.select(schedule.c.application, schedule.c.job_name, schedule.c.schedule_name, schedule.c.calendar_name)
    users = users.where(schedule.c.calendar_name.in_(calendars))
    by_it = [row for row in connection.execute(users) if ("schedule", *row[:3]) not in leaving] if calendars else []
    if by_it:
        raise CalendarInUse(
            faults=[
                Fault("prune", f"{'/'.join(row[:3])} goes by the calendar {row[3]!r}.") for row in by_it[:USERS_TOLD]
            ]
        )
    names = [step.key[1] for step in going if step.kind.name == "group"]
    members = sa.select(job.c.application, job.c.job_name, job.c.group_name).where(job.c.group_name.in_(names))
    used = [row for row in connection.execute(members) if ("job", row[0], row[1]) not in leaving] if names else []
    if used:
        raise GroupInUse(
            faults=[Fault("prune", f"{row[0]}/{row[1]} is in the group {row[2]!r}.") for row in used[:USERS_TOLD]]
        )

"""A declaration: what there is to be, as files say it; and what has to change so that it is.

Never reads or writes a store (`store/declared.py`), never reads a file. Invariants: what a declaration says and the
store holds already is no change; what people switch by hand (`HELD`) stays as it is where the declaration does not say
it; only what a set of files made can be pruned by that set.

>>> from clickclock.scheduler.jobs.job import Job
>>> wanted = Wanted(KINDS["job"], Job(application="shop", job_name="export", command="true"), "jobs[0]")
>>> compare([wanted], {}, Terms()).steps[0].action
<Action.CREATE: 'create'>
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

import msgspec
from pydantic import Field

from clickclock.foundation.errors import Fault
from clickclock.foundation.record import Record
from clickclock.scheduler.jobs.group import Group, JobDefaults
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.job import Job, Name
from clickclock.scheduler.jobs.notification import ApplicationDefaults
from clickclock.scheduler.times.business_days import Calendar
from clickclock.scheduler.times.schedule import Schedule

Declarable = Job | Schedule | Group | Calendar | ImageMapping | ApplicationDefaults
Key = tuple[str, ...]
"""The kind's name, and the values that name one of the kind."""

DEFAULT_SCHEDULE = "default"
"""The name of a schedule that says none: one job has at most one such."""
HELD = ("enabled", "paused", "pause_reason")
"""Switches: who turns one by hand does not want the next apply to turn it back, unless the files say it."""
_MAY_BE_UNSAID = {"enabled", "paused", "pauseReason", "managedBy", "scheduleId"}
SET_BY_SERVICE = frozenset({"createdAt", "updatedAt", "managedBy"})
"""Fields of a thing that no declaration gives."""
_STAMPS = {"created_at", "updated_at"}
_MADE_BY_SERVICE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Kind:
    """One kind of thing that can be declared. A further one is one more row of `KINDS`."""

    name: str
    plural: str
    """Under which it stands in a declaration."""
    model: type[Declarable]
    key_fields: tuple[str, ...]

    def key(self, record: Declarable) -> Key:
        return (self.name, *[getattr(record, field_name) for field_name in self.key_fields])

    @cached_property
    def key_aliases(self) -> tuple[str, ...]:
        """The key's fields by their wire names."""
        return tuple(self.model.model_fields[field_name].alias or field_name for field_name in self.key_fields)

    def key_given(self, item: Mapping[str, Any]) -> Key:
        """The key of a thing as it was given; what is missing or no text is empty."""
        given = [item.get(alias) for alias in self.key_aliases]
        return (self.name, *[each if isinstance(each, str) else "" for each in given])


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("group", "groups", Group, ("group_name",)),
        Kind("calendar", "calendars", Calendar, ("calendar_name",)),
        Kind("commandPrefixImageMapping", "commandPrefixImageMappings", ImageMapping, ("prefix",)),
        Kind("application", "applications", ApplicationDefaults, ("application",)),
        Kind("job", "jobs", Job, ("application", "job_name")),
        Kind("schedule", "schedules", Schedule, ("application", "job_name", "schedule_name")),
    )
}
"""Every kind, each after those that it needs."""


def _unsaid(schema: dict[str, Any]) -> None:
    """Leave the default out of a schema: it stands for what is said elsewhere."""
    del schema["default"]


class JobSchedule(Schedule):
    """A schedule as it stands in its job."""

    application: Name = Field(
        "", description="That of the job; need not be given.", examples=["shop"], json_schema_extra=_unsaid
    )
    job_name: Name = Field(
        "", description="That of the job; need not be given.", examples=["nightly-export"], json_schema_extra=_unsaid
    )


class DeclaredSchedule(Schedule):
    """A schedule that stands apart from its job."""

    application: Name = Field(
        "", description="That of the declaration, if not given.", examples=["shop"], json_schema_extra=_unsaid
    )


class DeclaredApplication(ApplicationDefaults):
    """What holds for all jobs of an application that do not say otherwise."""

    application: str = Field(
        "", description="That of the declaration, if not given.", examples=["shop"], json_schema_extra=_unsaid
    )


class DeclaredJob(Job):
    """A job with its schedules."""

    application: Name = Field(
        "", description="That of the declaration, if not given.", examples=["shop"], json_schema_extra=_unsaid
    )
    schedules: list[JobSchedule] = Field(
        default_factory=list,
        description="When to run it. One may go without a `scheduleName`; it is then called `default`.",
        examples=[[{"expression": "30 2 * * *", "timeZone": "Europe/Berlin"}]],
    )


class Declaration(Record):
    """What there is to be: the content of one file, or of one of the documents in it."""

    application: Name | None = Field(
        None, description="The application of everything here that has one and names none.", examples=["shop"]
    )
    groups: list[Group] = Field(
        default_factory=list, description="Groups.", examples=[[{"groupName": "exports", "maxConcurrentTriggers": 2}]]
    )
    calendars: list[Calendar] = Field(
        default_factory=list,
        description="Calendars that schedules use.",
        examples=[[{"calendarName": "germany", "excludeDates": ["2026-12-25", "2026-12-26"]}]],
    )
    command_prefix_image_mappings: list[ImageMapping] = Field(
        default_factory=list,
        description="Which image commands get.",
        examples=[[{"prefix": "python -m etl", "image": "registry.example.com/etl:1.4"}]],
    )
    applications: list[DeclaredApplication] = Field(
        default_factory=list,
        description="Defaults of applications.",
        examples=[[{"application": "shop", "notifications": {"targets": ["ops"]}}]],
    )
    jobs: list[DeclaredJob] = Field(
        default_factory=list,
        description="Jobs, each with its schedules.",
        examples=[[{"jobName": "nightly-export", "command": "python export.py"}]],
    )
    schedules: list[DeclaredSchedule] = Field(
        default_factory=list,
        description="Schedules that stand apart from their jobs.",
        examples=[[{"jobName": "nightly-export", "scheduleName": "noon", "expression": "0 12 * * *"}]],
    )


class Action(StrEnum):
    """What becomes of one thing."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Alteration(Record):
    """One thing that an apply changes."""

    kind: str = Field(description="What it is: `job`, `schedule`, `group` …", examples=["job"])
    name: str = Field(description="Which one.", examples=["shop/nightly-export"])
    action: Action = Field(description="What happens to it.", examples=["update"])
    before: dict[str, Any] | None = Field(
        description="Its declaration before, without defaults; null if it did not exist.",
        examples=[{"application": "shop", "jobName": "nightly-export", "command": "python export.py"}],
    )
    after: dict[str, Any] | None = Field(
        description="Its declaration from now on; null if it is deleted.",
        examples=[{"application": "shop", "jobName": "nightly-export", "command": "python export.py --all"}],
    )


class Terms(msgspec.Struct, frozen=True):
    """How a declaration is meant: for which set of files, and what it may do beside making what it names."""

    set_name: str | None = None
    prune: bool = False
    adopt: bool = False
    force: bool = False
    allow_empty: bool = False


class Wanted(msgspec.Struct, frozen=True):
    """One thing that is to be, and its place in the request."""

    kind: Kind
    record: Declarable
    place: str

    @property
    def key(self) -> Key:
        return self.kind.key(self.record)


@dataclass(frozen=True)
class Kept:
    """One thing as the store holds it: what is said of it, by wire names; when it was made says which times it has."""

    kind: Kind
    definition: Mapping[str, Any]
    version: int
    created_at: datetime

    @cached_property
    def record(self) -> Declarable:
        return self.kind.model.model_validate(self.definition)

    def says(self, given: Mapping[str, Any]) -> bool:
        """Whether that is said already, word for word: then nobody needs to read it any closer."""
        told = self.definition
        return given.items() <= told.items() and told.keys() - given.keys() <= _MAY_BE_UNSAID


class Step(msgspec.Struct, frozen=True):
    """One change: `new` is None where something goes, `old` where something comes."""

    kind: Kind
    place: str
    new: Declarable | None
    old: Kept | None

    @property
    def action(self) -> Action:
        if self.old is None:
            return Action.CREATE
        return Action.DELETE if self.new is None else Action.UPDATE

    @property
    def record(self) -> Declarable:
        """The thing as it will be, or as it was."""
        record = self.new if self.old is None else self.new or self.old.record
        assert record is not None
        return record

    @property
    def key(self) -> Key:
        return self.kind.key(self.record)

    @property
    def alteration(self) -> Alteration:
        return Alteration(
            kind=self.kind.name,
            name="/".join(self.key[1:]),
            action=self.action,
            before=None if self.old is None else said(self.old.record),
            after=None if self.new is None else said(self.new),
        )


class Plan(msgspec.Struct, frozen=True):
    """All that has to change, each thing after those that it needs; and why it cannot be done, if it cannot."""

    steps: Sequence[Step]
    unchanged: int
    held_elsewhere: list[Fault] = field(default_factory=list)
    emptied: list[Fault] = field(default_factory=list)


def nested(schedule: Schedule) -> dict[str, Any]:
    """A schedule as it stands in its job."""
    own = {name: value for name, value in said(schedule).items() if name not in {"application", "jobName"}}
    if own.get("scheduleName") == DEFAULT_SCHEDULE:
        del own["scheduleName"]
    return own


def without_owner(thing: dict[str, Any]) -> dict[str, Any]:
    """The fields of a thing, without the set that it belongs to."""
    kept = {name: value for name, value in thing.items() if name != "managedBy"}
    if "schedules" in kept:
        kept["schedules"] = [without_owner(each) for each in kept["schedules"]]
    return kept


def said(record: Declarable) -> dict[str, Any]:
    """The fields of a thing, by their wire names, without default values.

    A default that is spelled out counts only where it wins over a group's; an id only where somebody chose it.
    """
    told = record.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_defaults=True, exclude=_STAMPS)
    if _MADE_BY_SERVICE.fullmatch(told.get("scheduleId", "")):
        del told["scheduleId"]
    if isinstance(record, Job) and record.group_name is not None:
        spelled_out = record.model_fields_set & JobDefaults.model_fields.keys()
        whole = record.model_dump(mode="json", by_alias=True, include=spelled_out) | told
        told = {alias: whole[alias] for each in Job.model_fields.values() if (alias := each.alias or "") in whole}
    return told


def compare(wanted: Iterable[Wanted], kept: Mapping[Key, Kept], terms: Terms, same: Collection[Key] = ()) -> Plan:
    """The changes to make.

    `kept` is what the store has of the wanted, and all that the set of files made before; `same` is what is wanted
    beside, and known to be kept just so.
    """
    steps: list[Step] = []
    held: list[Fault] = []
    unchanged = len(same)
    named = set(same)
    for each in wanted:
        named.add(each.key)
        old = kept.get(each.key)
        new = each.record if old is None else _keeping(each.record, old.record, terms)
        if old is not None:
            owner = old.record.managed_by
            if owner is not None and owner != new.managed_by and not terms.adopt:
                held.append(Fault(each.place, f"The set {owner!r} holds {_titled(each.kind, each.key)}."))
            if said(new) == said(old.record):
                unchanged += 1
                continue
        steps.append(Step(each.kind, each.place, new, old))
    going = _going(kept, named, terms)
    return Plan(steps + going, unchanged, held, [] if terms.allow_empty else _emptied(named, going))


def given_twice(named: Mapping[str, Key]) -> list[Fault]:
    """A fault at each place of a thing that stands at several; `named` are the keys by their places."""
    places: dict[Key, list[str]] = {}
    for place, key in named.items():
        if all(key):
            places.setdefault(key, []).append(place)
    return [
        Fault(place, f"The {key[0]} {'/'.join(key[1:])} is given {len(several)} times; give it once.")
        for key, several in places.items()
        if len(several) > 1
        for place in several
    ]


def _keeping(new: Declarable, old: Declarable, terms: Terms) -> Declarable:
    """`new` with what it leaves to `old`: switches turned by hand, the id of a schedule, and whose it is."""
    left = {
        name: getattr(old, name)
        for name in HELD
        if name in type(new).model_fields and name not in new.model_fields_set and name in old.model_fields_set
    }
    if isinstance(old, Schedule) and isinstance(new, Schedule) and new.schedule_id is None:
        left["schedule_id"] = old.schedule_id
    if terms.set_name is None and old.managed_by is not None:
        left["managed_by"] = old.managed_by
    return new.model_copy(update=left) if left else new


def _going(kept: Mapping[Key, Kept], named: set[Key], terms: Terms) -> list[Step]:
    """What the set made and no longer names; what needs others goes before them."""
    if not terms.prune:
        return []
    order = {name: -place for place, name in enumerate(KINDS)}
    going = [
        Step(each.kind, "", None, each)
        for key, each in kept.items()
        if key not in named and each.record.managed_by == terms.set_name
    ]
    return sorted(going, key=lambda step: (order[step.kind.name], step.key))


def _emptied(named: set[Key], going: Sequence[Step]) -> list[Fault]:
    """The applications of which the set would have no job left."""
    if not going:
        return []
    staying = {key[1] for key in named if key[0] == "job"}
    lost: dict[str, int] = {}
    for step in going:
        if step.kind.name == "job" and step.key[1] not in staying:
            lost[step.key[1]] = lost.get(step.key[1], 0) + 1
    return [
        Fault(
            "allowEmpty",
            f"All jobs of {application!r} in this set ({count}) would be deleted; confirm with allowEmpty=true.",
        )
        for application, count in sorted(lost.items())
    ]


def _titled(kind: Kind, key: Key) -> str:
    return f"the {kind.name} {'/'.join(key[1:])}"

"""`/schedulerService/declaration`: everything that files say, told and brought about in one call.

Parse, call, render. Invariants: nothing is written unless everything can be; a thing is found by its name, so that the
same declaration again changes nothing; what somebody else changes meanwhile is looked at again, never overwritten
unseen.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace
from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid, Malformed
from clickclock.foundation.ids import new_id
from clickclock.foundation.permission import Permission
from clickclock.scheduler.api import calendar, group, image_mapping, job, notification, references, schedules
from clickclock.scheduler.api.faults import unknown_name, wire_names
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import key_in, page, seen_by
from clickclock.scheduler.api.permitting import is_seen, refusals_of_given, refusals_of_steps, refuse
from clickclock.scheduler.api.reading import Body, Page, Query, Word, read_value
from clickclock.scheduler.declarations.declaration import (
    DEFAULT_SCHEDULE,
    KINDS,
    SET_BY_SERVICE,
    Alteration,
    Declaration,
    Kept,
    Key,
    Kind,
    Plan,
    Step,
    Terms,
    Wanted,
    compare,
    given_twice,
    nested,
    said,
    without_owner,
)
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import (
    CalendarInUse,
    GroupInUse,
    HeldElsewhere,
    JobHasDependents,
    JobIsRunning,
    StaleVersion,
    WouldEmpty,
)
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.job import Job, Name
from clickclock.scheduler.jobs.notification import ApplicationDefaults
from clickclock.scheduler.store import Edited
from clickclock.scheduler.times.business_days import Calendar
from clickclock.scheduler.times.calendar import check_steps
from clickclock.scheduler.times.schedule import Schedule

RACES_MAX = 10
"""Tries of one apply: more means that something writes without end."""
BODIES = 8
"""A folder with ten thousand jobs, each described at length, is larger than any other body."""
THINGS_MAX = 30_000
"""In one declaration: they are one transaction, and others wait for it."""


class DeclarationFilters(Page):
    """Which part of what is there."""

    limit: int = Field(100, ge=1, le=1000, description="At most this many jobs.", examples=[100])
    application: Word | None = Field(None, description="This application's jobs, and their groups.", examples=["shop"])


class DeclarationTarget(Query):
    """How a declaration is meant."""

    set: Name | None = Field(
        None, description="The set of files that it is all of: its things are marked as the set's.", examples=["shop"]
    )
    prune: bool = Field(
        False, description="Delete what the set made and no longer names; needs `set`.", examples=[False]
    )
    dry_run: bool = Field(False, description="Answer and refuse as always, but change nothing.", examples=[True])
    adopt: bool = Field(False, description="Take over what another set holds.", examples=[False])
    force: bool = Field(
        False, description="Delete also jobs that have unfinished triggers, which are cancelled.", examples=[False]
    )
    allow_empty: bool = Field(
        False, description="Delete also the last job that the set has in an application.", examples=[False]
    )


async def _no_checks(_engine: Engine, _beside: Sequence[Any]) -> Callable[[Any], object]:
    return lambda _record: None


async def _policy(engine: Engine, _beside: Sequence[Any]) -> Callable[[Any], object]:
    return partial(group.check, engine)


async def _told(engine: Engine, _beside: Sequence[Any]) -> Callable[[ApplicationDefaults], object]:
    return lambda new: notification.check_targets(engine, new.notifications)


async def _images(engine: Engine, beside: Sequence[Any]) -> Callable[[Any], object]:
    return await job.checks(engine, [each for each in beside if isinstance(each, ImageMapping)])


async def _days(_engine: Engine, _beside: Sequence[Any]) -> Callable[[Calendar], object]:
    return Calendar.check


async def _times(engine: Engine, _beside: Sequence[Any]) -> Callable[[Schedule], object]:
    def check(new: Schedule) -> None:
        new.timetable(engine.clock.now())
        check_steps(new.kind, new.expression)

    return check


class _Reading(msgspec.Struct, frozen=True):
    """How things of a kind are read, and what else is looked at in each."""

    body: Body
    checks: Callable[[Engine, Sequence[Any]], Awaitable[Callable[[Any], object]]] = _no_checks
    """Given what is wanted beside them, of the kinds before."""


_READINGS: Mapping[str, _Reading] = {
    "group": _Reading(group.BODY, _policy),
    "calendar": _Reading(calendar.BODY, _days),
    "commandPrefixImageMapping": _Reading(image_mapping.BODY),
    "application": _Reading(notification.DEFAULTS, _told),
    "job": _Reading(job.BODY, _images),
    "schedule": _Reading(schedules.BODY, _times),
}
"""One for each of `KINDS`."""


@dataclass(slots=True)
class _Given:
    """Things of every kind as they were given, with their places; and what is wrong with how they are given."""

    set_name: str | None
    items: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in KINDS})
    places: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in KINDS})
    faults: list[Fault] = field(default_factory=list)

    def add_document(self, document: Any, prefix: str) -> None:
        """All that one document declares."""
        if not isinstance(document, dict):
            self.faults.append(Fault(prefix.removesuffix("."), "Give an object with jobs, schedules, groups …."))
            return
        known = wire_names(Declaration)
        self.faults += [
            Fault(f"{prefix}{name}", unknown_name(name, known, "field")) for name in document if name not in known
        ]
        application = document.get("application")
        if application is not None and not isinstance(application, str):
            self.faults.append(Fault(f"{prefix}application", "Give text, in quotes."))
        ours = {} if application is None else {"application": application}
        for kind in KINDS.values():
            inherited = ours if "application" in kind.key_fields else {}
            self._add_list(kind, document.get(kind.plural), f"{prefix}{kind.plural}", inherited)

    def _add_list(self, kind: Kind, given: Any, where: str, inherited: Mapping[str, Any]) -> None:
        if given is None:
            return
        if not isinstance(given, list):
            self.faults.append(Fault(where, "Give an array."))
            return
        for number, item in enumerate(given):
            self._add(kind, item, f"{where}[{number}]", inherited)

    def _add(self, kind: Kind, given: Any, place: str, inherited: Mapping[str, Any]) -> None:
        if not isinstance(given, dict):
            self.faults.append(Fault(place, "Give an object."))
            return
        item = {**inherited, **given}
        for name in SET_BY_SERVICE & given.keys():
            self.faults.append(Fault(f"{place}.{name}", "The service sets this; leave it out."))
            del item[name]
        if self.set_name is not None:
            item["managedBy"] = self.set_name
        if kind.name == "job":
            of_job = {name: item[name] for name in ("application", "jobName") if name in item}
            self._add_list(KINDS["schedule"], item.pop("schedules", None), f"{place}.schedules", of_job)
        if kind.name == "schedule":
            item.setdefault("scheduleName", DEFAULT_SCHEDULE)
        self.items[kind.name].append(item)
        self.places[kind.name].append(place)


async def put(call: Call[DeclarationTarget]) -> Response:
    """PUT: make it so."""
    asked, engine = call.filters, call.engine
    if asked.prune and asked.set is None:
        raise Malformed(faults=[Fault("set", "Say which set's things may go, with set, where you say prune.")])
    terms = Terms(asked.set, asked.prune, asked.adopt, asked.force, asked.allow_empty)
    given = await asyncio.to_thread(_given, call)  # a large one would hold up the loop
    refused = refusals_of_given(call.principal, given.items, given.places)
    for races_left in range(RACES_MAX - 1, -1, -1):
        try:
            plan = await _plan(given, terms, call)
        except Invalid:
            refuse(call.principal, refused)  # what is wrong with things that it may not touch is not its business
            raise
        refuse(call.principal, refused + refusals_of_steps(call.principal, plan.steps))
        if plan.held_elsewhere:
            raise HeldElsewhere(faults=plan.held_elsewhere)
        if plan.emptied:
            raise WouldEmpty(faults=plan.emptied)
        steps, faults = await _timed(plan.steps, engine)
        try:
            if steps:
                now = engine.clock.now()
                await engine.store.declared.write(steps, now, force=terms.force, dry_run=asked.dry_run, faults=faults)
        except StaleVersion:
            # Somebody else was faster: what has to change is decided anew, from what is there now.
            if not races_left:
                raise
            continue
        break
    if steps and not asked.dry_run:
        engine.wake_dispatcher()
        engine.stop_attempts()
        await engine.edited(Edited())
    return success(alterations=[step.alteration for step in steps], unchanged=plan.unchanged, dryRun=asked.dry_run)


async def find(call: Call[DeclarationFilters]) -> Response:
    """GET: what is there, as it would be declared."""
    declared, asked = call.engine.store.declared, call.filters
    filters = {} if asked.application is None else {"application": asked.application}
    after = key_in(asked.cursor, "declaration", filters)
    seen = seen_by(filters, call.seen(Permission.JOB_READ))
    if seen is None:
        return success(declaration={}, nextCursor=None)
    found = await declared.find(KINDS["job"], seen, after, asked.limit + 1)
    jobs, cursor = page("declaration", filters, found, asked.limit, lambda each: KINDS["job"].key(each)[1:])
    told: dict[str, list[dict[str, Any]]] = {}
    timed = await declared.schedules_of([each.key for each in jobs if isinstance(each, Job)])
    used = {("group", each.group_name) for each in jobs if isinstance(each, Job)}
    used |= {("calendar", each.calendar_name) for each in timed} | {("application", asked.application)}
    for kind in KINDS.values():
        if kind.name in {"job", "schedule"} or (after is not None and not filters):
            continue
        several = await declared.find(kind, seen, None, THINGS_MAX)
        if filters:
            several = [each for each in several if kind.key(each) in used]
        told[kind.plural] = [said(each) for each in several]
    of_jobs: dict[Key, list[dict[str, Any]]] = {}
    for each in timed:
        of_jobs.setdefault((each.application, each.job_name), []).append(nested(each))
    told["jobs"] = [
        said(each) | ({"schedules": of_job} if (of_job := of_jobs.get(KINDS["job"].key(each)[1:])) else {})
        for each in jobs
    ]
    declaration = {name: [without_owner(each) for each in several] for name, several in told.items() if several}
    return success(declaration=declaration, nextCursor=cursor)


def _given(call: Call[DeclarationTarget]) -> _Given:
    """All that is given. Raises `Malformed`, `Invalid`."""
    document = read_value(call.body)
    given = _Given(call.filters.set)
    if isinstance(document, list):
        for number, each in enumerate(document):
            given.add_document(each, f"[{number}].")
    else:
        given.add_document(document, "")
    count = sum(map(len, given.items.values()))
    if count > THINGS_MAX:
        raise Invalid(faults=[Fault("", f"There are {count} things; give at most {THINGS_MAX} in one declaration.")])
    return given


async def _plan(given: _Given, terms: Terms, call: Call[DeclarationTarget]) -> Plan:
    """The changes to make. Raises `Invalid` naming every fault by its place."""
    engine, seen = call.engine, call.seen(Permission.JOB_READ)
    keys = {kind.name: [kind.key_given(item) for item in given.items[kind.name]] for kind in KINDS.values()}
    asked = {key for several in keys.values() for key in several}
    kept = await engine.store.declared.read(asked, terms.set_name if terms.prune else None)
    kept = {key: each for key, each in kept.items() if key in asked or is_seen(key, seen)}
    named: dict[str, Key] = {}
    same: set[Key] = set()
    wanted: list[Wanted] = []
    faults = list(given.faults)
    for kind in KINDS.values():
        new: list[tuple[dict[str, Any], str]] = []
        for key, item, place in zip(keys[kind.name], given.items[kind.name], given.places[kind.name], strict=True):
            named[place] = key
            if key in kept and kept[key].says(item):
                same.add(key)
            else:
                new.append((item, place))
        reading = _READINGS[kind.name]
        where = [place for _, place in new]
        check = await reading.checks(engine, [each.record for each in wanted])
        records, wrong = await reading.body.read_items([item for item, _ in new], where, check)
        faults += wrong
        if not wrong:
            wanted += [Wanted(kind, record, place) for record, place in zip(records, where, strict=True)]
    faults += given_twice({**named, **{each.place: each.key for each in wanted}})
    if faults:
        jobs, timed = (dict(zip(given.places[kind], given.items[kind], strict=True)) for kind in ("job", "schedule"))
        beside = {"groups": given.items["group"], "calendars": given.items["calendar"]}
        faults += await references.missing(engine, faults, jobs=jobs, schedules=timed, seen=seen, **beside)
        raise Invalid(faults=faults)
    # A thing that is kept in another spelling (a prefix with two spaces) was not found as it was written.
    if other := {each.key for each in wanted} - asked:
        kept |= await engine.store.declared.read(other, None)
    return compare(wanted, kept, terms, same)


async def _timed(steps: Sequence[Step], engine: Engine) -> tuple[list[Step], list[Fault]]:
    """The steps, new schedules with ids; and where a schedule's times are wrong, or never come."""
    there = await calendar.calendars_of(engine, {s.new.calendar_name for s in steps if isinstance(s.new, Schedule)})
    new_ones = {step.new.calendar_name: step.new for step in steps if isinstance(step.new, Calendar)}
    calendars = calendar.Calendars({**there.by_name, **new_ones})
    faults: list[Fault] = []
    timed: list[Step] = []
    for step in steps:
        new = step.new
        if not isinstance(new, Schedule):
            timed.append(step)
            continue
        made = new if new.schedule_id else new.model_copy(update={"schedule_id": new_id()})
        timed.append(replace(step, new=made))
        faults += _faults(step.place, partial(_check_times, made, step.old, engine, calendars))
    return timed, faults


def _check_times(new: Schedule, old: Kept | None, engine: Engine, calendars: calendar.Calendars) -> None:
    anchor = engine.clock.now() if old is None else old.created_at
    was = None if old is None else old.record
    if not isinstance(was, Schedule) or schedules.has_other_times(new, was):
        schedules.first_time(new, new.schedule_id or "", anchor, engine.clock.now(), calendars)


def _faults(place: str, check: Callable[[], object]) -> list[Fault]:
    try:
        check()
    except Invalid as invalid:
        return [Fault(f"{place}.{fault.field}", fault.message) for fault in invalid.faults]
    return []


_FILE = {
    "application": "shop",
    "groups": [{"groupName": "exports", "maxConcurrentTriggers": 2}],
    "jobs": [
        {
            "jobName": "nightly-export",
            "command": "python export.py",
            "groupName": "exports",
            "schedules": [{"expression": "30 2 * * *", "timeZone": "Europe/Berlin"}],
        }
    ],
}
OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "Export what is there, as a declaration",
        Permission.JOB_READ,
        find,
        DeclarationFilters,
        {200: {"declaration": dict[str, Any], "nextCursor": str | None}},
        description="Sent back with PUT, it changes nothing. Jobs come by name, with their schedules, `limit` at a "
        "time. The first page has everything else; with `application`, each page has its defaults, its jobs' groups "
        "and calendars, instead.",
    ),
    Operation(
        "PUT",
        "Apply declarations: everything that files say, all or nothing",
        Permission.JOB_WRITE,
        put,
        DeclarationTarget,
        {200: {"alterations": list[Alteration], "unchanged": int, "dryRun": bool}},
        description="One declaration, or an array of them (one for each file), with up to 30,000 things in all. What "
        "is not there is created; what is there is replaced where it says something else, except that a switch turned "
        "by hand (`enabled`, `paused`) stays where the declaration does not say it. With `set`, things are marked as "
        "the set's (`managedBy`), and `prune` deletes only what it no longer names. The body may be 8 times as long.",
        body=Declaration,
        several=True,
        examples={"one application": _FILE},
        bodies=BODIES,
        errors=(
            *(HeldElsewhere, WouldEmpty, JobIsRunning, JobHasDependents),
            *(GroupInUse, CalendarInUse, StaleVersion, Invalid),
        ),
    ),
)

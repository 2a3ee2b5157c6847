"""Groups, jobs, calendars, parameters that a body names and nothing has, told together with what else is wrong with it.

The store refuses such names in the transaction that writes, but it gets only what can be read. This is for a body of
which a part cannot: who mends it should not have to come twice. Invariant: never says that something is missing which
the same body gives, or whose name cannot be read.

>>> [(each.field, each.name) for each in of_job("", {"application": "shop", "groupName": "night", "dependsOn": ["a"]})]
[('groupName', 'night'), ('dependsOn[0]', ('shop', 'a'))]
"""

import contextlib
import re
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.api.reading import load_json
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import lacks_value, no_calendar, no_group, no_job, no_upstream
from clickclock.scheduler.jobs.command import parameter_faults
from clickclock.scheduler.jobs.dependency import Key, lacking
from clickclock.scheduler.jobs.job import NAME_PATTERN

Given = Mapping[str, Any]
"""The value of a JSON object."""


class Reference(msgspec.Struct, frozen=True):
    """A field that names a group, or a job by its application and name."""

    field: str
    name: str | Key
    sentence: str
    """What to say where there is no such thing."""


def of_job(place: str, given: Given) -> Iterator[Reference]:
    """A job's group and upstreams; `place` is where the job is in the body, "" if it is all of it."""
    prefix = f"{place}." if place else ""
    if group := _name(given.get("groupName")):
        yield Reference(f"{prefix}groupName", group, no_group(group))
    upstreams = given.get("dependsOn")
    for number, each in enumerate(upstreams if isinstance(upstreams, list) else []):
        upstream = {"application": given.get("application")} | (each if isinstance(each, dict) else {"jobName": each})
        if key := _key(upstream):
            yield Reference(f"{prefix}dependsOn[{number}]", key, no_upstream(key))


def of_schedule(place: str, given: Given) -> Iterator[Reference]:
    """The job of a schedule, or of a trigger; `place` as for jobs."""
    if key := _key(given):
        yield Reference(f"{place}.jobName" if place else "jobName", key, no_job(key))


@contextlib.asynccontextmanager
async def named_too(
    engine: Engine, body: bytes, kind: Literal["jobs", "schedules", "triggers"], seen: Collection[str] | None
) -> AsyncIterator[None]:
    """Within, `Invalid` raised of a body of things of this kind names also what they refer to and is not there.

    Nothing is said of jobs of applications that are not `seen`; None is all.
    """
    try:
        yield
    except Invalid as invalid:
        given = load_json(body)
        items = {f"[{number}]": each for number, each in enumerate(given)} if isinstance(given, list) else {"": given}
        objects = {place: each for place, each in items.items() if isinstance(each, dict)}
        jobs, schedules = (objects, {}) if kind == "jobs" else ({}, objects)
        invalid.faults += await missing(engine, invalid.faults, jobs=jobs, schedules=schedules, seen=seen)
        raise


async def missing(
    engine: Engine,
    told: Iterable[Fault],
    *,
    jobs: Mapping[str, Given],
    schedules: Mapping[str, Given],
    groups: Iterable[Given] = (),
    calendars: Iterable[Given] = (),
    seen: Collection[str] | None = None,
) -> list[Fault]:
    """A fault for each field that names what is neither there nor given beside it, if none of that field was `told`.

    `jobs`, and `schedules` or triggers, are given by their places. Jobs of applications that are not `seen` are left
    out; None is all.
    """
    fields = {fault.field for fault in told}
    beside = {_name(each.get("groupName")) for each in groups} | {_key(each) for each in jobs.values()}
    named = [each for place, given in jobs.items() for each in of_job(place, given)]
    named += [each for place, given in schedules.items() for each in of_schedule(place, given)]
    named = [each for each in named if seen is None or isinstance(each.name, str) or each.name[0] in seen]
    wanted = [each for each in named if each.name not in beside and each.field not in fields]
    there = await engine.store.groups.existing({each.name for each in wanted if isinstance(each.name, str)})
    declared = await engine.store.jobs.parameters({each.name for each in wanted if not isinstance(each.name, str)})
    known = there | declared.keys()
    faults = [Fault(each.field, each.sentence) for each in wanted if each.name not in known]
    faults += _lacking(jobs, declared)
    faults += await _missing_calendars(engine, schedules, {_name(each.get("calendarName")) for each in calendars})
    for place, given in schedules.items():
        key = _key(given)
        if key in declared:
            misfits = parameter_faults(declared[key], _texts(given.get("parameters", {})))
            faults += [Fault(f"{place}.{each.field}" if place else each.field, each.message) for each in misfits]
    return [each for each in faults if each.field not in fields]


def _lacking(jobs: Mapping[str, Given], stored: Mapping[Key, Collection[str]]) -> Iterator[Fault]:
    """Required parameters for which a job would get no value from its upstreams, as far as all of that can be read."""
    told = {key: each.get("parameters", {}) for each in jobs.values() if (key := _key(each))}
    declared = {**stored, **{key: each for key, each in told.items() if isinstance(each, dict)}}
    for place, given in jobs.items():
        keys = [each.name for each in of_job(place, given) if not isinstance(each.name, str)]
        upstreams = given.get("dependsOn")
        if (
            not keys
            or not isinstance(upstreams, list)
            or len(keys) < len(upstreams)
            or not declared.keys() >= set(keys)
        ):
            continue
        parameters = given.get("parameters")
        required = (
            {name: None for name, value in parameters.items() if value is None} if isinstance(parameters, dict) else {}
        )
        for name in lacking(required, [declared[key] for key in keys]):
            yield Fault(f"{place}.parameters.{name}" if place else f"parameters.{name}", lacks_value(name, keys))


async def _missing_calendars(engine: Engine, schedules: Mapping[str, Given], beside: set[str | None]) -> list[Fault]:
    wanted = {place: name for place, given in schedules.items() if (name := _name(given.get("calendarName")))}
    there = await engine.store.calendars.named(wanted.values())
    return [
        Fault(f"{place}.calendarName" if place else "calendarName", no_calendar(name))
        for place, name in wanted.items()
        if name not in there and name not in beside
    ]


def _key(given: Given) -> Key | None:
    application, job_name = _name(given.get("application")), _name(given.get("jobName"))
    return (application, job_name) if application and job_name else None


def _texts(given: Any) -> dict[str, str]:
    """Parameters, as far as they can be read: of a value that is no text it is known all the same that it is given."""
    named = given if isinstance(given, dict) else {}
    return {name: value if isinstance(value, str) else "" for name, value in named.items()}


def _name(given: Any) -> str | None:
    return given if isinstance(given, str) and re.fullmatch(NAME_PATTERN, given) else None

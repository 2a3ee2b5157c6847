"""Which job depends on which: the edges, beside the definitions that say them.

Never decides what runs (`dependency.py` does). Invariants: an edge has its dependent job; no edge closes a circle, not
even when two callers add halves of it at once. What depends on a job that was deleted by force keeps its edge.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.errors import Fault
from clickclock.scheduler.errors import lacks_value, no_upstream, takes_value
from clickclock.scheduler.jobs.dependency import PLAIN, Condition, IfSkipped, Key, find_circles, lacking, shown
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import When
from clickclock.scheduler.store.rows import effective_job
from clickclock.scheduler.store.schema import job, job_dependency

KEYS_PER_QUERY = 400
_EDGES_LOCK = 0x636C6B65
"""On PostgreSQL edges are added by one at a time: two halves of a circle are harmless each by itself."""
Edges = dict[Key, dict[Key, Condition]]
_d = job_dependency.c
_below = sa.tuple_(_d.application, _d.job_name)
_above = sa.tuple_(_d.upstream_application, _d.upstream_job_name)


def upstreams_of(connection: sa.Connection, jobs: Collection[Key]) -> dict[Key, list[Key]]:
    """The jobs on which each of these depends; those that depend on none are left out."""
    return {key: list(above) for key, above in conditions_of(connection, jobs).items()}


def dependents_of(connection: sa.Connection, jobs: Collection[Key]) -> dict[Key, list[Key]]:
    """The jobs that depend on each of these; those on which none depends are left out."""
    return {key: list(below) for key, below in conditions_on(connection, jobs).items()}


def conditions_of(connection: sa.Connection, jobs: Collection[Key]) -> Edges:
    """What each of these jobs asks of its upstreams."""
    return _edges(connection, jobs, _below, upwards=True)


def conditions_on(connection: sa.Connection, jobs: Collection[Key]) -> Edges:
    """What dependents ask of each of these jobs."""
    return _edges(connection, jobs, _above, upwards=False)


def _edges(connection: sa.Connection, jobs: Collection[Key], column: sa.ColumnElement[Any], *, upwards: bool) -> Edges:
    found: Edges = defaultdict(dict)
    keys = sorted(set(jobs))
    for start in range(0, len(keys), KEYS_PER_QUERY):
        query = sa.select(job_dependency).where(column.in_(keys[start : start + KEYS_PER_QUERY]))
        for row in connection.execute(query.order_by(*job_dependency.primary_key.columns)):
            below, above = (row.application, row.job_name), (row.upstream_application, row.upstream_job_name)
            condition = _condition(row)
            if upwards:
                found[below][above] = condition
            else:
                found[above][below] = condition
    return dict(found)


def _condition(row: Any) -> Condition:
    if row.awaited_end is None and row.if_skipped is None:
        return PLAIN
    return Condition(When(row.awaited_end or When.SUCCEEDED), row.if_skipped and IfSkipped(row.if_skipped))


def all_below(connection: sa.Connection, root: Key) -> set[Key]:
    """The job itself, and every job that depends on it, however far."""
    seen, fresh = {root}, {root}
    while fresh:
        fresh = {each for below in dependents_of(connection, fresh).values() for each in below} - seen
        seen |= fresh
    return seen


def lock_edges(connection: sa.Connection) -> None:
    """Nobody else adds an edge, or deletes a job, until this transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_EDGES_LOCK)))


def upstream_faults(connection: sa.Connection, jobs: Sequence[Job], places: Sequence[str]) -> list[Fault]:
    """The faults of the upstreams of jobs that are about to be written; `places` are their `dependsOn` fields."""
    new = {each.key: [up.key for up in each.depends_on] for each in jobs if each.depends_on}
    if not new:
        return []
    lock_edges(connection)
    wanted = {key for keys in new.values() for key in keys}
    known = {each.key for each in jobs} | existing(connection, wanted)
    faults = [
        Fault(f"{place}[{number}]", no_upstream(up.key))
        for each, place in zip(jobs, places, strict=True)
        for number, up in enumerate(each.depends_on)
        if up.key not in known
    ]
    for circle in find_circles(_with_all_above(connection, new, {each.key for each in jobs})):
        place = next(place for each, place in zip(jobs, places, strict=True) if each.key in circle)
        sentence = f"Each of these would wait for the one before: {' → '.join(map(shown, circle))}; take one out."
        faults.append(Fault(place, sentence))
    return faults


def lacking_faults(
    connection: sa.Connection, jobs: Sequence[Job], places: Sequence[str], going: Collection[Key]
) -> list[Fault]:
    """Required parameters for which a dependent would get no value from its upstreams, once `jobs` are written.

    Both ways round: of the dependents among `jobs`, and of those of which one of `jobs` is an upstream and is new, or
    declares a parameter no more. `places` are the jobs' `parameters` fields; jobs that are `going` need nothing.
    """
    new = {each.key: each for each in jobs}
    place_of = dict(zip(new, places, strict=False))
    old = _definitions(connection, new)
    lost = {
        key: each
        for key, each in new.items()
        if key not in old or not old[key].parameters.keys() <= each.parameters.keys()
    }
    if not lost.keys() <= new.keys() - old.keys():
        lock_edges(connection)  # whoever adds a dependent meanwhile looks at what is written here
    below = {each for keys in dependents_of(connection, lost).values() for each in keys}.difference(new, going)
    dependents = _definitions(connection, below)
    checked = [each for each in (*jobs, *dependents.values()) if each.depends_on and None in each.parameters.values()]
    above = _definitions(connection, {up.key for each in checked for up in each.depends_on}.difference(new)) | new
    faults: list[Fault] = []
    for each in checked:
        upstreams = [up.key for up in each.depends_on]
        if not above.keys() >= set(upstreams):
            continue  # one of them does not exist, which is a fault of its own
        for name in lacking(each.parameters, [above[key].parameters for key in upstreams]):
            if each.key in new:
                faults.append(Fault(f"{place_of[each.key]}.{name}", lacks_value(name, upstreams)))
            else:
                faults += [
                    Fault(place_of[key], takes_value(name, each.key))
                    for key in upstreams
                    if key in lost and (key not in old or name in old[key].parameters)
                ]
    return faults


def _definitions(connection: sa.Connection, keys: Iterable[Key]) -> dict[Key, Job]:
    listed = sorted(keys)
    found: dict[Key, Job] = {}
    for start in range(0, len(listed), KEYS_PER_QUERY):
        chunk = sa.tuple_(job.c.application, job.c.job_name).in_(listed[start : start + KEYS_PER_QUERY])
        for row in connection.execute(sa.select(job.c.application, job.c.job_name, job.c.definition).where(chunk)):
            found[row.application, row.job_name] = effective_job(row.definition, None)
    return found


def _with_all_above(
    connection: sa.Connection, new: Mapping[Key, Collection[Key]], replaced: Collection[Key]
) -> dict[Key, Collection[Key]]:
    graph: dict[Key, Collection[Key]] = dict(new)
    fresh = {key for keys in new.values() for key in keys}.difference(graph, replaced)
    while fresh:
        above = upstreams_of(connection, fresh)
        graph |= {key: above.get(key, ()) for key in fresh}
        fresh = {key for keys in above.values() for key in keys}.difference(graph, replaced)
    return graph


def existing(connection: sa.Connection, keys: Iterable[Key]) -> set[Key]:
    """Which of these jobs are there."""
    listed = sorted(keys)
    found: set[Key] = set()
    for start in range(0, len(listed), KEYS_PER_QUERY):
        chunk = sa.tuple_(job.c.application, job.c.job_name).in_(listed[start : start + KEYS_PER_QUERY])
        found |= {
            (row.application, row.job_name)
            for row in connection.execute(sa.select(job.c.application, job.c.job_name).where(chunk))
        }
    return found


def write_edges(connection: sa.Connection, jobs: Sequence[Job]) -> None:
    """Add the edges of jobs that have none yet."""
    rows = [
        {
            "application": each.application,
            "job_name": each.job_name,
            "upstream_application": up.application,
            "upstream_job_name": up.job_name,
            "awaited_end": None if up.when is When.SUCCEEDED else up.when,
            "if_skipped": up.if_skipped,
        }
        for each in jobs
        for up in each.depends_on
    ]
    if rows:
        connection.execute(sa.insert(job_dependency), rows)


def remove_edges(connection: sa.Connection, of: Key) -> None:
    """Forget on what a job depends."""
    application, job_name = of
    connection.execute(sa.delete(job_dependency).where(_d.application == application, _d.job_name == job_name))

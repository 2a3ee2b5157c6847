"""Statistics of any window: rollups of its whole hours, and the triggers themselves of the hours that it divides.

Never writes. Invariants: an hour is divided only if every trigger that its rollup counts is still there, so that
nothing is left out in silence; else it is counted whole, where it begins, and reported. The rows that are read are
bounded.

>>> window_of(connection, Scope.of(), since, until, dividing([since])).undivided   # doctest: +SKIP
[]
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import sqlalchemy as sa

from clickclock.scheduler.insight.grid import Figure
from clickclock.scheduler.insight.grid import most as most_of
from clickclock.scheduler.insight.ranking import Job, Outline, Rank, best
from clickclock.scheduler.insight.statistics import Rollup, Scope, total
from clickclock.scheduler.insight.window import HOUR, hour_of
from clickclock.scheduler.store.rows import ENDING_COLUMNS, ending_of, equal
from clickclock.scheduler.store.schema import COUNTED_ROWS, UNLED_GROUP, job, job_trigger, rollup

TRIGGERS_MAX = 20_000
"""Triggers that one answer reads to divide hours: some 100 ms."""
OUTLINES_MAX = 100_000
"""Rollups that one ranking reads: a second, beside the loop."""
NODES_MAX = 1_000
"""Machines and applications on them that one grid reads: more are those of years of pods."""
_JOB, _GROUP, _ALL, _NODE = "job", "group", "all", "node"
_r = rollup.c
_t = job_trigger.c


class Counted(NamedTuple):
    """What happened in a window: rollups with when each begins, oldest first, and the hours that were not divided."""

    rollups: list[tuple[datetime, Rollup]]
    undivided: list[datetime]


def rollups_of(
    connection: sa.Connection, scope: Scope, since: datetime, until: datetime, within: Collection[str] | None = None
) -> list[tuple[datetime, Rollup]]:
    """A scope's rollups of all hours that begin in [since, until), oldest first.

    `within` some applications they are those of the applications themselves, or of the jobs that are in the group now.
    """
    whose = [_r.kind == scope.kind, _r.application == scope.application, _r.name == scope.name]
    if within is not None and scope.kind in {_ALL, _GROUP}:
        in_group = sa.tuple_(_r.application, _r.name).in_(_members(scope.name))
        kinds = [_r.kind == "application"] if scope.kind == _ALL else [_r.kind == _JOB, in_group]
        whose = [*kinds, _r.application.in_(sorted(within))]
    query = sa.select(_r.hour, _r.content).where(*whose, _r.hour >= since, _r.hour < until).order_by(_r.hour)
    found: dict[datetime, Rollup] = {}
    for row in connection.execute(query):
        rollup_ = Rollup.load(row.content)
        if (known := found.setdefault(row.hour, rollup_)) is not rollup_:
            known.merge(rollup_)
    return list(found.items())


def _members(group_name: str) -> sa.Select[tuple[str, str]]:
    return sa.select(job.c.application, job.c.job_name).where(job.c.group_name == group_name)


def window_of(
    connection: sa.Connection,
    scope: Scope,
    since: datetime,
    until: datetime,
    dividing: Sequence[datetime],
    within: Collection[str] | None = None,
) -> Counted:
    """What happened in [since, until), hours divided at the instants `dividing`, the foremost of which matter most."""
    whole = rollups_of(connection, scope, hour_of(since), until, within)
    counts = {hour: sum(each.states.values()) for hour, each in whole}
    cuts: dict[datetime, set[datetime]] = {}
    for instant in dividing:
        if (hour := hour_of(instant)) in counts:
            cuts.setdefault(hour, set()).add(instant)
    divided: dict[datetime, list[tuple[datetime, Rollup]]] = {}
    left = TRIGGERS_MAX
    for hour, instants in cuts.items():
        if counts[hour] <= left:
            left -= counts[hour]
            bounds = [hour, *sorted(instants), hour + HOUR]
            pieces = _pieces(connection, scope, bounds, counts[hour], (since, until), within)
            if pieces is not None:
                divided[hour] = pieces
    rollups = [piece for hour, each in whole for piece in divided.get(hour, [(hour, each)])]
    return Counted(rollups, sorted(cuts.keys() - divided.keys()))


def _pieces(
    connection: sa.Connection,
    scope: Scope,
    bounds: list[datetime],
    expected: int,
    window: tuple[datetime, datetime],
    within: Collection[str] | None,
) -> list[tuple[datetime, Rollup]] | None:
    """The parts of one hour that are in the window, from its triggers; None if some of them are gone."""
    # Others may be counted between the two questions (on PostgreSQL): never fewer than `expected`.
    query = _ended_in(scope.kind)
    if within is not None and scope.kind in {_ALL, _GROUP}:
        # A group's own, as its rollups are then: of the jobs that are in it now.
        query = _ended_in(_ALL).where(_t.application.concat("").in_(sorted(within)))
        if scope.kind == _GROUP:
            query = query.where(sa.tuple_(_t.application, _t.job_name).in_(_members(scope.name)))
    rows = connection.execute(query, {**scope._asdict(), "since": bounds[0], "until": bounds[-1]}).all()
    if sum(row.skipped_count or 1 for row in rows) < expected:
        return None
    pieces = []
    for start, end in pairwise(bounds):
        if window[0] <= start < window[1]:
            piece = Rollup()
            for row in rows:
                if start <= row.finished_at < end:
                    piece.add(ending_of(row))
            if piece.states:
                pieces.append((start, piece))
    return pieces


@lru_cache
def _ended_in(kind: str) -> sa.Select[Any]:
    """The counted triggers of a scope of a kind that ended in a time."""
    # By when they ended: SQLite would take a job's own index, and read all that it ever did.
    of_application = _t.application.concat("") == sa.bindparam("application")
    owners = {
        _JOB: (of_application, _t.job_name.concat("") == sa.bindparam("name")),
        "application": (of_application,),
        _GROUP: (sa.bindparam("name") == UNLED_GROUP,),
        _ALL: (),
    }
    ended = (_t.finished_at >= sa.bindparam("since"), _t.finished_at < sa.bindparam("until"))
    return sa.select(*ENDING_COLUMNS).where(COUNTED_ROWS, *ended, *owners[kind]).limit(2 * TRIGGERS_MAX)


def outlines_of(
    connection: sa.Connection, filters: Mapping[str, Any], since: datetime, until: datetime
) -> dict[Job, Outline] | None:
    """An outline of each job there is (columns equal to `filters`), of hours that begin in the window.

    None if that would be more than `OUTLINES_MAX` rollups.
    """
    # Not as a join, which SQLite would begin with the rollups: it would read those of 400 days.
    wanted = sa.select(job.c.application, job.c.job_name).where(*equal(job, filters))
    query = (
        sa.select(_r.application, _r.name, _r.content)
        .where(_r.kind == _JOB, sa.tuple_(_r.application, _r.name).in_(wanted), _r.hour >= since, _r.hour < until)
        .limit(OUTLINES_MAX + 1)
    )  # fmt: skip
    outlines: dict[Job, Outline] = {}
    for number, (application, name, content) in enumerate(connection.execute(query)):
        if number == OUTLINES_MAX:
            return None
        outline = Outline.load(content)
        if (known := outlines.setdefault((application, name), outline)) is not outline:
            known.merge(outline)
    return outlines


def ranking_of(
    connection: sa.Connection, rank: Rank, filters: Mapping[str, Any], since: datetime, until: datetime, most: int
) -> list[tuple[Job, Rollup]] | None:
    """The first `most` jobs of a ranking, the worst first, each with its sums; None if there are too many rollups."""
    outlines = outlines_of(connection, filters, since, until)
    if outlines is None:
        return None
    return [
        (key, total(each for _, each in rollups_of(connection, Scope.of(*key), since, until)))
        for key in best(rank, outlines, most)
    ]


def grid_of(
    connection: sa.Connection, figure: Figure, filters: Mapping[str, Any], since: datetime, until: datetime, limit: int
) -> list[tuple[Job, list[tuple[datetime, Rollup]]]] | None:
    """The `limit` jobs with most of a figure, each with its hours; None if there are too many rollups."""
    outlines = outlines_of(connection, filters, since, until)
    if outlines is None:
        return None
    return [(key, rollups_of(connection, Scope.of(*key), since, until)) for key in most_of(figure, outlines, limit)]


def nodes_of(
    connection: sa.Connection, applications: Collection[str] | None, since: datetime, until: datetime
) -> dict[str, list[tuple[datetime, Rollup]]] | None:
    """Each machine with its hours that begin in the window, of all applications or of these.

    None if there are too many rollups.
    """
    on = _machines(connection)
    wanted = [each for each in on if applications is None or each[0] in applications]
    if len(on) > NODES_MAX:
        return None
    query = (
        sa.select(_r.name, _r.hour, _r.content)
        .where(_r.kind == _NODE, sa.tuple_(_r.application, _r.name).in_(wanted), _r.hour >= since, _r.hour < until)
        .limit(OUTLINES_MAX + 1)
    )  # fmt: skip
    found: dict[str, dict[datetime, Rollup]] = {}
    for number, (node, hour, content) in enumerate(connection.execute(query)):
        if number == OUTLINES_MAX:
            return None
        found.setdefault(node, {}).setdefault(hour, Rollup()).merge(Rollup.load(content))
    return {node: list(hours.items()) for node, hours in found.items()}


def _machines(connection: sa.Connection) -> list[tuple[str, str]]:
    """Applications and machines that they ran on: one step of the index for each, whatever the number of hours."""
    found: list[tuple[str, str]] = []
    place = sa.tuple_(_r.application, _r.name)
    while len(found) <= NODES_MAX:
        query = sa.select(_r.application, _r.name).where(_r.kind == _NODE).order_by(_r.application, _r.name).limit(1)
        row = connection.execute(query.where(place > found[-1]) if found else query).one_or_none()
        if row is None:
            break
        found.append((row.application, row.name))
    return found


def ends_of(
    connection: sa.Connection, since: datetime, until: datetime, limit: int, within: Collection[str] | None = None
) -> list[tuple[datetime, str, int]]:
    """When counted triggers ended in [since, until), how, and how many times each stands for, newest first."""
    query = (
        sa.select(_t.finished_at, _t.state, sa.func.coalesce(_t.skipped_count, 1))
        .where(COUNTED_ROWS, _t.finished_at >= since, _t.finished_at < until)
        .order_by(_t.finished_at.desc())
        .limit(limit)
    )
    if within is not None:
        query = query.where(_t.application.concat("").in_(sorted(within)))
    return [(row[0], row[1], row[2]) for row in connection.execute(query)]

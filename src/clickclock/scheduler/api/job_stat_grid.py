"""`/schedulerService/jobStatGrid`, `nodeStatGrid` and `triggerCounts`: jobs and machines by hour, runs by minute.

Parse, call, render. Never reads history: the rollups have the grid, and the counts read a bounded number of ends.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid, Malformed
from clickclock.foundation.instant import shifted
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record, rfc3339
from clickclock.foundation.zone import zone_named
from clickclock.scheduler.api.job_stat import Width
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import seen_by
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.insight.grid import Figure, columns, minutes, most, row
from clickclock.scheduler.insight.statistics import KEPT, total
from clickclock.scheduler.insight.summary import grouped
from clickclock.scheduler.insight.window import Days, Hours, hour_of
from clickclock.scheduler.jobs.trigger import State

WINDOW = timedelta(days=1)
WINDOW_MAX_DAYS = {Width.HOUR: 14, Width.DAY: 92}
"""So that no answer has more than some 340 columns."""
COUNTS_WINDOW = timedelta(hours=1)
COUNTS_WINDOW_MAX = timedelta(days=1)
ENDS_MAX = 50_000


class GridFilters(Query):
    """An application, a window, and a figure."""

    application: Word | None = Field(None, description="What ran for this application.", examples=["shop"])
    figure: Figure = Field(Figure.LAG_P95, description="What each cell has.", examples=["lagP95"])
    since: Instant | None = Field(
        None,
        alias="from",
        description="Beginning of the window, taken back to the full hour or day; a day before `to` if not given.",
        examples=["2026-11-19T10:00:00.000Z"],
    )
    until: Instant | None = Field(
        None,
        alias="to",
        description="End of the window, taken forth to the full hour or day; now if not given.",
        examples=["2026-11-20T10:00:00.000Z"],
    )
    bucket: Width = Field(Width.HOUR, description="Width of the columns: hours of UTC, or days.", examples=["hour"])
    time_zone: Word = Field("UTC", description="IANA time zone of the days.", examples=["Europe/Berlin"])
    limit: int = Field(50, ge=1, le=100, description="At most this many rows.", examples=[50])

    def window(self, now: datetime) -> tuple[datetime, datetime]:
        """Beginning and end, as asked for."""
        until = self.until or now
        return self.since or shifted(until, -WINDOW), until


class JobGridFilters(GridFilters):
    """And which jobs."""

    group_name: Word | None = Field(None, description="Jobs that are in this group now.", examples=["exports"])


class GridRow(Record):
    """One job's figures."""

    application: str = Field(description="Its application.", examples=["shop"])
    job_name: str = Field(description="Its name.", examples=["nightly-export"])
    values: list[float | None] = Field(
        description="One for each column; null where nothing ended, or nothing was measured.", examples=[[4.0, None]]
    )


class JobStatGrid(Record):
    """One figure of many jobs."""

    figure: Figure = Field(description="What each cell has.", examples=["lagP95"])
    starts: list[Instant] = Field(
        description="When each column begins, oldest first.", examples=[["2026-11-20T09:00:00.000Z"]]
    )
    rows: list[GridRow] = Field(description="The jobs, those with most of it first.")


class NodeGridRow(Record):
    """One machine's figures."""

    node: str = Field(description="The machine that ran the triggers.", examples=["host-1"])
    values: list[float | None] = Field(
        description="One for each column; null where nothing ended, or nothing was measured.", examples=[[4.0, None]]
    )


class NodeStatGrid(Record):
    """One figure of many machines."""

    figure: Figure = Field(description="What each cell has.", examples=["lagP95"])
    starts: list[Instant] = Field(
        description="When each column begins, oldest first.", examples=[["2026-11-20T09:00:00.000Z"]]
    )
    rows: list[NodeGridRow] = Field(description="The machines, those with most of it first.")


class CountFilters(Query):
    """Of when."""

    since: Instant | None = Field(
        None,
        alias="from",
        description="Beginning of the window, taken back to the full minute; an hour before `to` if not given.",
        examples=["2026-11-20T09:00:00.000Z"],
    )
    until: Instant | None = Field(
        None, alias="to", description="End of the window; now if not given.", examples=["2026-11-20T10:00:00.000Z"]
    )

    def window(self, now: datetime) -> tuple[datetime, datetime]:
        """Beginning and end, as asked for."""
        until = self.until or now
        return (self.since or shifted(until, -COUNTS_WINDOW)).replace(second=0, microsecond=0), until


class MinuteCount(Record):
    """What ended in one minute."""

    start: Instant = Field(alias="from", description="Its beginning.", examples=["2026-11-20T09:41:00.000Z"])
    states: dict[State, int] = Field(
        description="Triggers, and skipped times, by final state.", examples=[{"succeeded": 12, "failed": 1}]
    )


class TriggerCounts(Record):
    """What ended, by minute."""

    since: Instant = Field(
        alias="from",
        description="From where on all is counted: as asked for, or later where more than 50,000 ended.",
        examples=["2026-11-20T09:00:00.000Z"],
    )
    until: Instant = Field(alias="to", description="Its end, not in it.", examples=["2026-11-20T10:00:00.000Z"])
    minutes: list[MinuteCount] = Field(description="The minutes in which anything ended, oldest first.")


def check(wanted: GridFilters, now: datetime) -> Sequence[Fault]:
    """The faults of the filters together."""
    faults = []
    try:
        zone_named(wanted.time_zone)
    except Invalid as invalid:
        faults += invalid.faults
    since, until = wanted.window(now)
    most = WINDOW_MAX_DAYS[wanted.bucket]
    if since < now - KEPT:
        faults.append(Fault("from", f"Statistics are kept for {KEPT.days} days; give a time after that."))
    if until <= since:
        faults.append(Fault("to", f"This is not after from, {rfc3339(since)}; give a later time, or an earlier from."))
    elif until - since > timedelta(days=most):
        faults.append(Fault("to", f"With bucket={wanted.bucket} a grid has at most {most} days; make it shorter."))
    return faults


def check_counts(wanted: CountFilters, now: datetime) -> Sequence[Fault]:
    """The faults of the window."""
    since, until = wanted.window(now)
    if until <= since:
        return [Fault("to", f"This is not after from, {rfc3339(since)}; give a later time, or an earlier from.")]
    if until - since > COUNTS_WINDOW_MAX + timedelta(minutes=1):
        return [Fault("to", "A window has at most a day by the minute; make it shorter, or ask GET jobStat.")]
    return []


def _columns(wanted: GridFilters, now: datetime) -> tuple[Hours | Days, list[datetime], tuple[datetime, datetime]]:
    """The kind of the columns, when each begins, and the beginning and end of all of them."""
    since, until = wanted.window(now)
    spans = Hours() if wanted.bucket is Width.HOUR else Days(zone_named(wanted.time_zone))
    starts = columns(spans.start_of, spans.end_of, since, until)
    return spans, starts, (hour_of(starts[0]), spans.end_of(starts[-1]))


def _too_many() -> Malformed:
    sentence = "There are too many hours to read; make the window shorter, or name an application."
    return Malformed(faults=[Fault("from", sentence)])


async def read(call: Call[JobGridFilters]) -> Response:
    """GET: a row for each job."""
    wanted = call.filters
    spans, starts, window = _columns(wanted, call.engine.clock.now())
    given = {"application": wanted.application, "group_name": wanted.group_name}
    filters = {name: value for name, value in given.items() if value is not None}
    seen = seen_by(filters, call.seen(Permission.STATISTICS_READ))
    found = [] if seen is None else await call.engine.store.statistics.grid(wanted.figure, seen, *window, wanted.limit)
    if found is None:
        raise _too_many()
    rows = [
        GridRow.trusted(
            application=application,
            job_name=job_name,
            values=row(wanted.figure, starts, grouped(spans, rollups)),
        )
        for (application, job_name), rollups in found
    ]
    return success(jobStatGrid=JobStatGrid.trusted(figure=wanted.figure, starts=starts, rows=rows))


async def read_nodes(call: Call[GridFilters]) -> Response:
    """GET: a row for each machine."""
    wanted = call.filters
    spans, starts, window = _columns(wanted, call.engine.clock.now())
    filters = {} if wanted.application is None else {"application": wanted.application}
    seen = seen_by(filters, call.seen(Permission.STATISTICS_READ))
    of = None if seen is None else seen.get("application")
    applications = {of} if isinstance(of, str) else of
    found = {} if seen is None else await call.engine.store.statistics.nodes(applications, *window)
    if found is None:
        raise _too_many()
    chosen = most(
        wanted.figure, {node: total(each for _, each in hours) for node, hours in found.items()}, wanted.limit
    )
    rows = [
        NodeGridRow.trusted(node=node, values=row(wanted.figure, starts, grouped(spans, found[node])))
        for node in chosen
    ]
    return success(nodeStatGrid=NodeStatGrid.trusted(figure=wanted.figure, starts=starts, rows=rows))


async def count(call: Call[CountFilters]) -> Response:
    """GET: by minute."""
    since, until = call.filters.window(call.engine.clock.now())
    seen = call.seen(Permission.STATISTICS_READ)
    ends = await call.engine.store.statistics.ends(since, until, ENDS_MAX + 1, seen)
    if len(ends) > ENDS_MAX:
        # Newest first: of the minute in which there were too many, some are missing.
        since = ends[-1][0].replace(second=0, microsecond=0) + timedelta(minutes=1)
    told = [MinuteCount.trusted(start=start, states=states) for start, states in minutes(ends) if start >= since]
    return success(triggerCounts=TriggerCounts.trusted(since=since, until=until, minutes=told))


GRID_OPERATIONS = (
    Operation(
        "GET",
        "Read one figure of many jobs by hour or day",
        Permission.STATISTICS_READ,
        read,
        JobGridFilters,
        {200: {"jobStatGrid": JobStatGrid}},
        check=check,
        description="A heat map: jobs as rows, hours or days as columns, for triggers that ended in them. Rows are "
        "chosen by the mean lag or duration, or by the number, over the window. At most 14 days by hour and 92 by day.",
    ),
)
NODE_OPERATIONS = (
    Operation(
        "GET",
        "Read one figure of many machines by hour or day",
        Permission.STATISTICS_READ,
        read_nodes,
        GridFilters,
        {200: {"nodeStatGrid": NodeStatGrid}},
        check=check,
        description="A heat map: machines as rows, hours or days as columns, for triggers that ended in them. A "
        "trigger counts for the machine of its last attempt, and its lag if that was its only one. At most 14 days by "
        "hour and 92 by day.",
    ),
)
COUNT_OPERATIONS = (
    Operation(
        "GET",
        "Count what ended by minute",
        Permission.STATISTICS_READ,
        count,
        CountFilters,
        {200: {"triggerCounts": TriggerCounts}},
        check=check_counts,
        description="All triggers that ended in the window, at most a day, by minute and final state. `GET jobStat` "
        "has longer windows by hour and day, with durations and lags.",
    ),
)

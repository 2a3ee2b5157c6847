"""`/schedulerService/search`: what has a name like this.

Parse, call, render.
"""

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Record
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.store import NameKind


class SearchFilters(Query):
    """The search."""

    q: Word = Field(min_length=1, max_length=128, description="A part of a name, in any case.", examples=["export"])
    limit: int = Field(20, ge=1, le=100, description="At most this many of each kind.", examples=[20])


class Match(Record):
    """Something with such a name."""

    kind: NameKind = Field(description="What it is.", examples=["job"])
    name: str = Field(description="Its name; of a trigger, its id.", examples=["nightly-export"])
    application: str | None = Field(description="The application of its job, if it has one.", examples=["shop"])
    job_name: str | None = Field(description="The job that it is, or belongs to.", examples=["nightly-export"])
    schedule_id: str | None = Field(description="The id of a schedule.", examples=[EXAMPLE_ID])


async def search(call: Call[SearchFilters]) -> Response:
    """GET: kind by kind."""
    found = await call.engine.store.overview.named(call.filters.q, call.filters.limit, call.seen(Permission.JOB_READ))
    matches = []
    for kind, row in found:
        its_own = row._mapping
        job_name = row.name if kind is NameKind.JOB else its_own.get("job_name")
        application = row.name if kind is NameKind.APPLICATION else its_own.get("application")
        matches.append(
            Match.trusted(
                kind=kind,
                name=row.name,
                application=application,
                job_name=job_name,
                schedule_id=its_own.get("schedule_id"),
            )
        )
    return success(matches=matches)


OPERATIONS = (
    Operation(
        "GET",
        "Search names",
        Permission.JOB_READ,
        search,
        SearchFilters,
        {200: {"matches": list[Match]}},
        description="The trigger of that id, and then applications, groups, jobs, schedules and calendars with `q` in "
        "their names. Names that begin with `q` come first within their kind.",
    ),
)

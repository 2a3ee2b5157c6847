"""`/schedulerService/zoneChanges`: when a zone's clocks are changed in a year, and what they show.

Parse, call, render. Never reads the store.
"""

from datetime import UTC, datetime

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Invalid, Malformed
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record
from clickclock.foundation.zone import zone_named
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.times.wall_clock import TICK, seams


class ZoneFilters(Query):
    """Which zone, and which year."""

    time_zone: Word = Field(description="IANA time zone.", examples=["Europe/Berlin"])
    year: int | None = Field(
        None, ge=1901, le=2999, description="The year, on the clocks of UTC; this one if not given.", examples=[2027]
    )


class ZoneChange(Record):
    """One jump of a zone's clocks."""

    at: Instant = Field(description="When it is.", examples=["2027-03-28T01:00:00.000Z"])
    local_before: str = Field(
        description="What the clocks would show then, had they not been changed.", examples=["2027-03-28T02:00:00"]
    )
    local_after: str = Field(description="What they show instead.", examples=["2027-03-28T03:00:00"])
    minutes: float = Field(
        description="How far they jump: so much local time never comes if positive, and comes twice if negative.",
        examples=[60.0],
    )


async def find(call: Call[ZoneFilters]) -> Response:
    """GET: as they come."""
    try:
        zone = zone_named(call.filters.time_zone)
    except Invalid as invalid:
        raise Malformed(faults=invalid.faults) from invalid
    year = call.filters.year or call.engine.clock.now().year
    begins, ends = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    changes = [
        ZoneChange(
            at=seam.at,
            local_before=seam.due.isoformat(),
            local_after=seam.shows.isoformat(),
            minutes=(seam.shows - seam.due).total_seconds() / 60,
        )
        for seam in seams(zone, begins - TICK, ends - TICK)
    ]
    return success(zoneChanges=changes)


OPERATIONS = (
    Operation(
        "GET",
        "List the clock changes of a zone in a year",
        Permission.CALENDAR_READ,
        find,
        ZoneFilters,
        {200: {"zoneChanges": list[ZoneChange]}},
        description="Each jump of a zone's clocks in a year, by the time zone data of the service, which its schedules "
        "go by.",
    ),
)

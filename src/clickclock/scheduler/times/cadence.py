"""A timetable as templates ask about it: its zone, the time before, and the time after.

Never computes a time itself: `calendar.py` goes forward, and bisection finds what lies before. Invariants: the time
before is the last earlier one that is not left out, whether or not it ran; `startAt` and `endAt` do not bound it, so
that a schedule's first run has a time before it, too.

>>> from clickclock.scheduler.times.calendar import ScheduleKind, timetable
>>> now = datetime(2026, 1, 1, tzinfo=UTC)
>>> daily = timetable(kind=ScheduleKind.CRON, expression="30 2 * * 1-5", time_zone="UTC", anchor=now)
>>> fires_before(daily, datetime(2026, 11, 23, 2, 30, tzinfo=UTC)).isoformat()
'2026-11-20T02:30:00+00:00'
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from msgspec.structs import replace

from clickclock.foundation.instant import MILLISECOND
from clickclock.scheduler.jobs.template_values import NO_SCHEDULE, Cadence
from clickclock.scheduler.times.calendar import FIRST_YEAR, Every, Timetable

_FIRST_LOOK = timedelta(minutes=1)
_BEGINNING = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
_PERIODS_BACK = 1000
"""How far an interval is thought to have gone on before its first time: further than days in a row are left out."""


def cadence_of(tables: Sequence[Timetable]) -> Cadence:
    """What templates may ask, given the timetables of the one schedule of a run, or all schedules of its job."""
    if not tables:
        return NO_SCHEDULE
    zones = {each.zone for each in tables}
    if len(tables) == 1:
        return Cadence(tables[0].zone, partial(_around, _unbounded(tables[0])))
    if len(zones) == 1:
        return Cadence(zones.pop(), lack="the job has several schedules, and the run is of none of them")
    return Cadence(None, lack="the job has schedules in several zones, and the run is of none of them")


def _around(times: Timetable, instant: datetime) -> tuple[datetime | None, datetime | None]:
    following = times.fires_after(instant)
    return fires_before(times, instant), None if following is None else following.at


def fires_before(times: Timetable, instant: datetime) -> datetime | None:
    """The last time before `instant` (aware) that is not left out, in UTC; None if there is none."""
    look = _FIRST_LOOK
    found: datetime | None = None
    while found is None and instant - look > _BEGINNING:
        found = _first_within(times, instant - look, instant)
        look *= 2
    if found is None:
        return None
    beyond = instant
    while beyond - found > MILLISECOND:  # a time stands on a whole millisecond: none can be between these two
        middle = found + (beyond - found) / 2
        later = _first_within(times, middle, instant)
        if later is None:
            beyond = middle
        else:
            found = later
    return found


def _first_within(times: Timetable, after: datetime, before: datetime) -> datetime | None:
    occurrence = times.fires_after(after)
    return occurrence.at if occurrence is not None and occurrence.at < before else None


def _unbounded(times: Timetable) -> Timetable:
    source = times.source
    if isinstance(source, Every):
        room = (source.first - _BEGINNING) // source.period
        source = replace(source, first=source.first - max(0, min(_PERIODS_BACK, room)) * source.period)
    return replace(times, source=source, start_at=None, end_at=None)

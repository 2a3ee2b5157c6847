"""A forecast: the times at which schedules will be due, in the order in which they come.

Never decides what becomes of a time, never reads a clock, never writes. Invariants: times come in order, so whoever
stops at one has all before it; a schedule is looked at no sooner than its first time comes; daylight saving, calendars
and jitter are in it.

>>> from datetime import UTC
>>> hourly = Schedule(application="shop", job_name="export", expression="0 * * * *")
>>> start = datetime(2026, 11, 20, tzinfo=UTC)
>>> found = foresee([Coming("s", "s", hourly, None, start, start, start)], start, start + timedelta(hours=3))
>>> [f"{each.due:%H:%M}" for each in found if each is not None]
['01:00', '02:00']
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import msgspec

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.business_days import Days
from clickclock.scheduler.times.calendar import Occurrence
from clickclock.scheduler.times.schedule import Schedule, due_at


class Coming(msgspec.Struct, frozen=True):
    """A schedule that has times to come. `skip_reason`: all of them are skipped as things stand."""

    schedule_id: str
    schedule_name: str
    schedule: Schedule
    days: Days | None
    anchor: datetime
    high_water: datetime
    next_due: datetime
    skip_reason: SkipReason | None = None


class Foreseen(NamedTuple):
    """One time: when it is due, jitter included, and its place in the timetable of the `number`-th schedule."""

    due: datetime
    number: int
    occurrence: Occurrence


class ForecastWidth(StrEnum):
    """How wide a bucket is."""

    MINUTE = "minute"
    HOUR = "hour"

    def start_of(self, instant: datetime) -> datetime:
        """When the bucket of an instant begins."""
        return instant.replace(minute=instant.minute if self is ForecastWidth.MINUTE else 0, second=0, microsecond=0)


def foresee(coming: Sequence[Coming], since: datetime, until: datetime) -> Iterator[Foreseen | None]:
    """All times in [since, until), in order. None is a step of work that found no time.

    A schedule whose times are all skipped has none here, nor has one that cannot be read.
    """
    walks: dict[int, Iterator[Foreseen]] = {}
    heap = [
        (max(each.next_due, since), number)
        for number, each in enumerate(coming)
        if each.skip_reason is None and each.next_due < until
    ]
    heapq.heapify(heap)
    ready: dict[int, Foreseen] = {}
    while heap:
        _, number = heap[0]
        found = ready.pop(number, None)
        walk = walks.get(number) or walks.setdefault(number, _times(number, coming[number], since))
        following = next(walk, None)
        if following is None or following.due >= until:
            heapq.heappop(heap)
        else:
            ready[number] = following
            heapq.heapreplace(heap, (following.due, number))
        yield found


def _times(number: int, of: Coming, since: datetime) -> Iterator[Foreseen]:
    """The times of one schedule that are due at `since` or later."""
    try:
        times = of.schedule.timetable(of.anchor, of.days)
    except Invalid:  # its zone is gone from this machine: the planner says so
        return
    nearest = since - timedelta(seconds=of.schedule.jitter_seconds, milliseconds=1)
    occurrence = times.after(max(of.high_water, nearest))
    while occurrence is not None:
        due = due_at(of.schedule, of.schedule_id, times, occurrence.at)
        if due >= since:
            yield Foreseen(due, number, occurrence)
        occurrence = times.after(occurrence.at)


def summed(dues: Iterable[datetime], width: ForecastWidth) -> list[tuple[datetime, int]]:
    """How many there are in each bucket that has any, oldest first."""
    return sorted(Counter(map(width.start_of, dues)).items())

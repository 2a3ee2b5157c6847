"""Windows of time: the hours and days that they are made of, and the instants that divide an hour.

Never reads a clock or a row. Invariants: days follow each other without a gap, and are 23 or 25 hours long where the
clock is changed; an hour is one of UTC, so that an instant is in the same hour everywhere.

>>> berlin = Days(ZoneInfo("Europe/Berlin"))
>>> start = berlin.start_of(datetime(2026, 3, 29, 12, tzinfo=UTC))
>>> berlin.end_of(start) - start == timedelta(hours=23)
True
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from clickclock.scheduler.times.wall_clock import first_moment

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def hour_of(instant: datetime) -> datetime:
    """The beginning of the hour of UTC that an instant is in."""
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


class Hours:
    """The hours of UTC."""

    def start_of(self, instant: datetime) -> datetime:
        """When the hour of an instant begins."""
        return hour_of(instant)

    def end_of(self, start: datetime) -> datetime:
        """When the hour that begins at `start` ends."""
        return start + HOUR


class Days:
    """The days of a zone, each from its first moment to that of the next."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self._starts: dict[date, datetime] = {}

    def start_of(self, instant: datetime) -> datetime:
        """When the day of an instant begins."""
        day = instant.astimezone(self._zone).date()
        # Where the clock is put back just after midnight, the evening comes again: in the day that has begun.
        after = self._start(day + DAY)
        return after if instant >= after else self._start(day)

    def end_of(self, start: datetime) -> datetime:
        """When the day that begins at `start` ends."""
        return self._start(start.astimezone(self._zone).date() + DAY)

    def starting_in(self, since: datetime, until: datetime) -> list[datetime]:
        """The beginnings of all days that begin in (since, until)."""
        starts = []
        start = self.end_of(self.start_of(since))
        while start < until:
            starts.append(start)
            start = self.end_of(start)
        return starts

    def _start(self, day: date) -> datetime:
        if (start := self._starts.get(day)) is None:
            start = self._starts[day] = first_moment(self._zone, day)
        return start


def dividing(instants: Iterable[datetime]) -> list[datetime]:
    """Those that do not fall on a full hour of UTC, and so divide one; each once, in the order given."""
    return list(dict.fromkeys(each for each in instants if each != hour_of(each)))

"""What a zone's clocks show, and what that means for a job that is due at a time on the wall.

Never asks what time it is now, and never reads a cron line. This is the only place that knows daylight saving.
A zone's clock jumps at a *seam*: forward over a gap (times that never come) or back over a fold (times that come
twice). A jump shorter than `CLOCK_CHANGE` is daylight saving and the two policies rule; a longer one is a plain
change of the clock (Samoa's lost Friday): what is not shown does not run, and what is shown twice runs twice.
Invariants: `after` is strictly later than what it was given, and is the earliest such moment from wherever it is
asked; several times in one gap are one moment.

>>> noon = WallClock(Once(datetime(2026, 7, 1, 12)), ZoneInfo("Europe/London"))
>>> noon.after(datetime(2026, 1, 1, tzinfo=UTC)).at.isoformat()
'2026-07-01T11:00:00+00:00'
"""

from bisect import bisect_left
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo

import msgspec

CLOCK_CHANGE = timedelta(hours=3)
"""Jumps of this size and more are no daylight saving: the largest of those is two hours (Debian cron's limit too)."""

TICK = timedelta(microseconds=1)
"""The smallest step of a datetime: `x - TICK` is the last moment before `x`."""

_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)


class GapPolicy(StrEnum):
    """What becomes of a fixed time that daylight saving jumps over."""

    FIRE_AFTER_GAP = "fireAfterGap"
    SKIP = "skip"


class FoldPolicy(StrEnum):
    """Which of two equal fixed times runs when the clock is put back."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class WallTimes(Protocol):
    """A set of wall-clock times, all naive. `fixed` times of day are subject to the policies, others are not."""

    @property
    def fixed(self) -> bool: ...

    def after(self, wall: datetime) -> datetime | None:
        """The first one strictly after `wall`, or None."""
        ...


class Once(msgspec.Struct, frozen=True):
    """The wall-clock time of something that happens on one day only."""

    wall: datetime

    @property
    def fixed(self) -> bool:
        return True

    def after(self, wall: datetime) -> datetime | None:
        return self.wall if self.wall > wall else None


class Moment(NamedTuple):
    """When something is due (aware UTC), what daylight saving did to it, and whether that means it is left out."""

    at: datetime
    note: str | None = None
    skipped: bool = False


class Seam(msgspec.Struct, frozen=True):
    """A jump of a zone's clock: at `at` (aware UTC) it shows `shows`, where it would have shown `due` (both naive).

    Walls in [due, shows) never come, or, if `shows` is the earlier one, walls in [shows, due) come twice.
    """

    at: datetime
    due: datetime
    shows: datetime

    @property
    def is_clock_change(self) -> bool:
        return abs(self.shows - self.due) >= CLOCK_CHANGE

    @property
    def end(self) -> datetime:
        """The first wall-clock time after the gap or fold."""
        return max(self.due, self.shows)


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).replace(tzinfo=UTC) - instant


def seam_between(zone: ZoneInfo, earlier: datetime, later: datetime) -> Seam:
    """The jump in (`earlier`, `later`], two instants with different offsets; by bisection, to the second."""
    start = earlier.astimezone(UTC).replace(microsecond=0)
    before = _offset(zone, start)
    length_s = -((start - later) // _SECOND)

    def has_jumped(seconds: int) -> bool:
        return _offset(zone, start + timedelta(seconds=seconds)) != before

    at = start + timedelta(seconds=bisect_left(range(length_s), True, key=has_jumped))
    return Seam(at=at, due=(at + before).replace(tzinfo=None), shows=at.astimezone(zone).replace(tzinfo=None, fold=0))


def seams(zone: ZoneInfo, since: datetime, until: datetime) -> list[Seam]:
    """The jumps of a zone's clock in (`since`, `until`], two aware instants; of several in one day, their sum."""
    found = []
    while since < until:
        following = min(since + _DAY, until)
        if _offset(zone, since) != _offset(zone, following):
            found.append(seam_between(zone, since, following))
        since = following
    return found


def _readings(zone: ZoneInfo, wall: datetime) -> tuple[datetime, datetime]:
    """The instants at which clocks show `wall`: equal as a rule, rising in a fold, falling in a gap (PEP 495)."""
    return (
        wall.replace(tzinfo=zone, fold=0).astimezone(UTC),
        wall.replace(tzinfo=zone, fold=1).astimezone(UTC),
    )


def first_moment(zone: ZoneInfo, day: date) -> datetime:
    """When a day begins on a zone's clocks (aware UTC): at midnight, or after a jump over it."""
    first, second = _readings(zone, datetime.combine(day, time.min))
    return seam_between(zone, second, first).at if second < first else first


def _text(wall: datetime) -> str:
    return f"{wall:%H:%M:%S}" if wall.second else f"{wall:%H:%M}"


class WallClock(msgspec.Struct, frozen=True):
    """Wall-clock times, read on the clocks of one zone."""

    times: WallTimes
    zone: ZoneInfo
    gap: GapPolicy = GapPolicy.FIRE_AFTER_GAP
    fold: FoldPolicy = FoldPolicy.FIRST

    def after(self, instant: datetime) -> Moment | None:
        """The first moment strictly after `instant` (aware), left-out ones included."""
        shown = instant.astimezone(self.zone)
        moment = self._search(shown.replace(tzinfo=None, fold=0), instant)
        comes_again = shown.replace(fold=1).astimezone(UTC)
        if comes_again > instant:
            # In the first pass of a fold: what the clock has shown already, it will show again.
            seam = seam_between(self.zone, instant, comes_again)
            repeated = self._search(seam.shows - TICK, instant)
            if moment is None or (repeated is not None and repeated.at < moment.at):
                return repeated
        return moment

    def _search(self, wall: datetime, instant: datetime) -> Moment | None:
        while (due := self.times.after(wall)) is not None:
            first, second = _readings(self.zone, due)
            if first == second:
                return Moment(first)
            seam = seam_between(self.zone, min(first, second), max(first, second))
            moment = self._in_gap(due, seam) if second < first else self._in_fold(due, first, second, seam, instant)
            if moment is not None:
                return moment
            wall = seam.end - TICK
        return None

    def _in_gap(self, due: datetime, seam: Seam) -> Moment | None:
        if not self.times.fixed or seam.is_clock_change:
            return None
        note = (
            f"{_text(due)} does not exist on {due:%Y-%m-%d}, when the clock goes from {_text(seam.due)} "
            f"to {_text(seam.shows)}: "
        )
        if self.gap is GapPolicy.FIRE_AFTER_GAP:
            return Moment(seam.at, note + "it runs at the first instant after the gap.")
        # A time of the schedule's own may lie at the very end of the gap; that one runs.
        is_due_anyway = self.times.after(seam.shows - TICK) == seam.shows
        return Moment(seam.at, note + "it is left out, as dstGapPolicy says.", skipped=not is_due_anyway)

    def _in_fold(
        self, due: datetime, first: datetime, second: datetime, seam: Seam, instant: datetime
    ) -> Moment | None:
        """The first reading after `instant` that is wanted. None: the rest of the fold has nothing to give."""
        ruled = self.times.fixed and not seam.is_clock_change
        note = f"{_text(due)} comes twice on {due:%Y-%m-%d}: this is the " if ruled else None
        if first > instant and not (ruled and self.fold is FoldPolicy.SECOND):
            return Moment(first, note and note + "first.")
        if second > instant and not (ruled and self.fold is FoldPolicy.FIRST):
            return Moment(second, note and note + "second.")
        return None

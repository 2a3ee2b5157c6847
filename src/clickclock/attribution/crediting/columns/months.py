"""Months and days of instants, as the clocks of a time zone show them: many instants at once.

Never asks what time it is now. Invariants: an instant is in the month and on the day that `datetime` says for its zone,
to the second, whatever daylight saving does; every instant of a day lies in the day's span.

Instants are milliseconds since 1970, days are numbered from 1970-01-01 and months from 1970-01, which is 0. Python's
zones answer for one instant at a time, so their answers are kept as the pieces between two jumps of the clock.

>>> berlin = ZoneInfo("Europe/Berlin")
>>> new_year = np.array([1_767_221_999_999, 1_767_222_000_000])
>>> [name(month) for month in months(new_year, berlin)], days(new_year, berlin).tolist()
(['2025-12', '2026-01'], [20453, 20454])
>>> span_ms(*days_of(number("2026-01")), berlin)
(1767222000000, 1769900400000)
"""

import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from clickclock.foundation.instant import DAY_MS, EPOCH, instant_of

_DAY_S: Final = 86_400
_SECOND: Final = timedelta(seconds=1)
_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
_JUMP_MAX_DAYS: Final = 2
"""Clocks jump by a day at most, and no day lasts two."""

Instants: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.int32]


def days(instants_ms: Instants, zone: ZoneInfo) -> Numbers:
    """The number of the day of each instant. Raises `OverflowError` outside the years that `datetime` knows."""
    if not len(instants_ms):
        return np.empty(0, np.int32)
    since_ms, offsets_ms = pieces(int(instants_ms.min()), int(instants_ms.max()), zone)
    shown_ms = instants_ms + offsets_ms[np.searchsorted(since_ms, instants_ms, side="right") - 1]
    result: Numbers = (shown_ms // DAY_MS).astype(np.int32)
    return result


def months(instants_ms: Instants, zone: ZoneInfo) -> Numbers:
    """The number of the month of each instant. Raises `OverflowError` as `days` does."""
    day = days(instants_ms, zone)
    if not len(day):
        return day
    first, last = int(day.min()), int(day.max())
    every_day = np.arange(first, last + 1).astype("datetime64[D]")
    result: Numbers = every_day.astype("datetime64[M]").astype(np.int32)[day - first]
    return result


def name(month: int) -> str:
    """A month as `YYYY-MM`."""
    return str(np.datetime64(int(month), "M"))


def number(name: str) -> int:
    """The number of the month `YYYY-MM`. Raises `ValueError` for anything else."""
    if not _MONTH.fullmatch(name):
        raise ValueError(f"{name!r} is no month; write it as 2026-07.")
    return (int(name[:4]) - EPOCH.year) * 12 + int(name[5:]) - 1


def days_of(month: int) -> tuple[int, int]:
    """A month's first and last day."""
    first, end = np.array([month, month + 1]).astype("datetime64[M]").astype("datetime64[D]").astype(int).tolist()
    return first, end - 1


def span_ms(first_day: int, last_day: int, zone: ZoneInfo) -> tuple[int, int]:
    """The first instant of these days, and the first after all of them."""
    (starts_ms, ends_ms, offsets_ms), begins_ms = _around(first_day, zone), first_day * DAY_MS
    shown_from = np.maximum(starts_ms, begins_ms - offsets_ms)
    from_ms = int(shown_from[shown_from < ends_ms].min())
    (starts_ms, ends_ms, offsets_ms), closes_ms = _around(last_day + 1, zone), (last_day + 1) * DAY_MS
    shown_until = np.minimum(ends_ms, closes_ms - offsets_ms)
    return from_ms, int(shown_until[shown_until > starts_ms].max())


def pieces(from_ms: int, to_ms: int, zone: ZoneInfo) -> tuple[Instants, Instants]:
    """Since when a zone's clocks are how far ahead of UTC, in milliseconds, from `from_ms` or before to `to_ms`."""
    first, last = (instant_of(ms).year for ms in (from_ms, to_ms))
    years = [_pieces_of(year, zone) for year in range(first, last + 1)]
    since_s, offsets_s = np.array([piece for year in years for piece in year], np.int64).T
    return since_s * 1000, offsets_s * 1000


def _around(day: int, zone: ZoneInfo) -> tuple[Instants, Instants, Instants]:
    """The pieces about the beginning of a day: from, to (excluded), and how far ahead."""
    from_ms, to_ms = ((day + days) * DAY_MS for days in (-_JUMP_MAX_DAYS, _JUMP_MAX_DAYS))
    since_ms, offsets_ms = pieces(from_ms, to_ms, zone)
    return since_ms, np.append(since_ms[1:], max(to_ms, int(since_ms[-1]) + 1)), offsets_ms


@lru_cache(maxsize=4096)
def _pieces_of(year: int, zone: ZoneInfo) -> tuple[tuple[int, int], ...]:
    """Since when, in seconds since 1970, clocks are how many seconds ahead of UTC, in a year of UTC.

    One look a day: no zone's clocks have ever jumped away and back within one.
    """
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    start_s = (start - EPOCH) // _SECOND

    def ahead_s(after_s: int) -> int:
        instant = start + timedelta(seconds=after_s)
        return (instant.astimezone(zone).replace(tzinfo=UTC) - instant) // _SECOND

    def jump_s(from_s: int, until_s: int) -> int:
        before_s = ahead_s(from_s)
        return from_s + bisect_left(range(from_s, until_s), True, key=lambda after_s: ahead_s(after_s) != before_s)

    last_s = (end - start) // _SECOND
    looks = [(after_s, ahead_s(after_s)) for after_s in (*range(0, last_s, _DAY_S), last_s)]
    jumps = [
        (start_s + jump_s(from_s, until_s), offset_s)
        for (from_s, before_s), (until_s, offset_s) in pairwise(looks)
        if before_s != offset_s
    ]
    return (start_s, looks[0][1]), *jumps

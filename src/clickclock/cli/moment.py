"""Times as people write them: exact ones, times of day, and times that are relative to now.

Never reads a clock: the caller says what time it is. Invariants: a text has one meaning; where its sign is missing, an
option that looks back takes it for the past, and any other option refuses it.

>>> noon = datetime.fromisoformat("2026-11-20T12:00Z")
>>> [read_moment(text, noon, noon.tzinfo).isoformat() for text in ("-2h", "1h30m ago", "tomorrow 08:00")]
['2026-11-20T10:00:00+00:00', '2026-11-20T10:30:00+00:00', '2026-11-21T08:00:00+00:00']
"""

import re
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

FORMS: Final = "2026-11-20T10:00 (local), 2026-11-20T10:00:00Z, 10:00, yesterday, tomorrow 08:00, -2h, 2h ago or +30m"
"""What a refusal shows."""
DAY_FORMS: Final = "2026-11-20, today, yesterday, -7d or 7d ago"
_UNITS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), timedelta(milliseconds=1)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("w", "week", "weeks"), timedelta(weeks=1)),
}
_DAYS: Final = {"today": 0, "yesterday": -1, "tomorrow": 1}
_ISO: Final = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_PART: Final = re.compile(r"\s*(?:and\s+)?(\d+(?:\.\d+)?|an?\b)\s*([a-z]+)\s*,?")


class Ambiguous(ValueError):
    """A length of time without a direction: it may be in the past or in the future."""


def read_moment(text: str, now: datetime, zone: tzinfo | None = None, *, looks_back: bool = False) -> datetime:
    """The moment that a text means at `now`, to a reader in `zone`: this machine's if that is None.

    `looks_back` says that `2h` is two hours ago. Raises `ValueError`, and of its kinds `Ambiguous`.
    """
    words = " ".join(text.split()).lower()
    if words == "now":
        return now
    if (length := _directed(words, looks_back=looks_back)) is not None:
        return now + length
    today = now.astimezone(zone).date()
    day, _, rest = words.partition(" ")
    if day in _DAYS:
        clock = time.fromisoformat(rest.removeprefix("at ")) if rest else time()
        return _at(today + timedelta(days=_DAYS[day]), clock, zone)
    if re.fullmatch(r"\d\d:\d\d(:\d\d)?", words):
        return _at(today, time.fromisoformat(words), zone)
    exact = datetime.fromisoformat(text.strip())
    return exact if exact.tzinfo else _at(exact.date(), exact.time(), zone)


def is_exact(text: str) -> bool:
    """Whether a text names a day by its date, as ISO 8601 does.

    >>> is_exact("2026-11-20T10:00"), is_exact("tomorrow 10:00")
    (True, False)
    """
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def read_day(text: str, today: date) -> date:
    """The day that a text means, where it is `today`. Raises `ValueError`."""
    words = " ".join(text.split()).lower()
    if words in _DAYS:
        return today + timedelta(days=_DAYS[words])
    found = re.fullmatch(r"(-?)(\d+) ?(d|days?|w|weeks?)( ago)?", words)
    if found and bool(found[1]) != bool(found[4]):
        return today - timedelta(days=int(found[2]) * _UNITS[found[3]].days)
    return date.fromisoformat(text.strip())


def _directed(words: str, *, looks_back: bool) -> timedelta | None:
    """A length of time, negative for the past; None if the words are none."""
    bare = words.removeprefix("in ").removesuffix(" ago").strip()
    length = _length(bare[1:].strip() if bare[:1] in {"+", "-"} else bare)
    if length is None:
        return None
    signs = [words.startswith("in "), words.endswith(" ago"), bare.startswith("+"), bare.startswith("-")]
    if sum(signs) > 1:
        raise ValueError("it has two directions")
    if not any(signs) and not looks_back:
        raise Ambiguous(words)
    return length if signs[0] or signs[2] else -length


def _length(words: str) -> timedelta | None:
    iso = _ISO.fullmatch(words)
    if iso and any(iso.groups()):
        return sum((float(count) * _UNITS[unit] for unit, count in iso.groupdict().items() if count), timedelta())
    total, at = timedelta(), 0
    while at < len(words):
        part = _PART.match(words, at)
        if part is None or part[2] not in _UNITS:
            return None
        total += _UNITS[part[2]] * (1 if part[1].startswith("a") else float(part[1]))
        at = part.end()
    return total if at else None


def _at(day: date, clock: time, zone: tzinfo | None) -> datetime:
    """A local time; this machine's zone has other offsets on other days."""
    naive = datetime.combine(day, clock)
    return naive.astimezone() if zone is None else naive.replace(tzinfo=zone)

"""One field of a cron line: what it names, and which dialect it is of where other programs read it otherwise.

Never puts fields together (`cron_times.py`). `cronsim` reads what Debian's cron knows; here is what people bring from
Quartz, Jenkins, cronie, Spring, EventBridge and Go. Invariants: what means one thing everywhere is understood; what is
read in two ways is refused with the dialect's name and what to write instead.

>>> sorted(values(Field.DOW, "FRI-MON"))
[0, 1, 5, 6]
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from cronsim.cronsim import RANGES, SYMBOLIC_DAYS, SYMBOLIC_MONTHS, CronSim, CronSimError, Field

NEAREST: Final = -1002
"""Marks a `15W`, next to `cronsim`'s own marks for `L` and `LW`."""
BEFORE_LAST: Final = -1003
"""Marks an `L-2`."""
YEARS: Final = range(1970, 2200)
"""What the seventh field can name."""

Value = int | tuple[int, int]

_NAMES: Final = ("second", "minute", "hour", "day of month", "month", "day of week")
_ALLOWED: Final = (
    "0-59",
    "0-59",
    "0-23",
    "1-31, L (the last day), L-2 (two days before it), LW (the last weekday) or 15W (the weekday nearest the 15th)",
    "1-12 or JAN-DEC",
    "0-7 or SUN-SAT (0 and 7 are Sunday), 5L or FRIL (the last Friday) or 5#2 (the second Friday)",
)
_NAMED: Final = frozenset({*SYMBOLIC_DAYS, *SYMBOLIC_MONTHS})
_INTERVALS: Final = ("PT{}S", "PT{}M", "PT{}H", "P{}D", "", "P{}D")
_LONGER: Final = ("minute", "hour", "day", "month", "year", "week")
"""What each field is a part of."""
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


_SPREADS: Final = re.compile(r"(^|[\s,])H(\(|/|,|\s|$)|~")
_HASHED: Final = re.compile(r"H(?:\(([0-9]{1,2})-([0-9]{1,2})\))?(?:/([0-9]{1,2}))?")
_RANDOM: Final = re.compile("([0-9]{0,2})~([0-9]{0,2})")
_LINE_FIELDS: Final = (5, 7)


class Unclear(Exception):
    """A term that cannot be read; its text says why, and what to write."""


@lru_cache(maxsize=2048)
def values(field: Field, text: str) -> frozenset[Value]:
    """What one field names. Raises `Unclear`."""
    return frozenset().union(*(_term(field, term) for term in text.split(",")))


def years(text: str) -> frozenset[int] | None:
    """The years of a seventh field; None for all. Raises `Unclear`."""
    if text in {"*", "?"}:
        return None
    found: set[int] = set()
    for term in text.split(","):
        read = re.fullmatch(r"(\*|[0-9]{4})(?:-([0-9]{4}))?(?:/([0-9]{1,3}))?", term)
        if read is None or (read[1] == "*" and read[2]) or read[3] in {"0", "00", "000"}:
            raise Unclear(f'The year field "{term}" cannot be read; use years such as 2027, 2027-2030 or 2027/2.')
        low = YEARS[0] if read[1] == "*" else int(read[1])
        high = int(read[2]) if read[2] else (YEARS[-1] if read[3] else low)
        if not YEARS[0] <= low <= high <= YEARS[-1]:
            raise Unclear(f'The year field "{term}" leaves {YEARS[0]}-{YEARS[-1]}, or runs backwards.')
        found.update(range(low, high + 1, int(read[3] or 1)))
    return frozenset(found)


def hashed(line: str, seed: str) -> str:
    """A line with a number for each H of Jenkins and each ~ of cronie: the same number for the same seed, always.

    The seed is the job's application and name, as in Jenkins: they are known before a schedule has an id, and stay when
    it gets another (ADR 24). Words of other kinds of schedules have no H that stands alone, and stay.

    >>> hashed("H(0-29)/10 H 1 * *", "shop/report")
    '8-29/10 21 1 * *'
    """
    if not _has_hash(line):
        return line
    fields = line.split()
    first = 0 if len(fields) > _LINE_FIELDS[0] else 1
    return " ".join(
        ",".join(_spread(Field(min(first + place, Field.DOW)), term, f"{seed} {place}") for term in text.split(","))
        for place, text in enumerate(fields)
    )


@lru_cache(maxsize=2048)
def _has_hash(line: str) -> bool:
    """Whether a line has one. Nearly none has, and it is asked of a schedule for each time that is planned."""
    is_line = _LINE_FIELDS[0] <= len(line.split()) <= _LINE_FIELDS[1]
    return is_line and _SPREADS.search(line.upper()) is not None


def _spread(field: Field, term: str, seed: str) -> str:
    """A term of a line, with its number. What cannot be read stays, and is refused as it is."""
    last = {Field.DAY: 28, Field.DOW: 6}.get(field, RANGES[field][-1])
    share = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest())
    if read := _HASHED.fullmatch(term.upper()):
        low, high = (int(read[1]), int(read[2])) if read[1] else (RANGES[field][0], last)
        step = int(read[3] or 0)
        if not {low, high} <= {*RANGES[field]} or low > high or step > high - low + 1 or (read[3] and not step):
            return term
        return f"{low + share % step}-{high}/{step}" if step else str(low + share % (high - low + 1))
    if read := _RANDOM.fullmatch(term):
        low, high = int(read[1] or RANGES[field][0]), int(read[2] or last)
        return term if not {low, high} <= {*RANGES[field]} or low > high else str(low + share % (high - low + 1))
    return term


def meanings(field: Field, text: str) -> Iterator[str]:
    """A sentence for each term that not every cron knows, of a field that can be read."""
    for term in text.split(","):
        bounds = term.partition("/")[0]
        if field is Field.DAY and re.fullmatch("[0-9]{1,2}W", term):
            yield f"{term}: the Monday to Friday nearest to day {int(term[:-1])} of the month."
        elif term == "LW":
            yield "LW: the last Monday to Friday of the month."
        elif field is Field.DAY and term == "L":
            yield "L: the last day of the month."
        elif field is Field.DAY and term.startswith("L-"):
            yield f"{term}: {int(term[2:])} days before the last day of the month."
        elif field is Field.DOW and term.endswith("L"):
            yield f"{term}: the last {_DAYS[field.int(term[:-1])]} of the month."
        elif field is Field.DOW and "#" in term:
            day, nth = term.split("#")
            yield f"{term}: the {_DAYS[field.int(day)]} that is number {nth} of the month."
        elif "-" in bounds and _wraps(field, bounds):
            low, high = bounds.split("-")
            yield f"{term}: from {low} over the end of the {_LONGER[field]} to {high}."


def _term(field: Field, text: str) -> set[Value]:
    """What one term names."""
    _refuse_dialects(field, text)
    try:
        if field is Field.DAY and re.fullmatch(r"[0-9]{1,2}W", text):
            return {(field.int(text[:-1]), NEAREST)}
        if field is Field.DAY and (before := re.fullmatch(r"L-([1-9]|[12][0-9]|30)", text)):
            return {(int(before[1]), BEFORE_LAST)}
        if field is Field.DOW and re.fullmatch("[A-Z]{3}L", text):
            return {(field.int(text[:-1]), CronSim.LAST)}
        bounds, slash, step = text.partition("/")
        if not slash:
            return set(_range(field, bounds)) if "-" in bounds else field.parse(text)
        return _stepped(field, text, bounds, step)
    except CronSimError as error:
        sentence = f'The {_NAMES[field]} field "{text}" cannot be read; use {_ALLOWED[field]}, '
        raise Unclear(f"{sentence}with commas for lists, - for ranges and / for steps.") from error


def _range(field: Field, bounds: str) -> list[int]:
    """The values of a range in their order; one that ends before it begins goes on over the end of the field."""
    low_text, high_text = bounds.split("-", maxsplit=1)
    low, high = field.int(low_text), field.int(high_text)
    if low <= high:
        return list(range(low, high + 1))
    every = range(7) if field is Field.DOW else RANGES[field]
    return [*range(low, every[-1] + 1), *range(every[0], high + 1)]


def _wraps(field: Field, bounds: str) -> bool:
    low, high = bounds.split("-")
    return field.int(low) > field.int(high)


def long_steps(field: Field, text: str) -> Iterator[str]:
    """A sentence for each term whose step takes its first value alone: the fault, and what was probably meant.

    Such a step is no fault to `values`, because schedules of earlier releases have some.
    """
    for term in text.split(","):
        bounds, slash, step = term.partition("/")
        if slash and step.isdigit() and (among := _among(field, bounds)) and int(step) > len(among):
            yield _too_long(field, term, int(step), among)


def _among(field: Field, bounds: str) -> list[int]:
    """What a step goes through: a range, all values, or those from one on; nothing where there is no step to take."""
    if "-" in bounds:
        return _range(field, bounds)
    if bounds == "*":
        return list(range(7) if field is Field.DOW else RANGES[field])
    if bounds.isdigit() or bounds in _NAMED:
        return list(range(field.int(bounds), RANGES[field][-1] + 1))
    return []


def _stepped(field: Field, text: str, bounds: str, step_text: str) -> set[Value]:
    """Every so manyeth value of a range, of all, or from one value on."""
    if "-" in bounds and field is Field.DAY and _wraps(field, bounds):
        raise Unclear(f'The day of month "{text}" steps over the end of months of 28 to 31 days; list the days.')
    among = _among(field, bounds)
    if not among:
        return field.parse(text)
    if not step_text.isdigit() or not step_text.isascii() or not int(step_text):
        raise CronSimError(field.msg())
    return set(among[:: int(step_text)])


def _too_long(field: Field, text: str, step: int, among: list[int]) -> str:
    found = f'The {_NAMES[field]} field "{text}" has a step of {step} among {len(among)} values: cron takes {among[0]} '
    if field is Field.MONTH:
        meant = f"For every {step} months, use kind rrule with FREQ=MONTHLY;INTERVAL={step}"
    else:
        unit = {Field.DAY: "day", Field.DOW: "day"}.get(field, _NAMES[field])
        meant = f"For every {step} {unit}s, use kind interval with {_INTERVALS[field].format(step)}"
    return f"{found}alone. {meant}; for {among[0]} alone, write {among[0]}."


def _refuse_dialects(field: Field, text: str) -> None:
    """What programs that are no cron of ours mean, and what to write for it."""
    name = _NAMES[field]
    if re.match(r"H(\(|/|$)", text):
        raise Unclear(f'The {name} field "{text}" is no H of Jenkins that can be read; use H, H(0-29) or H/15.')
    if "~" in text:
        raise Unclear(f'The {name} field "{text}" is no ~ of cronie that can be read; use ~ or 0~29.')
    if ".." in text:
        raise Unclear(f'The {name} field "{text}" is a range of systemd\'s OnCalendar; write it with -.')
    if "?" in text:
        raise Unclear(
            f'The {name} field "{text}" is a ?, which stands for a whole day field alone. EventBridge\'s six fields '
            "end in the year: leave it out, or put 0 for the second in front."
        )
    if field is Field.DOW and text == "L":
        raise Unclear("L alone as day of week is Quartz's word for Saturday; write SAT, or 6L for the last Saturday.")
    if field is Field.DAY and re.fullmatch(r"L-[0-9]+W", text):
        raise Unclear(f'"{text}" is Quartz\'s weekday nearest to a day before the last, which is not known here.')


def refuse_numbered_weekdays(text: str) -> None:
    """In a line of Quartz or EventBridge, Sunday is 1; in cron it is 0. Raises `Unclear`."""
    if re.search(r"(^|[,-])[0-7]|[0-7]L", text):
        raise Unclear(
            f'The day of week "{text}" is a number in a line with ? or a year: for Quartz and EventBridge 1 is Sunday, '
            f"for cron Monday. Write names: {', '.join(SYMBOLIC_DAYS)}."
        )

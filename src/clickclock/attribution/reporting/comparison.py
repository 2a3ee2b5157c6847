"""A report beside the same report of an earlier period: row by row, what each figure was, and by how much it changed.

Never counts anything: it is given two reports. Invariants: both periods have as many days, and days are paired by their
place in the period; each row of either report is in one row; what was zero or unknown before has no change.

>>> asked = Asked(since=date(2026, 11, 1), until=date(2026, 11, 30), compare=Against.LAST_YEAR)
>>> before(asked).since.isoformat(), before(asked).until.isoformat()
('2025-11-01', '2025-11-30')
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

import msgspec

from clickclock.attribution.reporting.figures import Against, Dimension, Figure
from clickclock.attribution.reporting.report import NOTHING, Asked, Report, Row, place_of

CHANGE_DIGITS: Final = 4
_ABSENT: Final = frozenset({Figure.COST, Figure.ROAS, Figure.CPA})
"""Figures that are unknown, and not zero, where there is no row."""
_LEAP_DAY: Final = 29


def before(asked: Asked) -> Asked:
    """The same question about the earlier period."""
    assert asked.since is not None
    assert asked.until is not None
    days = (asked.until - asked.since).days
    if asked.compare is Against.LAST_YEAR:
        is_leap_day = (asked.since.month, asked.since.day) == (2, _LEAP_DAY)
        since = asked.since.replace(year=asked.since.year - 1, day=28 if is_leap_day else asked.since.day)
    else:
        since = asked.since - timedelta(days=days + 1)
    return msgspec.structs.replace(asked, since=since, until=since + timedelta(days=days), compare=None)


def compared(now: Report, then: Report) -> Report:
    """The report of now, with what `then` has of the same."""
    asked = now.asked
    assert asked.since is not None
    assert then.asked.since is not None
    later = asked.since - then.asked.since
    keys = [*map(str, asked.groups), "model", "currency"]
    ours, theirs = _by_key(now.rows, keys), _by_key([_shifted(row, later) for row in then.rows], keys)
    both = [(ours.get(key), theirs.get(key)) for key in {**ours, **theirs}]
    rows = [_compared(one, other, keys, asked.figures) for one, other in both]
    rows.sort(key=lambda row: place_of(row, keys, now.models))
    notes = sorted({*now.notes, *then.notes} - ({NOTHING} if rows else set()))
    return msgspec.structs.replace(now, rows=rows, notes=notes)


def _by_key(rows: Sequence[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[each] for each in keys): row for row in rows}


def _shifted(row: Row, later: timedelta) -> Row:
    day: date | None = row.get(Dimension.DAY)
    return row if day is None else row | {Dimension.DAY.value: day + later}


def _compared(now: Row | None, then: Row | None, keys: Sequence[str], figures: Sequence[Figure]) -> Row:
    there: Mapping[str, Any] = now or then or {}
    row = {name: there[name] for name in keys}
    for figure in figures:
        one = _nothing_like(figure, then) if now is None else now[figure]
        other = _nothing_like(figure, now) if then is None else then[figure]
        row |= {figure: one, f"{figure}_before": other, f"{figure}_change": _change(one, other)}
    return {str(name): value for name, value in row.items()}


def _nothing_like(figure: Figure, row: Row | None) -> Any:
    """What a figure is where there is no row, but one in the other period."""
    found = None if row is None else row[figure]
    return None if found is None or figure in _ABSENT else found - found


def _change(now: Any, then: Any) -> Decimal | None:
    """The change as a part of what was; None where that is nothing."""
    if now is None or not then:
        return None
    change = Decimal(str(now)) / Decimal(str(then)) - 1
    return change.quantize(Decimal(1).scaleb(-CHANGE_DIGITS), ROUND_HALF_UP)

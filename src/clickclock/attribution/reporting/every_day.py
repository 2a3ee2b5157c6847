"""A report with a row for each day, as models of the marketing mix and charts want it.

Never counts anything: it is given a report by day. Invariants: each group that the report has on some day has a row on
every day that was asked for; a row that was there stays as it was; an added row has zeros, and no ROAS and no CPA.

>>> [each.isoformat() for each in days_of(Asked(since=date(2026, 2, 27), until=date(2026, 3, 1)))]
['2026-02-27', '2026-02-28', '2026-03-01']
"""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final

import msgspec

from clickclock.attribution.reporting.figures import Dimension, Figure
from clickclock.attribution.reporting.report import ROWS_MAX, Asked, Report, Row, TooManyRows, place_of

_DERIVED: Final = frozenset({Figure.ROAS, Figure.CPA})


def days_of(asked: Asked) -> list[date]:
    """The days that are asked for; both ends have to be given."""
    assert asked.since is not None
    assert asked.until is not None
    return [asked.since + timedelta(days=number) for number in range((asked.until - asked.since).days + 1)]


def with_every_day(report: Report) -> Report:
    """The report with the rows that are missing. Raises `TooManyRows`."""
    keys = [*(str(each) for each in report.asked.groups), "model", "currency"]
    others = [name for name in keys if name != Dimension.DAY]
    days = days_of(report.asked)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in report.rows:
        groups.setdefault(tuple(row[name] for name in others), []).append(row)
    if len(groups) * len(days) > ROWS_MAX:
        raise TooManyRows(
            f"With every day, the report has more than {ROWS_MAX:,} rows; ask for fewer days or dimensions."
        )
    rows = list(report.rows)
    for same in groups.values():
        nothing = _nothing(same, report.asked.figures)
        there = {row[Dimension.DAY] for row in same}
        rows += [
            {**{name: same[0][name] for name in keys}, str(Dimension.DAY): day, **nothing}
            for day in days
            if day not in there
        ]
    rows.sort(key=lambda row: place_of(row, keys, report.models))
    return msgspec.structs.replace(report, rows=rows)


def _nothing(same: Sequence[Row], figures: Sequence[Figure]) -> Row:
    """What a row of a group says where there was nothing, with the digits of its currency."""
    known = {figure: next((row[figure] for row in same if row[figure] is not None), None) for figure in figures}
    return {
        str(figure): None if figure in _DERIVED or value is None else value - value for figure, value in known.items()
    }

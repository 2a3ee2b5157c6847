"""A holdout by country: the orders of countries where ads were off, and what the other countries let expect there.

Never counts anything: it is given two reports by day and country, of the days of the holdout and of the days before.
The held-out countries are expected to go as the others did: a difference in differences of logarithms. The interval is
of 95 %: each day's orders fall into both parts by chance, and more unevenly if the days say so (a quasi-binomial model,
with Pearson's dispersion). What all countries have in common, such as weekends, takes no part in it.
Invariants: an order whose country is unknown is in neither part; without orders in each of the four there is no change.

>>> low, high = interval([(80, 100)] * 7, [(100, 100)] * 7)
>>> round(low, 3), round(high, 3)
(-0.325, -0.052)
"""

import math
from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

import msgspec

from clickclock.attribution.orders.money import DIGITS
from clickclock.attribution.reporting.comparison import CHANGE_DIGITS, before
from clickclock.attribution.reporting.figures import Against, Dimension, Figure
from clickclock.attribution.reporting.report import NOTHING, Asked, Report, Row, rank

ORDERS_DIGITS: Final = 2
_WEEK_DAYS: Final = 7
_NORMAL_95: Final = 1.959963984540054
"""95 % of a normal distribution are between it and its negative."""
_FREEDOM_MIN: Final = 4
"""Of fewer days the interval would be too narrow: see `student_95`."""
_WIDTH_MAX: Final = 10.0
"""Of a logarithm: an interval that ends at 22,000 times its middle says nothing."""
_SENTENCES_MAX: Final = 3
_UNKNOWN: Final = (
    "Orders without a known country: {} of {}. They are in neither part. Register visits without ads, too; otherwise "
    "orders that came without an ad are missing where ads were off."
)
_UNEVEN: Final = "The period is not a whole number of weeks. Compare whole weeks: weekends differ from other days."
_ABSENT: Final = "No order of these days has one of the held-out countries: {}."

Counts = tuple[int, int]
"""Orders of a day: in the held-out countries, and in the others."""


class _Period(msgspec.Struct):
    """The orders of one key in one of the two periods."""

    days: dict[date, Counts] = msgspec.field(default_factory=dict)
    revenue: tuple[Decimal, Decimal] = (Decimal(), Decimal())
    """In the held-out countries, and in the others."""
    unknown: int = 0

    @property
    def orders(self) -> Counts:
        """Of all days."""
        return sum(held for held, _ in self.days.values()), sum(others for _, others in self.days.values())

    def add(self, row: Row, held_out: Sequence[str]) -> None:
        """Add a row of the report by day and country."""
        orders, revenue, country = row[Figure.ORDERS] or 0, row[Figure.REVENUE] or Decimal(), row[Dimension.COUNTRY]
        if country is None:
            self.unknown += orders
            return
        place = 0 if country in held_out else 1
        of_day, money = list(self.days.get(row[Dimension.DAY], (0, 0))), list(self.revenue)
        of_day[place] += orders
        money[place] += revenue
        self.days[row[Dimension.DAY]] = (of_day[0], of_day[1])
        self.revenue = (money[0], money[1])


def questions(asked: Asked) -> tuple[Asked, Asked]:
    """Which reports `held_out` needs: of the days of the holdout, and of the days before."""
    by = (*asked.groups, Dimension.DAY, Dimension.COUNTRY)
    plain = msgspec.structs.replace(asked, by=by, figures=(Figure.ORDERS, Figure.REVENUE), holdout=(), compare=None)
    return plain, before(msgspec.structs.replace(plain, compare=asked.compare or Against.PREVIOUS))


def held_out(now: Report, then: Report, asked: Asked) -> Report:
    """The answer to `asked`, of the reports of its `questions`."""
    assert asked.since is not None
    assert asked.until is not None
    names = [*(str(each) for each in asked.groups), "currency"]
    periods = [_by_key(report.rows, names, asked.holdout) for report in (now, then)]
    keys = sorted({**periods[0], **periods[1]}, key=rank)
    pairs = [(periods[0].get(key, _Period()), periods[1].get(key, _Period())) for key in keys]
    rows = [
        dict(zip(names, key, strict=True)) | _compared(during, earlier, key[-1])
        for key, (during, earlier) in zip(keys, pairs, strict=True)
    ]
    notes = {*now.notes, *then.notes} - {NOTHING}
    if unknown := sum(period.unknown for pair in pairs for period in pair):
        notes.add(_UNKNOWN.format(unknown, unknown + sum(sum(period.orders) for pair in pairs for period in pair)))
    if ((asked.until - asked.since).days + 1) % _WEEK_DAYS:
        notes.add(_UNEVEN)
    there = {row[Dimension.COUNTRY] for report in (now, then) for row in report.rows if row[Figure.ORDERS]}
    if rows and (missing := [country for country in asked.holdout if country not in there]):
        notes.add(_ABSENT.format(", ".join(missing)))
    told = [_sentence(row, names) for row in rows if row["orders_change_low"] is not None][:_SENTENCES_MAX]
    return msgspec.structs.replace(now, asked=asked, rows=rows, notes=[*told, *sorted(notes)] if rows else [NOTHING])


def _by_key(rows: Sequence[Row], names: Sequence[str], countries: Sequence[str]) -> dict[tuple[Any, ...], _Period]:
    found: dict[tuple[Any, ...], _Period] = {}
    for row in rows:
        if row["currency"] is not None:  # what has none is no order
            found.setdefault(tuple(row[name] for name in names), _Period()).add(row, countries)
    return found


def _compared(now: _Period, then: _Period, currency: str) -> Row:
    (orders, others), (orders_before, others_before) = now.orders, then.orders
    expected = Decimal(orders_before * others) / others_before if others_before else None
    revenue_expected = then.revenue[0] * now.revenue[1] / then.revenue[1] if then.revenue[1] else None
    digits = DIGITS[currency]
    bounds = interval(list(now.days.values()), list(then.days.values()))
    return {
        "orders": orders,
        "orders_before": orders_before,
        "others": others,
        "others_before": others_before,
        "orders_expected": _rounded(expected, ORDERS_DIGITS),
        "orders_effect": _rounded(None if expected is None else orders - expected, ORDERS_DIGITS),
        "orders_change": _rounded(orders / expected - 1 if expected else None, CHANGE_DIGITS),
        "orders_change_low": _rounded(bounds and Decimal(bounds[0]), CHANGE_DIGITS),
        "orders_change_high": _rounded(bounds and Decimal(bounds[1]), CHANGE_DIGITS),
        "revenue": _rounded(now.revenue[0], digits),
        "revenue_before": _rounded(then.revenue[0], digits),
        "others_revenue": _rounded(now.revenue[1], digits),
        "others_revenue_before": _rounded(then.revenue[1], digits),
        "revenue_expected": _rounded(revenue_expected, digits),
        "revenue_effect": _rounded(None if revenue_expected is None else now.revenue[0] - revenue_expected, digits),
    }


def interval(now: Sequence[Counts], then: Sequence[Counts]) -> tuple[float, float] | None:
    """Between which changes the true one is, with 95 %, as parts of what was expected. Both periods are by day.

    None where a part of a period has no orders, or the days are too few or too uneven to say.
    """
    sums = [(sum(held for held, _ in days), sum(others for _, others in days)) for days in (now, then)]
    freedom = len(now) + len(then) - len(sums)
    if freedom < _FREEDOM_MIN or not all(held and others for held, others in sums):
        return None
    pearson = 0.0
    for days, (held, others) in zip((now, then), sums, strict=True):
        share = held / (held + others)
        pearson += sum(
            (of_day - (of_day + rest) * share) ** 2 / ((of_day + rest) * share * (1 - share))
            for of_day, rest in days
            if of_day + rest
        )
    variance = max(1.0, pearson / freedom) * sum(1 / each for of_period in sums for each in of_period)
    middle = math.log(sums[0][0] / sums[1][0]) - math.log(sums[0][1] / sums[1][1])
    width = student_95(freedom) * math.sqrt(variance)
    if width > _WIDTH_MAX:
        return None
    return math.exp(middle - width) - 1, math.exp(middle + width) - 1


def student_95(freedom: int) -> float:
    """95 % of Student's distribution are between it and its negative, to 0.3 % from 4 degrees of freedom on.

    Source: Abramowitz and Stegun, 26.7.5.
    """
    terms = (
        (1, [0, 1]),
        (4 * freedom, [0, 1, 0, 1]),
        (96 * freedom**2, [0, 3, 0, 16, 0, 5]),
        (384 * freedom**3, [0, -15, 0, 17, 0, 19, 0, 3]),
    )
    return sum(
        factor * _NORMAL_95**power / divisor for divisor, factors in terms for power, factor in enumerate(factors)
    )


def _rounded(value: Decimal | None, digits: int) -> Decimal | None:
    return None if value is None else value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _sentence(row: Row, names: Sequence[str]) -> str:
    """What a row says, in words."""
    named = ", ".join("(none)" if row[name] is None else str(row[name]) for name in names)
    low, high = row["orders_change_low"], row["orders_change_high"]
    said = (
        f"{named}: {row['orders']} orders where ads were off, and {row['orders_expected']:f} expected. That is "
        f"{100 * row['orders_change']:+.1f} %; with 95 % it is between {100 * low:+.1f} % and {100 * high:+.1f} %."
    )
    return f"{said} It may be chance." if low <= 0 <= high else said

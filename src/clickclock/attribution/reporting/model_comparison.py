"""Models side by side: in which rows of a report they disagree most, and whether that changes a decision.

Never counts anything: it is given the report of all models. Invariants: each key and currency of it is one row; the
least and the greatest credit are those of models that it has; rows of one currency are sorted by what depends on the
model.

>>> [str(figure) for figure in of_every_model(Asked()).figures]
['orders', 'revenue', 'credit', 'cost', 'roas']
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

import msgspec

from clickclock.attribution.reporting.figures import Figure
from clickclock.attribution.reporting.report import NOTHING, Asked, Report, Row, rank

SHARE_DIGITS: Final = 4
_NAMED_MAX: Final = 3
"""So many rows are said in words."""


def of_every_model(asked: Asked) -> Asked:
    """The question whose report `side_by_side` needs."""
    figures = (Figure.ORDERS, Figure.REVENUE, Figure.CREDIT, Figure.COST, Figure.ROAS)
    return msgspec.structs.replace(asked, figures=figures)


def side_by_side(report: Report, asked: Asked) -> Report:
    """The answer to `asked`, of the report of `of_every_model(asked)`."""
    names = [str(each) for each in report.asked.groups]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    credit: dict[str, dict[str, Decimal]] = {}
    for row in report.rows:
        if row[Figure.ORDERS] or row[Figure.COST] is not None:  # else there is nothing to credit
            groups.setdefault((*(row[each] for each in names), row["currency"]), []).append(row)
            by_model = credit.setdefault(row["currency"], {})
            by_model[row["model"]] = by_model.get(row["model"], Decimal()) + row[Figure.CREDIT]
    rows: list[Row] = [
        dict(zip(names, key, strict=False)) | _compared(same, max(credit[key[-1]].values()))
        for key, same in groups.items()
    ]
    rows.sort(key=lambda row: (row["currency"], -row["spread"], rank(tuple(row[each] for each in names))))
    notes = [*(report.notes if rows else [NOTHING]), *_decisions(rows, names), *_largest(rows, names)]
    return msgspec.structs.replace(report, asked=asked, rows=rows, notes=notes)


def _compared(same: Sequence[Row], all_credit: Decimal) -> Row:
    """The row of one key and currency; `same` has one of each model."""
    least, greatest = (choose(same, key=lambda row: row[Figure.CREDIT]) for choose in (min, max))
    spread = greatest[Figure.CREDIT] - least[Figure.CREDIT]
    first = same[0]
    returns = [row[Figure.ROAS] for row in same if row[Figure.ROAS] is not None]
    return {
        "currency": first["currency"],
        "orders": first[Figure.ORDERS],
        "revenue": first[Figure.REVENUE],
        "cost": first[Figure.COST],
        "least": least[Figure.CREDIT],
        "least_model": least["model"] if spread else None,
        "greatest": greatest[Figure.CREDIT],
        "greatest_model": greatest["model"] if spread else None,
        "spread": spread,
        "share": _part(spread, all_credit) if all_credit else None,
        "roas_least": min(returns, default=None),
        "roas_greatest": max(returns, default=None),
    }


def _part(spread: Decimal, all_credit: Decimal) -> Decimal:
    return (spread / all_credit).quantize(Decimal(1).scaleb(-SHARE_DIGITS), ROUND_HALF_UP)


def _decisions(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Where an ad pays for itself by one model and not by another."""
    torn = [row for row in rows if row["roas_least"] is not None and row["roas_least"] < 1 <= row["roas_greatest"]]
    return [
        f"{_named(row, names)}: it depends on the model whether the ads pay. Their ROAS is between {row['roas_least']} "
        f"and {row['roas_greatest']}."
        for row in torn[:_NAMED_MAX]
    ]


def _largest(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    return [
        f"{_named(row, names)}: {row['least_model']} credits {row['least']:f} {row['currency']}, "
        f"{row['greatest_model']} {row['greatest']:f}. The difference is {100 * row['share']:.1f} % of all credit."
        for row in rows[:_NAMED_MAX]
        if row["spread"]
    ]


def _named(row: Row, names: Sequence[str]) -> str:
    return ", ".join("(none)" if row[each] is None else str(row[each]) for each in names) or "All"

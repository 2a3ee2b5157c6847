"""A report with every day: what is missing is added with zeros, and what was there stays."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.reporting.every_day import days_of, with_every_day
from clickclock.attribution.reporting.figures import Dimension, Figure
from clickclock.attribution.reporting.question import read
from clickclock.attribution.reporting.report import ROWS_MAX, Asked, Report, TooManyRows
from clickclock.foundation.errors import Malformed

FIRST = date(2026, 11, 1)
FIGURES = (Figure.CLICKS, Figure.CONVERSIONS, Figure.CREDIT, Figure.COST, Figure.ROAS)


def row(
    day: int, channel: str | None = "google", model: str = "last", currency: str | None = "EUR", **more: Any
) -> Any:
    figures = {"clicks": 2, "conversions": 0.5, "credit": Decimal("7.10"), "cost": None, "roas": None}
    key = {"day": FIRST + timedelta(days=day), "channel": channel, "model": model, "currency": currency}
    return {**key, **figures, **more}


def whole(*rows: Any, days: int = 3) -> Report:
    asked = Asked(
        by=(Dimension.DAY, Dimension.CHANNEL),
        figures=FIGURES,
        since=FIRST,
        until=FIRST + timedelta(days=days - 1),
        every_day=True,
    )
    made_at, models = datetime(2026, 12, 1, tzinfo=UTC), ("last", "first")
    return with_every_day(Report(asked=asked, version=1, created_at=made_at, models=models, rows=list(rows), notes=[]))


def test_days_on_which_nothing_happened_have_zeros_with_the_digits_of_the_currency() -> None:
    told = whole(row(1), row(0, "meta", currency="JPY", credit=Decimal(120), cost=Decimal(60), roas=Decimal(2)))
    assert [[str(value) for value in list(each.values())[1:]] for each in told.rows] == [
        ["google", "last", "EUR", "0", "0.0", "0.00", "None", "None"],
        ["meta", "last", "JPY", "2", "0.5", "120", "60", "2"],
        ["google", "last", "EUR", "2", "0.5", "7.10", "None", "None"],
        ["meta", "last", "JPY", "0", "0.0", "0", "0", "None"],
        ["google", "last", "EUR", "0", "0.0", "0.00", "None", "None"],
        ["meta", "last", "JPY", "0", "0.0", "0", "0", "None"],
    ]
    assert [each["day"].day for each in told.rows] == [1, 1, 2, 2, 3, 3]
    assert all(list(each) == told.columns for each in told.rows)


def test_a_cost_of_one_day_is_zero_on_the_others_and_models_stay_apart() -> None:
    told = whole(row(0), row(0, model="first"), row(2, cost=Decimal("5.00"), roas=Decimal("1.42")))
    assert [(each["model"], each["cost"]) for each in told.rows if each["day"].day == 2] == [
        ("last", Decimal("0.00")),
        ("first", None),
    ]


@given(st.sets(st.tuples(st.integers(0, 6), st.sampled_from(["a", "b", None]), st.sampled_from(["EUR", None]))))
def test_each_group_has_each_day_once_and_what_was_there_stays(there: set[tuple[int, str | None, str | None]]) -> None:
    rows = [row(day, channel, currency=currency) for day, channel, currency in there]
    told = whole(*rows, days=7)
    groups = {(channel, currency) for _, channel, currency in there}
    keys = [(each["day"], each["channel"], each["currency"]) for each in told.rows]
    assert len(keys) == len(set(keys)) == 7 * len(groups)
    assert all(each in told.rows for each in rows)
    assert sum(each["clicks"] for each in told.rows) == 2 * len(rows)


def test_more_rows_than_anybody_reads_are_refused() -> None:
    with pytest.raises(TooManyRows):
        whole(row(0), days=ROWS_MAX + 1)


@pytest.mark.parametrize(
    "given",
    [
        {"by": ["channel"], "from": ["2026-11-01"], "to": ["2026-11-02"]},
        {"by": ["day"], "from": ["2026-11-01"]},
        {"by": ["day"], "from": ["2026-11-01"], "to": ["2026-11-02"], "compare": ["previous"]},
    ],
)
def test_it_needs_days_and_no_comparison(given: dict[str, list[str]]) -> None:
    with pytest.raises(Malformed) as refused:
        read({**given, "everyDay": ["true"]})
    assert [fault.field for fault in refused.value.faults] == ["everyDay"]
    asked = read({"by": ["day"], "from": ["2026-11-01"], "to": ["2026-11-30"], "everyDay": ["true"]})
    assert len(days_of(asked)) == 30

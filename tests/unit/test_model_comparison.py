"""Models side by side: where they disagree, and where that changes a decision."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.reporting.figures import OF_MODELS, Against, Dimension
from clickclock.attribution.reporting.model_comparison import of_every_model, side_by_side
from clickclock.attribution.reporting.question import read
from clickclock.attribution.reporting.report import NOTHING, Asked, Report
from clickclock.foundation.errors import Malformed

ASKED = Asked(compare=Against.MODELS)


def row(channel: str | None, model: str, credit: str, cost: str | None = None, **more: Any) -> dict[str, Any]:
    """A row of the report of all models."""
    roas = round(Decimal(credit) / Decimal(cost), 4) if cost else None
    money = {"credit": Decimal(credit), "revenue": Decimal(100), "cost": cost and Decimal(cost), "roas": roas}
    return {"channel": channel, "model": model, "currency": "EUR", "orders": 3, **money, **more}


def compared(*rows: dict[str, Any], asked: Asked = ASKED) -> Report:
    models = tuple(dict.fromkeys(each["model"] for each in rows))
    of_all = Report(
        asked=of_every_model(asked),
        version=1,
        created_at=datetime(2026, 11, 1, tzinfo=UTC),
        models=models,
        rows=list(rows),
        notes=["of all"],
    )
    return side_by_side(of_all, asked)


def test_the_group_in_which_most_depends_on_the_model_comes_first() -> None:
    told = compared(
        row("google", "first", "90.00"),
        row("google", "last", "60.00"),
        row("meta", "first", "10.00"),
        row("meta", "last", "50.00"),
        row("mail", "first", "20.00"),
        row("mail", "last", "20.00"),
    )
    assert [
        [each[name] for name in ("channel", "least_model", "greatest_model", "spread", "share")] for each in told.rows
    ] == [
        ["meta", "first", "last", Decimal("40.00"), Decimal("0.3077")],
        ["google", "last", "first", Decimal("30.00"), Decimal("0.2308")],
        ["mail", None, None, Decimal("0.00"), Decimal("0.0000")],
    ]
    assert told.notes == [
        "of all",
        "meta: first credits 10.00 EUR, last 50.00. The difference is 30.8 % of all credit.",
        "google: last credits 60.00 EUR, first 90.00. The difference is 23.1 % of all credit.",
    ]
    assert told.columns == list(told.rows[0]) == ["channel", "currency", *OF_MODELS]


@pytest.mark.parametrize(("cost", "is_torn"), [("70.00", True), ("60.01", True), ("95.00", False), ("60.00", False)])
def test_what_pays_by_one_model_alone_is_said_first(cost: str, is_torn: bool) -> None:
    told = compared(row("google", "first", "90.00", cost), row("google", "last", "60.00", cost))
    assert told.notes[1].startswith("google: it depends on the model whether the ads pay.") is is_torn


def test_currencies_are_apart_and_what_nobody_can_credit_is_no_row() -> None:
    yen = {"currency": "JPY"}
    told = compared(
        row(None, "first", "7.00"),
        row(None, "last", "7.00"),
        row("meta", "first", "1000", **yen),
        row("meta", "last", "3000", **yen),
        row("onsite", "first", "0", orders=0),
        row("onsite", "last", "0", orders=0),
        row("brand", "first", "0", "5.00", orders=0),
        row("brand", "last", "0", "5.00", orders=0),
        row("meta", "first", "0", currency=None, orders=None) | {"credit": None},
        row("meta", "last", "0", currency=None, orders=None) | {"credit": None},
    )
    assert [(each["channel"], each["currency"], each["share"]) for each in told.rows] == [
        ("brand", "EUR", Decimal("0.0000")),
        (None, "EUR", Decimal("0.0000")),
        ("meta", "JPY", Decimal("0.6667")),
    ]


def test_a_report_without_rows_says_so() -> None:
    assert compared().notes == [NOTHING]


def test_by_nothing_there_is_one_row_of_all() -> None:
    told = compared(row("", "first", "1.00"), row("", "last", "2.00"), asked=Asked(by=(), compare=Against.MODELS))
    assert told.notes[1] == "All: first credits 1.00 EUR, last 2.00. The difference is 50.0 % of all credit."


CREDITS = st.lists(st.integers(0, 999), min_size=3, max_size=3)


@given(st.dictionaries(st.sampled_from("abc"), CREDITS))
def test_no_model_gives_less_than_the_least_or_more_than_the_greatest(groups: dict[str, list[int]]) -> None:
    rows = [row(name, f"m{place}", str(credit)) for name, made in groups.items() for place, credit in enumerate(made)]
    told = {each["channel"]: each for each in compared(*rows).rows}
    for name, made in groups.items():
        found = told[name]
        assert (found["least"], found["greatest"]) == (min(made), max(made))
        assert found["spread"] == max(made) - min(made)
    spreads = [each["spread"] for each in told.values()]
    assert spreads == sorted(spreads, reverse=True)


def test_it_needs_no_days_and_refuses_what_it_cannot_tell() -> None:
    asked = read({"compare": ["models"]})
    assert asked.choose(["first", "last"]) == ("first", "last")
    with pytest.raises(Malformed) as refused:
        read({"compare": ["models"], "by": ["channel,model"], "figures": ["clicks"]})
    assert [fault.field for fault in refused.value.faults] == ["by", "figures"]
    assert Dimension.MODEL not in asked.by

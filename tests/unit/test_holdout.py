"""A holdout by country: what is expected, how sure that is, and what is said of it."""

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import t

from clickclock.attribution.reporting.figures import OF_HOLDOUT, Against, Dimension, Figure
from clickclock.attribution.reporting.holdout import held_out, interval, questions, student_95
from clickclock.attribution.reporting.question import read
from clickclock.attribution.reporting.report import NOTHING, Asked, Report, Row
from clickclock.foundation.errors import Malformed

FIRST, LAST = date(2026, 11, 8), date(2026, 11, 21)
ASKED = Asked(by=(), since=FIRST, until=LAST, holdout=("AT", "CH"))


def row(day: date, country: str | None, orders: int | None, revenue: str = "0.00", **more: Any) -> Row:
    return {"day": day, "country": country, "model": "last", "currency": "EUR", "orders": orders} | {
        "revenue": Decimal(revenue),
        **more,
    }


def report(asked: Asked, rows: list[Row], *notes: str) -> Report:
    made = datetime(2026, 11, 22, tzinfo=UTC)
    return Report(asked=asked, version=3, created_at=made, models=("last",), rows=rows, notes=list(notes))


def answer(now: list[Row], then: list[Row], asked: Asked = ASKED) -> Report:
    during, earlier = questions(asked)
    return held_out(report(during, now, *([] if now else [NOTHING])), report(earlier, then), asked)


def days(first: date, counts: list[tuple[int, int]], **more: Any) -> list[Row]:
    """Orders in AT and in DE, day by day, each of 10 euros."""
    return [
        row(first + timedelta(days=number), country, orders, f"{orders * 10}.00", **more)
        for number, pair in enumerate(counts)
        for country, orders in zip(("AT", "DE"), pair, strict=True)
    ]


BEFORE = FIRST - timedelta(days=14)


def test_the_days_before_are_as_many() -> None:
    during, earlier = questions(ASKED)
    assert (during.since, during.until) == (FIRST, LAST)
    assert (earlier.since, earlier.until) == (BEFORE, FIRST - timedelta(days=1))
    assert during.by == earlier.by == (Dimension.DAY, Dimension.COUNTRY)
    assert during.figures == earlier.figures == (Figure.ORDERS, Figure.REVENUE)
    a_year_before = questions(Asked(by=(), since=FIRST, until=LAST, holdout=("AT",), compare=Against.LAST_YEAR))[1]
    assert a_year_before.since == date(2025, 11, 8)


def test_the_held_out_countries_are_expected_to_go_as_the_others_did() -> None:
    asked = Asked(by=(), since=FIRST, until=LAST, holdout=("AT",))
    told = answer(days(FIRST, [(8, 40)] * 14), days(BEFORE, [(10, 20)] * 14), asked)
    (found,) = told.rows
    assert list(found) == told.columns == ["currency", *OF_HOLDOUT]
    assert (found["orders"], found["orders_before"], found["others"], found["others_before"]) == (112, 140, 560, 280)
    assert (found["orders_expected"], found["orders_effect"]) == (Decimal("280.00"), Decimal("-168.00"))
    assert found["orders_change"] == Decimal("-0.6000")
    assert found["orders_change_low"] < Decimal("-0.6") < found["orders_change_high"] < 0
    assert (found["revenue"], found["others_revenue"]) == (Decimal("1120.00"), Decimal("5600.00"))
    assert (found["revenue_expected"], found["revenue_effect"]) == (Decimal("2800.00"), Decimal("-1680.00"))
    (note,) = told.notes
    assert note.startswith("EUR: 112 orders where ads were off, and 280.00 expected. That is -60.0 %; with 95 % it is ")
    assert note.endswith(f"and {100 * found['orders_change_high']:+.1f} %.")
    assert told.wire()["holdout"] == ["AT"]
    assert told.wire()["rows"][0]["ordersChangeLow"] == f"{found['orders_change_low']}"


def test_a_change_that_may_be_chance_is_said_to_be() -> None:
    told = answer(days(FIRST, [(9, 20)] * 14), days(BEFORE, [(10, 20)] * 14))
    assert told.rows[0]["orders_change_low"] < 0 < told.rows[0]["orders_change_high"]
    assert told.notes[0].endswith("It may be chance.")


def test_each_group_has_a_row_and_so_has_each_currency() -> None:
    asked = Asked(by=(Dimension.CLIENT,), since=FIRST, until=LAST, holdout=("AT",))
    now = [*days(FIRST, [(8, 40)], client="b"), row(FIRST, "AT", 2, "5", client="a", currency="JPY")]
    told = answer(now, days(BEFORE, [(8, 40)], client="a"), asked)
    assert [(each["client"], each["currency"], each["orders"]) for each in told.rows] == [
        ("a", "EUR", 0),
        ("a", "JPY", 2),
        ("b", "EUR", 8),
    ]
    assert told.rows[0]["orders_expected"] == Decimal("0.00")
    revenues = [str(each[name]) for each in told.rows for name in ("revenue", "others_revenue_before")]
    assert revenues == ["0.00", "400.00", "5", "0", "80.00", "0.00"]
    assert told.rows[1]["orders_expected"] is None
    assert [each["orders_change_low"] for each in told.rows] == [None] * 3
    assert told.columns == ["client", "currency", *OF_HOLDOUT]


def test_what_to_know_before_using_it_is_said() -> None:
    asked = Asked(by=(), since=FIRST, until=LAST - timedelta(days=1), holdout=("AT", "CH"))
    now = [*days(FIRST, [(8, 40)] * 13), row(FIRST, None, 5, "50.00"), row(FIRST, "DE", None, currency=None)]
    told = answer(now, [*days(BEFORE, [(8, 40)] * 13), row(BEFORE, None, 2)], asked)
    assert told.rows[0]["orders"] + told.rows[0]["others"] == 13 * 48
    assert len(told.rows) == 1
    assert [each.split(".")[0] for each in told.notes[1:]] == [
        "No order of these days has one of the held-out countries: CH",
        f"Orders without a known country: 7 of {26 * 48 + 7}",
        "The period is not a whole number of weeks",
    ]


def test_nothing_is_said_to_be_nothing() -> None:
    told = answer([], [])
    assert (told.rows, told.notes) == ([], [NOTHING])


@pytest.mark.parametrize(("freedom", "close"), [(4, 3e-3), (12, 1e-4), (26, 1e-5), (200, 1e-9)])
def test_students_distribution(freedom: int, close: float) -> None:
    assert student_95(freedom) == pytest.approx(float(t.ppf(0.975, freedom)), rel=close)


def test_days_that_differ_more_than_by_chance_make_it_less_sure() -> None:
    steady, then = [(20, 40)] * 14, [(25, 40)] * 14
    uneven = [(5, 40), (35, 40)] * 7
    together = [(10, 20), (30, 60)] * 7  # as weekends are: both parts have more
    widths = [high - low for low, high in (interval(now, then) or (0, 0) for now in (steady, uneven, together))]
    assert widths[1] > 1.5 * widths[0]
    assert widths[2] == pytest.approx(widths[0], rel=1e-9)


@pytest.mark.parametrize("dispersion", [1, 4])
def test_in_95_of_100_holdouts_without_an_effect_it_finds_none(dispersion: int) -> None:
    chance, found = random.Random(7), 0
    for _ in range(400):
        counts = []
        for level in (80, 100):  # all countries had more in the second period
            days_ = []
            for day in range(14):
                orders = (level + 30 * (day % 7 == 0)) // dispersion
                share = sum(chance.random() < 0.25 for _ in range(orders))
                days_.append((share * dispersion, (orders - share) * dispersion))
            counts.append(days_)
        low, high = interval(*reversed(counts)) or (math.nan, math.nan)
        found += low <= 0 <= high
    assert 0.925 < found / 400 < 0.98


_ORDERS = st.integers(0, 50) | st.integers(0, 10**7)


@given(
    st.lists(st.tuples(_ORDERS, _ORDERS), max_size=10),
    st.lists(st.tuples(_ORDERS, _ORDERS), max_size=10),
)
@example([(10**6, 0), *[(0, 10**6)] * 9], [(1, 1)] * 10)
def test_the_change_is_within_its_bounds(now: list[tuple[int, int]], then: list[tuple[int, int]]) -> None:
    for found in answer(days(FIRST, now), days(BEFORE, then)).rows:
        if found["orders_change_low"] is not None:
            assert found["orders_change_low"] <= found["orders_change"] <= found["orders_change_high"]


@pytest.mark.parametrize("days_each", [1, 2])
def test_of_too_few_days_no_interval_is_said(days_each: int) -> None:
    assert interval([(20, 40)] * days_each, [(25, 40)] * days_each) is None
    assert interval([(20, 40)] * 3, [(25, 40)] * 3) is not None


def test_what_does_not_go_with_a_holdout_is_refused_all_at_once() -> None:
    with pytest.raises(Malformed) as refusal:
        read(
            {
                "holdout": ["at,Austria"],
                "by": ["channel,client,day"],
                "figures": ["roas"],
                "model": ["last"],
                "channel": ["google"],
                "compare": ["models"],
                "everyDay": ["true"],
            }
        )
    told = {fault.field: fault.message for fault in refusal.value.faults}
    assert told.keys() == {"holdout", "by", "figures", "model", "channel", "compare", "everyDay"}
    assert told["by"].endswith("leave channel, day out.")


def test_without_dimensions_it_is_one_row() -> None:
    asked = read({"holdout": ["at,ch"], "from": ["2026-11-08"], "to": ["2026-11-21"]})
    assert asked == ASKED
    assert read({}).by == (Dimension.CHANNEL,)

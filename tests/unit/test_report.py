"""A report: what may be asked, whose clicks stand where, and the arithmetic of what is told."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.reporting.figures import Dimension, Figure, Form
from clickclock.attribution.reporting.question import read
from clickclock.attribution.reporting.report import (
    NOTHING,
    Asked,
    Counted,
    Key,
    NoVersion,
    Report,
    Row,
    arrange,
    find,
)
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.errors import Malformed

GOOGLE: Key = ("google",)


def told(counted: Iterable[tuple[Key, str | None, Counted]], **asked: Any) -> list[Row]:
    return arrange(Asked(**asked), ["last"], counted)[0]


def notes(counted: Iterable[tuple[Key, str | None, Counted]], **asked: Any) -> str:
    return " ".join(arrange(Asked(**asked), ["last"], counted)[1])


def orders(count: int, revenue: int, credit: int, *, refunds: int = 0, conversions: float = 1.0) -> Counted:
    return Counted(orders=count, revenue=revenue, of_models=((credit, refunds, conversions),))


def test_what_is_not_asked_for_has_a_default() -> None:
    asked = read({})
    assert (asked.by, asked.figures, asked.form, asked.version) == (
        (Dimension.CHANNEL,),
        tuple(Figure),
        Form.JSON,
        None,
    )
    assert asked.choose(["first", "last"]) == ("last",)
    assert asked.choose(["first", "linear"]) == ("first",)


def test_lists_may_be_given_in_one_or_in_several_and_names_in_either_spelling() -> None:
    asked = read({"by": ["adSet,day", "ad_set"], "model": ["last,first"], "figures": ["cost, roas"]})
    assert asked.by == (Dimension.AD_SET, Dimension.DAY)
    assert asked.figures == (Figure.COST, Figure.ROAS)
    assert asked.choose(["first", "last", "linear"]) == ("last", "first")


def test_by_model_tells_of_every_model_and_by_nothing_of_all_together() -> None:
    assert read({"by": ["model"]}).choose(["first", "last"]) == ("first", "last")
    assert read({"by": [""]}).by == ()


def test_every_fault_is_told_at_once_with_what_there_is() -> None:
    faulty = {
        "by": ["channel,colour"],
        "figures": ["profit"],
        "from": ["2026-11-31"],
        "to": ["yesterday"],
        "clientId": [""],
        "currency": ["euro"],
        "version": ["0"],
        "format": ["xml"],
        "sellerId": ["a", "b"],
        "since": ["2026-11-01"],
    }
    with pytest.raises(Malformed) as refused:
        read(faulty)
    sentences = {fault.field: fault.message for fault in refused.value.faults}
    assert set(sentences) == set(faulty)
    assert "there are: client, seller, channel" in sentences["by"]
    assert "'since'; there are: by, figures, model, from, to" in sentences["since"]


def test_the_last_day_is_not_before_the_first() -> None:
    assert read({"from": ["2026-11-02"], "to": ["2026-11-02"]}).until == date(2026, 11, 2)
    with pytest.raises(Malformed) as refused:
        read({"from": ["2026-11-03"], "to": ["2026-11-02"]})
    assert [fault.field for fault in refused.value.faults] == ["from"]


def test_a_model_that_the_version_lacks_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(Malformed) as refused:
        read({"model": ["last,lats"]}).choose(["last", "linear"])
    (fault,) = refused.value.faults
    assert fault.message == "There is no model 'lats' in this version; there are: last, linear."


def test_no_version_yet_says_how_to_make_one_and_an_unknown_one_which_there_are() -> None:
    with pytest.raises(NoVersion, match="clickclock attribution run"):
        find([], None)
    results = [Result(version=1), Result(version=2)]
    with pytest.raises(NoVersion, match="there are 1 to 2"):
        find(results, 3)
    assert find(results, None).version == 2
    assert find(results, 1).version == 1


def test_roas_is_what_stayed_of_the_credit_for_the_cost_and_cpa_the_cost_of_a_conversion() -> None:
    counts = orders(3, 9000, 7000, refunds=1000, conversions=2.5)
    counts.cost = 3600
    (row,) = told([(GOOGLE, "EUR", counts)])
    assert (row["revenue"], row["credit"], row["refunds"], row["cost"]) == tuple(
        map(Decimal, ("90.00", "70.00", "10.00", "36.00"))
    )
    assert row["roas"] == Decimal("1.6667")
    assert row["cpa"] == Decimal("14.40")


def test_amounts_have_the_digits_of_their_currency() -> None:
    rows = told([(GOOGLE, "JPY", orders(1, 1250, 1250)), (GOOGLE, "KWD", orders(1, 1250, 1250))])
    assert [str(row["credit"]) for row in rows] == ["1250", "1.250"]


def test_three_thirds_are_one_conversion() -> None:
    (row,) = told([(GOOGLE, "EUR", orders(1, 100, 100, conversions=sum([1 / 3] * 3) - 1e-12))])
    assert row["conversions"] == 1.0


def test_without_a_known_cost_there_is_none_and_a_cost_of_nothing_has_no_roas() -> None:
    free = orders(1, 100, 100)
    free.cost = 0
    unknown, known = told([(("a",), "EUR", orders(1, 100, 100)), (("b",), "EUR", free)])
    assert (unknown["cost"], unknown["roas"], unknown["cpa"]) == (None, None, None)
    assert (known["cost"], known["roas"], known["cpa"]) == (Decimal("0.00"), None, Decimal("0.00"))


def test_a_cost_without_an_order_earned_nothing_and_has_no_cpa() -> None:
    (row,) = told([(GOOGLE, "EUR", Counted(cost=500))])
    assert (row["roas"], row["cpa"], row["orders"]) == (Decimal("0.0000"), None, 0)


def test_a_cost_in_another_currency_than_the_orders_is_a_row_without_roas() -> None:
    counted = [(GOOGLE, "EUR", orders(1, 100, 100)), (GOOGLE, "USD", Counted(cost=500))]
    euros, dollars = told(counted)
    assert (euros["cost"], euros["roas"]) == (None, None)
    assert (dollars["cost"], dollars["roas"], dollars["cpa"]) == (Decimal("5.00"), None, None)
    assert "another currency" in notes(counted)


def test_a_cost_of_a_whole_channel_is_not_held_against_the_clicks_without_a_campaign() -> None:
    counts = orders(1, 100, 100)
    counts.cost = 500
    counted: list[tuple[Key, str | None, Counted]] = [(("google", None), "EUR", counts)]
    (row,) = told(counted, by=(Dimension.CHANNEL, Dimension.CAMPAIGN))
    assert (row["cost"], row["roas"], row["cpa"]) == (Decimal("5.00"), None, None)
    assert "without a campaign" in notes(counted, by=(Dimension.CHANNEL, Dimension.CAMPAIGN))


def test_costs_are_left_out_where_sellers_are_asked_about() -> None:
    assert not Asked(by=(Dimension.SELLER,)).has_costs
    assert not Asked(seller_id="s").has_costs
    assert "of no seller" in notes([(GOOGLE, "EUR", orders(1, 100, 100))], seller_id="s")
    assert notes([(GOOGLE, "EUR", orders(1, 100, 100))], seller_id="s", figures=(Figure.CREDIT,)) == ""


def test_clicks_stand_beside_the_money_where_there_is_one_currency() -> None:
    counted = [(GOOGLE, None, Counted(clicks=9, people=4)), (GOOGLE, "EUR", orders(1, 100, 100))]
    (row,) = told(counted)
    assert (row["currency"], row["clicks"], row["people"], row["orders"]) == ("EUR", 9, 4, 1)


def test_a_group_of_clicks_alone_has_the_report_s_one_currency() -> None:
    counted = [(("meta",), None, Counted(clicks=2)), (GOOGLE, "EUR", orders(1, 100, 100))]
    meta = told(counted)[1]
    assert (meta["currency"], meta["clicks"], meta["orders"], meta["credit"]) == ("EUR", 2, 0, Decimal("0.00"))
    (alone,) = told([(("meta",), None, Counted(clicks=2))])
    assert (alone["currency"], alone["clicks"], alone["orders"], alone["credit"]) == (None, 2, 0, None)


def test_clicks_of_a_group_with_two_currencies_are_counted_once_in_a_row_of_their_own() -> None:
    counted = [
        (GOOGLE, None, Counted(clicks=9, people=4)),
        (GOOGLE, "USD", orders(1, 100, 100)),
        (GOOGLE, "EUR", orders(1, 100, 100)),
    ]
    rows = told(counted)
    assert [(row["currency"], row["clicks"], row["orders"]) for row in rows] == [
        ("EUR", None, 1),
        ("USD", None, 1),
        (None, 9, None),
    ]
    assert "rows of their own" in notes(counted)
    (only,) = told([counted[0], counted[1]], currency="USD")
    assert (only["clicks"], only["orders"]) == (9, 1)


def test_rows_are_sorted_and_what_has_no_name_comes_last() -> None:
    keys: list[Key] = [(None,), ("meta",), ("google",)]
    assert [row["channel"] for row in told([(key, "EUR", orders(1, 1, 1)) for key in keys])] == ["google", "meta", None]


def test_a_report_of_nothing_says_so() -> None:
    assert arrange(Asked(), ["last"], []) == ([], [NOTHING])


def test_every_model_has_a_row_with_the_same_clicks_and_orders() -> None:
    counts = Counted(clicks=3, people=2, orders=1, revenue=100, of_models=((60, 0, 0.6), (40, 0, 0.4)))
    rows, _ = arrange(Asked(), ["first", "last"], [(GOOGLE, "EUR", counts)])
    assert [(row["model"], row["clicks"], row["orders"], str(row["credit"])) for row in rows] == [
        ("first", 3, 1, "0.60"),
        ("last", 3, 1, "0.40"),
    ]


def test_a_report_is_written_in_camel_case_with_amounts_and_days_as_text() -> None:
    asked = Asked(by=(Dimension.AD_SET, Dimension.DAY), figures=(Figure.CREDIT,), client_id="shop")
    rows, _ = arrange(asked, ["last"], [(("a", date(2026, 11, 2)), "EUR", orders(1, 100, 100))])
    report = Report(
        asked=asked, version=3, created_at=datetime(2026, 11, 20, tzinfo=UTC), models=("last",), rows=rows, notes=[]
    )
    wire = report.wire()
    assert wire["rows"] == [{"adSet": "a", "day": "2026-11-02", "model": "last", "currency": "EUR", "credit": "1.00"}]
    assert (wire["by"], wire["filters"], wire["createdAt"]) == (
        ["adSet", "day"],
        {"clientId": "shop"},
        "2026-11-20T00:00:00.000Z",
    )
    assert report.columns == ["ad_set", "day", "model", "currency", "credit"]


CURRENCIES = st.sampled_from(["EUR", "JPY", "USD"])
COUNTED = st.dictionaries(
    st.tuples(st.tuples(st.sampled_from(["a", "b", None])), st.none() | CURRENCIES), st.integers(1, 10**12), max_size=8
)


@given(COUNTED, st.none() | CURRENCIES)
def test_no_click_and_no_amount_is_lost_or_told_twice(
    counted: dict[tuple[Key, str | None], int], currency: str | None
) -> None:
    kept = {where: count for where, count in counted.items() if currency is None or where[1] in {None, currency}}
    rows = told(
        [
            (key, each, Counted(clicks=count) if each is None else orders(count, count, count))
            for (key, each), count in kept.items()
        ],
        currency=currency,
    )
    assert sum(row["clicks"] or 0 for row in rows) == sum(count for (_, each), count in kept.items() if each is None)
    for each in ("EUR", "JPY", "USD"):
        digits = 0 if each == "JPY" else 2
        sums = sum((row["credit"] for row in rows if row["currency"] == each), Decimal(0))
        assert sums.scaleb(digits) == sum(count for (_, its), count in kept.items() if its == each)

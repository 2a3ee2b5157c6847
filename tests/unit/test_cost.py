"""Costs of ads: a row is one, or says everything that is wrong with it."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.account import Account, Accounts
from clickclock.attribution.importing.cost import FIELDS, Cost, judge
from clickclock.attribution.importing.table_row import fields
from clickclock.attribution.orders.amendment import known_to

TODAY = date(2026, 11, 21)
ROW = {
    "client_id": "c",
    "day": "2026-11-20",
    "channel": "google",
    "campaign": "x",
    "amount": "12.30",
    "currency": "EUR",
}


def row(**changes: object) -> dict[str, object]:
    return {name: value for name, value in {**ROW, **changes}.items() if value is not None}


def found(**changes: object) -> list[tuple[str, str]]:
    judged = judge(fields(row(**changes)), TODAY)
    assert not isinstance(judged, Cost), judged
    return [(fault.field, fault.message) for fault in judged]


def test_a_row_is_a_cost_in_minor_units() -> None:
    cost = judge(row(ad_set="", ad="7"), TODAY)
    assert cost == Cost("c", date(2026, 11, 20), "google", "x", None, "7", 1230, "EUR")


@pytest.mark.parametrize("day", ["2026-11-20", date(2026, 11, 20), datetime(2026, 11, 20)])  # noqa: DTZ001 (tables hold such)
@pytest.mark.parametrize("name", ["day", "date"])
def test_a_day_may_be_called_date_and_may_be_a_tables_own(name: str, day: object) -> None:
    given_ = row(**{"day": None, name: day, "amount": Decimal("12.30")})
    cost = judge(fields(given_), TODAY)
    assert isinstance(cost, Cost)
    assert (cost.day, cost.amount_minor) == (date(2026, 11, 20), 1230)


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"amount": "1,234.50"}, "amount", "is no amount"),
        ({"amount": "-5"}, "amount", "is negative; give zero or more. Subtract what a network paid back"),
        ({"campaign": "1.2023E+17"}, "campaign", "is an id that a program took for a number"),
        ({"ad": 7.0}, "ad", "is an id that a program took for a number"),
        ({"amount": 12.5}, "amount", "Give the amount as text"),
        ({"amount": "12.345"}, "amount", "is finer than EUR"),
        ({"currency": "euro"}, "currency", "is no currency"),
        ({"client_id": None}, "client_id", "required"),
        ({"channel": ""}, "channel", "required"),
        ({"day": None}, "day", "required"),
        ({"day": "20.11.2026"}, "day", "such as 2026-11-20"),
        ({"day": "20261120"}, "day", "such as 2026-11-20"),
        ({"day": datetime(2026, 11, 20, 5)}, "day", "such as 2026-11-20"),  # noqa: DTZ001 (tables hold such)
        ({"day": "1970-01-01"}, "day", "until today"),
        ({"day": "2099-01-01"}, "day", "until today"),
        ({"date": "2026-11-20"}, "date", "twice"),
        ({"adset": "7"}, "adset", "did you mean `ad_set`?"),
    ],
)
def test_a_fault_says_what_to_give(changes: dict[str, object], field: str, says: str) -> None:
    ((name, message),) = found(**changes)
    assert name == field
    assert says in message


def test_every_fault_of_a_row_is_told() -> None:
    told = [field for field, _ in found(client_id="", day="x", channel="", amount="x", currency="EUR")]
    assert told == ["client_id", "day", "channel", "amount"]


def test_costs_of_an_account_that_is_not_configured_are_refused() -> None:
    judged = judge(row(), TODAY, known_to(Accounts([Account(client_id="other")])))
    assert not isinstance(judged, Cost)
    assert [fault.field for fault in judged] == ["client_id"]


def test_costs_of_one_key_differ_in_amount_and_currency_alone() -> None:
    one, other = (judge(row(**changes), TODAY) for changes in ({}, {"amount": "1", "currency": "USD"}))
    assert isinstance(one, Cost)
    assert isinstance(other, Cost)
    assert one.key == other.key
    assert one != other


@given(st.dictionaries(st.sampled_from((*FIELDS, "adset")), st.text() | st.integers() | st.none()))
def test_any_row_is_a_cost_or_has_faults(given_: dict[str, Any]) -> None:
    judged = judge(given_, TODAY)
    assert isinstance(judged, Cost) or judged

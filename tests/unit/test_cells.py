"""Cells as people have them: what can be read in one way is read exactly, and what can be read in two is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.importing.cells import Amounts, Instants, Unclear, day
from clickclock.attribution.importing.file_mapping import Times
from clickclock.attribution.orders import money

BERLIN = Times(zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "decimal", "amount"),
    [
        ("12.30", None, ("12.30", False, None)),
        ("12,3", None, ("12.3", False, None)),
        ("1,234.50", None, ("1234.50", False, None)),
        ("1.234,50", None, ("1234.50", False, None)),
        ("1.234.567", None, ("1234567", False, None)),
        ("1 234,50", None, ("1234.50", False, None)),
        ("1\u202f234,50 €", None, ("1234.50", False, "EUR")),
        ("1'234.50", None, ("1234.50", False, None)),
        ("€1,234.50", None, ("1234.50", False, "EUR")),
        ("12.30 EUR", None, ("12.30", False, "EUR")),
        ("R$ 1.234,50", None, ("1234.50", False, "BRL")),
        ("-12.30", None, ("12.30", True, None)),
        ("\u221212.30", None, ("12.30", True, None)),
        ("(12.30)", None, ("12.30", True, None)),
        ("-€12.30", None, ("12.30", True, "EUR")),
        ("€-12.30", None, ("12.30", True, "EUR")),
        ("12.30-", None, ("12.30", True, None)),
        ("-0.00", None, ("0.00", False, None)),
        ("1.234", ".", ("1.234", False, None)),
        ("1.234", ",", ("1234", False, None)),
        ("0.125", None, ("0.125", False, None)),
        (".5", None, ("0.5", False, None)),
        ("007.50", None, ("7.50", False, None)),
    ],
)
def test_an_amount_is_read_as_it_is_meant(text: str, decimal: str | None, amount: tuple[str, bool, str | None]) -> None:
    assert tuple(Amounts(decimal).read(text)) == amount


@pytest.mark.parametrize(
    ("text", "decimal", "says"),
    [
        ("1.234", None, "may be 1234 or 1.234; say which sign is decimal: --decimal"),
        ("1,234", None, "may be 1234 or 1.234; say which sign is decimal: --decimal"),
        ("$12.30", None, "may be USD, CAD or AUD; say which: --currency"),
        ("12.30 kr", None, "may be SEK, NOK or DKK; say which: --currency"),
        ("12.30 Points", None, "which is no currency"),
        ("twelve", None, "is no amount"),
        ("12.3.4,5", ",", "is no amount with `,` as decimal sign"),
        ("1,2,3.50", None, "is no amount with `.` as decimal sign"),
        ("(12.30", None, "a parenthesis is missing"),
        ("1.5E+03", None, "is no amount"),
        ("#REF!", None, "is no amount"),
    ],
)
def test_an_amount_that_may_mean_two_things_is_refused(text: str, decimal: str | None, says: str) -> None:
    with pytest.raises(Unclear) as refused:
        Amounts(decimal).read(text)
    assert says in str(refused.value)


def test_a_sign_of_several_currencies_means_the_one_that_was_said() -> None:
    assert Amounts(currency="CAD").read("$12.30").currency == "CAD"


def test_millionths_are_read_to_the_last_digit() -> None:
    read = Amounts(micros=True).read
    assert [read(text).text for text in ("1234500000", "10000", "0", "1")] == ["1234.50", "0.01", "0.00", "0.000001"]


@given(st.integers(0, 10**12), st.sampled_from([".", ","]), st.booleans())
def test_whatever_is_written_in_a_locale_comes_back(minor: int, decimal: str, grouped: bool) -> None:
    exact = money.to_text(minor, "EUR")
    whole, _, part = exact.partition(".")
    shown = f"{int(whole):,}" if grouped else whole
    text = shown.replace(",", "." if decimal == "," else ",") + decimal + part
    assert Amounts(decimal).read(text).text == exact


@pytest.mark.parametrize(
    ("text", "times", "utc"),
    [
        ("2026-11-20T10:00:00Z", Times(), 1_795_168_800_000),
        ("2026-11-20 10:00:00 +0100", Times(), 1_795_165_200_000),
        ("2026-11-20 10:00:00 UTC", Times(), 1_795_168_800_000),
        ("1795168800000", Times(), 1_795_168_800_000),
        ("1795168800", Times(), 1_795_168_800_000),
        ("1795168800123456", Times(unit="us"), 1_795_168_800_123),
        ("2026-11-20 10:00", BERLIN, 1_795_165_200_000),
        ("20.11.2026 10:00:00", BERLIN, 1_795_165_200_000),
        ("20.11.26 10:00", BERLIN, 1_795_165_200_000),
        ("11/20/2026 10:00 AM", BERLIN, 1_795_165_200_000),
        ("20/11/2026 10:00", BERLIN, 1_795_165_200_000),
        ("Nov 20, 2026 10:00:00 AM", BERLIN, 1_795_165_200_000),
        ("20 November 2026, 10:00", BERLIN, 1_795_165_200_000),
        ("03/04/2026 10:00", Times(zone="UTC", order="dmy"), 1_775_210_400_000),
        ("03/04/2026 10:00", Times(zone="UTC", order="mdy"), 1_772_618_400_000),
        ("12/12/2026 12:00 AM", Times(zone="UTC"), 1_797_033_600_000),
        ("2026-10-25 02:30:00", BERLIN, 1_792_888_200_000),
    ],
)
def test_a_time_is_the_instant_that_it_names(text: str, times: Times, utc: int) -> None:
    assert Instants(times).read(text) == utc


@pytest.mark.parametrize(
    ("text", "times", "says"),
    [
        ("2026-11-20 10:00", Times(), "names no time zone; say in which it is: --zone"),
        ("03/04/2026 10:00", BERLIN, "may be 3 Apr or 4 Mar; say which order day and month have: --dates"),
        ("03-04-2026", BERLIN, "may be 3 Apr or 4 Mar"),
        ("2026-03-29 02:30:00", BERLIN, "does not exist in Europe/Berlin: clocks went forward"),
        ("31/11/2026", BERLIN, "is no time there is"),
        ("20/11/2026", Times(zone="UTC", order="mdy"), "is no time there is"),
        ("soon", BERLIN, "is no time; give one such as"),
        ("1.79517E+12", BERLIN, "is no time"),
    ],
)
def test_a_time_that_may_be_two_is_refused(text: str, times: Times, says: str) -> None:
    with pytest.raises(Unclear) as refused:
        Instants(times).read(text)
    assert says in str(refused.value)


def test_a_day_is_a_day_and_a_time_of_day_is_none() -> None:
    assert [day(text, None) for text in ("2026-11-20", "20.11.2026", "Nov 20, 2026", "2026-11-20T00:00:00")] == [
        "2026-11-20"
    ] * 4
    with pytest.raises(Unclear, match="is a time, and a cost is of a whole day"):
        day("2026-11-20 10:00:00", None)

"""Amounts in minor units, and the currencies."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.orders.money import DIGITS, MINOR_MAX, NoAmount, to_minor, to_text

currencies = st.sampled_from(sorted(DIGITS))


@given(currencies, st.integers(0, MINOR_MAX))
def test_an_amount_survives_being_written_and_read(currency: str, minor: int) -> None:
    text = to_text(minor, currency)
    assert to_minor(text, currency) == minor
    assert Decimal(text) * 10 ** DIGITS[currency] == minor


@given(currencies, st.from_regex(r"[0-9]{1,12}(\.[0-9]{1,6})?", fullmatch=True))
def test_an_amount_is_exact_or_refused(currency: str, text: str) -> None:
    exact = Decimal(text).scaleb(DIGITS[currency])
    try:
        minor = to_minor(text, currency)
    except NoAmount:
        assert exact != int(exact) or exact > MINOR_MAX
    else:
        assert minor == exact


@given(currencies, st.text(max_size=50))
def test_any_text_is_an_amount_or_refused_with_a_sentence(currency: str, text: str) -> None:
    try:
        minor = to_minor(text, currency)
    except NoAmount as refusal:
        said = str(refusal)
    else:
        said = "." if 0 <= minor <= MINOR_MAX else ""
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("12.30", "EUR", 1230),
        ("12.3", "EUR", 1230),
        ("12.3000", "EUR", 1230),
        ("0", "EUR", 0),
        ("007", "EUR", 700),
        ("1250", "JPY", 1250),
        ("1250.00", "JPY", 1250),
        ("1.005", "KWD", 1005),
        ("1.0005", "CLF", 10005),
        ("99.90", "AFN", 9990),
        ("10", "HRK", 1000),
    ],
)
def test_an_amount_has_the_digits_of_its_currency(text: str, currency: str, minor: int) -> None:
    assert to_minor(text, currency) == minor


@pytest.mark.parametrize(
    ("text", "currency", "says"),
    [
        ("12.345", "EUR", "finer than EUR, which has 2 digits"),
        ("12.5", "JPY", "finer than JPY, which has 0 digits"),
        ("-1.00", "EUR", "negative"),
        ("1,200.00", "EUR", "at most one point: `123.00`"),
        ("1.200,00", "EUR", "at most one point"),
        ("1e3", "EUR", "at most one point"),
        (".5", "EUR", "at most one point"),
        ("5.", "EUR", "at most one point"),
        (" 5", "EUR", "at most one point"),
        ("5\n", "EUR", "at most one point"),
        ("\u0665", "EUR", "at most one point"),
        ("NaN", "JPY", "at most one point: `123`"),
        ("", "EUR", "at most one point"),
        ("0" * 41, "EUR", "at most 40 characters"),
        ("10000000000000.01", "EUR", "above the limit of 10000000000000.00 EUR"),
    ],
)
def test_what_is_no_amount_is_told_why(text: str, currency: str, says: str) -> None:
    with pytest.raises(NoAmount, match=says):
        to_minor(text, currency)


def test_the_currencies_are_those_that_somebody_pays_with() -> None:
    assert {DIGITS[code] for code in DIGITS} == {0, 2, 3, 4}
    assert {"EUR", "USD", "INR", "XCG", "ZWG", "XAD"} <= DIGITS.keys()
    assert DIGITS.keys().isdisjoint({"XTS", "XAU", "XDR", "EURO", "eur"})
    assert all(len(code) == 3 and code.isascii() and code.isupper() for code in DIGITS)

"""Money: amounts as whole numbers of a currency's minor unit, and the currencies there are.

Never uses a float, never rounds, never adds two currencies.
Invariants: `to_minor(to_text(minor, currency), currency) == minor`; an amount that its currency cannot express exactly
is refused; no amount is negative or above `MINOR_MAX`.

>>> to_minor("12.30", "EUR"), to_minor("1250", "JPY"), to_text(1230, "EUR")
(1230, 1250, '12.30')
"""

import re

MINOR_MAX = 10**15
"""The largest amount: ten billion dollars. Sums of nine thousand of them still fit into 64 bits."""
TEXT_CHARS_MAX = 40
"""Longer than any amount up to `MINOR_MAX`, and short enough to read at once."""

# ISO 4217, list one, with its amendments up to 180 (1 January 2026), by digits after the point: https://www.six-group.com
# (the maintenance agency). A table, and no package: babel has the digits of CLDR, which are what a shop shows (AFN 0)
# and not what a bank books (AFN 2), and pycountry has no digits. Metals, XDR, XSU, XUA and the codes for tests and for
# no currency have none either: nobody pays with them. The list changes about once a year.
_BY_DIGITS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: """
        AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY
        COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS
        INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR
        MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP
        STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG
    """,
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
# Withdrawn since 2015 (list three): an order of those years may still be imported.
_WITHDRAWN_BY_DIGITS = {0: "BYR", 2: "ANG BGN CUC HRK LTL MRO SLL STD VEF ZWL"}

DIGITS: dict[str, int] = {
    code: digits
    for table in (_BY_DIGITS, _WITHDRAWN_BY_DIGITS)
    for digits, codes in table.items()
    for code in codes.split()
}
"""Each currency's digits after the point."""

_OF_FUNDS = frozenset(["BOV", "CHE", "CHW", "CLF", "COU", "MXV", "USN", "UYI", "UYW"])

_AMOUNT = re.compile(r"([0-9]+)(?:\.([0-9]+))?")


class NoAmount(ValueError):
    """This is no amount of that currency; the text says why and what to give."""


class NegativeAmount(NoAmount):
    """This is below zero."""


def parts(text: str, example: str = "12.30") -> tuple[str, str]:
    """The digits before the point and behind it, in whatever currency. Raises `NoAmount`."""
    shown = text[:TEXT_CHARS_MAX]
    if text.startswith("-"):
        raise NegativeAmount(f"`{shown}` is negative; give zero or more.")
    if len(text) > TEXT_CHARS_MAX:
        raise NoAmount(f"`{shown}…` is too long for an amount; give at most {TEXT_CHARS_MAX} characters.")
    if not (match := _AMOUNT.fullmatch(text)):
        raise NoAmount(f"`{shown}` is no amount; give digits, with at most one point: `{example}`.")
    return match[1], match[2] or ""


def to_minor(text: str, currency: str) -> int:
    """`text`, such as "12.30", in minor units of `currency`, one of `DIGITS`. Raises `NoAmount`."""
    shown = text[:TEXT_CHARS_MAX]
    digits = DIGITS[currency]
    whole, part = parts(text, to_text(123 * 10**digits, currency))
    if part[digits:].strip("0"):
        raise NoAmount(f"`{shown}` is finer than {currency}, which has {digits} digits after the point; round it.")
    minor = int(whole + part[:digits].ljust(digits, "0"))
    if minor > MINOR_MAX:
        raise NoAmount(f"`{shown}` is above the limit of {to_text(MINOR_MAX, currency)} {currency}; check the unit.")
    return minor


def is_current(currency: str) -> bool:
    """Whether people pay with it today: it is neither withdrawn nor a unit of account."""
    is_withdrawn = any(currency in codes.split() for codes in _WITHDRAWN_BY_DIGITS.values())
    return currency in DIGITS and not is_withdrawn and currency not in _OF_FUNDS


def to_text(minor: int, currency: str) -> str:
    """`minor` as a decimal string with all digits of `currency`.

    >>> to_text(5, "KWD")
    '0.005'
    """
    digits = DIGITS[currency]
    if not digits:
        return str(minor)
    text = str(minor).rjust(digits + 1, "0")
    return f"{text[:-digits]}.{text[-digits:]}"

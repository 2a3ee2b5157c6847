"""Cells of files as people have them: amounts, times and days, read exactly or refused with what to do.

Never guesses: what can be read in two ways is refused until somebody says which is meant. Never uses a float for money.
Invariants: an amount keeps every digit; a time without a zone is read in the zone that was given, and in no other.

>>> Amounts(",").read("1.234,50 €")
Amount(text='1234.50', is_negative=False, currency='EUR')
>>> Instants(Times(order="dmy", zone="Europe/Berlin")).read("03/04/2026 10:00")
1775203200000
"""

import re
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from clickclock.attribution.importing.file_mapping import Numbers, Times
from clickclock.attribution.orders import money
from clickclock.foundation.instant import ms_of

SHOWN_CHARS_MAX: Final = 40
CURRENCY_SIGNS: Final = {
    "€": "EUR",
    "£": "GBP",
    "US$": "USD",
    "R$": "BRL",
    "A$": "AUD",
    "C$": "CAD",
    "CA$": "CAD",
    "NZ$": "NZD",
    "HK$": "HKD",
    "S$": "SGD",
    "MX$": "MXN",
    "zł": "PLN",
    "Kč": "CZK",
    "Ft": "HUF",
    "₹": "INR",
    "₺": "TRY",
    "₩": "KRW",
    "₽": "RUB",
    "₴": "UAH",
    "₪": "ILS",
    "₫": "VND",
    "฿": "THB",
    "₱": "PHP",
    "₦": "NGN",
    "lei": "RON",
}
"""Signs of one currency. `$`, `¥` and `kr` are those of several."""
_OF_SEVERAL: Final = {"$": "USD, CAD or AUD", "¥": "JPY or CNY", "kr": "SEK, NOK or DKK", "kr.": "DKK, SEK or NOK"}
_MICROS_DIGITS: Final = 6
_GROUP_DIGITS: Final = 3
_SECONDS_MAX: Final = 10**11
_number: Final = re.compile(r"([^\d.,\-+()]*)([-+(]?)([^\d.,\-+()]*)((?:\d[\d.,]*|[.,]\d+))(-?\)?)(\D*)").fullmatch
_SPACES: Final = dict.fromkeys(map(ord, " \u00a0\u202f\u2009'’"))
_MINUS: Final = str.maketrans("\u2212–", "--")
_parts: Final = re.compile(
    r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})(?:[ T,]+(\d{1,2})[:.](\d{2})(?:[:.](\d{2})(?:[.,](\d{1,9}))?)?"
    r"\s*([AaPp]\.?[Mm]\.?)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
).fullmatch
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_named: Final = re.compile(
    r"(?:(\d{1,2})\.? ([A-Za-z]{3})[a-z]*\.?,?|([A-Za-z]{3})[a-z]*\.? (\d{1,2}),?) (\d{4})"
    r"(?:,? (?:at )?(\d{1,2}):(\d{2})(?::(\d{2}))?\s*([AaPp]\.?[Mm]\.?)?)?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
).fullmatch
_YEAR_DIGITS: Final = 4
_MONTHS_OF_YEAR: Final = 12


class Unclear(ValueError):
    """A cell that cannot be read, or in two ways; the text says what to do."""


class Amount(NamedTuple):
    """An amount: digits with at most one point, its sign, and the currency that a sign beside it names."""

    text: str
    is_negative: bool
    currency: str | None


def shown(value: object) -> str:
    """A cell as a message shows it."""
    text = "".join(char if char.isprintable() else " " for char in str(value))
    return f"`{text[:SHOWN_CHARS_MAX]}{'…' if len(text) > SHOWN_CHARS_MAX else ''}`"


class Amounts:
    """How the amounts of a column are read. `decimal` is the decimal sign, if somebody said which it is."""

    def __init__(self, decimal: str | None = None, *, micros: bool = False, currency: str | None = None) -> None:
        """`currency` is the one that was said of the whole file: a sign of several currencies then means it."""
        self._decimal = decimal
        self._micros = micros
        self._currency = currency
        self.is_plain = re.compile(r"[0-9]+(?:\.[0-9]{1,2})?").fullmatch if decimal != "," and not micros else None
        """Finds amounts that are their own reading, whoever reads them."""

    @classmethod
    def of(cls, numbers: Numbers, currency: str | None = None) -> "Amounts":
        """As a mapping says."""
        return cls(numbers.decimal, micros=numbers.micros, currency=currency)

    def read(self, text: str) -> Amount:
        """The amount of a cell. Raises `Unclear`."""
        found = _number(text.translate(_SPACES).translate(_MINUS))
        if found is None:
            raise Unclear(f"{shown(text)} is no amount; give digits with at most one decimal sign, such as 1234.50")
        before, sign, between, digits, end, after = found.groups()
        is_negative = sign in ("-", "(") or end.startswith("-")
        if (sign == "(") != end.endswith(")"):
            raise Unclear(f"{shown(text)} is no amount; a parenthesis is missing")
        currency = self._currency_of(before or between or after, text)
        whole, part = self._split(digits, text)
        if self._micros:
            if part.strip("0"):
                raise Unclear(f"{shown(text)} has a decimal sign, and the mapping says that amounts are in millionths")
            digits = whole.rjust(_MICROS_DIGITS + 1, "0")
            whole, part = digits[:-_MICROS_DIGITS], digits[-_MICROS_DIGITS:].rstrip("0").ljust(2, "0")
        number = f"{whole.lstrip('0') or '0'}.{part}" if part else whole.lstrip("0") or "0"
        return Amount(number, is_negative and bool(number.strip("0.")), currency)

    def _split(self, digits: str, text: str) -> tuple[str, str]:
        """The digits before the decimal sign, and behind it."""
        points, commas = digits.count("."), digits.count(",")
        decimal = self._decimal
        if decimal is None and points and commas:
            decimal = max(".,", key=digits.rfind)
        elif decimal is None and (points or commas) == 1:
            sign = "." if points else ","
            whole, _, part = digits.partition(sign)
            # A group of thousands begins with one to three digits, and not with a zero.
            if len(part) == _GROUP_DIGITS and 1 <= len(whole) <= _GROUP_DIGITS and not whole.startswith("0"):
                grouped, ungrouped = whole + part, f"{whole}.{part}"
                raise Unclear(f"{shown(text)} may be {grouped} or {ungrouped}; say which sign is decimal: --decimal")
            decimal = sign
        elif decimal is None and (points or commas):
            decimal = "," if points else "."
        if decimal is None:
            return digits, ""
        group = "," if decimal == "." else "."
        whole, _, part = digits.partition(decimal)
        groups = whole.split(group)
        if decimal in part or group in part or not all(len(each) == _GROUP_DIGITS for each in groups[1:]) or (
            len(groups) > 1 and not 1 <= len(groups[0]) <= _GROUP_DIGITS
        ):  # fmt: skip
            raise Unclear(f"{shown(text)} is no amount with `{decimal}` as decimal sign; look at --decimal")
        return "".join(groups), part

    def _currency_of(self, sign: str, text: str) -> str | None:
        if not sign:
            return None
        if sign.upper() in money.DIGITS:
            return sign.upper()
        known = CURRENCY_SIGNS.get(sign)
        if known is None and sign in _OF_SEVERAL:
            if self._currency is None:
                raise Unclear(f"{shown(text)} may be {_OF_SEVERAL[sign]}; say which: --currency")
            return self._currency
        if known is None:
            raise Unclear(f"{shown(text)} has `{sign[:SHOWN_CHARS_MAX]}` beside the digits, which is no currency")
        return known


class Instants:
    """How the times of a column are read."""

    def __init__(self, times: Times) -> None:
        self._order = times.order
        self._zone = None if times.zone is None else ZoneInfo(times.zone)
        self._unit = times.unit

    def read(self, text: str) -> int:
        """Milliseconds since 1970. Raises `Unclear`."""
        text = text.strip()
        if text.isdigit() and text.isascii():
            return self._of_number(text)
        try:
            at = datetime.fromisoformat(text if " +" not in text else text.replace(" +", "+"))
        except ValueError:
            at = _moment(text, self._order)
        return self.placed(at, text)

    def placed(self, at: datetime, text: str) -> int:
        """Milliseconds since 1970 of a time that may lack its zone. Raises `Unclear`."""
        if at.tzinfo is not None:
            return ms_of(at)
        if self._zone is None:
            raise Unclear(f"{shown(text)} names no time zone; say in which it is: --zone Europe/Berlin, or --zone UTC")
        placed = at.replace(tzinfo=self._zone)
        ms = ms_of(placed)
        if _comes_back_otherwise(placed, at, self._zone):
            raise Unclear(f"{shown(text)} does not exist in {self._zone.key}: clocks went forward; look at --zone")
        return ms

    def _of_number(self, text: str) -> int:
        number = int(text)
        unit = self._unit or ("s" if number < _SECONDS_MAX else "ms")
        return {"s": number * 1000, "ms": number, "us": number // 1000}[unit]


def _comes_back_otherwise(placed: datetime, wall: datetime, zone: ZoneInfo) -> bool:
    """Whether no clock in the zone showed it. Of a time that came twice, the first is taken."""
    offset = placed.utcoffset() or timedelta(0)
    return (placed.replace(tzinfo=None) - offset).replace(tzinfo=ZoneInfo("UTC")).astimezone(zone).replace(
        tzinfo=None
    ) != wall


def day(text: str, order: str | None) -> str:
    """The day of a cell in ISO 8601; a time of midnight is one, too. Raises `Unclear`."""
    text = text.strip()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        at = _moment(text, order)
    if at.time() != at.time().min:
        raise Unclear(f"{shown(text)} is a time, and a cost is of a whole day; export by day")
    return at.date().isoformat()


def _moment(text: str, order: str | None) -> datetime:
    """The wall time of a cell, with its zone if it names one."""
    found = _parts(text)
    if found is not None:
        first, sign, second, third, *time = found.groups()
        year, month, day_ = _ordered((first, second, third), sign, order, text)
        return _composed(year, month, day_, time, text)
    named = _named(text)
    if named is not None:
        before, month_a, month_b, after, year_text, hour, minute, second_, half, zone = named.groups()
        name = (month_a or month_b).lower()
        if name in _MONTHS:
            time = [hour, minute, second_, None, half, zone]
            return _composed(int(year_text), _MONTHS.index(name) + 1, int(before or after), time, text)
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise Unclear(f"{shown(text)} is no time; give one such as 2026-11-20T10:00:00+01:00") from error


def _ordered(parts: tuple[str, str, str], sign: str, order: str | None, text: str) -> tuple[int, int, int]:
    """Year, month and day. Dots are written day first everywhere; of other signs, somebody has to say."""
    first, second, third = map(int, parts)
    if len(parts[0]) == _YEAR_DIGITS:
        return first, second, third
    year = third if len(parts[2]) == _YEAR_DIGITS else 2000 + third
    if sign == ".":
        order = "dmy"
    if order is None:
        if first > _MONTHS_OF_YEAR or second > _MONTHS_OF_YEAR or first == second:
            order = "dmy" if second <= _MONTHS_OF_YEAR else "mdy"
        else:
            raise Unclear(
                f"{shown(text)} may be {first} {_MONTHS[second - 1].title()} or {second} {_MONTHS[first - 1].title()}; "
                "say which order day and month have: --dates dmy or --dates mdy"
            )
    month, day_ = (first, second) if order == "mdy" else (second, first)
    return year, month, day_


def _composed(year: int, month: int, day_: int, time: list[str | None], text: str) -> datetime:
    hour, minute, second, fraction, half, zone = time
    hours = int(hour or 0)
    if half:
        hours = hours % 12 + (12 if half[0] in "pP" else 0)
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        at = datetime(year, month, day_, hours, int(minute or 0), int(second or 0), micros)  # noqa: DTZ001 (a wall time)
        return at if zone is None else datetime.fromisoformat(at.isoformat() + _iso_zone(zone))
    except ValueError as error:
        raise Unclear(f"{shown(text)} is no time there is ({error}); look at --dates") from error


def _iso_zone(zone: str) -> str:
    return "+00:00" if zone in ("Z", "UTC", "GMT") else zone

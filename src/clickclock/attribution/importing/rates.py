"""A table of rates: what an amount in one currency is in another one, on a day.

Never guesses a rate and never uses a float. Invariants: the rate of the day counts, or else the last one before it; a
rate without a day is for every day; an amount is rounded once, half to even, to the digits of its new currency.

>>> rates = Rates([{"from": "USD", "to": "EUR", "rate": "0.9"}])
>>> rates.converted(1000, "USD", "EUR", date(2026, 11, 20))
900
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

from clickclock.attribution.orders import money
from clickclock.foundation.errors import Fault, Invalid

_ALWAYS = date.min


class NoRate(ValueError):
    """There is no rate for this; the text names it."""


class Rates:
    """The rates of a table with the columns `from`, `to`, `rate` and, if they change, `day`."""

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Raises `Invalid` with every fault."""
        self._rates: dict[tuple[str, str], list[tuple[date, Decimal]]] = defaultdict(list)
        faults: list[Fault] = []
        for number, row in enumerate(rows, 2):
            try:
                self._add(row)
            except (ValueError, InvalidOperation) as error:
                faults.append(Fault(f"line {number}", f"{str(error) or 'rate'} cannot be read as a rate."))
        if faults:
            raise Invalid("The table of rates has faults; its columns are from, to, rate and day.", faults)
        for found in self._rates.values():
            found.sort()

    def _add(self, row: Mapping[str, object]) -> None:
        pair = str(row.get("from", "")).strip(), str(row.get("to", "")).strip()
        for currency in pair:
            if currency not in money.DIGITS:
                raise ValueError(f"`{currency}` is no currency of ISO 4217, so it")
        text = str(row.get("rate", ""))
        rate = Decimal(text) if text else Decimal("NaN")
        if not rate.is_finite() or rate <= 0:
            raise ValueError(f"`{text}`")
        day = str(row.get("day") or "")
        self._rates[pair].append((date.fromisoformat(day) if day else _ALWAYS, rate))

    def converted(self, minor: int, currency: str, to: str, day: date) -> int:
        """An amount in minor units of `to`. Raises `NoRate`."""
        known = [rate for since, rate in self._rates.get((currency, to), ()) if since <= day]
        if not known:
            raise NoRate(f"there is no rate from {currency} to {to} on {day}; add it to the table of rates")
        shift = Decimal(10) ** (money.DIGITS[to] - money.DIGITS[currency])
        return int((Decimal(minor) * known[-1] * shift).to_integral_value(ROUND_HALF_EVEN))

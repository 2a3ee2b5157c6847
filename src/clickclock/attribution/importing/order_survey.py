"""A survey of orders while they are looked at: their period, currencies, identifiers and repeats.

Never holds an order: some bytes of each. A shop's export has every order once, as it stands. So two rows of one id in
one file are line items that stand apart, and two files that name different times are those of two shops. Invariants:
rows that say the same are no conflict; neither is a later export in which an order has changed.

>>> from clickclock.attribution.importing.order_row import of_mapped
>>> survey = OrderSurvey()
>>> survey.of("a.csv", amends=False)(2, of_mapped({"client_id": "c", "order_id": "7", "currency": "EUR"}))
>>> survey.currencies
{'c': {'EUR'}}
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final, Protocol

import numpy as np

from clickclock.attribution.importing.faulty_row import SHOWN_MAX, FaultyRow
from clickclock.attribution.importing.order_row import OrderRow

_TWO_SHOPS: Final = (
    "the order of this id is another one in {file}, line {number:,}: their times differ. If the files are of two "
    "shops, import each with its own --client-id"
)
_TWO_ROWS: Final = (
    "the order of this id is another one in line {number:,}. If an order has a row for each line item, sort the file "
    "by order, and say so in the mapping: [lines]"
)
_NO_ZEROS: Final = (
    "`{short}` is shorter than `{padded}` in line {number:,}: a spreadsheet may have removed zeros in front. If so, "
    "export the column as text"
)


class Told(Protocol):
    """Where repeats and conflicts are counted."""

    repeated: int
    conflicts: list[FaultyRow]
    lost_zeros: list[FaultyRow]


class _Digits:
    """Of a file, the shortest id of digits with a zero in front, and the shortest without one."""

    __slots__ = ("padded", "short")

    def __init__(self) -> None:
        self.padded = self.short = (0, "")

    def note(self, number: int, order_id: str) -> None:
        if order_id[0] == "0":
            if not self.padded[1] or len(order_id) < len(self.padded[1]):
                self.padded = number, order_id
        elif not self.short[1] or len(order_id) < len(self.short[1]):
            self.short = number, order_id


class OrderSurvey:
    """What was seen of all files of an import."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str | None, str | None, bool, bool, bool]] = Counter()
        self._files: list[str] = []
        self._digits: list[_Digits] = []
        self._times = array("q")
        self._ids, self._placed, self._contents = array("q"), array("q"), array("q")
        self._places, self._numbers = array("H"), array("Q")

    def of(self, file: str, *, amends: bool) -> Callable[[int, OrderRow], None]:
        """What notes the orders of one more file, by the numbers of their rows; `amends` where rows may repeat."""
        place = len(self._files)
        self._files.append(file)
        digits = _Digits()
        self._digits.append(digits)
        seen = self._seen
        times, ids, placed, contents = (each.append for each in (self._times, self._ids, self._placed, self._contents))
        places, numbers = self._places.append, self._numbers.append

        def note(number: int, row: OrderRow) -> None:
            given = row.given
            client_id, order_id = given.get("client_id"), given.get("order_id")
            seen[
                client_id, given.get("currency"), "cli_ubid" in given, "device_id" in given, "customer_id" in given
            ] += 1
            if order_id and order_id.isdecimal():
                digits.note(number, order_id)
            said_ms = row.said_ms
            times(said_ms)
            if not amends:
                ids(hash((client_id, order_id)))
                placed(said_ms)
                contents(hash(row.raw))
                places(place)
                numbers(number)

        return note

    @property
    def orders(self) -> int:
        """How many rows were orders."""
        return self._seen.total()

    @property
    def currencies(self) -> dict[str, set[str]]:
        """By client."""
        found: dict[str, set[str]] = defaultdict(set)
        for client_id, currency, *_ in self._seen:
            if client_id and currency:
                found[client_id].add(currency)
        return dict(found)

    @property
    def identified(self) -> dict[str, int]:
        """How many have which identifier, and how many have none."""
        names = ("cli_ubid", "device_id", "customer_id")
        found = {name: sum(n for key, n in self._seen.items() if key[2 + i]) for i, name in enumerate(names)}
        return {**found, "none": sum(n for key, n in self._seen.items() if not any(key[2:]))}

    @property
    def period_ms(self) -> tuple[int, int] | None:
        """The first and the last time; None if there is none."""
        times = np.frombuffer(self._times, np.int64) if self._times else np.empty(0, np.int64)
        times = times[times > 0]
        return (int(times.min()), int(times.max())) if len(times) else None

    def tell(self, report: Told) -> None:
        """Say in the report how many rows repeat others, which contradict others, and where ids may have lost zeros."""
        for file, digits in zip(self._files, self._digits, strict=True):
            (padded_in, padded), (number, short) = digits.padded, digits.short
            if padded and short and len(short) < len(padded):
                said = _NO_ZEROS.format(short=short, padded=padded, number=padded_in)
                report.lost_zeros.append(FaultyRow(file, number, said))
        if not self._ids:
            return
        ids = np.frombuffer(self._ids, np.int64)
        by_id = np.argsort(ids, kind="stable")
        ordered = ids[by_id]
        for place in np.flatnonzero(ordered[1:] == ordered[:-1]).tolist():
            before, after = int(by_id[place]), int(by_id[place + 1])
            if self._contents[before] == self._contents[after]:
                report.repeated += 1
            elif len(report.conflicts) < SHOWN_MAX:
                self._compare(before, after, report)

    def _compare(self, before: int, after: int, report: Told) -> None:
        file, other = self._files[self._places[after]], self._files[self._places[before]]
        if self._places[before] == self._places[after]:
            sentence = _TWO_ROWS
        elif self._placed[before] != self._placed[after]:
            sentence = _TWO_SHOPS
        else:
            return  # of two exports of one shop, what changed between them
        told = sentence.format(file=other, number=self._numbers[before])
        report.conflicts.append(FaultyRow(file, self._numbers[after], told))

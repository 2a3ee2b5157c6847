"""Rows of a file as people have it, as the rows that an import takes: a mapping, applied to a header and to cells.

Never judges and never guesses: a cell that cannot be read makes its row unusable, with the name of its column. Works
on some thousand rows at once, column by column. Invariants: every row comes out once, in order: as a record, as left
out, or as unusable; what a record says depends on its own row alone.

>>> mapping = FileMapping(kind="orders", columns={"order_id": "No", "amount": "Sum"}, constants={"currency": "EUR"})
>>> Mapper(mapping, ["No", "Sum"]).read([2], [["7", "1.50 €"]])
[(2, {'currency': 'EUR', 'order_id': '7', 'amount': '1.50'})]
"""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from clickclock.attribution.clicks.query import Unreadable, split
from clickclock.attribution.importing.cells import Amounts, Instants, Unclear, shown
from clickclock.attribution.importing.columns import Source, sources
from clickclock.attribution.importing.file_mapping import CANCELLED_AT, DAY_UNTIL, URL, FileMapping, Kind
from clickclock.attribution.importing.historical import AGENT, QUERY, RECEIVED_AT, REFERER, Unusable, encoded
from clickclock.attribution.importing.left_out import LeftOut
from clickclock.attribution.importing.readers import (
    Cell,
    Column,
    Faults,
    Reader,
    Translated,
    currency_of,
    day_of,
    each,
    hashed,
    ids,
    instant,
    is_nothing,
    number_text,
    text_of,
    value_of,
)
from clickclock.attribution.importing.table_row import AMOUNTS, IDS

Record = dict[str, Any]
Mapped = tuple[int, Record | Unusable | None]
"""The number of a row's line, and what it is; None is a row that is left out."""

STATUS: Final = "status"
COMPLETED, PARTIALLY_REFUNDED, REFUNDED, CANCELLED = "completed", "partially_refunded", "refunded", "cancelled"
_TIMES: Final = frozenset({"event_time", RECEIVED_AT})
_DAYS: Final = frozenset({"day", DAY_UNTIL})
_NAMES: Final = frozenset({"campaign", "ad_set", "ad", "sku_id"})


class Mapper:
    """A mapping for the rows under one header."""

    def __init__(self, mapping: FileMapping, header: Sequence[str]) -> None:
        """Raises `Unclear` if the header's currency is not the constant one."""
        self.mapping = mapping
        self.sources, self.lacking = sources(mapping, header)
        self._left_out = LeftOut(mapping, header, self.sources)
        self._constants = dict(mapping.constants)
        in_header = {each.currency for each in self.sources.values() if each.currency}
        if in_header:
            self._constants.setdefault("currency", min(in_header))
        self._currency = self._constants.get("currency")
        if in_header and in_header != {self._currency}:
            raise Unclear(f"the header says {', '.join(sorted(in_header))}, and the mapping {self._currency}")
        self._readers = [(column, source, self._reader(column, source)) for column, source in self.sources.items()]
        self._finish = {Kind.ORDERS: _order, Kind.COSTS: _cost, Kind.CLICKS: self._click}[mapping.kind]

    @property
    def left_out(self) -> Counter[tuple[str, str]]:
        """How many rows were left out, by column and value."""
        return self._left_out.counts

    def read(self, numbers: Sequence[int], rows: Sequence[Sequence[Cell]]) -> list[Mapped]:
        """A batch of rows; `numbers` are those of their lines. None is a row that is left out."""
        faults: Faults = {}
        out = self._left_out.of(rows, faults)
        if out or faults:
            kept = [place for place in range(len(rows)) if place not in out and place not in faults]
            inner = self.read_kept([numbers[place] for place in kept], [rows[place] for place in kept])
            found: list[Record | Unusable | None] = [None] * len(rows)
            for place, (_, each) in zip(kept, inner, strict=True):
                found[place] = each
            for place, messages in faults.items():
                found[place] = Unusable("; ".join(messages))
            return list(zip(numbers, found, strict=True))
        return self.read_kept(numbers, rows)

    def read_kept(self, numbers: Sequence[int], rows: Sequence[Sequence[Cell]]) -> list[Mapped]:
        """The same for rows of which none is left out, and each has as many cells as the header."""
        if not rows or not self._readers:
            return [(number, dict(self._constants)) for number in numbers]
        faults: Faults = {}
        columns = [read([row[source.place] for row in rows], faults) for _, source, read in self._readers]
        names = [column for column, _, _ in self._readers]
        constants, finish = self._constants, self._finish
        found: list[Mapped] = []
        for place, (number, values) in enumerate(zip(numbers, zip(*columns, strict=True), strict=True)):
            if place in faults:
                found.append((number, Unusable("; ".join(faults[place]))))
                continue
            said = {name: value for name, value in zip(names, values, strict=True) if value != "" and value is not None}
            record = {**constants, **said}
            try:
                found.append((number, finish(record)))
            except Unclear as unclear:
                found.append((number, Unusable(str(unclear))))
        return found

    def _reader(self, column: str, source: Source) -> Reader:
        inner = self._inner_reader(column, source)
        if source.key is None:
            return inner
        key = source.key
        return lambda values, faults: inner([value_of(value, key) for value in values], faults)

    def _inner_reader(self, column: str, source: Source) -> Reader:
        translated = self.mapping.values.get(column)
        if column in self.mapping.hashed:
            return lambda values, _: [hashed(text_of(value)) for value in values]
        if translated is not None:
            return each(source.name, Translated(column, translated).read)
        if column in AMOUNTS:
            return self._amounts(source)
        if column == "currency":
            return each(source.name, currency_of)
        if column in _TIMES:
            instants = Instants(self.mapping.times)
            return each(source.name, lambda cell: str(instant(instants, cell)))
        if column in _DAYS:
            order = self.mapping.times.order
            return each(source.name, lambda cell: day_of(cell, order))
        if column == "items":
            return lambda values, _: values
        if column in IDS or column.endswith(("_id", "ubid", "clid", "braid")):
            return ids(source.name, is_name=column in _NAMES)
        return lambda values, _: ["" if is_nothing(value) else text_of(value).strip() for value in values]

    def _amounts(self, source: Source) -> Reader:
        # Where a column says the currency, a sign beside the digits need not.
        said = "" if "currency" in self.sources else None
        amounts = Amounts.of(self.mapping.numbers, said if self._currency is None else self._currency)
        is_plain, currency = amounts.is_plain, self._currency

        def read(cell: Cell) -> str:
            found = amounts.read(number_text(cell))
            if found.currency and currency is not None and found.currency != currency:
                raise Unclear(f"{shown(cell)} is in {found.currency}, and the currency is {currency}")
            if found.currency and currency is None and "currency" not in self.sources:
                return f"{'-' if found.is_negative else ''}{found.text} {found.currency}"
            return f"-{found.text}" if found.is_negative else found.text

        slow = each(source.name, read)
        if self.mapping.kind is Kind.COSTS:
            # Networks write dashes where nothing was paid.
            return lambda values, faults: slow(["0" if is_nothing(cell) and cell else cell for cell in values], faults)
        if is_plain is None:
            return slow

        def column(values: Column, faults: Faults) -> Column:
            try:
                if all(map(is_plain, values)):
                    return values
            except TypeError:  # a workbook's number
                pass
            return slow(values, faults)

        return column

    def _click(self, record: Record) -> Record | None:
        """A row of a click as its query. The address of the page has the parameters that no column has."""
        received, agent, referer = (record.pop(name, None) for name in (RECEIVED_AT, AGENT, REFERER))
        url = record.pop(URL, None)
        if url is not None:
            record = {**_parameters(url), **record}
        needed = self.mapping.needs_any
        if needed and not any(record.get(name) for name in needed):
            self._left_out.counts["", "visits without parameters of an ad"] += 1
            return None
        given = record.pop(QUERY, None) or b"&".join(
            encoded(name) + b"=" + encoded(each) for name, each in record.items()
        )
        said = {QUERY: given, RECEIVED_AT: received, AGENT: agent, REFERER: referer}
        return {name: value for name, value in said.items() if value}


def _parameters(url: str) -> dict[str, str]:
    """The parameters of a page's address."""
    query = url.partition("?")[2].partition("#")[0]
    try:
        return dict(split(query.encode("utf-8", "surrogateescape")))
    except Unreadable as error:
        raise Unclear(f"{shown(url)} has parameters that cannot be read") from error


def _order(record: Record) -> Record:
    """An order with the status that its amounts say, and the currency that stands beside them."""
    _take_currency(record)
    if record.pop(CANCELLED_AT, None):
        record[STATUS] = CANCELLED
    return settled(record)


def settled(record: Record) -> Record:
    """An order whose status and refund agree, where only one of them is there. Shared with orders of many lines."""
    refunded = record.get("refunded_amount")
    if refunded is None:
        return record
    if refunded.startswith("-"):
        refunded = record["refunded_amount"] = refunded[1:]
    is_nothing = not refunded.strip("0.")
    if is_nothing or record.get(STATUS) == CANCELLED:
        del record["refunded_amount"]
    elif record.get(STATUS, COMPLETED) in (COMPLETED, REFUNDED, PARTIALLY_REFUNDED):
        amount = record.get("amount", "0").lstrip("-")
        record[STATUS] = REFUNDED if Decimal(refunded) == Decimal(amount) else PARTIALLY_REFUNDED
    return record


def _cost(record: Record) -> Record:
    _take_currency(record)
    until = record.pop(DAY_UNTIL, None)
    first = record.get("day")
    if until is not None and first is not None and until != first:
        raise Unclear(f"the cost is of {first} until {until}; export by day")
    return record


def _take_currency(record: Record) -> None:
    for name in AMOUNTS:
        value = record.get(name)
        if value is not None and " " in value:
            record[name], _, record["currency"] = value.partition(" ")

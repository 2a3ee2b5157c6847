"""Readers of columns: many cells of one column at once, each read or named with what is wrong with it.

Never guesses. Invariants: a column comes out as long as it went in; a cell that cannot be read is a fault of its row
and an empty text; what is empty stays empty.

>>> faults: Faults = {}
>>> ids("No", is_name=False)(["7", "5.1E+12"], faults), list(faults)
(['7', '5.1E+12'], [1])
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final

from clickclock.attribution.importing.cells import Amounts, Instants, Unclear, day, shown
from clickclock.attribution.importing.columns import folded
from clickclock.attribution.orders.lost_digits import reason

Cell = Any
"""What a file has in a row and a column: text, or a value of a workbook or of JSON."""
Faults = dict[int, list[str]]
"""What is wrong with rows, by their place in the batch."""
Column = list[Any]
Reader = Callable[[Column, Faults], Column]
_KNOWN_MAX: Final = 10_000
"""How many different cells of a column are remembered."""
_SHEET_DIGITS: Final = 15
"""How many digits of a number a workbook keeps."""
_is_plain_id: Final = re.compile(r"#[1-9][0-9]*|[0-9A-Za-z][0-9A-Za-z_-]*").fullmatch
"""Ids that no program can have taken for numbers: for that they would need a decimal mark or a plus sign."""
_named_values: Final = re.compile(r"^\s*([^:=]+?)\s*[:=]\s*(.*?)\s*$", re.MULTILINE)


def each(name: str, read: Callable[[Cell], str]) -> Reader:
    """A column read cell by cell, what is the same only once."""
    known: dict[Cell, str] = {}

    def column(values: Column, faults: Faults) -> Column:
        found = []
        if len(known) > _KNOWN_MAX:
            known.clear()
        for place, value in enumerate(values):
            text = known.get(value)
            if text is None:
                try:
                    text = known[value] = "" if is_nothing(value) else read(value)
                except Unclear as unclear:
                    faults.setdefault(place, []).append(f"{name}: {unclear}")
                    text = ""
            found.append(text)
        return found

    return column


def ids(name: str, *, is_name: bool) -> Reader:
    """A column of ids; what a program took for a number is a fault."""

    def column(values: Column, faults: Faults) -> Column:
        found = []
        for place, value in enumerate(values):
            if value.__class__ is str and _is_plain_id(value) is not None:
                found.append(value)
                continue
            text = "" if is_nothing(value) else text_of(value).strip()
            why = reason(value if isinstance(value, float) and not value.is_integer() else text, is_name=is_name)
            if why is None and isinstance(value, int | float) and len(text.lstrip("-")) > _SHEET_DIGITS:
                why = f"{shown(text)} is a number of more than {_SHEET_DIGITS} digits, and a workbook keeps no more"
            if why is not None:
                faults.setdefault(place, []).append(f"{name}: {why}")
            found.append(text)
        return found

    return column


class Translated:
    """Words of a column, each with what we call it; a word that is one of ours already stays."""

    def __init__(self, column: str, words: Mapping[str, str]) -> None:
        self._column = column
        self._words = {folded(theirs): ours for theirs, ours in words.items()}
        self._ours = frozenset(words.values())

    def read(self, cell: Cell) -> str:
        """What we call it. Raises `Unclear`."""
        text = text_of(cell).strip()
        found = self._words.get(folded(text))
        if found is None and text in self._ours:
            return text
        if found is None:
            raise Unclear(f"{shown(text)} is no word that the mapping knows; add it to [values.{self._column}]")
        return found


def is_nothing(value: Cell) -> bool:
    """Whether there is nothing in a cell; exporters write dashes where they have no value."""
    return value is None or value == "" or (value.__class__ is str and value.strip() in ("", "--", "-"))


def text_of(value: Cell) -> str:
    """The text of a cell, whatever it holds."""
    if value.__class__ is str:
        return value
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case datetime() | date() | time():
            return value.isoformat()
        case dict() | list():
            return json.dumps(value)
    return str(value)


def number_text(value: Cell) -> str:
    """A number of a workbook has fifteen digits that count; the others are those of the binary form."""
    if isinstance(value, float):
        return f"{Decimal(format(value, f'.{_SHEET_DIGITS}g')):f}"
    return text_of(value)


def instant(instants: Instants, cell: Cell) -> int:
    """Milliseconds since 1970 of a cell. Raises `Unclear`."""
    if isinstance(cell, datetime):
        return instants.placed(cell, cell.isoformat())
    if isinstance(cell, date | time | timedelta):
        raise Unclear(f"{shown(cell)} is a day, and a time of day is needed")
    return instants.read(text_of(cell))


def day_of(cell: Cell, order: str | None) -> str:
    """The day of a cell, in ISO 8601. Raises `Unclear`."""
    return day(text_of(cell), order)


def currency_of(cell: Cell) -> str:
    """The currency that a cell names by its code or its sign. Raises `Unclear`."""
    text = text_of(cell).strip().upper()
    found = Amounts().read(f"{text}1").currency if not text.isalpha() else text
    return found or text


def hashed(text: str) -> str:
    """The SHA-256, in hex, of a text in small letters without blanks around it."""
    text = text.strip().lower()
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest() if text else ""


def value_of(cell: Cell, key: str) -> Cell:
    """The value of this name in a cell that holds several: lines of `name: value`, or JSON."""
    if cell.__class__ is str and cell[:1] in ("{", "["):
        try:
            cell = json.loads(cell)
        except ValueError:
            return ""
    match cell:
        case dict():
            return cell.get(key)
        case list():
            for each in cell:
                if isinstance(each, dict) and each.get("key", each.get("name")) == key:
                    value = each.get("value")
                    # As GA4 has them: one of string_value, int_value, … is filled in.
                    return next(filter(None, value.values()), None) if isinstance(value, dict) else value
            return None
        case str() if key in cell:
            return next((value for name, value in _named_values.findall(cell) if name == key), "")
    return None

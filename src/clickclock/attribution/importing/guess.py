"""The mapping of a file that nobody described: a guess by the names of its columns and what stands in them.

Never reads a file, and never decides: whoever has the rows kept agrees to the guess, or changes it. Invariants: each
column of the file is used once at most; a column that must be there and was not found stays open; a time is no amount,
and an amount no time.

>>> found = guess(["Bestellnummer", "Datum", "Betrag (EUR)"], [["0012", "03.11.2026 10:15", "1.234,56"]])
>>> found.kind, found.columns["amount"], found.constants["currency"]
(<Kind.ORDERS: 'orders'>, ('Betrag (EUR)',), 'EUR')
>>> guess(["a", "b"], [["1", "2"]]) is None
True
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from clickclock.attribution.importing.columns import folded
from clickclock.attribution.importing.file_mapping import CANCELLED_AT, URL, FileMapping, Kind
from clickclock.attribution.orders import money
from clickclock.attribution.orders.amendment import KIND

_SAID: Final = tomllib.loads((files("clickclock.attribution.importing") / "words.toml").read_text("utf-8"))
_WORDS: Final[Mapping[Kind, Mapping[str, tuple[str, ...]]]] = {
    kind: {column: tuple(words) for column, words in _SAID[kind].items()} for kind in Kind
}
NAMES: Final = frozenset(folded(word) for columns in _WORDS.values() for words in columns.values() for word in words)
"""Names by which the line of a header is found, however many lines stand before it."""
_SIGNS: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.ORDERS: frozenset({"order_id", "amount"}),
    Kind.CLICKS: frozenset({URL, "event_time"}),
    Kind.COSTS: frozenset({"day", "amount"}),
}
"""Columns without which a file is of another kind; costs also need something that was advertised."""
_ADVERTISED: Final = frozenset({"channel", "campaign", "ad_set", "ad"})
_OF_A_LINE: Final = frozenset({"sku_id", "price", "quantity"})
_STATUS_OF: Final = {word: ours for ours, words in _SAID["status"].items() for word in words}
_other: Final = re.compile(r"[^a-z0-9]+")
_currency_in: Final = re.compile(r"(?<![A-Za-z])([A-Z]{3})(?![A-Za-z])")
_amount: Final = re.compile(r"[^\d]{0,4}\(?[-+]?\d[\d.,'\u00a0\u202f ]*\)?[^\d]{0,5}").fullmatch
_time: Final = re.compile(
    r".*\d{1,4}[-/. ](\d{1,2}|[A-Za-z]{3,9})\.?,?[-/. ]\d{1,4}.*|\d{10}|\d{13}|[A-Za-z]{3,9} \d{1,2},? \d{4}.*"
).fullmatch
_url: Final = re.compile(r"(https?://\S+|/\S*\?\S+)").fullmatch
_name: Final = re.compile(r"(?=.*\w)[^\n]{1,256}").fullmatch
_of_something_else: Final = re.compile(
    r"\b(name|tax|vat|mwst|steuer|discount|rabatt|shipping|versand|fee|delivery|due|sub|net|tva|iva|porto|quantity|items?)\b"
).search
"""Finds a word in a name that only contains one of ours, and means a part of it or another thing."""
_FITS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("amount", "refunded_amount"), _amount),
    **dict.fromkeys(("event_time", "day", CANCELLED_AT), _time),
    URL: _url,
    "currency": re.compile("[A-Za-z]{3}").fullmatch,
}


def guess(header: Sequence[str], rows: Iterable[Sequence[object]]) -> FileMapping | None:
    """The mapping of a file with this header and these first rows; None if nothing says which kind of row it has."""
    sample = list(rows)
    values = [
        [text for row in sample if place < len(row) and (text := _text(row[place]))] for place in range(len(header))
    ]
    for kind, signs in _SIGNS.items():
        found = _columns(kind, header, values)
        is_known = signs <= found.keys() or (kind is Kind.ORDERS and {"order_id", KIND} <= found.keys())
        if is_known and (kind is not Kind.COSTS or found.keys() & _ADVERTISED):
            return _mapping(kind, {column: header[place] for column, place in found.items()}, found, values)
    return None


def _columns(kind: Kind, header: Sequence[str], values: Sequence[Sequence[str]]) -> dict[str, int]:
    """Where the file has each of our columns: the name that stands first in our list counts, if its values fit."""
    names = {place: _plain(name) for place, name in enumerate(header)}
    found: dict[str, int] = {}
    for is_like in (_equals, _contains):
        for column, words in _WORDS[kind].items():
            fits = _FITS.get(column, _name)
            candidates = (
                place
                for word in words
                for place, name in names.items()
                if place not in found.values() and is_like(name, word) and all(map(fits, values[place]))
            )
            place = None if column in found else next(candidates, None)
            if place is not None:
                found[column] = place
    return found


def _mapping(
    kind: Kind, columns: Mapping[str, str], places: Mapping[str, int], values: Sequence[Sequence[str]]
) -> FileMapping:
    given: dict[str, Any] = {"kind": kind, "columns": columns}
    currency = _currency_in.search(columns["amount"]) if "amount" in columns and "currency" not in columns else None
    if currency is not None and currency[1] in money.DIGITS:
        given["constants"] = {"currency": currency[1]}
    if "customer_id" in places and any("@" in value for value in values[places["customer_id"]]):
        given["hashed"] = ("customer_id",)
    if kind is Kind.ORDERS and places.keys() & _OF_A_LINE:
        ids = values[places["order_id"]]
        given["lines"] = {} if len(set(ids)) < len(ids) else None
    if "status" in places:
        words = {value: _STATUS_OF.get(_plain(value)) for value in values[places["status"]]}
        given["values"] = {"status": {word: ours for word, ours in words.items() if ours is not None and word != ours}}
    if kind is Kind.COSTS:
        given["adds_up"] = True
    return FileMapping.model_validate(given)


def _plain(name: str) -> str:
    """A name in small letters of ASCII, with one blank between words.

    >>> _plain("N° de commande"), _plain("Betrag (EUR)")
    ('n de commande', 'betrag eur')
    """
    apart = unicodedata.normalize("NFKD", re.sub("([a-z])([A-Z])", r"\1 \2", name).casefold().replace("ß", "ss"))
    return _other.sub(" ", "".join(char for char in apart if not unicodedata.combining(char))).strip()


def _equals(name: str, word: str) -> bool:
    return name == word


def _contains(name: str, word: str) -> bool:
    return f" {word} " in f" {name} " and _of_something_else(name) is None


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()

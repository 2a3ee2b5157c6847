"""The columns of a file, by name: where it has each of those that a mapping asks for.

Never reads a cell. Invariants: case and blanks in names do not count; of several names the first one that is
there is taken.

>>> place_of("order id", ["Total", " Order  ID "])
1
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from clickclock.attribution.importing.file_mapping import CURRENCY, FileMapping, split_key

_currency_in: Final = re.compile(r"[A-Z]{3}")
_spaces: Final = re.compile(r"\s+")


def folded(name: str) -> str:
    """The name of a column as names are compared: case and blanks around and between do not count."""
    return _spaces.sub(" ", name.replace("\ufeff", " ").replace("\u00a0", " ")).strip().casefold()


class Source(NamedTuple):
    """Where a file has one of our columns."""

    place: int
    name: str
    key: str | None = None
    """Of a cell that holds several named values, which."""
    currency: str | None = None
    """In the name of the column."""


class Missing(NamedTuple):
    """One of our columns that the file lacks, and how its column could be called."""

    column: str
    names: tuple[str, ...]


def sources(mapping: FileMapping, header: Sequence[str]) -> tuple[dict[str, Source], list[Missing]]:
    """Where the file has each of our columns, and which of them it lacks."""
    places = {folded(name): place for place, name in reversed(list(enumerate(header)))}
    found: dict[str, Source] = {}
    lacking: list[Missing] = []
    for column, names in mapping.columns.items():
        source = next(filter(None, (_source(name, places, header) for name in names)), None)
        if source is not None:
            found[column] = source
        else:
            lacking.append(Missing(column, names))
    return found, lacking


def place_of(name: str, header: Sequence[str]) -> int | None:
    """Where the file has the column of this name."""
    source = _source(name, {folded(each): place for place, each in reversed(list(enumerate(header)))}, header)
    return None if source is None else source.place


def _source(name: str, places: Mapping[str, int], header: Sequence[str]) -> Source | None:
    if CURRENCY in name:
        begin, _, end = (folded(part) for part in name.partition(CURRENCY))
        for known, place in places.items():
            inner = known[len(begin) : len(known) - len(end)] if known.startswith(begin) and known.endswith(end) else ""
            if _currency_in.fullmatch(inner.strip().upper()):
                return Source(place, header[place], None, inner.strip().upper())
        return None
    column, key = split_key(name)
    if folded(name) in places:
        return Source(places[folded(name)], header[places[folded(name)]])
    inner_place = places.get(folded(column)) if key is not None else None
    return None if inner_place is None else Source(inner_place, header[inner_place], key)

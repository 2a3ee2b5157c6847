"""What a file is: which mapping reads it, by the names of its columns.

Never reads a file. Invariants: a mapping fits if the file has every column that the mapping is recognised by and that
an import needs; of several that fit, the one that knows most of the file's columns is taken; one that almost fits is
named, with the columns that differ.

>>> columns = {"order_id": "No", "amount": "Sum"}
>>> shop = FileMapping(kind="orders", name="shop", recognised_by=("No", "Sum"), columns=columns)
>>> recognise(["no", "sum"], [shop]).mapping.name
'shop'
>>> recognise(["no", "summe"], [shop]).almost[0].lacks
('Sum',)
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import msgspec

from clickclock.attribution.importing.columns import folded, place_of, sources
from clickclock.attribution.importing.file_mapping import CURRENCY, FileMapping

ALMOST = 0.6
"""The part of a mapping's columns that a file has to have to be almost one."""


class Almost(msgspec.Struct, frozen=True):
    """A mapping that does not fit by a few columns."""

    mapping: FileMapping
    lacks: tuple[str, ...]
    """Columns that it looks for, and the file lacks."""
    closest: tuple[str, ...]
    """For each of them the column of the file whose name is like it, or an empty text."""

    @property
    def sentence(self) -> str:
        """What differs."""
        told = [
            f"{lack} (the file has {close})" if close else lack
            for lack, close in zip(self.lacks, self.closest, strict=True)
        ]
        return f"it is almost {self.mapping.title or self.mapping.name}, but lacks {', '.join(told)}"


class Recognised(msgspec.Struct, frozen=True):
    """What was found: the mapping that fits, or those that almost do."""

    mapping: FileMapping | None
    almost: tuple[Almost, ...] = ()


def recognise(header: Sequence[str], mappings: Iterable[FileMapping]) -> Recognised:
    """Which of these mappings reads a file with this header."""
    best: tuple[int, FileMapping] | None = None
    almost: list[tuple[float, Almost]] = []
    for mapping in mappings:
        found, _ = sources(mapping, header)
        lacks = lacking(mapping, header)
        if not lacks:
            if best is None or len(found) > best[0]:
                best = len(found), mapping
            continue
        marks = len(mapping.recognised_by) + len(mapping.columns)
        part = 1 - len(lacks) / marks if marks else 0
        known = sum(place_of(name, header) is not None for name in mapping.names)
        if known and part >= ALMOST and len(lacks) < len(mapping.recognised_by or mapping.columns):
            almost.append((part, _almost(mapping, lacks, header)))
    if best is not None:
        return Recognised(best[1])
    return Recognised(None, tuple(each for _, each in sorted(almost, key=lambda pair: -pair[0])))


def lacking(mapping: FileMapping, header: Sequence[str]) -> tuple[str, ...]:
    """The columns without which a file is not the mapping's, each by its first name."""
    if mapping.header:
        is_one = len(header) == len(mapping.header)
        return () if is_one else (f"{len(mapping.header)} columns without a header",)
    marks = [names[0] for names in mapping.recognised_by if all(place_of(name, header) is None for name in names)]
    _, missing = sources(mapping, header)
    needed = [each.names[0] for each in missing if each.column not in mapping.optional]
    return tuple(dict.fromkeys((*marks, *needed)))


def _almost(mapping: FileMapping, lacks: Sequence[str], header: Sequence[str]) -> Almost:
    others = {folded(name): name for name in header if all(folded(name) != folded(known) for known in mapping.names)}
    closest = []
    for lack in lacks:
        close = get_close_matches(folded(lack.replace(CURRENCY, "eur")), others, 1)
        closest.append(others[close[0]] if close else "")
    return Almost(mapping, tuple(lacks), tuple(closest))

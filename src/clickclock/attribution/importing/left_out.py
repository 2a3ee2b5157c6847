"""Rows of a file that are no rows of a table: totals, remarks, and those that a mapping leaves out.

Never reads what a row says. Invariants: what is left out is counted, by column and value; the further rows of an order
share the fate of its first one.

>>> mapping = FileMapping(kind="orders", columns={"order_id": "No"}, leave_out={"State": ("draft",)})
>>> LeftOut(mapping, ["No", "State"], {}).of([["1", "Draft"], ["2", "paid"]], {})
{0}
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from clickclock.attribution.importing.cells import SHOWN_CHARS_MAX
from clickclock.attribution.importing.columns import Source, folded, place_of
from clickclock.attribution.importing.file_mapping import FileMapping
from clickclock.attribution.importing.readers import Cell, Faults, text_of

TOTALS: Final = "totals and remarks"


class LeftOut:
    """What decides, for the rows under one header."""

    def __init__(self, mapping: FileMapping, header: Sequence[str], sources: Mapping[str, Source]) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        """How many rows were left out, by column and value."""
        self._width = len(header)
        self._begins = tuple(map(folded, mapping.totals.begin))
        self._blanks = [sources[name].place for name in mapping.totals.blank if name in sources]
        self._rules = [
            (place, header[place], frozenset(map(folded, values)), is_only)
            for rules, is_only in ((mapping.leave_out, False), (mapping.only, True))
            for name, values in rules.items()
            if (place := place_of(name, header)) is not None
        ]
        self._order_place = None
        if mapping.lines is not None and "order_id" in sources:
            self._order_place = sources["order_id"].place
        self._last_order: dict[str, tuple[Cell, bool, str]] = {}

    def of(self, rows: Sequence[Sequence[Cell]], faults: Faults) -> set[int]:
        """Which of these rows are left out, by place; a row with too few or too many cells is a fault."""
        out = self._totals(rows, faults)
        if out:
            self.counts["", TOTALS] += len(out)
        for rule in self._rules:
            self._apply(rule, rows, out, faults)
        return out

    def _totals(self, rows: Sequence[Sequence[Cell]], faults: Faults) -> set[int]:
        out: set[int] = set()
        for place, row in enumerate(rows):
            if len(row) != self._width:
                if self._is_total(row):
                    out.add(place)
                else:
                    counts = f"{len(row)}, not {self._width}"
                    faults[place] = [f"its values are not as many as the header's names: {counts}"]
            elif self._begins or self._blanks:
                is_blank = any(not text_of(row[blank]).strip(" -") for blank in self._blanks)
                if is_blank or self._is_total(row):
                    out.add(place)
        return out

    def _is_total(self, row: Sequence[Cell]) -> bool:
        first = next((text for cell in row if (text := folded(text_of(cell)).strip("- "))), "")
        return bool(self._begins) and (not first or first.startswith(self._begins))

    def _apply(
        self,
        rule: tuple[int, str, frozenset[str], bool],
        rows: Sequence[Sequence[Cell]],
        out: set[int],
        faults: Faults,
    ) -> None:
        column, name, values, is_only = rule
        for place, row in enumerate(rows):
            if place in faults or (place in out and self._order_place is None):
                continue
            text = folded(text_of(row[column]))
            order = None if self._order_place is None else row[self._order_place]
            last, was_out, said = self._last_order.get(name, (None, False, ""))
            if not text and order is not None and order == last:
                # A further row of an order, whose status stands in its first row alone.
                is_out = was_out
            else:
                is_out = place in out or (text in values) is not is_only
                said = text_of(row[column])[:SHOWN_CHARS_MAX]
                self._last_order[name] = (order, is_out, said)
            if is_out and place not in out:
                out.add(place)
                self.counts[name, said] += 1

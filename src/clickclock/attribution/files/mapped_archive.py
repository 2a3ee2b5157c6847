"""An archive whose rows are mapped: a file as people have it, read as the tables that an import takes.

Never judges. Invariants: the same as of every archive: rows in order with the numbers of their lines; what cannot be
read is an `Unusable` in its place; what is left out is counted.

>>> archive = MappedArchive(grid, mapping)   # doctest: +SKIP
>>> for number, found in archive.records("order_id"):   # doctest: +SKIP
...     print(number, found)
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from clickclock.attribution.files.archive import Archive, Format, Record, Row
from clickclock.attribution.files.grid import Grid
from clickclock.attribution.importing.file_mapping import FileMapping
from clickclock.attribution.importing.historical import Historical, Unusable, of_row
from clickclock.attribution.importing.line_items import joined
from clickclock.attribution.importing.mapper import Mapper

Found = tuple[int, dict[str, Any] | Unusable | None]


class MappedArchive:
    """One file under a mapping."""

    def __init__(self, grid: Grid, mapping: FileMapping) -> None:
        """Raises `Unclear` where the header contradicts the mapping."""
        self.grid = grid
        self.mapping = mapping
        has_none = grid.how.header_line == 0 and grid.how.form == "csv"
        self.header = mapping.header if has_none and mapping.header else grid.header
        self._mapper = Mapper(mapping, self.header)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self.grid.path

    is_mapped: ClassVar[bool] = True

    @property
    def amends(self) -> bool:
        """Whether a later row of an order amends it."""
        return self.mapping.amends

    @property
    def adds_up(self) -> bool:
        """Whether costs of one key are parts of one."""
        return self.mapping.adds_up

    @property
    def mapper(self) -> Mapper:
        """What maps; counts what it leaves out."""
        return self._mapper

    @property
    def left_out(self) -> Counter[tuple[str, str]]:
        """Rows that were left out at the last reading, by column and value."""
        return self._mapper.left_out

    def version(self) -> tuple[int, ...]:
        """As that of an archive."""
        return Archive(self.path, Format.CSV).version()

    def is_open_ended(self) -> bool:
        """As that of an archive."""
        return self.grid.how.form == "csv" and Archive(self.path, Format.CSV).is_open_ended()

    def records(self, *_columns: str) -> Iterator[tuple[int, Record | Unusable | None]]:
        """Every row, mapped; None is one that is left out. Raises `Malformed`."""
        found = self._mapped()
        return found if self.mapping.lines is None else joined(found, self.mapping.lines)

    def clicks(self) -> Iterator[Row]:
        """Every click, in order. Raises as `records` does."""
        for number, found in self._mapped():
            if not isinstance(found, dict):
                yield number, found
                continue
            try:
                click: Historical | Unusable = of_row(found)
            except Unusable as problem:
                click = problem
            yield number, click

    def _mapped(self) -> Iterator[Found]:
        self._mapper.left_out.clear()
        for numbers, rows in self.grid.rows():
            yield from self._mapper.read(numbers, rows)

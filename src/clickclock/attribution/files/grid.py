"""A file as a grid of cells: text in any encoding and with any separator, workbooks, NDJSON and Parquet.

Never maps and never holds a file of text in memory (a workbook is one piece, and is). Never runs a formula: of a
workbook the values count that were saved. Invariants: rows come with the number of their line, in order, some thousand
at a time; a file that did not change is read the same way each time; what was recognised can be said beforehand.

>>> grid = open_grid(Path("orders.csv"), known=frozenset({"name", "total"}))   # doctest: +SKIP
>>> grid.header, grid.how.encoding   # doctest: +SKIP
(('Name', 'Total'), 'utf-8')
"""

import codecs
import csv
import io
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence, Set
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import pyarrow.parquet as pq

from clickclock.attribution.files.archive import ROWS_AT_A_TIME, readable
from clickclock.attribution.files.unpacked import PARQUET_MARK, is_workbook, unpacked
from clickclock.attribution.importing.columns import folded
from clickclock.attribution.orders.order_fields import NotJson, read_json
from clickclock.foundation.errors import Malformed

SAMPLE_BYTES: Final = 256 * 1024
SAMPLE_ROWS: Final = 1000
HEADER_LINES_MAX: Final = 40
"""How far down a header may stand: exporters write a title, a period and remarks before it."""
_DELIMITERS: Final = (",", ";", "\t", "|")
_SEPARATOR_LINE: Final = "sep="
_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CODE_PAGES: Final = [
    "cp1252",
    "cp1250",
    "cp1251",
    "cp1253",
    "cp1254",
    "cp1257",
    "shift_jis",
    "gb18030",
    "big5",
    "euc_kr",
]
"""What text may be in that is no UTF-8, those of spreadsheets first."""

Batch = tuple[list[int], list[Sequence[Any]]]
"""The numbers of lines, and the cells of each."""


class How(msgspec.Struct, frozen=True):
    """How a file was read."""

    form: str
    """`csv`, `xlsx`, `ndjson` or `parquet`."""
    encoding: str = ""
    delimiter: str = ""
    header_line: int = 1
    """0 if it has no header."""
    sheet: str = ""
    sheets: tuple[str, ...] = ()
    """All sheets of a workbook that have rows."""


class Grid:
    """A file, its header, and its rows."""

    def __init__(
        self, path: Path, how: How, header: Sequence[str], sample: Sequence[Batch], rows: Callable[[], Generator[Batch]]
    ) -> None:
        self.path = path
        self.how = how
        self.header = tuple(header)
        self.sample = sample
        """The first rows."""
        self._rows = rows

    def rows(self) -> Iterator[Batch]:
        """All rows. Raises `Malformed` where the file cannot be read any further."""
        with readable(self.path):
            yield from self._rows()


def open_grid(
    path: Path, known: Set[str], widths: Set[int] = frozenset(), encoding: str | None = None, sheet: str | None = None
) -> Grid:
    """Look at a file. `known` are names of columns, folded, by which a header is found below other lines.

    A file that has none of them, and as many columns as one of `widths`, has no header. Raises `Malformed`.
    """
    with readable(path):
        if is_workbook(path):
            return _workbook(path, known, sheet)
        with path.open("rb") as file:
            is_parquet = file.read(len(PARQUET_MARK)) == PARQUET_MARK
        if is_parquet:
            return _parquet(path)
        with unpacked(path) as text:
            begun = text.read(SAMPLE_BYTES)
        encoding = encoding or encoding_of(begun)
        try:
            sample = codecs.getincrementaldecoder(encoding)(errors="strict").decode(begun)
        except (UnicodeDecodeError, LookupError) as error:
            raise Malformed(f"{path} is not written in {encoding}: {error}; look at --encoding.") from error
        if not sample.strip():
            raise Malformed(f"{path} is empty.")
        if sample.lstrip()[:1] in ("{", "["):
            return _ndjson(path, encoding, sample)
        return _text(path, encoding, sample, known, widths)


def encoding_of(begun: bytes) -> str:
    """In which encoding a text is that begins so."""
    for mark, name in _BYTE_ORDER_MARKS:
        if begun.startswith(mark):
            return name
    nothing = begun[:1024].count(0)
    if nothing * 3 > len(begun[:1024]):
        return "utf-16-le" if begun[1:2] == b"\0" else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(begun)
    except UnicodeDecodeError:
        # Here and not at the top: few files need it.
        from charset_normalizer import from_bytes  # noqa: PLC0415 (see the line above)

        lines = [line for line in begun.splitlines() if not line.isascii()]
        best = from_bytes(b"\n".join(lines[:200]), cp_isolation=_CODE_PAGES).best()
        return _CODE_PAGES[0] if best is None else codecs.lookup(best.encoding).name
    return "utf-8"


def _text(path: Path, encoding: str, sample: str, known: Set[str], widths: Set[int]) -> Grid:
    skipped, delimiter = 0, ""
    if sample.lower().startswith(_SEPARATOR_LINE):
        first, _, sample = sample.partition("\n")
        skipped, delimiter = 1, first.strip()[len(_SEPARATOR_LINE) :][:1]
    # What is behind the last line break may be half a row.
    whole = sample[: sample.rfind("\n") + 1] or sample
    delimiter = delimiter or _delimiter(whole)
    lines = list(islice(csv.reader(io.StringIO(whole, newline=""), delimiter=delimiter), HEADER_LINES_MAX))
    place = header_place(lines, known)
    header = [] if place is None else lines[place]
    if place is None or (len(lines[place]) in widths and not _matches(lines[place], known)):
        place, header = -1, [str(number) for number in range(1, 1 + max(map(len, lines)))]

    def rows() -> Generator[Batch]:
        with unpacked(path) as packed:
            yield from _csv_rows(path, packed, encoding, delimiter, skipped, place + 1)

    how = How("csv", encoding, delimiter, 0 if place < 0 else skipped + place + 1)
    return Grid(path, how, [name.strip("\ufeff ") for name in header], _first(rows()), rows)


def _csv_rows(
    path: Path, packed: IO[bytes], encoding: str, delimiter: str, skipped: int, above: int
) -> Generator[Batch]:
    numbers: list[int] = []
    batch: list[Sequence[Any]] = []
    number = skipped + 1
    try:
        with io.TextIOWrapper(packed, encoding, errors="strict", newline="") as text:
            for _ in range(skipped):
                text.readline()
            reader = csv.reader(text, delimiter=delimiter, strict=True)
            for place, row in enumerate(reader):
                if place >= above and row:
                    numbers.append(number)
                    batch.append(row)
                    if len(batch) >= ROWS_AT_A_TIME:
                        yield numbers, batch
                        numbers, batch = [], []
                number = skipped + 1 + reader.line_num
    except UnicodeDecodeError as error:
        found = f"byte {error.object[error.start]:#04x} behind line {number:,}"
        raise Malformed(
            f"{path} is not written in {encoding} ({found}); say in which encoding it is: --encoding windows-1252."
        ) from error
    except csv.Error as error:
        raise Malformed(f"{path}, line {number:,}: {error}; look at its quotes.") from error
    if batch:
        yield numbers, batch


def _delimiter(sample: str) -> str:
    """What separates the cells: what makes many columns, and as many in most rows."""

    def score(delimiter: str) -> tuple[int, int]:
        try:
            widths = Counter(map(len, islice(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter), 100)))
        except csv.Error:
            return 0, 0
        width, rows = max(((width, rows) for width, rows in widths.items() if width > 1), key=_area, default=(1, 0))
        return width * rows, width

    return max(_DELIMITERS, key=score)


def _area(found: tuple[int, int]) -> int:
    return found[0] * found[1]


def header_place(lines: Sequence[Sequence[Any]], known: Set[str]) -> int | None:
    """Which of the first lines is the header: the one with most names that are known, or else the first wide one."""
    matches = [_matches(line, known) for line in lines]
    best = max(matches, default=0)
    if best > 1:
        return matches.index(best)
    widest = max(map(len, lines), default=0)
    return next((place for place, line in enumerate(lines) if len(line) == widest and widest), None)


def _matches(line: Sequence[Any], known: Set[str]) -> int:
    # `Amount spent (EUR)` is known as `amount spent (`.
    return sum(
        folded(str(cell)) in known or folded(str(cell)).partition("(")[0] + "(" in known for cell in line if cell
    )


def _first(batches: Generator[Batch]) -> list[Batch]:
    with closing(batches) as open_batches:
        numbers, rows = next(open_batches, ([], []))
    return [(numbers[:SAMPLE_ROWS], rows[:SAMPLE_ROWS])]


def _workbook(path: Path, known: Set[str], sheet: str | None) -> Grid:
    from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415 (loaded when it is used)

    try:
        book = CalamineWorkbook.from_path(path)
        if sheet is not None and sheet not in book.sheet_names:
            raise Malformed(f"{path} has no sheet `{sheet}`; it has {', '.join(book.sheet_names)}.")
        full = tuple(name for name in book.sheet_names if book.get_sheet_by_name(name).total_height)
        chosen = sheet or next(iter(full), "")
        if not chosen:
            raise Malformed(f"{path} is a workbook without rows.")
        table = book.get_sheet_by_name(chosen)
        lines = list(islice(table.iter_rows(), HEADER_LINES_MAX))
    except CalamineError as error:
        raise Malformed(f"{path} cannot be read as a workbook: {error}.") from error
    place = header_place([[cell for cell in line if cell != ""] for line in lines], known) or 0
    header = [str(cell).strip() for cell in lines[place]]
    while header and not header[-1]:
        header.pop()
    width, above = len(header), place + 1

    def rows() -> Generator[Batch]:
        numbered = enumerate(islice(table.iter_rows(), above, None), above + 1)
        while part := list(islice(numbered, ROWS_AT_A_TIME)):
            full_rows = [(number, row[:width]) for number, row in part if any(cell != "" for cell in row)]
            yield [number for number, _ in full_rows], [row for _, row in full_rows]

    how = How("xlsx", header_line=above, sheet=chosen, sheets=full)
    return Grid(path, how, header, _first(rows()), rows)


def _parquet(path: Path) -> Grid:
    with pq.ParquetFile(path) as file:
        header = file.schema_arrow.names

    def rows() -> Generator[Batch]:
        number = 0
        with pq.ParquetFile(path) as parquet:
            for batch in parquet.iter_batches(ROWS_AT_A_TIME):
                columns = [column.to_pylist() for column in batch.columns]
                yield list(range(number + 1, number + 1 + batch.num_rows)), list(zip(*columns, strict=True))
                number += batch.num_rows

    return Grid(path, How("parquet", header_line=0), header, _first(rows()), rows)


def _ndjson(path: Path, encoding: str, sample: str) -> Grid:
    names: dict[str, None] = {}
    for line in sample[: sample.rfind("\n") + 1].splitlines() or [sample]:
        if line.strip():
            names |= dict.fromkeys(_object(path, 1, line))
    header = tuple(names)

    def rows() -> Generator[Batch]:
        with unpacked(path) as packed, io.TextIOWrapper(packed, encoding, errors="strict") as text:
            numbered = enumerate(text, 1)
            while part := list(islice(numbered, ROWS_AT_A_TIME)):
                full = [(number, _object(path, number, line)) for number, line in part if line.strip()]
                yield (
                    [number for number, _ in full],
                    [tuple(each.get(name) for name in header) for _, each in full],
                )

    return Grid(path, How("ndjson", encoding, header_line=0), header, _first(rows()), rows)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    """The object of a line, with the parts of inner ones by names with dots."""
    try:
        found = read_json(line.strip().encode("utf-8", "surrogatepass"))
    except NotJson as error:
        raise Malformed(f"{path}, line {number:,}: {error} Give one JSON object a line.") from error
    if not isinstance(found, dict):
        raise Malformed(f"{path}, line {number:,} is no JSON object; give one a line.")
    flat: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": each for inner, each in value.items()}
        flat[name] = value
    return flat

"""Archives: files of clicks, orders and costs, read row by row: CSV, NDJSON and Parquet, and logs of servers.

Never holds a file in memory, and never guesses: a row that cannot be read is an `Unusable` in its place, with its
number, and the reading goes on. Invariant: a file that did not change is read the same way each time.

>>> archive = Archive(Path("clicks.csv.gz"), Format.CSV)
>>> for number, found in archive.clicks():   # doctest: +SKIP
...     print(number, found)
"""

import csv
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, ClassVar, Final, Protocol, TypeVar
from zipfile import BadZipFile

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from clickclock.attribution.files.unpacked import ENDINGS, is_packed, refuse_strange, unpacked
from clickclock.attribution.importing.csv_cell import of_cell
from clickclock.attribution.importing.historical import QUERY, Historical, Unusable, of_row
from clickclock.attribution.importing.log_line import LogReader
from clickclock.foundation.errors import Malformed

LINE_BYTES_MAX: Final = 1024 * 1024
"""Many times the longest click: whatever has no line breaks must not fill the memory."""
ROWS_AT_A_TIME: Final = 4096
INTEGER_MAX: Final = 2**53
"""Whole numbers of JSON are exact in every program up to here."""
NAME_CHARS_MAX: Final = 1024
"""The longest name of a column."""
NAMES_SHOWN_CHARS_MAX: Final = 80
"""Enough of a wrong header to see what it is."""
DELIMITERS: Final = ",;\t"
_CLIENT_ID: Final = "client_id"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
MARKS_OF_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_TOO_LONG: Final = f"it has more than {LINE_BYTES_MAX:,} bytes"

# The limit holds for the whole process: it is set once, so that no file is read in another way after another.
csv.field_size_limit(LINE_BYTES_MAX)

T = TypeVar("T")
Record = Mapping[str, object] | bytes
"""A row of a table by its columns, or a line of NDJSON as it stands."""
Row = tuple[int, Historical | Unusable | None]
"""A row's number in its file, from 1 (of text: its line), and the click; None is a log's line of another request."""


class Format(StrEnum):
    """How a file is written."""

    CSV = "csv"
    NDJSON = "ndjson"
    PARQUET = "parquet"
    LOG = "log"


_ENDINGS: Final = {
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".ndjson": Format.NDJSON,
    ".jsonl": Format.NDJSON,
    ".parquet": Format.PARQUET,
}


def format_of(path: Path) -> Format | None:
    """What a file's ending says, `.gz` and its like left out; None if nothing."""
    name = path.name.lower()
    name = next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)
    return next((form for ending, form in _ENDINGS.items() if name.endswith(ending)), None)


class Rows(Protocol):
    """A file that is read row by row. What its methods promise, `Archive` says."""

    @property
    def path(self) -> Path: ...

    @property
    def is_mapped(self) -> bool:
        """Whether its records are clean already: text, and nothing that is empty."""

    @property
    def amends(self) -> bool:
        """Whether a later row of an order amends it; otherwise a row is the order as it stands."""

    @property
    def adds_up(self) -> bool:
        """Whether several costs of one day and ad in it are parts of one."""

    def version(self) -> tuple[int, ...]: ...

    def is_open_ended(self) -> bool: ...

    def clicks(self) -> Iterator["Row"]: ...

    def records(self, *columns: str) -> Iterator[tuple[int, "Record | Unusable | None"]]: ...


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever reading this file raises becomes a `Malformed` that names it."""
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException, BadZipFile) as error:
        said = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise Malformed(f"{path} cannot be read: {said.rstrip('.')}.") from error


class Archive(msgspec.Struct, frozen=True):
    """One file. Text may be compressed, which its content says."""

    is_mapped: ClassVar[bool] = False
    amends: ClassVar[bool] = True
    adds_up: ClassVar[bool] = False
    path: Path
    form: Format

    def version(self) -> tuple[int, ...]:
        """Something that changes when the file does. Raises `Malformed` if it is not there, or no file."""
        try:
            found = self.path.stat()
        except OSError as error:
            raise Malformed(f"{self.path} cannot be read: {error.strerror}.") from error
        if not self.path.is_file():
            raise Malformed(f"{self.path} is no file, and a file is read twice; write it to one first.")
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def is_open_ended(self) -> bool:
        """Whether it is a table of text whose last line has no end: written so, or cut, and its last value with it."""
        with readable(self.path):
            if self.form is not Format.CSV or is_packed(self.path):
                return False  # nothing else can be cut without being unreadable
        with readable(self.path), self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            return size > 0 and file.read(1) != b"\n"

    def clicks(self) -> Iterator[Row]:
        """Every click, in order. Raises `Malformed` when the file as a whole cannot be read."""
        if self.form is Format.LOG:
            reader = LogReader()
            for number, line in self._read(_lines):
                if line is None:
                    yield number, Unusable(_TOO_LONG)
                elif not line.isspace() and not reader.heeds(line):
                    yield number, _tried(reader.read, line)
            return
        for number, found in self.records(_CLIENT_ID, QUERY):
            if isinstance(found, bytes):
                yield number, _tried(_of_json, found)
            else:
                yield number, found if isinstance(found, Unusable) else _tried(of_row, found)

    def records(self, *columns: str) -> Iterator[tuple[int, Record | Unusable | None]]:
        """Every row of a table, in order. Raises as `clicks` does.

        One of these columns must be there: without its header, a table would become as many rejections as it has rows.
        """
        match self.form:
            case Format.PARQUET:
                yield from self._read_parquet(columns)
            case Format.CSV:
                yield from self._read(lambda file: self._csv(file, columns))
            case _:
                for number, line in self._read(_lines):
                    if line is None or not line.isspace():
                        yield number, Unusable(_TOO_LONG) if line is None else line

    def _read(self, rows: Callable[[IO[bytes]], Iterator[T]]) -> Iterator[T]:
        """What `rows` makes of the file's text."""
        with readable(self.path), unpacked(self.path) as file:
            if file.peek(2).startswith(MARKS_OF_UTF_16):
                raise Malformed(f"{self.path} is written in UTF-16; save it as UTF-8.")
            yield from rows(file)

    def _csv(self, file: IO[bytes], columns: Sequence[str]) -> Iterator[tuple[int, Record | Unusable]]:
        too_long: set[int] = set()

        def texts() -> Iterator[str]:
            for number, line in _lines(file):
                if line is None:
                    too_long.add(number)
                yield "\n" if line is None else line.decode("utf-8", "surrogateescape")

        text = texts()
        first = next(text, "")
        delimiter = max(DELIMITERS, key=first.count)
        names = self._names(first, delimiter)
        self._check(names, columns)
        rows = csv.reader(text, delimiter=delimiter, strict=True)
        while True:
            number = 2 + rows.line_num
            try:
                values = next(rows, None)
            except csv.Error as error:
                too_long.clear()
                yield number, Unusable(str(error))
                continue
            if values is None:
                return
            if too_long:
                too_long.clear()
                yield number, Unusable(_TOO_LONG)
            elif values and len(values) != len(names):
                counts = f"its values are not as many as the header's names: {len(values)}, not {len(names)}"
                yield number, Unusable(counts)
            elif values:
                yield number, dict(zip(names, map(of_cell, values), strict=True))

    def _names(self, header: str, delimiter: str) -> list[str]:
        if "\r" in header.rstrip("\r\n"):
            raise Malformed(f"{self.path} ends its lines with CR alone; save it with LF or CR LF.")
        names = next(csv.reader([header], delimiter=delimiter), [])
        longest = max(map(len, names), default=0)
        if longest > NAME_CHARS_MAX:
            raise Malformed(
                f"{self.path} begins with a line that is no header: "
                f"a name has {longest:,} characters, at most {NAME_CHARS_MAX:,} are read."
            )
        return names

    def _read_parquet(self, columns: Sequence[str]) -> Iterator[tuple[int, Record | Unusable]]:
        refuse_strange(self.path)
        with readable(self.path), pq.ParquetFile(self.path) as file:
            names = file.schema_arrow.names
            self._check(names, columns)
            number = 0
            for batch in file.iter_batches(ROWS_AT_A_TIME):
                for values in zip(*map(_values, batch.columns), strict=True):
                    number += 1
                    yield number, dict(zip(names, values, strict=True))

    def _check(self, names: Sequence[str], columns: Sequence[str]) -> None:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            told = _printable(", ".join(name or "(no name)" for name in twice))
            raise Malformed(f"{self.path} has these columns twice: {told}; give each name once.")
        if not set(names) & set(columns):
            lacks = f"neither a column {' nor '.join(columns)}" if len(columns) > 1 else f"no column {columns[0]}"
            shown = _printable(", ".join(names)[:NAMES_SHOWN_CHARS_MAX])
            first = f"its first line has {shown}" if any(names) else "there is no header"
            raise Malformed(f"{self.path} has {lacks} ({first}); name the columns as the reference does.")


def _printable(text: str) -> str:
    """A text of the file that a terminal may show."""
    return "".join(char if char.isprintable() else " " for char in text)


_object: Final = msgspec.json.Decoder(dict[str, Any]).decode


def _of_json(line: bytes) -> Historical:
    try:
        row = _object(line)
        for name, value in row.items():
            if type(value) is int and abs(value) > INTEGER_MAX:
                # Most programs that write JSON have rounded it, and nobody can see it.
                raise Unusable(f"{name} is a number above 2⁵³, which JSON may have rounded; write it as text")
        return of_row(row)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = "it has half of a surrogate pair" if "surrogate" in str(error) else str(error)
        raise Unusable(f"it is no JSON object: {why}") from error


def _tried(read: Any, given: object) -> Historical | Unusable | None:
    try:
        found: Historical | None = read(given)
    except Unusable as error:
        return error
    return found


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Lines with their numbers; None for one that is too long."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX):
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if len(line) < LINE_BYTES_MAX or line.endswith(b"\n"):
            yield number, line
            continue
        while not line.endswith(b"\n") and (line := file.readline(LINE_BYTES_MAX)):
            pass
        yield number, None


def _values(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        # Finer than Python's own times are, and than any click's.
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    found: list[Any] = column.to_pylist()
    return found

"""Clicks of the lake → one stream of NDJSON, CSV or Parquet, each with its query as it came.

Never holds more than a few batches, and never changes the lake. Invariant: `query` is what the client sent, byte for
byte; in text formats a byte that is not UTF-8 is written as `%XX`, which means the same.

>>> extract(Lake("/tmp/lake"), Wanted(client_id="c"), Format.CSV, sys.stdout.buffer)   # doctest: +SKIP
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import IO, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clickclock.attribution.importing.csv_cell import as_cell
from clickclock.attribution.lake import CLICKS, DAY, Lake, with_query

_COLUMNS: Final = tuple(name for name in CLICKS.schema.names if name != "shape")
_SCHEMA: Final = pa.schema([CLICKS.schema.field(name) for name in _COLUMNS])

Row = dict[str, Any]


class Format(StrEnum):
    """How clicks are written."""

    NDJSON = "ndjson"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True)
class Wanted:
    """Which clicks: of one client, received at `since` or later and before `until`; None leaves it open."""

    client_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def filter(self) -> pc.Expression | None:
        """The same for the lake. The day is asked for, too, so that other days' files are not opened."""
        parts: list[pc.Expression] = []
        if self.client_id is not None:
            parts.append(pc.field("client_id") == self.client_id)
        if self.since is not None:
            parts += [pc.field("received_at") >= self.since, pc.field(DAY) >= self.since.astimezone(UTC).date()]
        if self.until is not None:
            parts += [pc.field("received_at") < self.until, pc.field(DAY) <= self.until.astimezone(UTC).date()]
        whole: pc.Expression | None = None
        for part in parts:
            whole = part if whole is None else whole & part
        return whole


def clicks(lake: Lake, wanted: Wanted) -> Iterator[list[Row]]:
    """The clicks, some thousand at a time, as rows; `query` is in every one. Raises `LakeUnreachable`."""
    for batch in lake.scan(CLICKS.name, wanted.filter, CLICKS.schema.names):
        yield [with_query(row) for row in batch.to_pylist()]


def extract(lake: Lake, wanted: Wanted, as_format: Format, sink: IO[bytes], *, raw: bool = False) -> int:
    """Write them to `sink`; returns how many there were.

    In CSV, whatever a spreadsheet could take for a formula has an apostrophe in front, unless it is to be `raw`.
    """
    batches = clicks(lake, wanted)
    return _write_csv(batches, sink, raw=raw) if as_format is Format.CSV else _WRITERS[as_format](batches, sink)


def _write_ndjson(batches: Iterator[list[Row]], sink: IO[bytes]) -> int:
    encoder = msgspec.json.Encoder()
    count = 0
    for rows in batches:
        lines = [{**row, "query": _text_of(row["query"])} for row in rows]
        sink.write(encoder.encode_lines(lines))
        count += len(lines)
    return count


def _write_csv(batches: Iterator[list[Row]], sink: IO[bytes], *, raw: bool) -> int:
    count = 0
    text = io.TextIOWrapper(sink, encoding="utf-8", newline="")
    writer = csv.DictWriter(text, _COLUMNS)
    writer.writeheader()
    for rows in batches:
        for row in rows:
            cells = row | _as_cells(row)
            writer.writerow(cells if raw else {name: _as_text(value) for name, value in cells.items()})
        count += len(rows)
    text.flush()
    text.detach()
    return count


def _as_cells(row: Row) -> Row:
    """What a cell cannot hold as it is."""
    moments = {name: value.isoformat() for name, value in row.items() if isinstance(value, datetime)}
    other = json.dumps(row["other"], ensure_ascii=False) if row["other"] else ""
    return moments | {"flags": " ".join(row["flags"]), "other": other, "query": _text_of(row["query"])}


def _as_text(value: Any) -> Any:
    return as_cell(value) if isinstance(value, str) else value


def _write_parquet(batches: Iterator[list[Row]], sink: IO[bytes]) -> int:
    count = 0
    with pq.ParquetWriter(sink, _SCHEMA, compression="zstd") as writer:
        for rows in batches:
            writer.write_batch(pa.RecordBatch.from_pylist(rows, _SCHEMA))
            count += len(rows)
    return count


_WRITERS: Final[dict[Format, Callable[[Iterator[list[Row]], IO[bytes]], int]]] = {
    Format.NDJSON: _write_ndjson,
    Format.PARQUET: _write_parquet,
}


def _text_of(query: bytes) -> str:
    try:
        return query.decode()
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < _ASCII_END else f"%{byte:02X}" for byte in query)


_ASCII_END: Final = 128

"""Parquet files of the lake: written row group by row group to wherever the table is, and not seen before a commit.

Never touches the table's log. Invariants: zstd, level 1 (what is left after the dictionaries is random, and higher
levels make it longer), and none for codes and for what every run reads; a file that nobody commits is litter, which a
vacuum takes away.

>>> Storage("/data/lake/clicks", {}).folder
PosixPath('/data/lake/clicks')
"""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import ColumnProperties, WriterProperties
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction
from pyarrow.fs import PyFileSystem

from clickclock.attribution.lake.tables import DAY, PLAIN, Table

ROW_GROUP_ROWS: Final = 2**17
"""Dictionaries pay off over many rows; a column of more is new memory each time, for it is too large to be kept."""
FILE_BYTES_MAX: Final = 256 * 2**20
DAYS_OPEN_MAX: Final = 100
"""Files that one load writes of one table at once: years of imported clicks are more days than a process may open."""
_DICTIONARY_BYTES: Final = 4 * 2**20
_TEXT_MAX: Final = 128
"""A longer least or greatest value is not told."""


@dataclass(frozen=True)
class Storage:
    """Where one table's files are."""

    url: str
    options: Mapping[str, str]

    @property
    def folder(self) -> Path | None:
        """The folder, if it is on this machine."""
        return Path(self.url) if "://" not in self.url else None

    def filesystem(self) -> PyFileSystem:
        """The files, by their paths in the table."""
        return PyFileSystem(DeltaStorageHandler(self.url, dict(self.options)))

    def make(self) -> None:
        """Make the folder, if it is on this machine; its name and the lake's are then durable."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for above in self.folder.parents[:2]:
            with contextlib.suppress(PermissionError):  # then somebody else made the lake, long ago
                _sync(above)

    def sync(self, paths: list[str]) -> None:
        """Make local files and their names durable; an object store has done so before it answers."""
        if self.folder is None:
            return
        files = {self.folder / path for path in paths}
        folders = {folder for file in files for folder in (file.parent, file.parent.parent)}
        for place in sorted(files | folders):
            _sync(place)


def _sync(place: Path) -> None:
    fd = os.open(place, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class DayFiles:
    """The files of one table and load that are being written: at most one open for each day."""

    def __init__(self, table: Table, storage: Storage, name: str, now_ms: int) -> None:
        """`name` is to be unique; the files' names begin with it."""
        self.table = table
        self.rows = 0
        self.storage = storage
        self._files: PyFileSystem | None = None
        self._name = name
        self._now_ms = now_ms
        self._open: dict[date, File] = {}
        self._done: list[AddAction] = []

    def write(self, batches: list[pa.RecordBatch]) -> None:
        """Write rows, of whatever days."""
        whole = pa.Table.from_batches(batches, self.table.schema)
        self.rows += whole.num_rows
        bounds = pc.min_max(whole["received_at"]).as_py()
        if bounds["min"].date() == bounds["max"].date():
            self._write(bounds["min"].date(), whole)
            return
        days = pc.floor_temporal(whole["received_at"], unit="day")
        for day in pc.unique(days).to_pylist():
            self._write(day.date(), whole.filter(pc.equal(days, pa.scalar(day, days.type))))

    def _write(self, day: date, rows: pa.Table) -> None:
        file = self._open.pop(day, None) or self._opened(day)
        file.writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        if file.sink.tell() >= FILE_BYTES_MAX:
            self._done.append(file.close(self._now_ms))
            return
        self._open[day] = file
        if len(self._open) > DAYS_OPEN_MAX:  # the first is the one that was not written for longest
            self._done.append(self._open.pop(next(iter(self._open))).close(self._now_ms))

    def _opened(self, day: date) -> "File":
        self._files = self._files or self.storage.filesystem()
        path = f"{DAY}={day}/{self._name}-{len(self._done) + len(self._open)}.zstd.parquet"
        return File(self.table, self._files, path, {DAY: str(day)})

    def close(self) -> list[AddAction]:
        """End all files, make them durable, and say what is to be committed."""
        self._done += [file.close(self._now_ms) for file in self._open.values()]
        self._open.clear()
        self.storage.sync([action.path for action in self._done])
        return self._done


class File:
    """One file that is being written."""

    def __init__(
        self,
        table: Table,
        files: PyFileSystem,
        path: str,
        partition: dict[str, str | None],
        schema: pa.Schema | None = None,
    ) -> None:
        """`schema` is that of the rows, if it is not the table's: texts may be dictionaries, and are the same texts."""
        self.path = path
        self.schema = schema or table.schema
        self._partition = partition
        self._table = table
        self._told: list[pq.FileMetaData] = []
        self.sink = files.open_output_stream(path)
        self.writer = pq.ParquetWriter(self.sink, self.schema, metadata_collector=self._told, **parquet_options(table))

    def close(self, now_ms: int) -> AddAction:
        """End the file, and say what is to be committed."""
        self.writer.close()
        size = self.sink.tell()
        self.sink.close()
        statistics = _statistics(self._table, self._told[0])
        return AddAction(self.path, size, self._partition, now_ms, True, statistics)


def parquet_options(table: Table) -> dict[str, Any]:
    """How this machine writes the table's files."""
    leaves = _leaves(table.schema)
    plain = [path for path in leaves if table.encodings.get(path) == PLAIN]
    bare = {*table.bare, *(path for path in plain if pa.types.is_integer(table.schema.field(path).type))}
    return {
        "compression": {path: "none" if path in bare else "zstd" for path in leaves},
        "compression_level": {path: 1 for path in leaves if path not in bare},
        "use_dictionary": [path for path in leaves if path not in table.encodings],
        "column_encoding": dict(table.encodings),
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
        "max_rows_per_page": ROW_GROUP_ROWS,  # a page ends at 1 MiB; to end more of them early costs time and bytes
        "write_statistics": list(table.statistics),
        "store_schema": False,
    }


def _leaves(schema: pa.Schema) -> list[str]:
    """The columns of a file, as Parquet names them."""
    told: list[pq.FileMetaData] = []
    pq.ParquetWriter(pa.BufferOutputStream(), schema, metadata_collector=told).close()
    return [told[0].schema.column(at).path for at in range(told[0].num_columns)]


def delta_options(table: Table) -> WriterProperties:
    """The same for delta-rs, which merges files."""
    return WriterProperties(
        compression="ZSTD",
        compression_level=1,
        dictionary_page_size_limit=_DICTIONARY_BYTES,
        max_row_group_size=ROW_GROUP_ROWS,
        column_properties={
            name: ColumnProperties(encoding=cast(Any, encoding), dictionary_enabled=False)
            for name, encoding in table.encodings.items()
        },
    )


def _statistics(table: Table, metadata: pq.FileMetaData) -> str:
    """The statistics of a file as Delta's log has them."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for at in range(metadata.num_columns):
        name = metadata.schema.column(at).path
        found = [metadata.row_group(group).column(at).statistics for group in range(metadata.num_row_groups)]
        if name not in table.statistics or not all(each is not None and each.has_min_max for each in found):
            continue
        nulls[name] = sum(each.null_count for each in found)
        low, high = min(each.min for each in found), max(each.max for each in found)
        if not isinstance(low, str) or len(low) + len(high) <= 2 * _TEXT_MAX:
            least[name], greatest[name] = _told(low), _told(high)
    return json.dumps({"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls})


def _told(value: object) -> object:
    if not isinstance(value, datetime):
        return str(value) if isinstance(value, date) else value
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

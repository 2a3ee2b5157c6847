"""Segments of journals → Parquet files that nobody sees yet. One writer works alone; several work in processes.

Never commits. Invariant: of a segment that cannot be read to its end, nothing is written.

>>> writer = Writer({}, "part", 0)
>>> writer.add("j", 7, [], wanted=())
>>> writer.close().rows
0
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from deltalake.transaction import AddAction

from clickclock.attribution.clicks.entry import decode
from clickclock.attribution.lake.files import ROW_GROUP_ROWS, DayFiles, Storage
from clickclock.attribution.lake.plain import plain_rows
from clickclock.attribution.lake.reach import reaching
from clickclock.attribution.lake.rows import row_of
from clickclock.attribution.lake.tables import TABLES

BLOCK_BYTES: Final = 3 * 2**20
"""Bytes of one block: more does not stay in the processor's cache, and arrays of 4 MiB are not used again."""

Batches = dict[str, pa.RecordBatch]


@dataclass(frozen=True)
class Written:
    """Files that are there and not seen, by table, and how many rows are in them."""

    actions: Mapping[str, list[AddAction]]
    rows: int


class Writer:
    """Writes files of every table. Used by one thread."""

    def __init__(self, storages: Mapping[str, Storage], name: str, now_ms: int) -> None:
        """`name` is what the files' names begin with; no other writer may have it."""
        self._files = {
            table.name: DayFiles(table, storages[table.name], name, now_ms)
            for table in TABLES
            if table.name in storages
        }
        self._waiting: dict[str, list[pa.RecordBatch]] = defaultdict(list)

    def add(self, journal: str, segment: int, payloads: Iterable[bytes], wanted: Collection[str]) -> None:
        """Write the rows of a segment that the tables named in `wanted` are to have.

        Raises whatever reading the payloads raises, `ValueError` if a line is no entry, `LakeUnreachable`.
        """
        found: dict[str, list[pa.RecordBatch]] = defaultdict(list)
        for lines in _blocks(payloads):
            for name, batch in _parse(lines, journal, segment).items():
                if name in wanted and batch.num_rows:
                    found[name].append(batch)
        for name, batches in found.items():
            waiting = self._waiting[name]
            for batch in batches:
                waiting.append(batch)
                if sum(each.num_rows for each in waiting) >= ROW_GROUP_ROWS:
                    self._write(name)

    def close(self) -> Written:
        """End the files, and make them durable."""
        for name in self._waiting:
            self._write(name)
        actions = {}
        for name, files in self._files.items():
            with reaching(files.storage.url):
                actions[name] = files.close()
        return Written(actions, sum(files.rows for files in self._files.values()))

    def _write(self, name: str) -> None:
        files, waiting = self._files[name], self._waiting[name]
        if waiting:
            with reaching(files.storage.url):
                files.write(waiting)
            waiting.clear()


def _blocks(payloads: Iterable[bytes]) -> Iterator[bytes]:
    block: list[bytes] = []
    size = 0
    for payload in payloads:
        block.append(payload)
        size += len(payload)
        if size >= BLOCK_BYTES:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)


def _parse(lines: bytes, journal: str, segment: int) -> Batches:
    batches, others = plain_rows(lines, journal, segment)
    rows = defaultdict(list)
    for line in others:
        table, row = row_of(decode(line), journal, segment)
        rows[table].append(row)
    for table, found in rows.items():
        batch = table.batch(found)
        batches[table.name] = pa.concat_batches([batches[table.name], batch]) if table.name in batches else batch
    return batches

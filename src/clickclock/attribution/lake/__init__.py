"""The lake: clicks, orders and rejections as Delta tables, in a folder or an object store. This is its door.

Never deletes what was not merged into other files. Any engine that reads Delta, or Parquet, reads it without us.
Invariants: each entry of a journal becomes one row of one table, however often its segment is loaded, by however many
compactors; a reader sees all rows of a commit or none.

>>> lake = Lake("/tmp/lake")   # doctest: +SKIP
>>> lake.table("clicks").file_uris()   # doctest: +SKIP
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from clickclock.attribution.lake.files import Storage
from clickclock.attribution.lake.load import Load, Overtaken
from clickclock.attribution.lake.reach import reaching
from clickclock.attribution.lake.tables import CLICKS, DAY, EVENTS, ORDERS, REJECTIONS, TABLES, Table
from clickclock.attribution.lake.upkeep import Tidied, tidy
from clickclock.attribution.lake.writing import Writer, Written

__all__ = [
    "CLICKS",
    "DAY",
    "EVENTS",
    "ORDERS",
    "REJECTIONS",
    "TABLES",
    "Lake",
    "Load",
    "Overtaken",
    "Table",
    "Tidied",
    "Writer",
    "Written",
]

_CONFIGURATION: Final[Mapping[str, str | None]] = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 30 days",
}


class Lake:
    """Tables under one URL: a folder's path, or `s3://…`, `gs://…`, `az://…`."""

    def __init__(self, url: str | Path, storage_options: Mapping[str, str] | None = None) -> None:
        """`storage_options` are those of delta-rs (credentials, endpoint); what they leave out is the environment's."""
        given = str(url).removeprefix("file://")
        self.url = given.rstrip("/") if "://" in given else str(Path(given).absolute())
        self.storage_options = dict(storage_options or {})

    def load(self) -> Load:
        """Begin to load segments. Raises `LakeUnreachable`, as all methods do."""
        with reaching(self.url):
            return Load({table.name: (self._opened(table), self._storage(table)) for table in TABLES})

    def writer(self, name: str, now_ms: int) -> Writer:
        """What writes a load's files, in any process; `name` must be of this one alone."""
        return Writer({table.name: self._storage(table) for table in TABLES}, name, now_ms)

    def table(self, name: str) -> DeltaTable | None:
        """A table as it is now; None if nothing was ever loaded."""
        with reaching(self.url):
            try:
                return DeltaTable(f"{self.url}/{name}", storage_options=self.storage_options)
            except TableNotFoundError:
                return None

    def scan(
        self, name: str, where: pc.Expression | None = None, columns: list[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a table that fit, batch by batch, never all of them in memory."""
        delta = self.table(name)
        if delta is None:
            return
        with reaching(self.url):
            dataset = delta.to_pyarrow_dataset()
            scanner = dataset.scanner(
                columns=columns, filter=where, batch_size=2**14, batch_readahead=2, fragment_readahead=1
            )
            yield from scanner.to_batches()

    def tidy(self, *, history_hours: int) -> Tidied:
        """Merge small files, and delete those that no version of the last `history_hours` needs."""
        tidied = Tidied()
        for table in TABLES:
            delta = self.table(table.name)
            if delta is not None:
                with reaching(self.url):
                    tidied += tidy(table, delta, self._storage(table), history_hours)
        return tidied

    def _storage(self, table: Table) -> Storage:
        return Storage(f"{self.url}/{table.name}", self.storage_options)

    def _opened(self, table: Table) -> DeltaTable:
        found = self.table(table.name)
        if found is not None:
            return found
        url = self._storage(table).url
        if "://" not in url:
            Path(url).mkdir(parents=True, exist_ok=True)
        try:
            return DeltaTable.create(
                url,
                table.whole,
                mode="error",
                partition_by=[DAY],
                configuration=_CONFIGURATION,
                storage_options=self.storage_options,
            )
        except DeltaError:
            created = self.table(table.name)  # by another, just now
            if created is None:
                raise
            return created

"""DuckDB, in this process: the engine that is there without anything else.

Never loads or downloads an extension: what is on an object store is read through Arrow. Invariants: no more memory is
used for tables than was given, and what does not fit is in `temp_dir`; each piece of work has a connection of its own,
which is closed when its last row was taken, or nobody wants more.

>>> engine = DuckDB(memory_mb=256, threads=1, temp_dir=Path("/tmp"))
>>> engine.links([]).num_rows
0
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Final

import duckdb
import pyarrow as pa

from clickclock.attribution.engines import Kernel, Source
from clickclock.attribution.engines.batches import SORTED_BY, walked
from clickclock.attribution.engines.dialects import DUCKDB
from clickclock.attribution.engines.files import RAW, is_remote, partitions, remote
from clickclock.attribution.engines.sql import SqlEngine
from clickclock.attribution.engines.sql_cache import Texts
from clickclock.attribution.engines.sql_text import Text
from clickclock.attribution.errors import EngineFailing

BATCH_ROWS: Final = 2**17
"""Rows of one streamed batch: some megabytes."""
AHEAD_MB: Final = 64
"""So far an engine works ahead of who takes the rows: a few batches. With less, one of the two always waits."""
_MACROS: Final = (
    "swapped(n, bits, mask) AS (((n & mask) << bits) | ((n >> bits) & mask))",
    f"turned(n) AS swapped(swapped(swapped(n, 8, {0x00FF00FF00FF00FF}), 16, {0x0000FFFF0000FFFF}), 32, {2**32 - 1})",
    # The first eight bytes of an MD5 are the lower half of its number, from behind; `md5_number_upper` gives just them,
    # and takes five times as long.
    f"identifier_code(t) AS turned((md5_number(t) & {2**64 - 1}::UHUGEINT)::UBIGINT)::BIT::BIGINT",
)
"""A third cheaper than by hexadecimal digits."""


_TYPES: Final[Mapping[pa.DataType, str]] = {pa.date32(): "DATE", pa.int64(): "BIGINT", pa.string(): "VARCHAR"}
"""Of columns that are in folders' names."""


class DuckDB(SqlEngine):
    """DuckDB with so much memory and so many threads."""

    name = "duckdb"
    version = duckdb.__version__
    dialect = DUCKDB

    def __init__(
        self,
        *,
        memory_mb: int,
        threads: int,
        temp_dir: Path,
        storage_options: Mapping[str, str] | None = None,
        texts: Texts | None = None,
    ) -> None:
        """`storage_options` are the lake's, if it is on an object store; `texts` are those that are known."""
        self._configuration: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{memory_mb}MB",
            "threads": threads,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
            # A file is read once for each piece of work; the system keeps what it can of it.
            "enable_external_file_cache": False,
            # What a sort held goes back to the system when it is over, and not only when more is asked for.
            "allocator_background_threads": True,
            "temp_directory": str(temp_dir),
        }
        self._threads = threads
        self._storage_options = dict(storage_options or {})
        self._lock = Lock()
        self.texts = texts or Texts()

    def close(self) -> None:
        if "_database" in self.__dict__:
            self._database.close()
            del self._database

    def rows(self, text: Text, tables: Mapping[str, Source]) -> Iterator[pa.RecordBatch]:
        try:
            with self._cursor() as connection:
                connection.execute(f"SET streaming_buffer_size = '{AHEAD_MB}MB'")
                for name, schema in text.reads.items():
                    self._offer(connection, name, schema, tables[name])
                with connection.sql(text.sql).to_arrow_reader(BATCH_ROWS) as reader:
                    yield from reader
        except (duckdb.Error, OSError) as error:
            raise EngineFailing(f"DuckDB could not do its work ({' '.join(str(error).split())}).") from error

    def walked(self, text: Text, tables: Mapping[str, Source], kernel: Kernel) -> Iterator[pa.RecordBatch]:
        in_order = replace(text, sql=f"FROM ({text.sql}) ORDER BY {', '.join(SORTED_BY)}")
        return walked(self.rows(in_order, tables), kernel, self._threads)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own; the first of all threads' makes the database."""
        with self._lock:
            return self._database.cursor()

    @cached_property
    def _database(self) -> duckdb.DuckDBPyConnection:
        """An empty one, in memory: to make it takes longer than most pieces of work, each of which has a cursor."""
        database = duckdb.connect(config=self._configuration)
        # Files are on this machine (others come through Arrow), and the system reads ahead: to have all columns of a
        # group of rows in memory before the first is looked at takes a tenth of the time of who wants few of the rows.
        database.execute("SET GLOBAL disable_parquet_prefetching = true")
        for macro in _MACROS:
            database.execute(f"CREATE MACRO {macro}")
        return database

    def _offer(self, connection: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, source: Source) -> None:
        """Make the rows of a source known by the name of a table."""
        if isinstance(source, pa.Table):
            connection.register(name, source.select(schema.names))
        elif not source:
            connection.register(name, schema.empty_table())
        elif is_remote(source):
            connection.register(name, remote(source, schema, self._storage_options))
        else:
            names = ", ".join(f"'{quoted}'" for quoted in (file.replace("'", "''") for file in source))
            folders = {field.name: _TYPES[field.type] for field in partitions(source, schema)}
            hive = f", hive_partitioning = true, hive_types = {folders}" if folders else ", hive_partitioning = false"
            rows = f"FROM read_parquet([{names}]{hive})"
            if name in RAW:
                connection.register(f"no_{name}", schema.empty_table())
                rows = f'FROM read_parquet([{names}]{hive}, union_by_name = true) UNION ALL BY NAME FROM "no_{name}"'
            connection.execute(f'CREATE TEMP VIEW "{name}" AS {rows}')

"""Spark: the engine for when one machine is outgrown.

Never needs Delta or another package on the cluster, apart from this program, which kernels are part of, and by which
executors read an object store: it is given files, and gives files. Invariants: all else that goes in and out passes
through `scratch`, a folder that the driver and all executors see, and of which nothing is left once the rows were
taken; a number that does not fit is an error.

>>> engine = Spark("local[2]", scratch=Path("/tmp"))   # doctest: +SKIP
>>> engine.links(touches).num_rows   # doctest: +SKIP
91178
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from ibis.backends.sql.datatypes import PySparkType

from clickclock.attribution.engines import Kernel, Source
from clickclock.attribution.engines.batches import SORTED_BY, as_agreed, walked
from clickclock.attribution.engines.columns import unbound
from clickclock.attribution.engines.dialects import SPARK
from clickclock.attribution.engines.files import is_remote, partitions, remote
from clickclock.attribution.engines.sql import SqlEngine
from clickclock.attribution.engines.sql_cache import Texts
from clickclock.attribution.engines.sql_text import Text
from clickclock.attribution.errors import EngineFailing, EngineMissing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Shape: TypeAlias = "Callable[[DataFrame], DataFrame]"

BATCH_ROWS: Final = 2**17
FILES_AT_ONCE_MAX: Final = 256
"""Requests to an object store, by all executors together."""
_SETTINGS: Final = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
}
_IDENTIFIER_CODE: Final = """
CREATE OR REPLACE TEMPORARY FUNCTION identifier_code(t STRING) RETURNS BIGINT
RETURN CAST(conv(substring(md5(t), 1, 16), 16, -10) AS BIGINT)
"""


class Spark(SqlEngine):
    """Spark at a master's URL. Its session begins with the first piece of work."""

    name = "spark"
    dialect = SPARK

    def __init__(
        self,
        master: str,
        *,
        scratch: Path,
        settings: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        texts: Texts | None = None,
    ) -> None:
        """`settings` are Spark's own, such as how many partitions a shuffle has; `storage_options` are the lake's.

        `texts` are those that are known.

        Raises `EngineMissing`.
        """
        try:
            import pyspark  # noqa: PLC0415 (it is an optional part)
        except ImportError as error:
            raise EngineMissing("Spark is not installed: pip install 'clickclock[spark]', and Java.") from error
        self.version = pyspark.__version__
        self._master = master
        self._scratch = scratch.absolute()
        self._storage_options = dict(storage_options or {})
        self._settings: dict[str, bool | float | int | str | None] = {**_SETTINGS, **(settings or {})}
        self.texts = texts or Texts()
        self._lock = Lock()
        """Views are the session's, and so of all threads: whoever has named some works alone."""

    def rows(self, text: Text, tables: Mapping[str, Source]) -> Iterator[pa.RecordBatch]:
        return self._streamed(text, tables)

    def walked(self, text: Text, tables: Mapping[str, Source], kernel: Kernel) -> Iterator[pa.RecordBatch]:
        def shape(frame: "DataFrame") -> "DataFrame":
            sorted_rows = frame.repartition("person").sortWithinPartitions(*SORTED_BY)
            return sorted_rows.mapInArrow(partial(walked, kernel=kernel), _columns(kernel.schema))

        return self._streamed(text, tables, shape)

    def close(self) -> None:
        if "_session" in self.__dict__:
            self._session.stop()
            del self._session
            self._warehouse.cleanup()
            del self._warehouse

    @cached_property
    def _warehouse(self) -> TemporaryDirectory[str]:
        """Spark makes a folder for tables of its own, which there are none of: where we are, if not told where."""
        return TemporaryDirectory(dir=self._scratch, prefix="warehouse-")

    @cached_property
    def _session(self) -> "SparkSession":
        from pyspark.sql import SparkSession  # noqa: PLC0415 (it is an optional part)

        settings = {**self._settings, "spark.sql.warehouse.dir": self._warehouse.name}
        session = SparkSession.builder.master(self._master).appName("clickclock").config(map=settings).getOrCreate()
        if self._master.startswith("local"):
            # Elsewhere the machine has its own, as PYSPARK_PYTHON says.
            session.sparkContext.pythonExec = sys.executable
        session.sql(_IDENTIFIER_CODE)
        return session

    def _streamed(
        self, text: Text, tables: Mapping[str, Source], shape: Shape = lambda frame: frame
    ) -> Iterator[pa.RecordBatch]:
        """The rows, which are files before the first of them comes."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 (it is an optional part)
        from pyspark.errors import PySparkException  # noqa: PLC0415 (it is an optional part)

        with TemporaryDirectory(dir=self._scratch, prefix="spark-") as folder:
            made = Path(folder) / "made"
            try:
                with self._lock, warnings.catch_warnings():
                    # It wants pandas to be there for a kernel, and older than 3; neither it nor we use any of it.
                    warnings.filterwarnings("ignore", ".*pandas >= 3", FutureWarning)
                    self._make(text, tables, shape, Path(folder), made)
            except (PySparkException, Py4JError) as error:
                raise EngineFailing(f"Spark could not do its work ({' '.join(str(error).split())}).") from error
            for file in sorted(made.glob("*.parquet")):
                yield from pq.ParquetFile(file).iter_batches(BATCH_ROWS)

    def _make(self, text: Text, tables: Mapping[str, Source], shape: Shape, folder: Path, made: Path) -> None:
        for name, schema in text.reads.items():
            self._offer(name, schema, tables[name], folder)
        shape(self._session.sql(text.sql)).write.parquet(_address(str(made)))

    def _offer(self, name: str, schema: pa.Schema, source: Source, folder: Path) -> None:
        """Make the rows of a source known by the name of a table."""
        files = source
        if isinstance(source, pa.Table):
            files = [str(folder / f"{name}.parquet")]
            pq.write_table(source.select(schema.names), files[0])
        folders = partitions(files, schema)
        if is_remote(files):
            names = self._session.createDataFrame(pa.table({"file": list(files)}))
            read = partial(_read, schema, self._storage_options)
            frame = names.repartition(min(len(files), FILES_AT_ONCE_MAX)).mapInArrow(read, _columns(schema))
        elif files:
            reader = self._session.read.schema(_columns(schema))
            if folders.names:
                reader = reader.option("basePath", _address(files[0].partition(f"/{folders.names[0]}=")[0]))
            frame = reader.parquet(*map(_address, files))
        else:
            frame = self._session.createDataFrame([], _columns(schema))
        frame.createOrReplaceTempView(name)


def _columns(schema: pa.Schema) -> str:
    """Columns as Spark writes them."""
    kinds = unbound(schema, "rows").schema()
    return ", ".join(f"`{name}` {PySparkType.to_string(kind)}" for name, kind in kinds.items())


def _address(file: str) -> str:
    """A local file as Hadoop names it."""
    return f"file://{file.removeprefix('file://')}"


def _read(
    schema: pa.Schema,
    storage_options: Mapping[str, str],
    named: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The rows of files of an object store, by the executor that was given their names."""
    for batch in named:
        for file in batch["file"].to_pylist():
            dataset = remote([file], schema, storage_options)
            yield from as_agreed(dataset.to_batches(columns=schema.names, batch_size=BATCH_ROWS), schema)

"""The engines of a configuration: what runs do their work on, and DuckDB for questions.

Never starts anything, and never loads Spark unless it is chosen: it is an optional part. Invariant: both read the same
lake with the same options.

>>> duckdb_of(load(None, {}, {}), Path("scratch")).threads   # doctest: +SKIP
2
"""

from pathlib import Path

from clickclock.app.lake import lake_of
from clickclock.attribution.engines import Engine
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.foundation.config import Config


def engine_of(config: Config, folder: Path) -> Engine:
    """What runs do their work on; what passes through the disk is put into the folder."""
    if config.attribution_engine != "spark":
        return duckdb_of(config, folder)
    # Here and not at the top: it is an optional part.
    from clickclock.attribution.engines.spark import Spark  # noqa: PLC0415 (see the line above)

    return Spark(config.spark_master, scratch=folder, storage_options=lake_of(config).storage_options)


def duckdb_of(config: Config, folder: Path) -> DuckDB:
    """DuckDB in this process, within the limits of the configuration."""
    return DuckDB(
        memory_mb=config.attribution_memory_mb,
        threads=config.attribution_threads,
        temp_dir=folder,
        storage_options=lake_of(config).storage_options,
    )

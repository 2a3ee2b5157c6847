"""Reports from the lake of a configuration, on the command line.

Never changes the lake. Invariant: questions are answered by DuckDB, whatever runs use: they are small, and it is here.

>>> report(load(None, {}, {}), Asked()).rows   # doctest: +SKIP
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from clickclock.app.lake import docket_of, found_lake, lake_of
from clickclock.attribution.agents.lister import Lister
from clickclock.attribution.agents.reporter import Reporter
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.reporting.cohorts import Cohorts
from clickclock.attribution.reporting.listing import Orders
from clickclock.attribution.reporting.report import Asked, Report
from clickclock.foundation.config import Config


def report(config: Config, asked: Asked) -> Report:
    """A report; see `Reporter.report`."""
    with TemporaryDirectory(prefix="clickclock-") as folder, docket_of(config).explaining():
        return Reporter(found_lake(config), engine_of(config, Path(folder))).report(asked)


def orders(config: Config, asked: Orders) -> dict[str, Any]:
    """A page of orders; see `Lister.orders`."""
    with TemporaryDirectory(prefix="clickclock-") as folder, docket_of(config).explaining():
        return Lister(found_lake(config), engine_of(config, Path(folder))).orders(asked)


def cohorts(config: Config, asked: Cohorts) -> dict[str, Any]:
    """Cohorts; see `Lister.cohorts`."""
    with TemporaryDirectory(prefix="clickclock-") as folder, docket_of(config).explaining():
        return Lister(found_lake(config), engine_of(config, Path(folder))).cohorts(asked)


def engine_of(config: Config, folder: Path) -> DuckDB:
    """The engine that answers; it puts into the folder what it has no memory for."""
    return DuckDB(
        memory_mb=config.attribution_memory_mb,
        threads=config.attribution_threads,
        temp_dir=folder,
        storage_options=lake_of(config).storage_options,
    )

"""Reports from the lake of a configuration, and the desk at which questions over HTTP are answered.

Never changes the lake. Invariant: questions are answered by DuckDB, whatever runs use: they are small, and it is here.

>>> report(load(None, {}, {}), Asked()).rows   # doctest: +SKIP
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from clickclock.app.exporting import conversions_of, exporter_of, folder_of
from clickclock.app.lake import docket_of, found_lake, lake_of
from clickclock.app.models import known_models
from clickclock.app.postbacks import partners_of
from clickclock.attribution.agents.lister import Lister
from clickclock.attribution.agents.reporter import Reporter
from clickclock.attribution.api.query_context import Desk
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.reporting.cohorts import Cohorts
from clickclock.attribution.reporting.listing import Orders
from clickclock.attribution.reporting.report import Asked, Report
from clickclock.foundation import log
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config


def report(config: Config, asked: Asked) -> Report:
    """A report; see `Reporter.report`."""
    with TemporaryDirectory(prefix="clickclock-") as folder, docket_of(config).explaining():
        return Reporter(found_lake(config), _engine(config, Path(folder))).report(asked)


def orders(config: Config, asked: Orders) -> dict[str, Any]:
    """A page of orders; see `Lister.orders`."""
    with TemporaryDirectory(prefix="clickclock-") as folder, docket_of(config).explaining():
        return Lister(found_lake(config), _engine(config, Path(folder))).orders(asked)


def cohorts(config: Config, asked: Cohorts) -> dict[str, Any]:
    """Cohorts; see `Lister.cohorts`."""
    with TemporaryDirectory(prefix="clickclock-") as folder, docket_of(config).explaining():
        return Lister(found_lake(config), _engine(config, Path(folder))).cohorts(asked)


def desk_of(config: Config) -> Desk:
    """What questions are answered from, in the one process of a service that does."""
    log.set_up(config.log_format, config.log_level)
    folder = config.data_dir / "answers"
    shutil.rmtree(folder, ignore_errors=True)  # what such a process, when it was killed, had not in memory
    folder.mkdir()
    lake = lake_of(config)
    return Desk(
        lake,
        _engine(config, folder),
        known_models(),
        docket_of(config),
        config.journal_dir,
        exporter_of(config, lake),
        config.upload_model,
        conversions_of(config),
        partners_of(config),
        folder_of(config),
        SystemClock(),
    )


def _engine(config: Config, folder: Path) -> DuckDB:
    return DuckDB(
        memory_mb=config.attribution_memory_mb,
        threads=config.attribution_threads,
        temp_dir=folder,
        storage_options=lake_of(config).storage_options,
    )

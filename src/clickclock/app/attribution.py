"""Runs of attribution: an `Attributor` made from the configuration, and run.

Never listens anywhere and starts no service. Invariants: it writes the lake among others, as compactions do; what it
puts aside on disk goes when it ends, and what a run left that was killed goes with the next one.

>>> run(load(None, {}, {}), full=False).is_new   # doctest: +SKIP
True
"""

import asyncio
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp

from clickclock.app.accounts import policies_of
from clickclock.app.data_folder import make_data_dir, sole
from clickclock.app.lake import found_lake, lake_of
from clickclock.app.lake_lock import among_others
from clickclock.app.models import chosen_models
from clickclock.app.stages import stages
from clickclock.attribution.agents.attributor import Attributor, Ran, Settings
from clickclock.attribution.engines import Engine
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.engines.sql_cache import Texts
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault

_SCRATCH = "run"
_TEXTS = "engine-sql"


def run(config: Config, *, full: bool) -> Ran:
    """Credit what is new, or everything; see `Attributor.step`. Raises `ConfigurationError` for a model or engine."""
    lake = found_lake(config)
    make_data_dir(config.data_dir)
    one_run = sole(config.data_dir, "run-lock", "credits orders", waits=True)
    with stages(config, "attribution run"), one_run, among_others(config), _scratch(config) as folder:
        settings = settings_of(config)
        attributor = Attributor(
            lake,
            _engine(config, folder, Texts(config.data_dir / _TEXTS, settings.as_json)),
            settings,
            SystemClock(),
            code_version=version("clickclock"),
            scratch=folder,
            history_days=config.lake_history_days,
        )
        return asyncio.run(attributor.step(full=full))


def versions(config: Config) -> list[Result]:
    """The result versions, oldest first."""
    return found_lake(config).results()


def settings_of(config: Config) -> Settings:
    """The rules by which a configuration credits. Raises `ConfigurationError`, naming every unknown model."""
    models, known = chosen_models(config)
    return Settings(policies_of(config), models, known)


def _engine(config: Config, folder: Path, texts: Texts) -> Engine:
    lake = lake_of(config)
    if config.attribution_engine == "spark":
        # Here and not at the top: it is an optional part.
        from clickclock.attribution.engines.spark import Spark  # noqa: PLC0415 (see the line above)

        return Spark(config.spark_master, scratch=folder, storage_options=lake.storage_options, texts=texts)
    return DuckDB(
        memory_mb=config.attribution_memory_mb,
        threads=config.attribution_threads,
        temp_dir=folder,
        storage_options=lake.storage_options,
        texts=texts,
    )


@contextmanager
def _scratch(config: Config) -> Iterator[Path]:
    """A folder for what does not fit into memory. There is one run at a time, so whatever is there is left over."""
    parent = config.data_dir.absolute() / _SCRATCH
    if config.attribution_engine == "spark" and config.spark_scratch is not None:
        # Runs of others may have theirs in it, too.
        whose = sha256(f"{socket.gethostname()} {parent}".encode()).hexdigest()[:12]
        parent = config.spark_scratch.absolute() / f"{_SCRATCH}-{whose}"
    shutil.rmtree(parent, ignore_errors=True)
    try:
        parent.mkdir(mode=0o700)
    except OSError as error:
        fault = Fault("spark_scratch", f"{parent}: {error.strerror}.")
        raise ConfigurationError(faults=[fault]) from error
    folder = Path(mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(parent, ignore_errors=True)

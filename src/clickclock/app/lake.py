"""The lake of a configuration, and its compaction.

Never listens anywhere and starts no service. Invariant: the lake's secrets come from the configuration alone, or from
what the object store's own library reads.

>>> compact(load(None, {}, {}), processes=2).segments   # doctest: +SKIP
"""

import asyncio

from clickclock.app.data_folder import expect_data_dir, expect_lake
from clickclock.app.lake_lock import among_others
from clickclock.app.stages import stages
from clickclock.attribution.agents.compactor import Compacted, Compactor
from clickclock.attribution.files.docket import Docket
from clickclock.attribution.lake import Lake
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config


def compact(config: Config, processes: int) -> Compacted:
    """Load every sealed segment of every journal; see `Compactor.step`."""
    expect_data_dir(config.data_dir)
    with stages(config, "attribution compact"), among_others(config):
        return asyncio.run(compactor_of(config, processes).step())


def compactor_of(config: Config, processes: int) -> Compactor:
    """The compactor of a configuration."""
    return Compactor(
        config.journal_dir,
        lake_of(config),
        SystemClock(),
        processes=processes,
        history_days=config.lake_history_days,
    )


def docket_of(config: Config) -> Docket:
    """Where the erasure is that is not done."""
    return Docket(config.data_dir / "erasure.json")


def found_lake(config: Config) -> Lake:
    """The lake of a configuration, for commands that need what is in it. Raises `ConfigurationError`."""
    expect_lake(config)
    return lake_of(config)


def lake_of(config: Config) -> Lake:
    """The lake of a configuration."""
    return Lake(config.lake, {name: value.get_secret_value() for name, value in config.lake_options.items()})

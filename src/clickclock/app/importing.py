"""Imports and replays: an `Importer` made from the configuration, and run.

Never listens anywhere and starts nothing: what it writes is in the journal of imports when it returns.
Invariant: every import of a data folder writes the same journal, whose lock lets one run at a time.

>>> replay_rejections(config, Which(client_id="shop-1"), dry_run=True).rows   # doctest: +SKIP
"""

import asyncio
from collections.abc import Sequence

from clickclock.app.accounts import accounts_of
from clickclock.app.holding import make_data_dir
from clickclock.app.lake import lake_of
from clickclock.attribution.archive import Archive
from clickclock.attribution.importer import Importer, Report, Which
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config

SLOT = "import"
"""Beside the collectors' journals, whose names are numbers."""


def import_archives(config: Config, archives: Sequence[Archive], *, skip_unreadable: bool, dry_run: bool) -> Report:
    """Import clicks from files; see `Importer.import_archives`."""
    if not dry_run:
        make_data_dir(config.data_dir)
    work = importer_of(config).import_archives(archives, skip_unreadable=skip_unreadable, dry_run=dry_run)
    return asyncio.run(work)


def replay_rejections(config: Config, which: Which, *, dry_run: bool) -> Report:
    """Judge rejections of the lake again; see `Importer.replay`."""
    if not dry_run:
        make_data_dir(config.data_dir)
    return asyncio.run(importer_of(config).replay(which, dry_run=dry_run))


def importer_of(config: Config) -> Importer:
    """The importer of a configuration."""
    return Importer(
        config.journal_dir / SLOT,
        lake_of(config),
        accounts_of(config),
        SystemClock(),
        config.segment_bytes // 4096 * 4096,
    )

"""Imports and replays: an `Importer` made from the configuration, and run; costs likewise.

Never listens anywhere and starts nothing: what it writes is in the journal of imports when it returns, costs in the
lake.
Invariant: every import of a data folder writes the same journal, whose lock lets one run at a time.

>>> replay_rejections(config, Which(client_id="shop-1"), dry_run=True).rows   # doctest: +SKIP
"""

import asyncio
from collections.abc import Sequence

from clickclock.app.accounts import accounts_of
from clickclock.app.address_salt import salt_of
from clickclock.app.data_folder import make_data_dir
from clickclock.app.lake import found_lake, lake_of
from clickclock.app.lake_lock import among_others
from clickclock.attribution.agents.cost_importer import CostImporter, CostsReport
from clickclock.attribution.agents.importer import Importer, OriginOf, Way, Which, without_address
from clickclock.attribution.api.origin import Origins
from clickclock.attribution.files.archive import Rows
from clickclock.attribution.files.import_journal import ImportJournal
from clickclock.attribution.files.order_tokens import OrderTokens
from clickclock.attribution.registering.import_report import Report
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config

SLOT = "import"
"""Beside the collectors' journals, whose names are numbers."""


def import_clicks(config: Config, archives: Sequence[Rows], way: Way) -> Report:
    """Import clicks from files; see `Importer.import_clicks`."""
    if not way.dry_run:
        make_data_dir(config.data_dir)
    importer = importer_of(config, without_address if way.dry_run else origins_of(config))
    return asyncio.run(importer.import_clicks(archives, way))


def import_orders(config: Config, archives: Sequence[Rows], way: Way) -> Report:
    """Import orders and amendments from files; see `Importer.import_orders`."""
    if not way.dry_run:
        make_data_dir(config.data_dir)
    return asyncio.run(importer_of(config).import_orders(archives, way))


def import_identities(config: Config, archives: Sequence[Rows], way: Way) -> Report:
    """Import identifications from files; see `Importer.import_identities`."""
    if not way.dry_run:
        make_data_dir(config.data_dir)
    return asyncio.run(importer_of(config).import_identities(archives, way))


def import_costs(config: Config, archives: Sequence[Rows], *, dry_run: bool) -> CostsReport:
    """Import costs from files; see `CostImporter.load`."""
    if not dry_run:
        make_data_dir(config.data_dir)
    with among_others(config):
        return CostImporter(lake_of(config), accounts_of(config), SystemClock()).load(archives, dry_run=dry_run)


def replay_rejections(config: Config, which: Which, *, dry_run: bool) -> Report:
    """Judge rejections of the lake again; see `Importer.replay`."""
    found_lake(config)
    if not dry_run:
        make_data_dir(config.data_dir)
    return asyncio.run(importer_of(config).replay(which, dry_run=dry_run))


def importer_of(config: Config, origin_of: OriginOf = without_address) -> Importer:
    """The importer of a configuration. `origin_of` makes pseudonyms of the addresses in a log."""
    lake, clock = lake_of(config), SystemClock()
    journal = ImportJournal(config.journal_dir / SLOT, lake, clock, config.segment_bytes_in_blocks)
    tokens = OrderTokens(config.order_tokens, are_needed=config.orders_need_token)
    tokens.refresh()
    return Importer(journal, lake, accounts_of(config), clock, origin_of, tokens.needs)


def origins_of(config: Config) -> OriginOf:
    """As the collectors have them today: the same address, seen live and in a log, has one pseudonym."""
    return Origins(
        config.trusted_proxies, salt_of(config.data_dir, config.click_salt_days, SystemClock().now()).secret
    ).of

"""Exports to ad networks: an `Exporter` made from the configuration, and run.

Never sends anything: what it makes are files in the data folder, or in another folder that is given. Invariant: without
another word, files go where they went before, so that what was cut off is completed.

>>> export(config, Wanted("last")).files   # doctest: +SKIP
[]
"""

from collections.abc import Iterable
from pathlib import Path

from clickclock.app.accounts import policies_of
from clickclock.app.data_folder import make_data_dir
from clickclock.app.lake import docket_of, found_lake
from clickclock.app.lake_lock import among_others
from clickclock.app.trail import record
from clickclock.attribution.agents.exporter import Exporter
from clickclock.attribution.files.outbox import Outbox
from clickclock.attribution.lake import Lake
from clickclock.attribution.uploads.export import Exported, Wanted
from clickclock.attribution.uploads.upload import Conversion, Network, conversion
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.scheduler.access.audit import Resource


def export(
    config: Config,
    *,
    networks: Iterable[str] = (),
    client_id: str | None = None,
    model: str | None = None,
    conversion_name: str | None = None,
    output: Path | None = None,
) -> Exported:
    """Write what networks do not know yet; see `Exporter.step`. Values that are not given are as configured, or all."""
    lake = found_lake(config)
    make_data_dir(config.data_dir)
    chosen = tuple(map(Network, networks)) or tuple(Network)
    clients = None if client_id is None else (client_id,)
    wanted = Wanted(
        model or config.upload_model,
        chosen,
        clients,
        conversion_name or config.google_conversion_name,
        others=conversions_of(config),
    )
    record(config, "attribution export", Resource.EXPORT, "/".join(filter(None, ("conversions", client_id))))
    with among_others(config, is_private=output is None), docket_of(config).explaining():
        return exporter_of(config, lake, output).step(wanted)


def exporter_of(config: Config, lake: Lake, output: Path | None = None) -> Exporter:
    """What exports from a lake, into this folder or the configuration's."""
    return Exporter(lake, policies_of(config), SystemClock(), Outbox(output or folder_of(config)))


def conversions_of(config: Config) -> tuple[Conversion, ...]:
    """Every conversion of the configuration."""
    return tuple(
        conversion(network, called, table.kind)
        for table in config.conversion
        for network, called in ((Network.GOOGLE, table.google_name), (Network.META, table.meta_event))
        if called is not None
    )


def folder_of(config: Config) -> Path:
    """Where the files of a configuration go."""
    return config.data_dir / "exports"

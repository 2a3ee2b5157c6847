"""Sending to ad networks: a `Sender` made from the configuration, and run.

Never sends to a network that no `[[send]]` table names. Invariant: a client's own table counts before the one for all.

>>> send(config)   # doctest: +SKIP
[]
"""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from clickclock.app.exporting import folder_of
from clickclock.app.trail import record
from clickclock.attribution.agents.sender import Destination, Sender, Sent
from clickclock.attribution.files.export_files import Written, client_name
from clickclock.attribution.networks.ad_networks import AdNetwork, Google, Meta
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import Invalid
from clickclock.scheduler.access.audit import Resource


def send(config: Config, *, networks: Collection[str] = (), folder: Path | None = None) -> list[Sent]:
    """Send what waits; see `Sender.step`. Raises `Invalid` if nothing is configured."""
    sender = sender_of(config, folder)
    if sender.waiting(networks):
        record(config, "attribution send", Resource.EXPORT, "conversions")
    return sender.step(networks)


def waiting(config: Config, *, networks: Collection[str] = (), folder: Path | None = None) -> list[Written]:
    """The files that would be sent now."""
    return sender_of(config, folder).waiting(networks)


def sender_of(config: Config, folder: Path | None = None) -> Sender:
    """What sends from a folder. Raises `Invalid` if no `[[send]]` table is there."""
    if not config.send:
        raise Invalid(
            "No network is configured; add a [[send]] table to the configuration, or upload the files by hand."
        )
    return Sender(folder or folder_of(config), partial(_destination, _destinations(config)), SystemClock())


def _destinations(config: Config) -> dict[tuple[str, str | None], Destination]:
    """By network, and by the client as names of files have it; None is for all others."""
    found: dict[tuple[str, str | None], Destination] = {}
    for place, table in enumerate(config.send):
        client = None if table.client_id is None else client_name(table.client_id)
        makers: dict[str, Callable[[], AdNetwork]] = {}
        if table.meta is not None:
            makers["meta"] = partial(Meta, table.meta)
        if table.google is not None:
            makers["google"] = partial(Google, table.google)
        found |= {(network, client): (f"{network} {place}", make) for network, make in makers.items()}
    return found


def _destination(destinations: dict[tuple[str, str | None], Destination], file: Written) -> Destination | None:
    return destinations.get((file.network, file.client)) or destinations.get((file.network, None))

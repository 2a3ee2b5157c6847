"""What a data folder remembers of the installation that it belongs to: its own name there, and whose database it knows.

Never decides what to do about another database: the store refuses it. Invariants: both are written once, by rename;
a database is remembered before anything is done with it; no two replicas on one database serve under one name.

>>> node_name(Path("clickclock-data"))   # doctest: +SKIP
'web-1-5f0c6c1d9a11'
"""

import asyncio
import os
import socket
from datetime import datetime
from pathlib import Path
from typing import Final

from clickclock.app.holding import url_of, writing
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.foundation.ids import new_id
from clickclock.scheduler.store import Heartbeat, Store

INSTALLATION: Final = "installation"
LOOK_EVERY_S: Final = 0.5
"""How often, while a replica of our name may still live."""


def node_name(data_dir: Path) -> str:
    """This data folder's name among others, made once: attempts are found again by it. Raises `ConfigurationError`."""
    file = data_dir / "node"
    with writing(data_dir):
        # An empty one is what a power cut may have left of it.
        if not (name := file.read_text().strip() if file.exists() else ""):
            name = f"{socket.gethostname()}-{new_id()[-12:]}"
            _write(file, name)
    return name


async def open_store(config: Config, default_cluster: str) -> Store:
    """The store, if it is the one that this data folder knows, or the first. Raises `ClickclockError`.

    A SQLite file in the folder needs no such care: whoever removes it knows what he does.
    """
    known_id = known_installation(config)
    store = await Store.open(config.store_url, default_cluster, known_id)
    if config.shares_database and known_id is None and store.installation_id is not None:
        _write(config.data_dir / INSTALLATION, store.installation_id)
    return store


def known_installation(config: Config) -> str | None:
    """The id of the shared database that the data folder knows, if it knows one."""
    file = config.data_dir / INSTALLATION
    return file.read_text(encoding="ascii").strip() if config.shares_database and file.exists() else None


async def be_sole(store: Store, node: str) -> None:
    """Wait until no replica on another host lives under our name. Raises `ConfigurationError` if one still does.

    Our data folder's lock is held, so it is on a copy of the folder, or was here before the host had another name. Only
    the former goes on to be heard.
    """
    if store.kind == "sqlite":
        return  # the lock is enough
    heard: dict[str, datetime] = {}
    while others := {beat.replica_id: beat for beat in await _others(store, node)}:
        for replica_id, beat in others.items():
            if beat.heartbeat_at > heard.setdefault(replica_id, beat.heartbeat_at):
                sentence = (
                    f"A replica on {beat.host} is called {node}, too, so one data folder is a copy of the other; stop "
                    "one of them, and delete the file node and the files id of the journals in its data folder."
                )
                raise ConfigurationError(faults=[Fault("data_dir", sentence)])
        await asyncio.sleep(LOOK_EVERY_S)


async def _others(store: Store, node: str) -> list[Heartbeat]:
    clock = SystemClock()
    living = await store.replicas.living(clock.now() + await store.clock_skew(clock))
    return [beat for beat in living if beat.node == node and beat.host != socket.gethostname()]


def _write(file: Path, line: str) -> None:
    fresh = file.with_suffix(".new")
    with fresh.open("w") as made:
        made.write(f"{line}\n")
        made.flush()
        os.fsync(made.fileno())
    fresh.rename(file)


def advertised_url(config: Config, listener: socket.socket) -> str:
    """Where the other replicas reach this one: as the configuration says, or where it listens.

    One that listens on every address is reached by its machine's name.
    """
    if config.advertise_url is not None:
        return config.advertise_url.rstrip("/")
    host, port = listener.getsockname()[:2]
    return f"http://{socket.gethostname()}:{port}" if host in {"0.0.0.0", "::"} else url_of(listener)  # noqa: S104 - only compared, not listened on

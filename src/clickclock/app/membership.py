"""What a data folder remembers of its installation: its own name there, whose database it knows, and how old that is.

Never decides what to do about another database: the store refuses it. Invariants: each is written by rename; a database
is remembered before anything is done with it, and no state of it from before what is remembered is used; no two
replicas on one database serve under one name.

>>> node_name(Path("clickclock-data"))   # doctest: +SKIP
'web-1-5f0c6c1d9a11'
"""

import asyncio
import contextlib
import os
import socket
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from clickclock.app.data_folder import kept_secret, url_of, writing
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ClickclockError, ConfigurationError, Fault, StoreReplaced, StoreUnreachable
from clickclock.foundation.ids import new_id
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.store import BACK_OR_ANEW, Heartbeat, Store

INSTALLATION: Final = "installation"
LAST_HEARD: Final = "last-heard"
"""The file with the time of the newest heartbeat that was seen in the database."""
AGE_EVERY_S: Final = 2.0
"""How often that is written: as often as heartbeats come."""
FAILOVER: Final = timedelta(seconds=60)
"""A standby of PostgreSQL that takes over may lack so much without being another state of the database."""
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


async def open_store(config: Config, default_cluster: str, *, is_new: bool = False) -> Store:
    """The store, if it is the one that this data folder knows, or the first. Raises `ClickclockError`.

    With `is_new`, what the folder knows is forgotten, and the database that is there is the one from now on.
    """
    if is_new:
        for name in (INSTALLATION, LAST_HEARD):
            (config.data_dir / name).unlink(missing_ok=True)
    known_id = known_installation(config)
    if known_id is None and not is_new:
        _refuse_lost(config)
    store = await Store.open(config.store_url, default_cluster, known_id)
    try:
        await _refuse_older(config, store)
        store.audit.key = bytes.fromhex(kept_secret(config.data_dir, "audit-key"))
    except ClickclockError:
        await store.close()
        raise
    if known_id is None and store.installation_id is not None:
        _write(config.data_dir / INSTALLATION, store.installation_id)
    return store


def known_installation(config: Config) -> str | None:
    """The id of the database that the data folder knows, if it knows one."""
    return _read(config.data_dir / INSTALLATION)


def _refuse_lost(config: Config) -> None:
    """A folder of a release that did not remember its database has output of jobs, and so had one."""
    logs, file = config.data_dir / "logs", config.data_dir / "clickclock.db"
    if config.database_url is None and not file.exists() and logs.is_dir() and any(logs.iterdir()):
        raise StoreReplaced(f"{file} is gone, and {logs} has the output of its jobs: {BACK_OR_ANEW}")


async def _refuse_older(config: Config, store: Store) -> None:
    known = _read(config.data_dir / LAST_HEARD)
    if known is None:
        return
    may_lack = FAILOVER if config.shares_database else timedelta(0)
    heard = await store.replicas.last_heard()
    if heard is None or heard + may_lack < datetime.fromisoformat(known):
        age = "was never written" if heard is None else f"was last written at {rfc3339(heard)}"
        raise StoreReplaced(
            f"The database {age}, and this data folder knows it as it was at {known}. It is an older copy, which lacks "
            f"what was acknowledged since: {BACK_OR_ANEW}"
        )


async def keep_age(config: Config, store: Store) -> None:
    """Note every few seconds how old the database is, for the next start. Never ends."""
    while True:
        with contextlib.suppress(StoreUnreachable, OSError):  # what is noted is older then, and still true
            heard = None if store.displaced() else await store.replicas.last_heard()
            if heard is not None:
                _write(config.data_dir / LAST_HEARD, rfc3339(heard))
        await asyncio.sleep(AGE_EVERY_S)


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


def _read(file: Path) -> str | None:
    return (file.read_text(encoding="ascii").strip() or None) if file.exists() else None


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
    is_everywhere = host in {"0.0.0.0", "::"}  # noqa: S104 - only compared, not listened on
    return f"{config.scheme}://{socket.gethostname()}:{port}" if is_everywhere else url_of(listener, config.scheme)

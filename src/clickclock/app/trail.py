"""The audit trail as commands of this machine write it: into the store itself, with no service in between.

Never asks whose command it is: whoever can read the store is an admin anyway. Invariant: the record is there before
raw data leaves the installation or is erased; where there is no store on this host, there is no trail.

>>> act_on_host("attribution erase").operation
'clickclock attribution erase'
"""

import asyncio
import os
import pwd
import socket
from typing import TYPE_CHECKING

from clickclock.app.clusters import LOCAL
from clickclock.app.data_folder import expect_data_dir, sole
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.scheduler.access.audit import Act, Resource

if TYPE_CHECKING:
    from clickclock.scheduler.store import Store


async def open_on_host(config: Config) -> "Store":
    """The store of a configuration, for one command. Raises `ClickclockError`."""
    # Here and not at the top: they are slow to load, and most commands that load this module record nothing.
    from clickclock.app.membership import open_store  # noqa: PLC0415 (see the line above)
    from clickclock.scheduler.store import Store  # noqa: PLC0415 (see the line above)

    if config.database_url is None:
        expect_data_dir(config.data_dir)
        store = await open_store(config, LOCAL)
    else:
        store = await Store.open(config.store_url, LOCAL)
    # Of commands at one time each has a chain of its own, and one that gets a number again goes on with its.
    store.audit.node = f"{socket.gethostname()} command {os.getpid()}"
    return store


def act_on_host(command: str, permission: str = "host") -> Act:
    """A command of the user of this machine who runs it: being able to read the store is all that it proves."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    who = f"{user} on {socket.gethostname()}"
    return Act(SystemClock().now(), f"clickclock {command}", permission, who, f"host:{uid}", "host")


def record(config: Config, command: str, resource: Resource, resource_id: str) -> None:
    """Record what a command is about to do with raw data. Raises `ClickclockError` where it cannot be recorded."""
    if config.database_url is None and not (config.data_dir / "clickclock.db").is_file():
        return

    async def work() -> None:
        store = await open_on_host(config)
        # One chain for all of them, of which there may be many a day: they take turns.
        store.audit.node = f"{socket.gethostname()} commands"
        try:
            with store.audit.by(act_on_host(command)):
                await store.audit.note(resource, resource_id)
        finally:
            await store.close()

    with sole(config.data_dir, "audit-lock", "writes the audit trail of", waits=True):
        asyncio.run(work())

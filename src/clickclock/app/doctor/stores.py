"""The store, looked at without a service: whether it answers, fits, is whole and is ours; and what the scanner finds.

Never makes, migrates or fixes a database. Invariants: a SQLite file is opened for reading only until it was found to be
whole; what comes after something that is wrong is not looked at.
"""

import sqlite3
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from clickclock.app.checking import database_fault
from clickclock.app.clusters import LOCAL
from clickclock.app.doctor.check import Check, fail, ok, warn
from clickclock.app.doctor.service import START, findings_checks
from clickclock.app.membership import known_installation
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import StoreUnreachable
from clickclock.scheduler.agents.scanner import Scanner
from clickclock.scheduler.insight.finding import SKEW_MS_MAX
from clickclock.scheduler.store import BACK_OR_ANEW, Store
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.migrate import REVISION, current_revision
from clickclock.scheduler.store.schema import installation

DAMAGES_TOLD = 3
_RECOVER = (
    "Stop the service, copy the file and its -wal, and restore the last backup; without one, `sqlite3 FILE .recover` "
    "saves what can be read, but not Debian's sqlite3 (see `When something is wrong`). Then look at the disk."
)


async def stores(config: Config, *, service_answers: bool) -> AsyncIterator[Check]:
    """All of it, up to the first thing that is wrong."""
    if database_fault(config.database_url) is not None:
        return  # told as the configuration's
    file = None if config.shares_database else Path(sa.make_url(config.store_url).database or "")
    if file is not None and not file.exists() and known_installation(config) is not None:
        remedy = f"Do one of these: {BACK_OR_ANEW}"
        yield fail("store", f"{file} is gone, and this data folder has served with it.", remedy)
        return
    if file is not None and not file.exists():
        yield ok("store", f"There is no {file} yet; it is created at the first start.")
        return
    try:
        if file is not None:
            damages = damages_of(file)
            if damages:
                yield fail("storeIntegrity", f"{file} is damaged: {'; '.join(damages[:DAMAGES_TOLD])}.", _RECOVER)
                return
            yield ok("storeIntegrity", f"{file} is whole.")
        database = Database(config.store_url)
        try:
            async for each in _open(config, database, service_answers=service_answers):
                yield each
        finally:
            database.close()
    except StoreUnreachable as error:
        remedy = "Start the database, fix `database_url` or the network; the service recovers by itself."
        yield fail("store", str(error), remedy)


def damages_of(file: Path) -> list[str]:
    """What SQLite says of a file; nothing, if it is whole. Raises `StoreUnreachable`."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, timeout=5.0)
        try:
            said = [str(row[0]) for row in connection.execute("PRAGMA quick_check(100)")]
        finally:
            connection.close()
    except sqlite3.OperationalError as error:  # it says nothing of what is in the file
        raise StoreUnreachable(f"{file} cannot be read: {error}.") from error
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if said == ["ok"] else said


async def _open(config: Config, database: Database, *, service_answers: bool) -> AsyncIterator[Check]:
    revision, installed = await database.read(
        lambda c: (
            current_revision(c),
            c.execute(sa.select(installation)).one_or_none() if sa.inspect(c).has_table("installation") else None,
        )
    )
    yield ok("store", f"It answers ({database.kind}).")
    known_id = known_installation(config)
    if known_id is not None and (installed is None or installed.installation_id != known_id):
        there = "is empty" if installed is None else f"is installation {installed.installation_id}"
        remedy = "Bring that database back; or, to begin anew with this one, start the service once with --new-store."
        yield fail("store", f"The database {there}, and this data folder belongs to installation {known_id}.", remedy)
        return
    if installed is not None and installed.needs_revision > REVISION:
        found = (
            f"Its tables are at {revision} and need a program that knows {installed.needs_revision}, not {REVISION}."
        )
        yield fail("storeRevision", found, "Upgrade this program.")
        return
    if revision is None or revision < REVISION:
        there = (
            "It has no tables yet" if revision is None else f"Its tables are at {revision}, this program's {REVISION}"
        )
        yield ok("storeRevision", f"{there}; the next start brings them up to date.")
        return
    yield ok("storeRevision", f"Its tables are at {revision}.")
    if database.is_sqlite:
        clock = SystemClock()
    else:
        clock, check = await _clock(database)
        yield check
    if not service_answers:
        for each in await _scan(config, database, clock):
            yield each


async def _clock(database: Database) -> tuple[SystemClock, Check]:
    """The clock that counts, and how far this machine's is from it."""
    clock = SystemClock()
    skew = await Store(database, LOCAL).clock_skew(clock)
    clock.follow(skew)
    off_ms = skew / timedelta(milliseconds=1)
    found = f"The database's clock is {off_ms:+.0f} ms from this machine's, and is the one that counts."
    if abs(off_ms) > SKEW_MS_MAX:
        return clock, warn("storeClock", found, "Have NTP or chrony set this machine's clock.")
    return clock, ok("storeClock", found)


async def _scan(config: Config, database: Database, clock: SystemClock) -> list[Check]:
    """What the scanner finds, with the clusters of this configuration, which other checks look at."""
    file = config.data_dir / "node"
    node = file.read_text(encoding="utf-8").strip() if file.exists() else ""

    async def capacities() -> list[dict[str, object]]:
        return [{"cluster": name} for name in (LOCAL, *config.clusters)]

    store = Store(database, LOCAL)
    scanner = Scanner(store, clock, node=node, replica_id="", default_cluster=LOCAL, capacities=capacities)
    found = findings_checks(each.wire() for each in await scanner.look())
    living = await store.replicas.living(clock.now())
    if living:
        return found
    return [
        fail("findings", "No replica of this store is alive: nothing fires, and nothing is adopted.", START),
        *found,
    ]

"""How statements reach the database: writers that commit in groups, and readers that do not wait for them.

Never knows a table. Invariants: `write` returns only when its transaction is on disk; on SQLite there is one writer,
and what waits for it is committed together; what one of them did is taken back alone, so that a fault harms nobody
else; nobody waits for ever for a PostgreSQL that does not answer, and none is used that is not the one we know.
"""

import asyncio
import contextlib
import itertools
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from clickclock.foundation.errors import StoreReplaced, StoreUnreachable
from clickclock.scheduler.store.database_files import Place
from clickclock.scheduler.store.patience import Patience
from clickclock.scheduler.store.prepared import command
from clickclock.scheduler.store.session import Session, forget, is_broken, says_damaged, says_unreachable
from clickclock.scheduler.store.write_queue import Write, WriteQueue, answer_all

T = TypeVar("T")

BACK_OR_ANEW = "bring it back from a backup; or, to begin anew with what is there, start once with --new-store."
DAMAGED = (
    "See `clickclock doctor`. Copy the file and its -wal, then restore the last backup; without one, recover what can "
    "be read, as the guide `When something is wrong` says. Or give another --data-dir or --database-url."
)

IDLE_S = 0.5
"""Less than the time between two heartbeats, so that a quiet service has such a pause."""
GROUP_MAX = 64
"""Writes that share one commit at most: more would make the first one wait too long."""
READERS = 4
POSTGRESQL_WRITERS = 6
RACES_RETRIED = 5
SQLITE_BUSY_MS = 5000
ANSWER_S_MAX = 10.0
"""A transaction that takes longer is broken off, on both sides: less than a lease, so that a heartbeat still comes."""
LOCK_S_MAX = 5.0
"""What a replica holds that stands still, or is cut off in the middle, is free again for others after this long."""
TRANSACTION_TIMEOUT_SINCE = 170000
_LOST_RACES = {"40001", "40P01", "23503", "23505"}
"""Serialisation, deadlock, foreign key, unique key: run again, the work sees who won and answers by its own rules."""


class Database:
    """A database behind two verbs, `read` and `write`. Both run `work(connection)` in a transaction, off the loop."""

    installation_id: str | None = None
    """Whose database this is; once it is known, no connection to another one is used."""

    def __init__(self, url: str, *, is_known: bool = False) -> None:
        """One that `is_known` is not made. Raises `StoreUnreachable`; `StoreReplaced` if its file is gone."""
        self.url = sa.make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.kind = "sqlite" if self.is_sqlite else "postgresql"
        self._place: Place | None = None
        self.engine = self._sqlite_engine(is_known=is_known) if self.is_sqlite else self._postgresql_engine()
        self._patience = None if self.is_sqlite else Patience(ANSWER_S_MAX)
        self._reading = threading.local()
        self._writes = WriteQueue()
        self._patient = 0
        self.on_write: Callable[[float], None] = lambda took_s: None  # gets the seconds that each write took
        self.on_queued: Callable[[], None] = lambda: None  # called when a claim may find new triggers
        self.recorded: Callable[[Callable[[sa.Connection], Any]], Callable[[sa.Connection], Any]] = lambda work: work
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        writers = 1 if self.is_sqlite else POSTGRESQL_WRITERS
        self._writers = [threading.Thread(target=self._write_forever, args=(n,), daemon=True) for n in range(writers)]
        for writer in self._writers:
            writer.start()

    def _sqlite_engine(self, *, is_known: bool) -> sa.Engine:
        if self.url.database and self.url.database != ":memory:":
            self._place = _place(Path(self.url.database), is_known=is_known)
        engine = sa.create_engine(
            self.url, pool_size=READERS + 1, max_overflow=0, connect_args={"check_same_thread": False}
        )

        @sa.event.listens_for(engine, "connect")
        def _settings(connection: Any, _entry: ConnectionPoolEntry) -> None:
            if self._place is not None:
                self._place.expect()  # else this would be a connection to another file than those before
            connection.isolation_level = None  # SQLAlchemy's BEGIN below is the only one
            _use_wal(connection)
            for pragma in (
                "synchronous=FULL",
                "foreign_keys=ON",
                f"busy_timeout={SQLITE_BUSY_MS}",
                "cache_size=-8192",
                "temp_store=MEMORY",
                "wal_autocheckpoint=0",  # `Place` does it
                "journal_size_limit=67108864",
            ):
                connection.execute(f"PRAGMA {pragma}")

        @sa.event.listens_for(engine, "begin")
        def _begin(connection: sa.Connection) -> None:
            # A writer takes the lock at once: a read that turns into a write could find that it read too early.
            writing = connection.get_execution_options().get("writing", False)
            raw: Any = connection.connection.driver_connection
            if not raw.in_transaction:  # or `_Writer` has begun by itself
                connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

        return engine

    def _postgresql_engine(self) -> sa.Engine:
        asked = {
            "application_name": "clickclock",
            "connect_timeout": 5,
            # A server that is gone without a word, and, for the server, a client that is.
            "tcp_user_timeout": int(ANSWER_S_MAX * 1000),
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "target_session_attrs": "read-write",  # after a failover: the one that takes writes
            "options": f"-c statement_timeout={ANSWER_S_MAX}s -c lock_timeout={LOCK_S_MAX}s "
            f"-c idle_in_transaction_session_timeout={LOCK_S_MAX}s -c tcp_keepalives_idle=5 "
            "-c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 "
            # Frequent questions have an index. A plan that is kept from when a table was small would read all of it.
            "-c enable_seqscan=off",
        }
        engine = sa.create_engine(
            self.url.set(drivername="postgresql+psycopg"),
            pool_size=READERS + POSTGRESQL_WRITERS,
            max_overflow=3,  # who listens, who migrates, and one to spare
            connect_args={name: value for name, value in asked.items() if name not in self.url.query},
        )

        @sa.event.listens_for(engine, "connect")
        def _is_the_one_we_know(connection: Any, _entry: ConnectionPoolEntry) -> None:
            if self.installation_id is None:
                return
            try:
                if connection.info.server_version >= TRANSACTION_TIMEOUT_SINCE:
                    # A client that stops in the middle of a pipeline is not idle for the server, and still holds its
                    # locks.
                    connection.execute(f"SET transaction_timeout = '{ANSWER_S_MAX}s'")
                found = connection.execute("SELECT installation_id FROM installation").fetchone()
                connection.commit()
            except connection.ProgrammingError:
                found = None
            if found is None or found[0] != self.installation_id:
                connection.close()
                raise StoreReplaced

        return engine

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` beside the writer; on SQLite on one snapshot. Raises `StoreUnreachable`."""
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, self._read if self.is_sqlite else self._read_postgresql, work
        )

    def _read(self, work: Callable[[sa.Connection], T]) -> T:
        try:
            with self.engine.connect() as connection, connection.begin():
                return work(connection)
        except DBAPIError as error:
            if says_unreachable(error):
                raise self._unreachable(error) from error
            raise

    def _read_postgresql(self, work: Callable[[sa.Connection], T]) -> T:
        """Each statement sees what is committed by then, in a transaction or not: so there is none."""
        kept = getattr(self._reading, "session", None)
        self._reading.session = session = kept or Session(self.engine, self._patience, autocommit=True)
        while True:
            is_fresh = session.is_fresh
            try:
                with session.working() as connection:
                    result = work(connection)
                    session.end_read()
                    return result
            except DBAPIError as error:
                session.let_go()
                if is_fresh or not is_broken(error):
                    if says_unreachable(error):
                        raise StoreUnreachable(_sentence(error)) from error
                    raise
            except BaseException:
                session.let_go()
                raise

    async def write(self, work: Callable[[sa.Connection], T], *, may_wait_s: float = 0.0) -> T:
        """Run `work` in a transaction; when this returns, it is on disk. Raises `StoreUnreachable`.

        On SQLite a write that may wait shares the commit of the next that may not, and precedes it there; without one,
        it is committed after `may_wait_s` seconds, or at a `flush`. On PostgreSQL each write has its own commit.
        """
        is_patient = self.is_sqlite and may_wait_s > 0
        asked_s = time.monotonic()
        latest_s = asked_s + may_wait_s if is_patient else 0.0
        asked = Write(self.recorded(work), asyncio.get_running_loop().create_future(), latest_s)
        self._patient += is_patient
        self._writes.put(asked)
        try:
            result: T = await asked.answer
        finally:
            self._patient -= is_patient
        self.on_write(time.monotonic() - asked_s)
        return result

    async def write_triggers(
        self, work: Callable[[sa.Connection], T], *, queues: Callable[[T], bool], is_expected: bool = True
    ) -> T:
        """`write` what may queue triggers; `queues` says whether it did, and `is_expected` whether it will.

        `on_queued` is called for it: on SQLite when the write is asked for, so that a claim that is asked for now comes
        right after it and shares its commit. So a due trigger waits for the disk once, and not twice, until it starts.
        """
        is_early = self.is_sqlite and is_expected
        if is_early:
            self.on_queued()
        result = await self.write(work)
        if not is_early and queues(result):
            self.on_queued()
        return result

    def flush(self) -> None:
        """Somebody waits for what may wait: it is committed now."""
        if self._patient:
            self._writes.flush()

    def _write_forever(self, number: int) -> None:
        session = Session(self.engine, self._patience, writer=number)
        while (group := self._next()) is not None:
            self._commit(session, group)
            answer_all(group)
        session.let_go()

    def _next(self) -> list[Write] | None:
        """The next group. While nothing waits, SQLite's log goes into the file, where no changed bit loses it."""
        while self._place is not None:
            self._place.relieve()
            if (group := self._writes.group(IDLE_S)) or group is None:
                return group
            if self._place.settle():
                break
        return self._writes.group()

    def _commit(self, session: Session, group: list[Write]) -> None:
        retries_left = RACES_RETRIED
        while True:
            was_fresh, begun, committing = session.is_fresh, False, False
            try:
                if self._place is not None:
                    self._place.expect_soon()  # what is refused is not written either, where that is known before
                with session.working() as connection:
                    session.begin()
                    begun = True
                    self._run_all(connection, group)
                    committing = True
                    session.commit()
                    if self._place is not None:
                        self._place.expect_commit()
            except DBAPIError as error:
                session.let_go()
                # A connection that broke while nobody used it, or before the commit, has done nothing.
                if is_broken(error) and not (was_fresh or committing or self.is_sqlite):
                    continue
                retries_left -= 1
                if retries_left >= 0 and getattr(error.orig, "sqlstate", None) in _LOST_RACES:
                    continue
                while self.is_sqlite and not begun and (following := self._writes.following()) is not None:
                    # Somebody else held the lock for too long, and who came meanwhile has waited as well.
                    group.append(following)
                self._fail(group, self._unreachable(error) if says_unreachable(error) else error)
            except BaseException as error:  # noqa: BLE001 - whatever it is belongs to those who wait, not to this thread
                session.let_go()
                self._fail(group, error)
            return

    def _run_all(self, connection: sa.Connection, group: list[Write]) -> None:
        """Run the group's work; on SQLite also what came meanwhile, which then shares the commit."""
        if not self.is_sqlite:
            group[0].error = None
            group[0].result = group[0].work(connection)
            return
        for number in itertools.count():
            if number == len(group):
                following = self._writes.following() if number < GROUP_MAX else None
                if following is None:
                    return
                group.append(following)
            self._run(group[number], connection, is_first=number == 0)

    @staticmethod
    def _run(write: Write, connection: sa.Connection, *, is_first: bool) -> None:
        # SQLAlchemy's own savepoints cost as much as a small write, and SQLite alone has groups. The first needs none:
        # if it fails, there is nobody yet whose work must be kept.
        if not is_first:
            command(connection, "SAVEPOINT member")
        try:
            write.result = write.work(connection)
        except OperationalError:
            raise
        except Exception as error:  # noqa: BLE001 - taken back; handed to the one who waits
            command(connection, "ROLLBACK" if is_first else "ROLLBACK TO member")
            if is_first:
                command(connection, "BEGIN IMMEDIATE")
            forget(connection)
            write.error = error
        if not is_first:
            command(connection, "RELEASE member")

    @staticmethod
    def _fail(group: list[Write], error: BaseException) -> None:
        for write in group:
            write.error = write.error or error

    async def ping_s(self) -> float:
        """Seconds from asking for an empty write until it is done."""
        asked_s = time.monotonic()
        await self.write(lambda c: c.execute(sa.text("SELECT 1")).scalar())
        return time.monotonic() - asked_s

    async def now(self) -> datetime:
        """The database's own clock. PostgreSQL only: SQLite has this machine's."""
        return await self.read(lambda c: c.execute(sa.text("SELECT clock_timestamp()")).scalar_one())

    def _unreachable(self, error: DBAPIError) -> StoreUnreachable:
        """The driver's fault, or what is behind it: a file that was overwritten is one that SQLite cannot read."""
        fault = None if self._place is None else self._place.fault()
        return fault or StoreUnreachable(_sentence(error))

    def displaced(self) -> str | None:
        """What happened to the database's files while they are open, a sentence; None if nothing did."""
        return None if self._place is None else self._place.wrong()

    def patience(self, driver: Any) -> contextlib.AbstractContextManager[None]:
        """While this thread waits for an answer on the driver's connection of its own."""
        return contextlib.nullcontext() if self._patience is None else self._patience.over(driver)

    def close(self) -> None:
        """Finish what waits, then let go of the database."""
        for _ in self._writers:
            self._writes.end()
        for writer in self._writers:
            writer.join()
        self._readers.shutdown()
        self.engine.dispose()
        if self._place is not None:
            self._place.close()
        if self._patience is not None:
            self._patience.close()


def _place(path: Path, *, is_known: bool) -> Place:
    """The files of a database, made if it is not known yet."""
    try:
        if is_known and not path.exists():
            raise StoreReplaced(f"{path} is gone, and this data folder has served with it: {BACK_OR_ANEW}")
        # Commands and parameters can be confidential: for this user alone, with what SQLite puts beside it.
        path.touch(mode=0o600)
        return Place(path, _use_wal)
    except OSError as error:
        raise StoreUnreachable(f"The store cannot be opened: {path}: {error.strerror}.") from error
    except sqlite3.OperationalError as error:
        raise StoreUnreachable(f"The store cannot be opened: {error}.") from error
    except sqlite3.DatabaseError as error:
        raise StoreUnreachable(f"The store cannot be opened: {error}. {DAMAGED}") from error


def _use_wal(connection: Any) -> None:
    """Switch to the write-ahead log, also while others open the same new file.

    Two that switch at once each wait for the other: so each waits briefly, lets go and tries again.
    """
    connection.execute("PRAGMA busy_timeout=20")
    until_s = time.monotonic() + SQLITE_BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until_s:
                raise
            time.sleep(random.uniform(0.001, 0.02))
        else:
            return


def _sentence(error: DBAPIError) -> str:
    """The driver's own words, without statement and values."""
    words = f"The store does not answer: {' '.join(str(error.orig).split())}."
    return f"{words} {DAMAGED}" if says_damaged(error) else words

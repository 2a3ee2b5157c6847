"""The connection that one thread of the database keeps, and what an error says about it.

Never knows a table, and never runs a statement of its own but BEGIN and COMMIT. Invariants: after a fault the next
transaction has a fresh connection; what was not committed is taken back.

>>> session = Session(engine, None)                   # doctest: +SKIP
>>> with session.working() as connection: ...         # doctest: +SKIP
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError

from clickclock.scheduler.store.patience import Patience
from clickclock.scheduler.store.prepared import command

_KEEP_PLANS = "SET plan_cache_mode = force_generic_plan"
"""Writers run the same few statements all the time, each by its index: planning one costs more than running it."""


_NOTES = "transaction"


def notes(connection: sa.Connection) -> dict[str, Any]:
    """What those who write in one transaction leave for those who write after them in it."""
    found: dict[str, Any] = connection.info.setdefault(_NOTES, {})
    return found


def forget(connection: sa.Connection) -> None:
    """A transaction begins, or a part of it was taken back: no note is true any more."""
    connection.info.pop(_NOTES, None)


class Session:
    """The connection that one thread keeps, and gives up when anything went wrong on it."""

    def __init__(
        self, engine: sa.Engine, patience: Patience | None, *, autocommit: bool = False, writer: int = 0
    ) -> None:
        """`writer` is its number among those of this process; whoever writes finds it in the connection's `info`."""
        self._engine = engine
        self._patience = patience
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._autocommit = autocommit
        self._writer = writer
        self._connection: sa.Connection | None = None
        self.is_fresh = True

    @contextlib.contextmanager
    def working(self) -> Iterator[sa.Connection]:
        """The connection, for as long as patience lasts."""
        if self._connection is None:
            self.is_fresh = True
            connection = self._engine.connect()
            if self._autocommit:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            elif not self._is_sqlite:
                command(connection, _KEEP_PLANS)
            connection.info["writer"] = self._writer
            self._connection = connection
        if self._patience is None:
            yield self._connection
        else:
            with self._patience.over(self._connection.connection.driver_connection):
                yield self._connection
        self.is_fresh = False

    def begin(self) -> None:
        """Begin a transaction."""
        assert self._connection is not None
        forget(self._connection)
        if self._is_sqlite:
            command(self._connection, "BEGIN IMMEDIATE")
        else:
            self._connection.begin()

    def commit(self) -> None:
        """End the transaction. SQLAlchemy takes part in it once it was asked to run a statement itself."""
        assert self._connection is not None
        if self._connection.in_transaction():
            self._connection.commit()
        else:
            command(self._connection, "COMMIT")

    def end_read(self) -> None:
        """SQLAlchemy believes in a transaction where there is none."""
        assert self._connection is not None
        if self._connection.in_transaction():
            self._connection.commit()

    def let_go(self) -> None:
        """Take back what is not committed; the next transaction gets a fresh connection."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self.is_fresh = True
            with contextlib.suppress(DBAPIError):  # it broke: there is nothing to take back, and the pool drops it
                if not self._is_sqlite:
                    connection.invalidate()
                connection.close()


_ENDED_BY_THE_SERVER = {"25P03", "25P04", "57P01", "57P02", "57P03", "57P05"}
"""Idle in a transaction or in it for too long (we stood still), shut down, crashed, starting, idle for too long."""
_TAKES_NO_WRITES = "25006"


def is_broken(error: DBAPIError) -> bool:
    """Whether the connection ended, rather than that the database refused."""
    sqlstate = getattr(error.orig, "sqlstate", None)
    return sqlstate in _ENDED_BY_THE_SERVER or (
        sqlstate is None and isinstance(error, OperationalError | InterfaceError)
    )


def says_unreachable(error: DBAPIError) -> bool:
    """Whether trying again may help; so it may where a server has just become one that takes no writes."""
    sqlstate = getattr(error.orig, "sqlstate", None)
    is_away = is_broken(error) or sqlstate == _TAKES_NO_WRITES or isinstance(error, OperationalError | InterfaceError)
    return is_away or says_damaged(error)


def says_damaged(error: DBAPIError) -> bool:
    """Whether a SQLite file is not whole, or none: it has no other name for that than this general one."""
    return type(error) is DatabaseError and isinstance(error.orig, sqlite3.DatabaseError)

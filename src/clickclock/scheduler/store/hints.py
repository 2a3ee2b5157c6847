"""Hints between replicas that share a PostgreSQL: "look now", by `NOTIFY`.

Never the truth: what is to be done is in the rows, and every replica looks at them by itself within a second; a hint
only makes it sooner. On SQLite there is nobody to tell. Invariants: a hint is its own small transaction, at most ten a
second, because the server lets one commit with a `NOTIFY` through at a time; whoever lost the connection looks at
everything when he has another.

>>> hints = Hints(database)          # doctest: +SKIP
>>> hints.tell(Hint.TRIGGERS)        # doctest: +SKIP
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from clickclock.foundation.errors import StoreUnreachable
from clickclock.foundation.ids import new_id
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.patience import cut

EVERY_S = 0.1
LISTEN_S = 5.0
"""How often a connection on which nothing is heard is tried."""
CHANNEL = "clickclock"


class Hint(StrEnum):
    """What to look at."""

    TRIGGERS = "triggers"
    STOPS = "stops"
    SCHEDULES = "schedules"
    TOKENS = "tokens"


class Hints:
    """One replica's ear and voice."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._me = new_id()
        self._pending: set[Hint] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._telling: set[asyncio.Task[None]] = set()
        self._closed = threading.Event()
        self._listener: threading.Thread | None = None
        self._driver: Any = None

    def tell(self, *hints: Hint) -> None:
        """Tell the others: now, or together with what else is to be told within a tenth of a second."""
        if self._database.is_sqlite:
            return
        self._pending.update(hints)
        if self._timer is None and self._pending:
            said, self._pending = sorted(self._pending), set()
            telling = asyncio.create_task(self._tell(f"{self._me} {' '.join(said)}"))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)
            self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        self.tell()

    async def _tell(self, payload: str) -> None:
        with contextlib.suppress(StoreUnreachable):  # they look by themselves
            await self._database.write(lambda c: c.execute(sa.select(sa.func.pg_notify(CHANNEL, payload))).scalar())

    def listen(self, hear: Callable[[set[Hint]], None]) -> None:
        """From now on call `hear` on this loop with what others tell."""
        if self._database.is_sqlite:
            return
        loop = asyncio.get_running_loop()

        def heard(hints: set[Hint]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                loop.call_soon_threadsafe(hear, hints)

        self._listener = threading.Thread(target=self._listen, args=(heard,), name="store-listener", daemon=True)
        self._listener.start()

    def _listen(self, heard: Callable[[set[Hint]], None]) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(DBAPIError, StoreUnreachable, self._database.engine.dialect.loaded_dbapi.Error):
                self._listen_once(heard)
            self._closed.wait(1.0)

    def _listen_once(self, heard: Callable[[set[Hint]], None]) -> None:
        with self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            driver: Any = connection.connection.driver_connection
            self._driver = driver
            try:
                driver.execute(f"LISTEN {CHANNEL}")
                heard(set(Hint))  # all hints that came while we did not listen
                while not self._closed.is_set():
                    for told in driver.notifies(timeout=LISTEN_S, stop_after=1):
                        who, *what = told.payload.split(" ")
                        if who != self._me:
                            heard({Hint(each) for each in what if each in set(Hint)})
                    with self._database.patience(driver):
                        driver.execute("SELECT 1")
            finally:
                self._driver = None
                connection.invalidate()  # nobody else is to hear what was meant for us

    def close(self) -> None:
        """Listen no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._closed.set()
        if self._listener is not None:
            cut(self._driver)
            self._listener.join()

"""The files of a SQLite database: whether those that are open still have their names.

Never reads or changes a row. A file that was deleted, or whose folder or mount is gone, can still be written, and what
is written goes with the process.
Invariants: the files are held open from the first look on, so that their numbers are not given to others; a look costs
one system call for each file.

>>> place = Place(Path("clickclock-data/clickclock.db"))   # doctest: +SKIP
>>> place.wrong() is None                                  # doctest: +SKIP
True
"""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clickclock.foundation.errors import StoreReplaced

LOOK_S = 0.002
SETTLE_MS_MAX = 20
"""So long a reader may keep the log from being emptied; then it is tried again later."""
_BESIDE = ("", "-wal", "-shm")
WHAT_TO_DO = (
    "Put that file, its folder or its mount back, and all goes on. If it is deleted, copy what /proc/{pid}/fd still "
    "has of it before the service ends, or restore a backup; then start again."
)


class Place:
    """Where one database is, as it was when it was opened."""

    def __init__(self, path: Path, use_wal: Callable[[Any], None]) -> None:
        """`use_wal` switches a connection to the write-ahead log. Raises `sqlite3.DatabaseError`, `OSError`."""
        self._path = path
        self._looked_s = 0.0
        self.is_suspect = False
        """Whether the last look found something wrong."""
        # SQLite makes the two other files with the first connection and removes them with the last: which is this one.
        self._held = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            use_wal(self._held)
            self._held.execute(f"PRAGMA busy_timeout={SETTLE_MS_MAX}")
            self._held.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            self._files = {name: _identity(name) for name in (f"{path}{suffix}" for suffix in _BESIDE)}
        except BaseException:
            self._held.close()
            raise

    def wrong(self) -> str | None:
        """What happened to the files, a sentence; None if they are in their place."""
        for name, known in self._files.items():
            try:
                there = _identity(name)
            except OSError as error:
                return f"{name} is gone ({error.strerror}) while this service has it open."
            if there != known:
                return f"{name} is another file than the one that this service has open."
        return None

    def expect_soon(self) -> None:
        """`expect`, unless that was done within `LOOK_S`: where commits are that quick, three calls each would tell."""
        if time.monotonic() - self._looked_s >= LOOK_S:
            self.expect()

    def expect(self) -> None:
        """Raise `StoreReplaced` if what is written would be lost."""
        self._looked_s = time.monotonic()
        wrong = self.wrong()
        self.is_suspect = wrong is not None
        if wrong is not None:
            raise StoreReplaced(f"{wrong} {WHAT_TO_DO.format(pid=os.getpid())}")

    def settle(self) -> bool:
        """Move what is committed from the log into the file, and empty the log. False if it is to be tried again."""
        try:
            if self.wrong() is not None or Path(f"{self._path}-wal").stat().st_size == 0:
                return True
            is_busy, *_ = self._held.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except (OSError, sqlite3.Error):
            return True  # the next commit says what is wrong
        return not is_busy

    def close(self) -> None:
        """Let go of the files."""
        self._held.close()


def _identity(name: str) -> tuple[int, int]:
    found = os.stat(name)  # noqa: PTH116 - a Path costs as much as the call, and this is done for each commit
    return found.st_dev, found.st_ino

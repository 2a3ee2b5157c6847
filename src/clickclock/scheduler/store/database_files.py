"""The files of a SQLite database: whether those that are open still have their names, and are what they were.

Never reads or changes a row. A file that was deleted, or whose folder or mount is gone, can still be written, and what
is written goes with the process. A file that is overwritten in its place is still open, and SQLite reads on in it.
Invariants: the files are held open from the first look on, so that their numbers are not given to others; a look costs
one system call for each file; the file has a number that changes as it is written (its stamp), so that a copy of
another age has another. One process writes stamps: the first that opens the database.

>>> place = Place(Path("clickclock-data/clickclock.db"))   # doctest: +SKIP
>>> place.wrong() is None                                  # doctest: +SKIP
True
"""

import contextlib
import fcntl
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clickclock.foundation.errors import StoreReplaced

LOOK_S = 0.002
SETTLE_MS_MAX = 20
"""So long a reader may keep the log from being emptied; then it is tried again later."""
STAMP_EVERY_S = 10.0
"""A copy that is younger than this may have the same stamp."""
_STAMP_AT, _STAMP_BYTES, _STAMP_BITS = 60, 4, 31
"""Where the file has `PRAGMA user_version`, and how much of it is a positive number."""
_BESIDE = ("", "-wal", "-shm")
WHAT_TO_DO = (
    "Put that file, its folder or its mount back, and all goes on. If it is deleted, copy what /proc/{pid}/fd still "
    "has of it before the service ends, or restore a backup; then start again."
)

RESTORE = (
    "What it had is lost there, and what was acknowledged since does not fit to it: stop the service, restore a whole "
    "backup of the folder, and start it with --new-store."
)


class Place:
    """Where one database is, as it was when it was opened."""

    def __init__(self, path: Path, use_wal: Callable[[Any], None]) -> None:
        """`use_wal` switches a connection to the write-ahead log. Raises `sqlite3.DatabaseError`, `OSError`."""
        self._path = path
        self._looked_s = 0.0
        self.is_suspect = False
        """Whether the last look found something wrong."""
        # Closed at the very end: whoever closes a file drops all locks that SQLite has on it.
        self._file = path.open("rb", buffering=0)
        self._stamps: set[int] | None = None
        self._newest = 0
        self._stamped_s = 0.0
        # SQLite makes the two other files with the first connection and removes them with the last: which is this one.
        self._held = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            use_wal(self._held)
            self._held.execute(f"PRAGMA busy_timeout={SETTLE_MS_MAX}")
            self._held.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            self._files = {name: _identity(name) for name in (f"{path}{suffix}" for suffix in _BESIDE)}
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._newest = self._stamp()
                self._stamps = {self._newest, self._stamp_in_file()}
        except BaseException:
            self._held.close()
            self._file.close()
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
        if self._stamps is not None and not self._file.closed and self._stamp_in_file() not in self._stamps:
            return f"{self._path} was overwritten, with a copy of another age or something else. {RESTORE}"
        return None

    def _stamp(self) -> int:
        (stamp,) = self._held.execute("PRAGMA user_version").fetchone()
        return int(stamp)

    def _stamp_in_file(self) -> int:
        """The stamp behind SQLite's back; -1 if the file has none any more."""
        found = os.pread(self._file.fileno(), _STAMP_BYTES, _STAMP_AT)
        return int.from_bytes(found) if len(found) == _STAMP_BYTES else -1

    def _stamp_anew(self) -> None:
        """Give the file another stamp. Until the log is in the file, it may have the old one or the new one."""
        if self._stamps is not None and time.monotonic() - self._stamped_s >= STAMP_EVERY_S:
            stamp = secrets.randbits(_STAMP_BITS)
            self._stamps = {*self._stamps, stamp}
            self._held.execute(f"PRAGMA user_version={stamp}")
            self._newest = stamp
            self._stamped_s = time.monotonic()

    def expect_soon(self) -> None:
        """`expect`, unless that was done within `LOOK_S`: where commits are that quick, three calls each would tell."""
        if time.monotonic() - self._looked_s >= LOOK_S:
            self.expect()

    def expect(self) -> None:
        """Raise `StoreReplaced` if what is written would be lost."""
        self._looked_s = time.monotonic()
        fault = self.fault()
        self.is_suspect = fault is not None
        if fault is not None:
            raise fault

    def fault(self) -> StoreReplaced | None:
        """What is wrong, and what to do about it."""
        wrong = self.wrong()
        if wrong is None or RESTORE in wrong:
            return None if wrong is None else StoreReplaced(wrong)
        return StoreReplaced(f"{wrong} {WHAT_TO_DO.format(pid=os.getpid())}")

    def settle(self) -> bool:
        """Move what is committed from the log into the file, and empty the log. False if it is to be tried again."""
        try:
            if self.wrong() is not None or Path(f"{self._path}-wal").stat().st_size == 0:
                return True
            self._stamp_anew()
            is_busy, *_ = self._held.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not is_busy and self._stamps is not None:
                self._stamps = {self._newest}  # not what is there by now, which may be another's
        except (OSError, sqlite3.Error):
            return True  # the next commit says what is wrong
        return not is_busy

    def close(self) -> None:
        """Let go of the files."""
        self._held.close()
        self._file.close()


def _identity(name: str) -> tuple[int, int]:
    found = os.stat(name)  # noqa: PTH116 - a Path costs as much as the call, and this is done for each commit
    return found.st_dev, found.st_ino

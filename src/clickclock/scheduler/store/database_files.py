"""The files of a SQLite database: whether those that are open still have their names, and are what they were.

Never reads or changes a row. A file that was deleted, or whose folder or mount is gone, can still be written, and what
is written goes with the process. A file that is overwritten in its place is still open, and SQLite reads on in it.
Invariants: the files are held open from the first look on, so that their numbers are not given to others; a look costs
some microseconds; the file gets another number (its stamp) before each time that it is written, and SQLite counts the
commits in the index of its log, so that a copy of another age is known by one of both. One process writes stamps: the
first that opens the database.

>>> place = Place(Path("clickclock-data/clickclock.db"))   # doctest: +SKIP
>>> place.wrong() is None                                  # doctest: +SKIP
True
"""

import contextlib
import fcntl
import os
import secrets
import sqlite3
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from clickclock.foundation.errors import StoreReplaced

LOOK_S = 0.002
SETTLE_MS_MAX = 20
"""So long a reader may keep the log from being emptied; then it is tried again later."""
FRAMES_MAX, FRAMES_MORE = 1000, 250
"""How long the log becomes while nobody pauses, in pages, and how much longer before it is tried once more."""
_STAMP_AT, _STAMP_BYTES, _STAMP_BITS = 60, 4, 31
"""Where the file has `PRAGMA user_version`, and how much of it is a positive number."""
_TO_READ = os.O_RDONLY | os.O_CLOEXEC
_BESIDE = ("", "-wal", "-shm")
_INDEX = struct.Struct("=III2xHI12x8s8x")
"""The head of a log's index, which is there twice: version, commits, size of a page, pages in the log, its salts."""
_INDEX_VERSION = 3007000
_LOG_HEAD_BYTES, _FRAME_HEAD_BYTES, _SALTS_AT, _FRAME_SALTS_AT, _SALTS_BYTES = 32, 24, 16, 8, 8
_COUNTS = 2**32
WHAT_TO_DO = (
    "Put that file, its folder or its mount back, and all goes on. If it is deleted, copy what /proc/{pid}/fd still "
    "has of it before the service ends, or restore a backup; then start again."
)

RESTORE = (
    "What it had is lost there, and what was acknowledged since does not fit to it: stop the service, restore a whole "
    "backup of the folder, and start it with --new-store."
)


class _Index(NamedTuple):
    """What the index of the log says."""

    commits: int
    frames: int
    frame_bytes: int
    salts: bytes
    """What the log and each of its frames have at their beginning, until it begins anew."""

    @property
    def end(self) -> int:
        """How long the log is at least, if there is anything in it."""
        return _LOG_HEAD_BYTES + self.frames * self.frame_bytes


class Place:
    """Where one database is, as it was when it was opened."""

    def __init__(self, path: Path, use_wal: Callable[[Any], None]) -> None:
        """`use_wal` switches a connection to the write-ahead log. Raises `sqlite3.DatabaseError`, `OSError`."""
        self._path = path
        self._looked_s = 0.0
        self.is_suspect = False
        """Whether the last look found something wrong."""
        # Closed at the very end: whoever closes a file drops all locks that SQLite has on it.
        self._open = [os.open(path, _TO_READ)]
        self._stamps: list[int] | None = None
        """Those that the file may have, oldest first: the last that it was seen with, and those that are in the log."""
        self._looking = threading.Lock()
        self._known: _Index | None = None
        self._commits: int | None = None
        self._tried_at_frames = 0
        # SQLite makes the two other files with the first connection and removes them with the last: which is this one.
        self._held = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            use_wal(self._held)
            self._held.execute(f"PRAGMA busy_timeout={SETTLE_MS_MAX}")
            self._held.execute("PRAGMA synchronous=NORMAL")  # a stamp is synced with the file that it is for
            self._held.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            self._files = {name: _identity(name) for name in (f"{path}{suffix}" for suffix in _BESIDE)}
            self._open += [os.open(f"{path}{suffix}", _TO_READ) for suffix in _BESIDE[1:]]
            with contextlib.suppress(OSError):
                fcntl.flock(self._open[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._stamps = [self._stamp_in_file(), self._stamp()]
        except BaseException:
            self.close()
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
        with self._looking:
            if self._open and not (self._has_a_stamp_of_ours() and self._has_all_commits()):
                return f"{self._path} was overwritten, with a copy of another age or something else. {RESTORE}"
        return None

    def _has_a_stamp_of_ours(self) -> bool:
        """Stamps reach the file in their order, so one that is older than the last that was seen is a copy's."""
        if self._stamps is None:
            return True
        found = self._stamp_in_file()
        if found not in self._stamps:
            return False
        del self._stamps[: self._stamps.index(found)]
        return True

    def _has_all_commits(self) -> bool:
        """Whether the log has all that its index counts, and the index all that it had before."""
        index = self._index()
        if index is None:
            return True
        if self._is_behind(index):
            return False
        known, self._known, self._commits = self._known, index, index.commits
        # Another process may begin the log anew meanwhile: then its index says so.
        return not index.frames or self._is_log_of(index, known) or self._index() != index

    def _is_behind(self, index: _Index) -> bool:
        return self._commits is not None and (index.commits - self._commits) % _COUNTS >= _COUNTS // 2

    def _is_log_of(self, index: _Index, known: _Index | None) -> bool:
        """Whether the log is as its index says, and has no hole where it had its end."""
        log = self._open[1]
        if os.fstat(log).st_size < index.end or os.pread(log, _SALTS_BYTES, _SALTS_AT) != index.salts:
            return False
        if known is None or not known.frames or known.salts != index.salts:
            return True
        return os.pread(log, _SALTS_BYTES, known.end - known.frame_bytes + _FRAME_SALTS_AT) == index.salts

    def _index(self) -> _Index | None:
        """What the index of the log says; None while it is being written, or if its form is not known."""
        found = os.pread(self._open[2], 2 * _INDEX.size, 0)
        if len(found) < 2 * _INDEX.size or found[: _INDEX.size] != found[_INDEX.size :]:
            return None
        version, _, commits, page, frames, salts = _INDEX.unpack_from(found)
        page_bytes = (page & ~1) + ((page & 1) << 16)
        return _Index(commits, frames, _FRAME_HEAD_BYTES + page_bytes, salts) if version == _INDEX_VERSION else None

    def _stamp(self) -> int:
        (stamp,) = self._held.execute("PRAGMA user_version").fetchone()
        return int(stamp)

    def _stamp_in_file(self) -> int:
        """The stamp behind SQLite's back; -1 if the file has none any more."""
        found = os.pread(self._open[0], _STAMP_BYTES, _STAMP_AT)
        return int.from_bytes(found) if len(found) == _STAMP_BYTES else -1

    def _stamp_anew(self) -> None:
        """Give the file another stamp. Until the log is in the file, it may have the old one or the new one."""
        if self._stamps is not None:
            stamp = secrets.randbits(_STAMP_BITS)
            with self._looking:
                self._stamps.append(stamp)
            self._held.execute(f"PRAGMA user_version={stamp}")

    def expect_soon(self) -> None:
        """`expect`, unless that was done within `LOOK_S`: where commits are that quick, seven calls each would tell."""
        if self.is_suspect or time.monotonic() - self._looked_s >= LOOK_S:
            self.expect()

    def expect_commit(self) -> None:
        """The same after a commit, which is counted in any case."""
        index = self._index()
        if index is not None:
            with self._looking:
                is_behind = self._is_behind(index)
                self._commits = self._commits if is_behind else index.commits
            self.is_suspect |= is_behind
        self.expect_soon()

    def expect(self) -> None:
        """Raise `StoreReplaced` if what is written would be lost."""
        self._looked_s = time.monotonic()
        fault = self.fault()
        self.is_suspect = fault is not None
        if fault is not None:
            raise fault

    def fault(self) -> StoreReplaced | None:
        """The fault, and what to do about it."""
        wrong = self.wrong()
        if wrong is None or RESTORE in wrong:
            return None if wrong is None else StoreReplaced(wrong)
        return StoreReplaced(f"{wrong} {WHAT_TO_DO.format(pid=os.getpid())}")

    def settle(self) -> bool:
        """Move what is committed from the log into the file, and empty the log. False if it is to be tried again."""
        try:
            if self.wrong() is not None or Path(f"{self._path}-wal").stat().st_size == 0:
                return True
            return self._empty("TRUNCATE")
        except (OSError, sqlite3.Error):
            return True  # the next commit says what is wrong

    def relieve(self) -> None:
        """Move a log that has become long into the file, as far as readers let it, so that it can begin anew."""
        index = self._index()
        if index is None or index.frames < FRAMES_MAX:
            self._tried_at_frames = 0
        elif index.frames >= self._tried_at_frames + FRAMES_MORE and self.wrong() is None:
            self._tried_at_frames = index.frames
            with contextlib.suppress(sqlite3.Error):  # the next commit says what is wrong
                self._empty("PASSIVE")

    def _empty(self, how: str) -> bool:
        """Move the log into the file, with another stamp; whether all of it is there."""
        self._stamp_anew()
        is_busy, frames, moved = self._held.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        is_whole = not is_busy and frames == moved
        if is_whole and self._stamps is not None:
            with self._looking:
                del self._stamps[:-1]  # not what is there by now, which may be another's
        return is_whole

    def close(self) -> None:
        """Let go of the files."""
        self._held.close()
        with self._looking:
            while self._open:
                os.close(self._open.pop())


def _identity(name: str) -> tuple[int, int]:
    found = os.stat(name)  # noqa: PTH116 - a Path costs as much as the call, and this is done for each commit
    return found.st_dev, found.st_ino

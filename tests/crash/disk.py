"""A disk that fails and a power that is cut, put under the real journal.

It stands at the system calls (`os.pwritev`, `os.fdatasync`, `os.fsync`, `os.ftruncate`), which go on to the real disk,
and notes what a sync has made durable. Everything above is the product, and knows nothing of this.
"""

import errno
import os
import random
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

BLOCK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Image:
    """What is on the disk after the power was cut, and what had been told by then."""

    files: dict[str, bytes]
    acknowledged: frozenset[bytes]
    refused: frozenset[bytes]

    def left_in(self, folder: Path) -> Path:
        """A folder as it is found when the power is back."""
        folder.mkdir()
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder


class Disk:
    """The disk under one folder."""

    def __init__(self, folder: Path, luck: random.Random) -> None:
        self.folder = folder
        self.images: list[Image] = []
        self.acknowledged: set[bytes] = set()
        self.refused: set[bytes] = set()
        self.calls = 0
        self.fails: Callable[[int], bool] = lambda _: False
        self.image_every = 0
        self.broken: dict[int, bool] = {}
        """Files, by inode, that take one more write, fail to sync it (then it is True) and take nothing more."""
        self._luck = luck
        self._lock = threading.RLock()
        self._synced: dict[int, bytes] = {}
        self._names: dict[str, int] = {}
        self._open: dict[int, int] = {}
        """Every file that was seen, kept open: or a new one would get the inode, and so the past, of one deleted."""
        self._real = {name: getattr(os, name) for name in ("pwritev", "fdatasync", "fsync", "ftruncate")}

    def breaks(self, path: Path) -> None:
        """From now on this file is broken."""
        self.broken[path.stat().st_ino] = False

    @contextmanager
    def under(self, monkeypatch: pytest.MonkeyPatch) -> Iterator["Disk"]:
        """Be the disk of this process for a while."""
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwritev", self._pwritev)
            patch.setattr(os, "ftruncate", self._ftruncate)
            patch.setattr(os, "fdatasync", lambda fd: self._sync("fdatasync", fd))
            patch.setattr(os, "fsync", lambda fd: self._sync("fsync", fd))
            try:
                yield self
            finally:
                for fd in self._open.values():
                    os.close(fd)
                self._open.clear()

    def _pwritev(self, fd: int, parts: Sequence[bytes], offset: int) -> int:
        with self._lock:
            if (inode := os.fstat(fd).st_ino) not in self._open:
                self._open[inode] = os.dup(fd)
            if self.broken.get(inode):
                raise OSError(errno.EIO, "the file is broken, says the test")
            if self._fails():
                # A failed write may have done a part of its work.
                whole = b"".join(parts)
                self._real["pwritev"](fd, (whole[: self._luck.randrange(len(whole))],), offset)
                raise OSError(errno.ENOSPC, "the disk is full, says the test")
            return int(self._real["pwritev"](fd, parts, offset))

    def _ftruncate(self, fd: int, size: int) -> None:
        with self._lock:
            if self._fails() or os.fstat(fd).st_ino in self.broken:
                raise OSError(errno.EIO, "the disk fails, says the test")
            self._real["ftruncate"](fd, size)

    def _sync(self, name: str, fd: int) -> None:
        with self._lock:
            if (inode := os.fstat(fd).st_ino) in self.broken:
                self.broken[inode] = True
                raise OSError(errno.EIO, "the file is broken, says the test")
            if self._fails():
                # Some of it may have reached the disk, and the rest never will: that is what a failed sync means.
                self._note(fd, all_of_it=False)
                raise OSError(errno.EIO, "the disk fails, says the test")
            self._real[name](fd)
            self._note(fd, all_of_it=True)

    def _fails(self) -> bool:
        self.calls += 1
        if self.image_every and self.calls % self.image_every == 0:
            self.images.append(self._cut())
        return self.fails(self.calls)

    def _note(self, fd: int, *, all_of_it: bool) -> None:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            if all_of_it and status.st_ino == self.folder.stat().st_ino:
                self._names = {path.name: path.stat().st_ino for path in self.folder.iterdir()}
        else:
            self._synced[status.st_ino] = self._after(status.st_ino, _content(fd), all_of_it=all_of_it)

    def _after(self, inode: int, now: bytes, *, all_of_it: bool) -> bytes:
        """What of a file is on the disk: all of it, or any of the blocks that were written since the last sync."""
        before = self._synced.get(inode, b"")
        if all_of_it:
            return now
        size = self._luck.choice((len(before), len(now)))
        blocks = []
        for start in range(0, size, BLOCK_BYTES):
            old, new = (each[start : start + BLOCK_BYTES].ljust(BLOCK_BYTES, b"\0") for each in (before, now))
            # What was cut off is there as it was, until its being cut is durable, too.
            blocks.append(self._luck.choice((old, new)) if start < len(now) else old)
        return b"".join(blocks)[:size]

    def _cut(self) -> Image:
        """The power is cut now. What was not synced may have reached the disk or not, name by name, block by block."""
        acknowledged, refused = frozenset(self.acknowledged), frozenset(self.refused)
        now = {path.name: path for path in self.folder.iterdir()}
        inodes = {name: path.stat().st_ino for name, path in now.items()}
        contents = {inode: now[name].read_bytes() for name, inode in inodes.items()}
        names = dict(self._luck.choice((self._names, inodes)))
        files = {}
        for name, inode in names.items():
            last = contents.get(inode, self._synced.get(inode, b""))
            files[name] = self._after(inode, last, all_of_it=False)
        for small in ("id", "lock"):  # synced by other means than these
            if small in now:
                files[small] = now[small].read_bytes()
        return Image(files, acknowledged, refused)


def _content(fd: int) -> bytes:
    return Path(f"/proc/self/fd/{fd}").read_bytes()  # whatever it was opened for


def every(number: int) -> Callable[[int], bool]:
    """Every so many-th call fails."""
    return lambda call: call % number == 0


def by_luck(share: float, seed: int) -> Callable[[int], bool]:
    """So large a share of the calls fails."""
    luck = random.Random(seed)
    return lambda _: luck.random() < share


def told(disk: Disk, line: bytes, then: Callable[[], Any]) -> Callable[[Exception | None], None]:
    """A `done` that notes what it was told."""

    def done(error: Exception | None) -> None:
        (disk.acknowledged if error is None else disk.refused).add(line)
        then()

    return done

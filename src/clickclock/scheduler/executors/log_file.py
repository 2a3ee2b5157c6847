"""The files that keep attempts' output on this host: read in pieces, held to their limit, and removed.

Never writes output: whoever runs attempts does, each in its own way. Invariants: a name that could leave the folder has
no file; a piece that is read has nothing left out within it.

>>> LogFiles(Path("/var/lib/clickclock/logs"), 10_000_000).look("../../../etc/passwd", 0, 100, ended=True) is None
True
"""

import asyncio
import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from clickclock.scheduler.executors import LogChunk
from clickclock.scheduler.supervisor.attempt_log import cut_note, hold, keeps_ends, log_path


class LogFiles:
    """The logs of one data folder."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        """`bytes_max` bounds the output kept of one attempt."""
        self.folder = str(folder)
        self.bytes_max = bytes_max
        self._ends_kept = False

    async def open(self) -> None:
        """Make the folder, and find out what its file system can do. Raises `OSError`."""
        await asyncio.to_thread(os.makedirs, self.folder, 0o700, exist_ok=True)
        self._ends_kept = await asyncio.to_thread(keeps_ends, self.folder)

    def path(self, name: str) -> str:
        """An attempt's file; raises `ValueError` for a name that cannot be one's."""
        return log_path(self.folder, name)

    def hold(self, path: str) -> None:
        """Hold a file that has grown to its limit. Raises `OSError`."""
        hold(path, self.bytes_max, ends_kept=self._ends_kept)

    def is_full(self, size: int) -> bool:
        """Whether a file of so many bytes will keep nothing more."""
        return not self._ends_kept and size > self.bytes_max

    async def read(self, name: str, offset: int, limit: int, *, ended: bool) -> LogChunk | None:
        """Up to `limit` bytes from `offset`, or from where the next are kept; None when there is no such file.

        `ended`: nothing more will be written.
        """
        return await asyncio.to_thread(self.look, name, offset, limit, ended=ended)

    def look(self, name: str, offset: int, limit: int, *, ended: bool) -> LogChunk | None:
        """The same, for those who may wait for a disk."""
        try:
            with Path(self.path(name)).open("rb", buffering=0) as file:
                descriptor = file.fileno()
                if not ended and not self._ends_kept:
                    # What is going to be cut is not told.
                    note = cut_note(self.bytes_max)
                    is_cut = os.pread(descriptor, len(note), self.bytes_max) == note
                    limit = max(0, min(limit, self.bytes_max + (len(note) if is_cut else 0) - offset))
                return _piece(descriptor, offset, limit, ended=ended)
        except (FileNotFoundError, ValueError):
            return None

    async def remove(self, names: Sequence[str]) -> None:
        """Delete output files, and folders that this leaves empty; unknown names are passed over."""
        await asyncio.to_thread(self._remove, names)

    def _remove(self, names: Sequence[str]) -> None:
        for name in names:
            with contextlib.suppress(ValueError, OSError):
                path = Path(self.path(name))
                path.unlink()
                path.parent.rmdir()


def _piece(descriptor: int, offset: int, limit: int, *, ended: bool) -> LogChunk:
    while True:
        size = os.fstat(descriptor).st_size
        begin, end = _kept(descriptor, offset, size)
        data = os.pread(descriptor, min(limit, end - begin), begin)
        after = begin + len(data)
        # If it was freed while it was read, zeros may have been read.
        if not data or ((still := _kept(descriptor, begin, size))[0] == begin and still[1] >= after):
            return LogChunk(data, after, ended and after >= size, begin - offset, is_torn=after == end < size)


def _kept(descriptor: int, offset: int, size: int) -> tuple[int, int]:
    """The next bytes that are kept, from `offset` on or after it: where they begin and end.

    Whatever a file has no blocks for was left out: by who holds it to its limit, or by the job itself.
    """
    try:
        begin = os.lseek(descriptor, offset, os.SEEK_DATA)
        return begin, os.lseek(descriptor, begin, os.SEEK_HOLE)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nothing from there on
            return max(offset, size), max(offset, size)
        return offset, max(offset, size)  # a file system that knows nothing of holes

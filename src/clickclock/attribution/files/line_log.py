"""A log that is appended to line by line, each on disk before the next step.

Never looks into a line. Invariant: a line that was cut off by a crash counts as not written, and the next one takes its
place.

>>> LineLog(Path("no/such/file")).lines
[]
"""

import os
from pathlib import Path


class LineLog:
    """One file. One process writes at a time."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes() if path.exists() else b""
        self._path = path
        self._length = content.rfind(b"\n") + 1
        self.lines = content[: self._length].splitlines()
        """The lines of the file when it was opened."""

    def append(self, line: bytes) -> None:
        """Write one line, and make it durable. The file is for its owner alone."""
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.ftruncate(fd, self._length)  # what a crash has left of a line
            os.pwrite(fd, line + b"\n", self._length)
            os.fsync(fd)
        finally:
            os.close(fd)
        self._length += len(line) + 1

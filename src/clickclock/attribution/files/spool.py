r"""A spool: the lines that an import would keep, put aside on disk until everything was looked at.

Never outlives its process: the file has no name, so what is killed leaves nothing. Invariant: what comes out is what
went in, in the same order.

>>> with Spool(Path("/tmp")) as spool:
...     spool.add(b"o\t00\t5\t\n", is_dated=True)
...     [bytes(each.line) for each in spool.lines()]
[b'o\t00\t5\t\n']
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Final, NamedTuple, Self

from clickclock.attribution.errors import JournalFailing

_BUFFER_BYTES: Final = 1024 * 1024
_DATED, _UNDATED = b"+-"


class Spooled(NamedTuple):
    """A line, and whether somebody wrote down when it came."""

    is_dated: bool
    line: bytes


class Spool:
    """Lines put aside in a folder. Raises `JournalFailing` where the disk refuses."""

    def __init__(self, folder: Path) -> None:
        try:
            self._file = TemporaryFile(dir=folder, buffering=_BUFFER_BYTES)  # noqa: SIM115 (closed in __exit__)
        except OSError as error:
            raise JournalFailing(f"{folder} refuses to take what is imported: {error.strerror}.") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let it go."""
        self._file.close()

    def add(self, line: bytes, *, is_dated: bool) -> None:
        """Put a line aside; it ends in its only LF."""
        try:
            self._file.write(b"+" + line if is_dated else b"-" + line)
        except OSError as error:
            raise JournalFailing(f"The disk refuses to take what is imported: {error.strerror}.") from error

    def lines(self) -> Iterator[Spooled]:
        """All of them, once."""
        self._file.seek(0)
        for line in self._file:
            yield Spooled(line[0] == _DATED, line[1:])

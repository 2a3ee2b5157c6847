"""The docket: the one erasure that was asked for and is not done, in a file that only its owner may read.

Never keeps anything of one that is done. Invariants: what is read was written in full; the file, and no other, holds
the identifier while an erasure is under way.

>>> Docket(Path("no/such/file")).read() is None
True
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from clickclock.attribution.erasing.erasure import Erasure
from clickclock.attribution.errors import VersionGone

WAITS: Final = (
    "Files of this version are gone, and an erasure is not finished. Unless one is running now, it was interrupted: "
    "finish it with clickclock attribution erase (without an identifier), then ask again."
)
_decode = msgspec.json.Decoder(Erasure).decode


class Docket:
    """One file. Its writer is alone: app holds the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Erasure | None:
        """The erasure that is under way."""
        try:
            return _decode(self.path.read_bytes())
        except FileNotFoundError:
            return None

    def write(self, erasure: Erasure) -> None:
        """Remember how far it is, so that whoever goes on after a crash knows what it knew."""
        fresh = self._fresh
        fresh.unlink(missing_ok=True)
        fresh.touch(mode=0o600)
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(erasure))
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(self.path)
        self._sync_folder()

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Tell of an erasure that is under way to whoever finds that a version is gone. Raises `VersionGone`."""
        try:
            yield
        except VersionGone as gone:
            if not self.path.exists():
                raise
            raise VersionGone(WAITS) from gone

    def clear(self) -> None:
        """It is done."""
        self._fresh.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
        self._sync_folder()

    @property
    def _fresh(self) -> Path:
        return self.path.with_suffix(".new")

    def _sync_folder(self) -> None:
        fd = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

"""An outbox: a folder whose files are written hidden, and get their names when it is decided that they count.

Never decides anything. Invariants: a file under its name is whole and on disk; a hidden one is seen by nobody but the
next one who opens the outbox, who either gives it its name or deletes it; one process writes at a time.

>>> outbox = Outbox(Path("exports"))   # doctest: +SKIP
>>> with outbox.alone():   # doctest: +SKIP
...     outbox.write("a.csv", b"…")
...     outbox.publish(["a.csv"])
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from clickclock.attribution.files.folder_lock import alone
from clickclock.foundation.errors import Invalid

_LOCK: Final = ".lock"
_ENDING: Final = ".new"


class Outbox:
    """One folder on this machine."""

    def __init__(self, folder: Path) -> None:
        """It is made when it is needed, for its owner alone: uploads are about people."""
        self.folder = folder

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one who writes here. Raises `Conflict` if another does, `Invalid` if nobody can."""
        busy = f"Another export writes into {self.folder}; wait until it has ended, then start this one again."
        try:
            with alone(self.folder, _LOCK, busy):
                yield
        except OSError as error:
            raise Invalid(f"{error.filename or self.folder}: {error.strerror}; give a folder to write into.") from error

    def hidden(self) -> list[str]:
        """The names that hidden files are to have."""
        return sorted(path.name[1:].removesuffix(_ENDING) for path in self.folder.glob(f".*{_ENDING}"))

    def size_of(self, name: str) -> int | None:
        """How long a file under its name is, in bytes; None if there is none."""
        try:
            return (self.folder / name).stat().st_size
        except OSError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a hidden file, and make it durable."""
        with self._hidden(name).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def publish(self, names: Iterable[str]) -> None:
        """Give hidden files their names. One that has it already is left as it is."""
        for name in names:
            if self._hidden(name).exists():
                self._hidden(name).rename(self.folder / name)
        self.sync()

    def drop(self, names: Iterable[str]) -> None:
        """Delete hidden files."""
        for name in names:
            self._hidden(name).unlink(missing_ok=True)

    def sync(self) -> None:
        """Make the names in the folder durable."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _hidden(self, name: str) -> Path:
        return self.folder / f".{name}{_ENDING}"

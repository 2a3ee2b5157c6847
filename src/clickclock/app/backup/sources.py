"""The files of a data folder that a backup has, and in which order they are read while a service writes them.

Never waits for a writer, and never locks anything. Invariants: journals come before the lake, so that a segment that is
compacted meanwhile is in one of them; of a live segment what was whole when it was looked at; of a file that grows as
much as there was when it was opened; what has gone meanwhile is in no backup.

>>> is_kept(Path("journal/0/id")), is_kept(Path("supervisor/journal")), is_kept(Path("clickclock.db-wal"))
(True, False, False)
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from clickclock.app.backup.parts import PART_BYTES
from clickclock.app.data_folder import ADDRESS_SALT
from clickclock.foundation import extras

SCRATCH: Final = "backup-scratch"
"""The folder in the data folder for copies of the store; emptied by who holds the lock of backups."""
LAKE: Final = "lake"
_LEFT_OUT: Final = {
    *("answers", "run", "stops", "supervisor", SCRATCH),  # of processes that live now
    ADDRESS_SALT,  # it is to be forgotten, and a restored installation makes one
    *(
        "lock",
        "collectors-lock",
        "lake-lock",
        "run-lock",
        "audit-lock",
        "backup-lock",
        "backup-state.json",
        "last-heard",
        LAKE,
    ),
}
_STORE: Final = "clickclock.db"
_POINTER: Final = "_last_checkpoint"
"""It may name a checkpoint that is newer than the rest; readers do without."""


class Source(msgspec.Struct, frozen=True):
    """A file to copy: its name in the backup, where it is, and how much of it counts; all of it if that is None."""

    name: str
    path: Path
    end: int | None = None


def is_kept(path: Path) -> bool:
    """Whether a file of the data folder, by its path in it, is one that a backup has."""
    if path.parts[0] in _LEFT_OUT or path.name.startswith(_STORE):
        return False
    return path.name != "lock" and path.suffix not in {".lock", ".new"}


def files_of(data_dir: Path) -> Iterator[Source]:
    """All but the store and the lake: the journals first."""
    first = ("journal",)
    names = sorted((each.name for each in data_dir.iterdir()), key=lambda name: (name not in first, name))
    for name in names:
        for path in _within(data_dir / name):
            inside = path.relative_to(data_dir)
            if is_kept(inside):
                yield _source(inside, path)


def files_of_lake(lake: Path) -> Iterator[Source]:
    """The lake in a folder: the names of all logs before those of the files that they name, but only as many logs."""
    paths = [path for path in _within(lake) if path.name != _POINTER]
    logs = [path for path in paths if path.parent.name == "_delta_log"]
    listed = set(logs)
    # Listed again: what the logs name was there before them.
    files = [path for path in _within(lake) if path.parent.name != "_delta_log"]
    for path in (*sorted(listed), *sorted(files)):
        yield Source(f"{LAKE}/{path.relative_to(lake)}", path)


def _within(path: Path) -> Iterator[Path]:
    """The files in a folder, or the file itself; links are followed by nobody."""
    if path.is_symlink():
        return
    if not path.is_dir():
        yield path
        return
    for above, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if not (Path(above) / name).is_symlink():
                yield Path(above) / name


def _source(inside: Path, path: Path) -> Source:
    if inside.suffix != ".live" or inside.parts[0] != "journal" or not extras.is_installed(extras.ATTRIBUTION):
        return Source(str(inside), path)
    from clickclock.attribution import journal  # noqa: PLC0415 (it is an optional part)
    from clickclock.attribution.errors import JournalDamaged  # noqa: PLC0415 (as above)

    segment = journal.Segment(int(path.stem), path, journal.State.LIVE)
    with suppress(JournalDamaged, FileNotFoundError):
        seen = journal.inspect(segment)
        if seen.state in {"live", "empty"}:
            return Source(str(inside), path, seen.used_bytes)
    return Source(str(inside), path)


class Opened:
    """A source that is open: what is read is one file, whatever becomes of its name. Raises `OSError`."""

    def __init__(self, source: Source) -> None:
        path = source.path
        try:
            self._fd = _open(path)
        except FileNotFoundError:
            if path.suffix != ".live":
                raise
            path = path.with_suffix(".sealed")  # sealed since it was listed
            self._fd = _open(path)
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise FileNotFoundError(path)  # a socket, for example
        is_sealed_now = path != source.path
        self.name = source.name.removesuffix(".live") + ".sealed" if is_sealed_now else source.name
        self.size = found.st_size if source.end is None or is_sealed_now else min(source.end, found.st_size)
        self.mtime_ns, self.mode = found.st_mtime_ns, stat.S_IMODE(found.st_mode)
        self.path = path

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        os.close(self._fd)

    def chunks(self) -> Iterator[bytes]:
        """Its bytes, in pieces of a part's length; fewer than its size if it was cut meanwhile."""
        at = 0
        while at < self.size and (chunk := os.pread(self._fd, min(PART_BYTES, self.size - at), at)):
            yield chunk
            at += len(chunk)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)

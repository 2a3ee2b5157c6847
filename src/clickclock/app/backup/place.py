"""Where backups are: a folder, or an object store by the library that the lake uses.

Never keeps half of anything: what is written is there in whole when `write` returns, or not at all. Invariants:
files of a folder are for this user alone; every failure is one sentence that names the place.

>>> Folder(Path("/mnt/backups")).where
'/mnt/backups'
"""

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from clickclock.foundation.errors import ConfigurationError, Fault, Permanent, Transient
from clickclock.foundation.redaction import redacted

if TYPE_CHECKING:
    from pyarrow.fs import PyFileSystem

_STREAM_BYTES = 2**20
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class BackupRefused(Permanent):
    """The backup cannot be made or used like that; see what the message says."""

    code = "backupRefused"


class PlaceFailed(Transient):
    """The place of the backups does not take or give something; see what the message says, and try again."""

    code = "backupPlaceFailed"


class Place(Protocol):
    """Contents by names such as `parts/ab/abcd`. All raise `PlaceFailed`."""

    where: str

    def names(self, folder: str) -> set[str]:
        """The names of everything in a folder and the folders in it; none if it is not there."""
        ...

    def read(self, name: str) -> bytes:
        """The content. Raises `FileNotFoundError` if there is none."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Put it there, in whole or not at all; when this returns, it outlives a power cut."""
        ...

    def delete(self, name: str) -> None:
        """Take it away; nothing happens if it is not there."""
        ...


def place_at(url: str, options: Mapping[str, str]) -> Place:
    """The place of an address. Raises `ModuleNotFoundError` if it is an object store, and its library is not there."""
    return (
        ObjectStore(url, options) if "://" in url.removeprefix("file://") else Folder(Path(url.removeprefix("file://")))
    )


class Folder:
    """A folder, on this machine or mounted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self.where = str(self._folder)

    def names(self, folder: str) -> set[str]:
        with self._reaching():
            top = self._folder / folder
            return {
                str((Path(above) / name).relative_to(self._folder))
                for above, _, names in os.walk(top)
                for name in names
                if not name.startswith(".")
            }

    def read(self, name: str) -> bytes:
        with self._reaching():
            return (self._folder / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        fresh = path.with_name(f".{path.name}.new")
        with self._reaching():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                with open(fresh, "wb", opener=_private) as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                fresh.rename(path)
                _sync(path.parent)
            except OSError:
                with contextlib.suppress(OSError):
                    fresh.unlink(missing_ok=True)
                raise

    def delete(self, name: str) -> None:
        with self._reaching():
            (self._folder / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            what_to_do = "make room there" if full else "make it a folder that this user may read and write"
            raise PlaceFailed(
                f"{error.filename or self.where}: {error.strerror}. No backup before this one was changed; "
                f"{what_to_do}, and run it again."
            ) from error


class ObjectStore:
    """`s3://…`, `gs://…` or `az://…`, with the options that the lake's library takes."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self.where = url.rstrip("/")
        self._options = dict(options)
        self._opened: PyFileSystem | None = None

    @property
    def _files(self) -> "PyFileSystem":
        from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 (it is an optional part)
        from pyarrow.fs import PyFileSystem  # noqa: PLC0415 (as above)

        self._opened = self._opened or PyFileSystem(DeltaStorageHandler(self.where, self._options))
        return self._opened

    def names(self, folder: str) -> set[str]:
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 (as above)

        with self._reaching():
            found = self._files.get_file_info(FileSelector(folder, allow_not_found=True, recursive=True))
        return {each.path for each in found if each.type is FileType.File}

    def read(self, name: str) -> bytes:
        with self._reaching(), self._files.open_input_file(name) as stream:
            content: bytes = stream.read()
            return content

    def write(self, name: str, content: bytes) -> None:
        with self._reaching():
            # Only closed when all of it is written: a stream that is not closed leaves nothing there. In pieces
            # that fit
            # its buffer: longer ones would go around it, in a form that the library does not take.
            stream = self._files.open_output_stream(name, buffer_size=_STREAM_BYTES)
            for start in range(0, len(content), _STREAM_BYTES // 2):
                stream.write(content[start : start + _STREAM_BYTES // 2])
            stream.close()

    def delete(self, name: str) -> None:
        with self._reaching(), contextlib.suppress(FileNotFoundError):
            self._files.delete_file(name)

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        from deltalake.exceptions import DeltaError  # noqa: PLC0415 (it is an optional part)

        try:
            yield
        except FileNotFoundError:
            raise
        except (OSError, DeltaError, ValueError) as error:
            said = redacted(" ".join(_COLOURS.sub("", str(error)).split()))
            raise PlaceFailed(
                f"{self.where} does not take or give something ({said}). No backup before this one was changed; fix "
                "backup_url and backup_options, or bring the object store back, and run it again."
            ) from error


def expect_apart(data_dir: Path, url: str) -> None:
    """Refuse a folder within the data folder: what ends the one ends the other. Raises `ConfigurationError`."""
    if "://" in url.removeprefix("file://"):
        return
    folder = Path(url.removeprefix("file://")).absolute()
    if folder.resolve().is_relative_to(data_dir.absolute().resolve()):
        sentence = f"{folder} is in the data folder, and would be lost with it; give a place on another disk."
        raise ConfigurationError(faults=[Fault("backup_url", sentence)])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

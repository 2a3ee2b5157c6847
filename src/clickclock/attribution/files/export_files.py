"""The files that were written for ad networks and partners, as they lie in their folder, hidden ones too.

Never decides what is in them. Invariant: a file is replaced as a whole, or not at all.

>>> list(ExportFiles(Path("no/such/folder")).names("shop-1"))
[]
"""

import os
import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from clickclock.attribution.uploads.upload import network_of

_ENDING: Final = ".rest"
_CLIENT_CHARS_MAX: Final = 80
_NAME: Final = r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)?"
"""The name of an ad network or of a partner; behind a network's, a kind of conversion."""
_WRITTEN: Final = re.compile(rf"({_NAME})-(.+)-\d+-[0-9a-f]+-\d+-(\w+)\.(?:csv|json)")
POSTBACKS: Final = "postbacks"
"""What files of calls to partners end with."""


def client_name(client_id: str) -> str:
    """A client in the names of its files, of 255 characters at most: of a longer one, the beginning and a digest."""
    name = quote(client_id, safe="")
    if len(name) <= _CLIENT_CHARS_MAX:
        return name
    digest = blake2b(client_id.encode(), digest_size=8).hexdigest()
    return f"{name[: _CLIENT_CHARS_MAX - len(digest) - 1]}~{digest}"


class Written(NamedTuple):
    """A file under its name, whole."""

    name: str
    network: str
    """The ad network's name, or the partner's."""
    client: str
    """The client as names of files have it: see `client_name`."""
    size: int
    """In bytes."""
    what: str
    """The kind of its content, as its name ends."""


class ExportFiles:
    """One folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self, client_id: str) -> Iterator[str]:
        """The files about orders of a client, which their names say."""
        client = re.escape(client_name(client_id))
        name = re.compile(rf"\.?{_NAME}-{client}-\d+-[0-9a-f]+-\d+-\w+\.(csv|json)(\.new)?")
        for path in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            if path.suffix == _ENDING:
                path.unlink()  # whoever wrote it died
            elif name.fullmatch(path.name):
                yield path.name

    def written(self) -> Iterator[Written]:
        """The files of all clients, in the order of their names; hidden ones are left out."""
        for path in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            if found := _WRITTEN.fullmatch(path.name):
                yield Written(path.name, network_of(found[1]), found[2], path.stat().st_size, found[3])

    def read(self, name: str) -> bytes:
        """All of a file."""
        return (self._folder / name).read_bytes()

    def replace(self, name: str, content: bytes | None) -> None:
        """Have other content in a file, or None: no file. It is durable."""
        path = self._folder / name
        if content is None:
            path.unlink()
        else:
            fresh = path.with_name(f"{name}{_ENDING}")
            fresh.touch(mode=path.stat().st_mode)
            with fresh.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.rename(path)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

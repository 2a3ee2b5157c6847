"""What a backup says of itself: a head that is read at once, and a table of its files and their pieces.

Never opens a file. Invariants: a piece names a part, where it begins in it and how long it is; a file is its pieces one
behind the other; what a later format adds, this one refuses by its number.

>>> Piece(0, 0, 5)
Piece(part=0, offset=0, length=5)
"""

from typing import Final, Literal

import msgspec

FORMAT: Final = 1
"""Version of the layout of parts, heads and tables; a program refuses a higher one."""
STORE: Final = "store/"
"""Files of a backup that begin so are the store; all others are files of the data folder."""
StoreForm = Literal["sqlite", "pgDump", "rows", "none"]
"""A whole file of SQLite; an archive of `pg_dump`; PostgreSQL's rows as `COPY` writes them; or no store at all."""
STORE_FILES: Final = {"sqlite": "clickclock.db", "pgDump": "store.pgdump", "rows": "rows.copy"}
"""The name of the store's file behind `STORE`, by its form."""


class Piece(msgspec.Struct, array_like=True, frozen=True):
    """Bytes of one part."""

    part: int
    offset: int
    length: int


class File(msgspec.Struct, array_like=True, frozen=True):
    """A file; its time in nanoseconds since 1970 and its size are by which it is known to be unchanged."""

    path: str
    size: int
    mtime_ns: int
    mode: int
    pieces: list[Piece]


class Contents(msgspec.Struct, frozen=True):
    """The table: the names of all parts, and the files that are made of them."""

    parts: list[str]
    files: list[File]


class Waiting(msgspec.Struct, frozen=True, rename="camel"):
    """Unfinished work when the store was copied: attempts by cluster, and waiting triggers."""

    attempts: dict[str, int]
    queued: int
    schedules: int


class LakeAt(msgspec.Struct, frozen=True, rename="camel"):
    """Where the lake is, the version of each table, and whether its files are in the backup."""

    url: str
    versions: dict[str, int]
    is_copied: bool


class Head(msgspec.Struct, frozen=True, rename="camel"):
    """One backup. Times are RFC 3339 in UTC; sizes are bytes; `missing` has a sentence for each thing left out."""

    format: int
    backup_id: str
    node: str
    host: str
    data_dir: str
    url: str | None
    version: str
    revision: str | None
    needs_revision: str | None
    installation_id: str | None
    store: StoreForm
    started_at: str
    finished_at: str
    files: int
    bytes: int
    new_bytes: int
    waiting: Waiting | None
    lake: LakeAt | None
    missing: list[str]
    index: list[str]
    """The parts that hold the table, in order."""


class Verified(msgspec.Struct, frozen=True, rename="camel"):
    """What restoring a backup into a scratch folder, and looking at it there, has found."""

    backup_id: str
    at: str
    is_whole: bool
    found: list[str]


class About(msgspec.Struct, frozen=True, rename="camel"):
    """What one data folder's backups in a place have in common."""

    format: int
    node: str
    key_check: str | None
    """By it a key is known to be the right one; none where nothing is encrypted."""

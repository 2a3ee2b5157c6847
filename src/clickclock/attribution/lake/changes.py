"""What changed in a table since a version of it: which files brought rows, and which took some away.

Never looks into a file, and never writes. Invariants: a file that was only merged with others changed nothing; where
the log does not reach back any more, `VersionGone` says so, and whoever asked has to look at everything.

>>> changes_since(lake.table("clicks"), 7, storage).added   # doctest: +SKIP
('part-0.zstd.parquet',)
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake.files import Storage


@dataclass(frozen=True)
class Stored:
    """A file, as the table names it, and its partition."""

    path: str
    partition: str | None
    size_bytes: int
    """0 for a file that went: the log need not say it."""
    is_there: bool = True
    """Whether the table of now has it; otherwise its rows are in another file, or gone."""
    rows: int = 0
    """As the log says of the files of a version."""


@dataclass(frozen=True)
class Changes:
    """Rows of now = rows of then + rows of `added` - rows of `removed`, as often as each is in a file."""

    version: int
    """The version of now."""
    added: tuple[Stored, ...] = ()
    removed: tuple[Stored, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def changes_since(delta: DeltaTable, since: int, storage: Storage) -> Changes:
    """What changed after version `since` up to the one that `delta` is. Raises `VersionGone`."""
    now = delta.version()
    if since > now:
        raise VersionGone(f"{storage.url} has no version {since}: the latest is {now}, so it was made anew.")
    added: dict[str, Stored] = {}
    removed: dict[str, Stored] = {}
    files = storage.filesystem()
    there = set(paths_of(delta))
    for version in range(since + 1, now + 1):
        try:
            with files.open_input_file(f"_delta_log/{version:020}.json") as file:
                entries = file.read()
        except FileNotFoundError:
            said = f"{storage.url} does not know any more what version {version} changed."
            raise VersionGone(said) from None
        for line in entries.splitlines():
            _fold(json.loads(line), added, removed, there)
    return Changes(now, tuple(added.values()), tuple(removed.values()))


def stored_in(delta: DeltaTable, partition_by: list[str]) -> list[Stored]:
    """The files of a version."""
    rows = pa.table(delta.get_add_actions(flatten=True)).to_pylist()
    partitions = [str(row[f"partition.{partition_by[0]}"]) if partition_by else None for row in rows]
    return [
        Stored(row["path"], each, row["size_bytes"], rows=row["num_records"] or 0)
        for row, each in zip(rows, partitions, strict=True)
    ]


def paths_of(delta: DeltaTable) -> list[str]:
    """The files of a version, as the table names them."""
    paths: list[str] = pa.table(delta.get_add_actions())["path"].to_pylist()
    return paths


def _fold(action: dict[str, Any], added: dict[str, Stored], removed: dict[str, Stored], there: set[str]) -> None:
    for kind, mine, others in (("add", added, removed), ("remove", removed, added)):
        told = action.get(kind)
        if told is None or not told["dataChange"]:
            continue
        path = unquote(told["path"])
        if path in others:
            del others[path]
        else:
            partition = next(iter((told.get("partitionValues") or {}).values()), None)
            mine[path] = Stored(path, partition, told.get("size") or 0, path in there)

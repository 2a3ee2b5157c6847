"""Parquet files as a table's log names them: what their folders say, and those of an object store through Arrow.

Never lists a folder: files that the log does not name do not count. Invariant: a value that stands in a folder's name
(`day=2026-11-20`) has the type that was asked for, whatever it looks like.

>>> partitions(["/lake/costs/day=2026-11-20/part-0.parquet"], pa.schema([("ad", pa.string()), ("day", pa.date32())]))
day: date32[day]
"""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from clickclock.attribution.lake import is_of_today
from clickclock.attribution.lake.tables import TABLES

RAW: Final = frozenset(table.name for table in TABLES)
"""Tables of which a file stays as the release wrote it that took its rows in: columns that came later are null."""


def partitions(files: Sequence[str], columns: pa.Schema) -> pa.Schema:
    """Those of `columns` that stand in the folders' names."""
    named = {part.partition("=")[0] for part in files[0].split("/")[:-1] if "=" in part} if files else set()
    return pa.schema([column for column in columns if column.name in named])


def is_remote(files: Sequence[str]) -> bool:
    """Whether the files are in an object store."""
    return any("://" in file and not file.startswith("file://") for file in files)


def are_of_today(clicks: Sequence[str]) -> bool:
    """Whether all rows of these files have the revision of today, as far as the files say so.

    Of files in an object store that is not asked: each would be one more request.
    """
    return not is_remote(clicks) and all(_is_of_today(file.removeprefix("file://")) for file in clicks)


def _is_of_today(file: str) -> bool:
    try:
        metadata = pq.read_metadata(file)
    except (OSError, pa.ArrowInvalid):  # the engine says what is wrong with it
        return False
    return is_of_today(metadata)


def remote(files: Sequence[str], columns: pa.Schema, storage_options: Mapping[str, str]) -> ds.Dataset:
    """These columns of files of one object store."""
    root = urlsplit(files[0])
    handler = DeltaStorageHandler(f"{root.scheme}://{root.netloc}", dict(storage_options))
    return ds.dataset(
        [urlsplit(file).path.lstrip("/") for file in files],
        filesystem=PyFileSystem(handler),
        schema=columns,
        format="parquet",
        partitioning=ds.partitioning(partitions(files, columns), flavor="hive"),
    )

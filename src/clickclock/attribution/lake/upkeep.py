"""The lake's upkeep: small files become large ones, and files that nobody can ask for any more are deleted.

Never changes a row. Invariant: a reader that began before goes on reading the files that it knows, for the retention.

>>> Tidied(1, 2, 3) + Tidied(1, 0, 0)
Tidied(merged=2, into=2, deleted=3)
"""

import logging
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from clickclock.attribution.lake.changes import paths_of
from clickclock.attribution.lake.files import Storage, delta_options
from clickclock.attribution.lake.tables import Table

SMALL_BYTES: Final = 32 * 2**20
SMALL_FILES_MIN: Final = 8
"""So few are not worth writing them again."""
LITTER_HOURS_MIN: Final = 48
"""A file that no version has may be one that another compactor is about to commit."""
TARGET_BYTES: Final = 128 * 2**20

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tidied:
    """How many files were merged, into how many, and how many were deleted."""

    merged: int = 0
    into: int = 0
    deleted: int = 0

    def __add__(self, other: "Tidied") -> "Tidied":
        return Tidied(self.merged + other.merged, self.into + other.into, self.deleted + other.deleted)


def tidy(table: Table, delta: DeltaTable, storage: Storage, history_hours: int, *, is_replaced: bool = False) -> Tidied:
    """Merge the small files of each partition that has many, and delete what only versions before the retention need.

    `is_replaced` says that files may have been replaced by others than those merged now.
    """
    merged = into = 0
    version, before = delta.version(), set(paths_of(delta))
    for partition in _crowded(table, delta):
        try:
            told = delta.optimize.compact(
                [(name, "=", partition) for name in table.partition_by],
                target_size=TARGET_BYTES,
                max_concurrent_tasks=1,
                writer_properties=delta_options(table),
            )
        except CommitFailedError as error:  # another compactor merges the same files
            _log.info("lake: %s of %s are being merged elsewhere: %s", table.name, partition, error)
            continue
        merged += told["numFilesRemoved"]
        into += told["numFilesAdded"]
    if not merged and not is_replaced:
        return Tidied()  # nothing was replaced since the last time, and to list all files has its price
    # delta-rs syncs nothing, and a power cut must not find the new files unwritten and the old ones deleted.
    storage.sync([path for path in paths_of(delta) if path not in before])
    storage.sync([f"_delta_log/{each:020}.json" for each in range(version + 1, delta.version() + 1)])
    gone = delta.vacuum(history_hours, dry_run=False, enforce_retention_duration=False)
    # What a crash left is in no version, so only a full vacuum finds it; and so it finds what is being written now.
    litter = delta.vacuum(
        max(history_hours, LITTER_HOURS_MIN), dry_run=False, enforce_retention_duration=False, full=True
    )
    return Tidied(merged, into, len({*gone, *litter}))


def _crowded(table: Table, delta: DeltaTable) -> list[str]:
    files = pa.table(delta.get_add_actions(flatten=True))
    sizes = files["size_bytes"].to_pylist()
    partitions = files[f"partition.{table.partition.name}"].to_pylist() if table.partition else [""] * len(sizes)
    small: dict[str, int] = defaultdict(int)
    for partition, size in zip(partitions, sizes, strict=True):
        small[str(partition)] += size < SMALL_BYTES
    return sorted(partition for partition, count in small.items() if count >= SMALL_FILES_MIN)

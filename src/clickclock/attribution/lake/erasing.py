"""Rows taken out of the lake for good: out of every file that has them, of old versions too, and out of the log.

Never changes a row that stays, or the order of rows. A file with rows that go is written anew without them; the new
file comes and the old one goes in one commit, so a reader sees all of it or none. Then the old one is deleted, with
every file of older versions that had such rows, and with it the versions that need it.
Invariants: whenever we die, what is left is found by looking again; whoever changes the same files meanwhile makes us
lose (`Overtaken`), and then nothing of ours is seen.

>>> erasings(lake, sought)["clicks"].look(Marks()).files   # doctest: +SKIP
{'received_day=2026-11-20/part-0.zstd.parquet': 7}
"""

import contextlib
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import FileInfo, FileSelector, PyFileSystem

from clickclock.attribution.erasing.erasure import ORDER_ID, Identifier, Marks, Sought
from clickclock.attribution.errors import LakeUnreachable
from clickclock.attribution.lake import history
from clickclock.attribution.lake.changes import paths_of
from clickclock.attribution.lake.derived import (
    ADS,
    COUNTS,
    CREDITS,
    FITTED,
    FOLDED,
    IDENTITIES,
    TIES,
    TOUCHES,
    UNCONVERTED,
    UPLOADS,
    VIEW_ADS,
    VIEW_TOUCHES,
    credits_table,
)
from clickclock.attribution.lake.files import ROW_GROUP_ROWS, File, Storage
from clickclock.attribution.lake.finding import AT_ONCE, BATCH_ROWS, LOG, Flags, Found, Places, find, matching
from clickclock.attribution.lake.load import Overtaken
from clickclock.attribution.lake.reach import reaching
from clickclock.attribution.lake.tables import DAY, TABLES, Table

if TYPE_CHECKING:
    from clickclock.attribution.lake import Lake

COMMITTED_WITHIN_MS: Final = 3_600_000
"""A file in an object store that is younger may be one that a compactor elsewhere is about to commit."""
COMMITS_MAX: Final = 10
"""As often, one after the other, as a compactor elsewhere can have been faster by chance."""
DERIVED_OF_PEOPLE: Final = (
    *(IDENTITIES, TOUCHES, VIEW_TOUCHES, TIES, UNCONVERTED, ADS, VIEW_ADS, FITTED, COUNTS, FOLDED),
    UPLOADS,
)
_ORDER: Final = ("client_id", "order_id")
_WORD: Final = re.compile(r"[\w~-]+")


class Taking:
    """One table, out of which rows are taken."""

    def __init__(self, table: Table, delta: DeltaTable, storage: Storage) -> None:
        self.table = table
        self._delta = delta
        self._storage = storage

    def find(self, is_to_go: Callable[[pa.RecordBatch], Flags], columns: list[str] | None = None) -> Found:
        """Read every file, all its columns or some. Raises `LakeUnreachable`."""
        with reaching(self._storage.url):
            self._delta.update_incremental()
            live = frozenset(paths_of(self._delta))
            found = find(self.table.name, self._storage, live, is_to_go, columns)
        broken = live.intersection(found.unreadable)
        if broken:
            raise LakeUnreachable(f"{self._storage.url} has files that cannot be read: {', '.join(sorted(broken))}.")
        return found

    def replace(self, found: Found, now_ms: int) -> int:
        """Write files anew without what was found, in the place of the old ones, which stay for `delete`.

        Returns the table's version. Raises `Overtaken`, `LakeUnreachable`.
        """
        if found.files:
            with reaching(self._storage.url):
                self._replace([file for file in _files(self._delta) if file["path"] in found.files], found, now_ms)
        return self._delta.version()

    def delete(self, found: Found, now_ms: int) -> None:
        """Delete the files in which it was found, and which the table has no more. Raises `LakeUnreachable`."""
        if paths := [*found.files, *found.unreadable]:
            with reaching(self._storage.url):
                _delete(self._delta, self._storage, self._storage.filesystem().get_file_info(paths), now_ms)

    def _replace(self, replaced: Collection[dict[str, Any]], found: Found, now_ms: int) -> None:
        """Write files anew, and put them in the place of the old ones."""
        partitions = [{name: str(old[f"partition.{name}"]) for name in self.table.partition_by} for old in replaced]
        removed = [
            RemoveAction(old["path"], True, now_ms, old["size_bytes"], {**partition})
            for old, partition in zip(replaced, partitions, strict=True)
        ]

        def rest(old: dict[str, Any], partition: dict[str, str]) -> AddAction | None:
            return self._rest(old["path"], partition, found.files[old["path"]], now_ms)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            added = [action for action in pool.map(rest, replaced, partitions) if action is not None]
        if removed:
            # Durable before the old ones are deleted: delta-rs syncs nothing.
            self._storage.sync([action.path for action in added])
            commit_instead(self._delta, self._storage, self.table, [*added, *removed])

    def _rest(self, path: str, partition: dict[str, str], places: Places, now_ms: int) -> AddAction | None:
        """A file like this one, without the rows that go; none if all do."""
        files = self._storage.filesystem()
        file: File | None = None
        for rows in self._kept(files, path, places):
            if file is None:
                folder = "".join(path.rpartition("/")[:2])
                file = File(self.table, files, f"{folder}part-{uuid.uuid4().hex}.zstd.parquet", {**partition})
            file.writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        return None if file is None else file.close(now_ms)

    def _kept(self, files: PyFileSystem, path: str, places: Places) -> Iterator[pa.Table]:
        """The rows that stay, a row group at a time."""
        waiting: list[pa.RecordBatch] = []
        start = count = 0
        options = {"batch_size": BATCH_ROWS, "batch_readahead": 2, "fragment_readahead": 1}
        for batch in ds.ParquetFileFormat().make_fragment(path, files).to_batches(schema=self.table.schema, **options):
            is_kept = np.ones(batch.num_rows, np.bool_)
            is_kept[places[(places >= start) & (places < start + batch.num_rows)] - start] = False
            start += batch.num_rows
            waiting.append(batch if is_kept.all() else batch.filter(pa.array(is_kept)))
            count += waiting[-1].num_rows
            if count >= ROW_GROUP_ROWS:
                yield pa.Table.from_batches(waiting, self.table.schema)
                waiting, count = [], 0
        if count:
            yield pa.Table.from_batches(waiting, self.table.schema)


class Erasing(Taking):
    """One table, and what is to go from it."""

    def __init__(self, table: Table, delta: DeltaTable, storage: Storage, sought: Sought) -> None:
        super().__init__(table, delta, storage)
        self._sought = sought

    def look(self, marks: Marks) -> Found:
        """Read every file. Raises `LakeUnreachable`."""
        return self.find(lambda rows: matching(self.table.name, rows, self._sought, marks))

    def silence(self, marks: Marks) -> list[str]:
        """Take it out of the log; returns what still says it, which is nothing."""
        words = frozenset({*marks.clicks, *map(str, self._sought.codes | marks.persons)})
        orders = [Identifier(kind=ORDER_ID, value=order_id) for order_id in sorted(marks.orders)]
        sought = Sought(self._sought.client_id, [*self._sought.identifiers, *orders])

        def says(text: str) -> bool:
            return sought.is_in(text) or not words.isdisjoint(_WORD.findall(text))

        with reaching(self._storage.url):
            self._delta.update_incremental()
            paths = history.saying(self._storage, self._delta, says)
            if not paths:
                return []
            history.hush(self._storage, self._delta, paths, says)
            return history.saying(self._storage, self._delta, says)


def erasings(lake: "Lake", sought: Sought) -> dict[str, Erasing]:
    """The tables that may have something of it, by name; what was derived of clicks and orders comes first."""
    found: dict[str, Erasing] = {}
    for table in (*_derived(lake), *TABLES):
        delta = lake.table(table.name)
        if delta is not None:
            found[table.name] = Erasing(table, delta, _storage(lake, table), sought)
    return found


def _derived(lake: "Lake") -> tuple[Table, ...]:
    delta = lake.table(CREDITS)
    if delta is None:
        return DERIVED_OF_PEOPLE
    names = [field.name for field in delta.schema().fields]
    models = [name.removesuffix("_share") for name in names if name.endswith("_share")]
    return (credits_table(models), *DERIVED_OF_PEOPLE)


def _storage(lake: "Lake", table: Table) -> Storage:
    return Storage(f"{lake.url}/{table.name}", lake.storage_options)


def drop_begun_before(lake: "Lake", table: Table, first: date, now_ms: int) -> int:
    """Take out all days before `first`, and of later ones what is about the orders that they are about.

    Of old versions, too; returns how many rows the present version had. Raises `Overtaken`, `LakeUnreachable`. What is
    of later days goes first: should we die in between, it is found by the others.
    """
    delta = lake.table(table.name)
    if delta is None:
        return 0
    begun = [_order(rows) for rows in lake.scan(table.name, pc.field(DAY) < first, [*_ORDER])]
    if not begun:
        return drop_before(lake, table, first, now_ms)
    begun = pc.unique(pa.chunked_array(begun))
    taking = Taking(table, delta, _storage(lake, table))
    found = taking.find(lambda rows: np.array(pc.is_in(_order(rows), begun).to_numpy(zero_copy_only=False)), [*_ORDER])
    later = {path: places for path, places in found.files.items() if path >= f"{DAY}={first}"}
    taking.replace(replace(found, files=later), now_ms)
    taking.delete(replace(found, files=later, unreadable=[]), now_ms)
    drop_before(lake, table, first, now_ms)
    return found.rows


def _order(rows: pa.RecordBatch) -> pa.Array:
    """What names the order that each row is about, as one text: ids have no NUL."""
    return pc.binary_join_element_wise(*(rows[name].cast(pa.string()) for name in _ORDER), "\0")


def drop_before(lake: "Lake", table: Table, first: date, now_ms: int) -> int:
    """Take out all days before `first`, of old versions too; returns how many rows the present version had of them.

    Raises `Overtaken`, `LakeUnreachable`. If we die in between, the files that nobody has any more are deleted by the
    next call.
    """
    delta = lake.table(table.name)
    if delta is None:
        return 0
    storage = _storage(lake, table)
    with reaching(storage.url):
        live = [file for file in _files(delta) if file[f"partition.{DAY}"] < first]
        removed = [
            RemoveAction(file["path"], True, now_ms, file["size_bytes"], {DAY: str(file[f"partition.{DAY}"])})
            for file in live
        ]
        if removed:
            commit_instead(delta, storage, table, removed)
        files = storage.filesystem()
        for each in files.get_file_info(FileSelector("", allow_not_found=True)):
            name, _, day = each.base_name.partition("=")
            if name == DAY and date.fromisoformat(day) < first:
                old = files.get_file_info(FileSelector(each.path, recursive=True))
                _delete(delta, storage, [file for file in old if file.is_file], now_ms)
    return sum(file["num_records"] for file in live)


def _files(delta: DeltaTable) -> list[dict[str, Any]]:
    """The files of the version, with their partitions and how many rows they have."""
    files: list[dict[str, Any]] = pa.table(delta.get_add_actions(flatten=True)).to_pylist()
    return files


def commit_instead(
    delta: DeltaTable, storage: Storage, table: Table, actions: Sequence[AddAction | RemoveAction]
) -> None:
    """Let files come and others go, in one durable commit. Raises `Overtaken` if one that goes is not there."""
    before = delta.version()
    removed = {each.path for each in actions if isinstance(each, RemoveAction)}
    for left in reversed(range(COMMITS_MAX)):
        delta.update_incremental()
        if not removed.issubset(paths_of(delta)):
            raise Overtaken(f"files of {table.name} were merged or replaced")
        try:
            delta.create_write_transaction(
                [*actions],
                "append",
                delta.schema(),
                table.partition_by,
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=PostCommitHookProperties(create_checkpoint=True),
            )
            break
        except CommitFailedError as error:
            # Somebody was faster. We look at what it was: delta-rs itself, when it tries again, lets files pass that
            # were merged into others, whose rows would then be there twice.
            if not left:
                raise Overtaken(str(error)) from error
    delta.update_incremental()
    # Before any file goes, it must be on disk that nobody needs it.
    storage.sync([f"{LOG}/{version:020}.json" for version in range(before + 1, delta.version() + 1)])


def _delete(delta: DeltaTable, storage: Storage, files: Iterable[FileInfo], now_ms: int) -> None:
    """Delete files for good, but for those that somebody on another machine may be about to commit."""
    live = frozenset(paths_of(delta))
    is_ours = storage.folder is not None
    known = frozenset() if is_ours else frozenset(delta.vacuum(0, dry_run=True, enforce_retention_duration=False))
    for file in files:
        path = file.path.removeprefix("/")
        is_known = is_ours or path in known or file.mtime_ns // 1_000_000 < now_ms - COMMITTED_WITHIN_MS
        if path not in live and is_known:
            with contextlib.suppress(FileNotFoundError):
                storage.filesystem().delete_file(path)

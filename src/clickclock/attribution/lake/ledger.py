"""A derived table, as it was when it was opened: its files are added and replaced in single commits.

Never waits and never tries again: where another has changed the same meanwhile, `RunOvertaken` says so, and nothing is
seen of the commit that lost. Invariants: rows and notes are one commit of Delta's log, so a crash leaves both or
neither; of two commits with a note of one name, of which neither saw the other, the second is refused.

A note (a `txn` action of the log) says what the table contains: the version of the clicks that its rows are of, or the
result version that it was written for.

>>> ledger = lake.ledger(TOUCHES)   # doctest: +SKIP
>>> ledger.commit(parts.close(), now_ms, notes={"clicks": 12})   # doctest: +SKIP
13
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import numpy as np
import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from clickclock.attribution.crediting.columns.rolling import changes
from clickclock.attribution.errors import RunOvertaken
from clickclock.attribution.lake.changes import changes_since
from clickclock.attribution.lake.files import FILE_BYTES_MAX, File, Storage
from clickclock.attribution.lake.reach import reaching
from clickclock.attribution.lake.tables import RETRACTION, RUN, Table

CELLS_WAITING_MAX: Final = 2**23
"""Rows by columns that become one group of rows: some tens of megabytes."""
GROUP_ROWS_MAX: Final = 2**18
"""A table with few columns is mostly read as a whole."""
GROUPS_WAITING_MAX: Final = 4
"""Of all partitions together; then those with the most rows are written, though fewer than a group."""


class Parts:
    """Files of one table that are being written: at most one open for each partition.

    A thread writes a group of rows while the next one is made. Its error is raised by the next write, or
    closes.
    """

    def __init__(self, table: Table, storage: Storage, name: str, now_ms: int, run: int) -> None:
        """`name` is to be unique; the files' names begin with it. `run` is who writes."""
        self.rows = 0
        self._run = run
        self._table = table
        self._storage = storage
        self._files = storage.filesystem()
        self._name = name
        self._now_ms = now_ms
        self._open: dict[str | None, File] = {}
        self._done: list[AddAction] = []
        self._waiting: dict[str | None, list[pa.Table]] = defaultdict(list)
        self._thread = ThreadPoolExecutor(1, "parts")
        self._writing: Future[None] | None = None
        self._group_rows = min(CELLS_WAITING_MAX // len(table.schema), GROUP_ROWS_MAX)

    def write(self, rows: pa.Table) -> None:
        """Write rows with all the columns that a reader sees, of whatever partitions. Texts may be dictionaries."""
        self.rows += rows.num_rows
        rows = rows.select(self._table.whole.names)
        types = (
            there.type if pa.types.is_dictionary(there.type) else wanted.type
            for there, wanted in zip(rows.schema, self._table.whole, strict=True)
        )
        self._write(rows.cast(pa.schema(zip(rows.column_names, types, strict=True))), is_retraction=False)

    def retract(self, keys: pa.Table) -> None:
        """Say that no row of an earlier run with one of these keys counts, in the partition that stands beside it."""
        columns = [
            keys[field.name] if field.name in keys.column_names else pa.nulls(keys.num_rows, field.type)
            for field in self._table.whole
        ]
        self._write(pa.table(columns, schema=self._table.whole), is_retraction=True)

    def _write(self, whole: pa.Table, *, is_retraction: bool) -> None:
        if self._table.key:
            whole = whole.append_column(RUN, pa.repeat(pa.scalar(self._run, pa.int64()), whole.num_rows))
            whole = whole.append_column(RETRACTION, pa.repeat(is_retraction, whole.num_rows))
        if self._table.partition is None:
            self._keep(None, whole)
        else:
            column = whole[self._table.partition.name].combine_chunks().dictionary_encode()
            whole = whole.drop_columns([self._table.partition.name])
            values = column.dictionary.cast(pa.string()).to_pylist()
            place = column.indices.to_numpy()
            starts = np.flatnonzero(changes(place))
            whose = place[starts].tolist()
            if len(set(whose)) == len(whose):  # those of a partition are together
                ends = [*starts.tolist(), len(place)][1:]
                for number, start, end in zip(whose, starts.tolist(), ends, strict=True):
                    self._keep(values[number], whole.slice(start, end - start))
            else:
                for number in sorted(set(whose)):
                    self._keep(values[number], whole.filter(pa.array(place == number)))
        while sum(map(_rows, self._waiting.values())) > GROUPS_WAITING_MAX * self._group_rows:
            self._flush(max(self._waiting, key=lambda partition: _rows(self._waiting[partition])))

    def settle(self) -> None:
        """End all files and make them durable, beside whatever comes next. Further rows would begin further files."""
        waiting, self._waiting = self._waiting, defaultdict(list)
        self._written()
        self._writing = self._thread.submit(self._end, waiting)

    def close(self) -> list[AddAction]:
        """End all files, make them durable, and say what is to be committed."""
        self.settle()
        self._written()
        self._thread.shutdown()
        return self._done

    def _keep(self, partition: str | None, rows: pa.Table) -> None:
        waiting = self._waiting[partition]
        waiting.append(rows)
        if _rows(waiting) >= self._group_rows:
            self._flush(partition)

    def _flush(self, partition: str | None) -> None:
        waiting = self._waiting.pop(partition)
        if _rows(waiting):
            self._written()
            self._writing = self._thread.submit(self._append, partition, waiting)

    def _written(self) -> None:
        """Wait until what is being written is written; no more than one group is."""
        if self._writing is not None:
            self._writing.result()

    def _append(self, partition: str | None, waiting: list[pa.Table]) -> None:
        with reaching(self._storage.url):
            file = self._open.get(partition) or self._opened(partition, waiting[0].schema)
            rows = pa.concat_tables([some.cast(file.schema) for some in waiting]).unify_dictionaries()
            file.writer.write_table(rows, row_group_size=self._group_rows)
            if file.sink.tell() >= FILE_BYTES_MAX:
                self._finish([self._open.pop(partition)])

    def _end(self, waiting: Mapping[str | None, list[pa.Table]]) -> None:
        for partition, rows in waiting.items():
            if _rows(rows):
                self._append(partition, rows)
        with reaching(self._storage.url):
            self._finish(self._open.values())
            self._open.clear()

    def _finish(self, files: Iterable[File]) -> None:
        done = [file.close(self._now_ms) for file in files]
        self._storage.sync([action.path for action in done])
        self._done += done

    def _opened(self, partition: str | None, schema: pa.Schema) -> File:
        name = f"{self._name}-{len(self._done) + len(self._open)}.zstd.parquet"
        values: dict[str, str | None] = {}
        if self._table.partition is not None:
            values[self._table.partition.name] = partition
            name = f"{self._table.partition.name}={partition}/{name}"
        self._open[partition] = File(self._table, self._files, name, values, schema)
        return self._open[partition]


class Ledger:
    """One derived table. Several that open it at once see each other only when they commit."""

    def __init__(self, table: Table, storage: Storage, delta: DeltaTable) -> None:
        self._table = table
        self._storage = storage
        self._delta = delta

    @property
    def version(self) -> int:
        """The version that this ledger stands on, or that it has made."""
        return self._delta.version()

    def noted(self, name: str) -> int | None:
        """The last note under this name."""
        return self._delta.transaction_version(name)

    def parts(self, name: str, now_ms: int, run: int = 0) -> Parts:
        """What writes files of this table, which nobody sees before they are committed; `run` is the writer's number.

        Runs have numbers so that of a table with a key the later one's rows count.
        """
        return Parts(self._table, self._storage, name, now_ms, run)

    def commit(
        self,
        added: Collection[AddAction],
        now_ms: int,
        *,
        instead_of: Collection[str] | None = (),
        notes: Mapping[str, int],
    ) -> int:
        """Make files seen, instead of all those of the partitions named (None: of the whole table), and note it.

        Returns the new version. Raises `RunOvertaken`. Columns are changed before where they have to be: whoever reads
        the latest version and no certain one then sees an empty table for a moment.
        """
        with reaching(self._storage.url), self._committing():
            self._fit(stays=instead_of is not None)
            removed = self._removals(instead_of, now_ms)
            self._delta.create_write_transaction(
                [*added, *removed],
                "append",
                self._delta.schema(),
                self._table.partition_by,
                commit_properties=CommitProperties(
                    app_transactions=[Transaction(name, number) for name, number in notes.items()],
                    # When it tries again, delta-rs lets files pass that another has merged into others meanwhile: what
                    # was to be replaced would stay.
                    max_commit_retries=0 if removed else None,
                ),
                post_commithook_properties=PostCommitHookProperties(create_checkpoint=True),
            )
        return self.version

    def restore(self, version: int) -> None:
        """Make the table what it was at `version`, if it is another. Raises `VersionGone`."""
        with reaching(self._storage.url, version), self._committing():
            then = DeltaTable(self._storage.url, version, dict(self._storage.options))
            # Files that were only merged since then say the same.
            if then.schema() != self._delta.schema() or changes_since(self._delta, version, self._storage):
                self._delta.restore(version)

    def fitted(self) -> DeltaTable:
        """The table, with further columns where a release before made it. Raises `RunOvertaken`."""
        with self._committing():
            self._fit(stays=True)
        return self._delta

    def _fit(self, *, stays: bool) -> None:
        """Give the table its columns: further ones, which are null in older rows, or else others, and no rows.

        Where what is there `stays`, so do columns of a later release: they are null in the rows that this one adds.
        """
        there, wanted = (
            {field.name: field.type for field in schema.fields}
            for schema in (self._delta.schema(), Schema.from_arrow(self._table.stored))
        )
        if there == wanted:
            return
        is_alike = all(there.get(name, kind) == kind for name, kind in wanted.items())
        if not self._table.key and is_alike and (stays or there.keys() <= wanted.keys()):
            if further := wanted.keys() - there.keys():
                self._delta.alter.add_columns([Field(name, wanted[name]) for name in further])
                self._delta.update_incremental()
            return
        nothing = self._table.stored.empty_table()
        write_deltalake(self._delta, nothing, mode="overwrite", schema_mode="overwrite")
        self._delta.update_incremental()

    def _removals(self, partitions: Collection[str] | None, now_ms: int) -> list[RemoveAction]:
        if partitions is not None and not partitions:
            return []
        live = pa.table(self._delta.get_add_actions(flatten=True)).to_pylist()
        by = self._table.partition_by
        values = [{name: str(file[f"partition.{name}"]) for name in by} for file in live]
        return [
            RemoveAction(file["path"], True, now_ms, file["size_bytes"], {**value})
            for file, value in zip(live, values, strict=True)
            if partitions is None or value[by[0]] in partitions
        ]

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Afterwards the log's entries are on disk."""
        before = self._delta.version()
        try:
            yield
        except CommitFailedError as error:
            said = f"Another run has just changed {self._table.name}; nothing of this one is seen, run it again."
            raise RunOvertaken(said) from error
        self._delta.update_incremental()
        log = [f"_delta_log/{version:020}.json" for version in range(before + 1, self._delta.version() + 1)]
        self._storage.sync(log)


def _rows(tables: Collection[pa.Table]) -> int:
    return sum(table.num_rows for table in tables)

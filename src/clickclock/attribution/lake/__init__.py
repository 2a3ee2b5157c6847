"""The lake: clicks, orders and rejections as Delta tables, in a folder or an object store. This is its door.

Never deletes what was not merged into other files. Any engine that reads Delta, or Parquet, reads it without us.
Invariants: each entry of a journal becomes one row of one table, however often its segment is loaded, by however many
compactors; a reader sees all rows of a commit or none.

>>> lake = Lake("/tmp/lake")   # doctest: +SKIP
>>> lake.table("clicks").file_uris()   # doctest: +SKIP
"""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake.changes import Changes, Stored, changes_since, paths_of, stored_in
from clickclock.attribution.lake.credited import (
    COLUMNS_OF_MODEL,
    CREDITED_FROM,
    GROUP,
    SEPARATOR,
    Reading,
    Worth,
    credited,
    groups,
    numbers,
    whole_orders,
)
from clickclock.attribution.lake.derived import (
    ADS,
    COSTS,
    COUNTS,
    CREDITS,
    DERIVED,
    FITTED,
    FOLDED,
    IDENTITIES,
    KEYS,
    ORDER_MONTH,
    RECEIPTS,
    RESULTS,
    TIES,
    TOUCHES,
    UNCONVERTED,
    UPLOADS,
    VIEW_ADS,
    VIEW_TOUCHES,
    credits_table,
)
from clickclock.attribution.lake.erasing import Erasing, drop_before, drop_begun_before, erasings
from clickclock.attribution.lake.files import Storage
from clickclock.attribution.lake.finding import Found
from clickclock.attribution.lake.identity_closure import seen_together
from clickclock.attribution.lake.ledger import Ledger, Parts
from clickclock.attribution.lake.load import Load, Overtaken
from clickclock.attribution.lake.noted import absent
from clickclock.attribution.lake.published import publish, published
from clickclock.attribution.lake.reach import reaching
from clickclock.attribution.lake.reading import dataset_of, of_clients, with_all
from clickclock.attribution.lake.receipts import give_receipt, kept_receipts
from clickclock.attribution.lake.renewal import is_of_today, renew
from clickclock.attribution.lake.revision import Find, Retracted, Standing, standing
from clickclock.attribution.lake.rows import with_query
from clickclock.attribution.lake.sums import Sums, Words, different, differing, keys_of, mixed_rows
from clickclock.attribution.lake.tables import (
    CLICKS,
    DAY,
    EVENTS,
    ORDERS,
    REJECTIONS,
    RETRACTION,
    RUN,
    TABLES,
    TEXTS,
    VIEWS,
    Table,
)
from clickclock.attribution.lake.upkeep import Tidied, tidy
from clickclock.attribution.lake.writing import Writer, Written
from clickclock.attribution.orders.amendment import KIND, PURCHASE
from clickclock.attribution.reporting.result import Result

__all__ = [
    "ADS",
    "CLICKS",
    "COLUMNS_OF_MODEL",
    "COSTS",
    "COUNTS",
    "CREDITS",
    "DAY",
    "DERIVED",
    "EVENTS",
    "FITTED",
    "FOLDED",
    "GROUP",
    "IDENTITIES",
    "ORDERS",
    "ORDER_MONTH",
    "RECEIPTS",
    "REJECTIONS",
    "RESULTS",
    "RETRACTION",
    "RUN",
    "SEPARATOR",
    "TABLES",
    "TEXTS",
    "TIES",
    "TOUCHES",
    "UNCONVERTED",
    "UPLOADS",
    "VIEWS",
    "VIEW_ADS",
    "VIEW_TOUCHES",
    "Changes",
    "Erasing",
    "Found",
    "Lake",
    "Ledger",
    "Load",
    "Overtaken",
    "Parts",
    "Standing",
    "Stored",
    "Sums",
    "Table",
    "Tidied",
    "Words",
    "Writer",
    "Written",
    "credited",
    "credits_table",
    "different",
    "differing",
    "drop_before",
    "drop_begun_before",
    "erasings",
    "give_receipt",
    "groups",
    "is_of_today",
    "kept_receipts",
    "keys_of",
    "mixed_rows",
    "numbers",
    "of_clients",
    "seen_together",
    "whole_orders",
    "with_query",
]

_LATER: Final = pa.schema([(KIND, pa.string())])
_WHOLE: Final = {**{table.name: table.stored for table in TABLES}, CREDITS: _LATER, FOLDED.name: _LATER}
"""Columns that are null where a release before this one wrote the table."""
_CONFIGURATION: Final[Mapping[str, str | None]] = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 30 days",
}


class Lake:
    """Tables under one URL: a folder's path, or `s3://…`, `gs://…`, `az://…`."""

    def __init__(self, url: str | Path, storage_options: Mapping[str, str] | None = None) -> None:
        """`storage_options` are those of delta-rs (credentials, endpoint); what they leave out is the environment's."""
        given = str(url).removeprefix("file://")
        self.url = given.rstrip("/") if "://" in given else str(Path(given).absolute())
        self.storage_options = dict(storage_options or {})

    def load(self) -> Load:
        """Begin to load segments. Raises `LakeUnreachable`, as all methods do."""
        with reaching(self.url):
            return Load({table.name: (self.ledger(table).fitted(), self._storage(table)) for table in TABLES})

    def writer(self, name: str, now_ms: int) -> Writer:
        """What writes a load's files, in any process; `name` must be of this one alone."""
        return Writer({table.name: self._storage(table) for table in TABLES}, name, now_ms)

    def absent(self, entries: Sequence[bytes]) -> set[bytes]:
        """Those entries of a journal of which no table has the row. Raises `ValueError` for what is no entry."""
        return absent(self.scan, entries)

    def table(self, name: str, version: int | None = None) -> DeltaTable | None:
        """A table as it is now, or was at a version; None if nothing was ever loaded. Raises `VersionGone`."""
        with reaching(self.url, version):
            try:
                return DeltaTable(f"{self.url}/{name}", version, self.storage_options)
            except TableNotFoundError:
                if version is None:
                    return None
                raise

    def version_of(self, name: str) -> int | None:
        """The version at which a table is now; None if nothing was ever loaded."""
        delta = self.table(name)
        return None if delta is None else delta.version()

    def uris(self, name: str, version: int | None = None) -> list[str]:
        """The files of a table as it is now, or was at a version."""
        # Not delta-rs' own: it writes a space in a folder's name as `%20`.
        delta = self.table(name, version)
        return [] if delta is None else [f"{self.url}/{name}/{path}" for path in paths_of(delta)]

    def scan(
        self,
        name: str,
        where: pc.Expression | None = None,
        columns: list[str] | None = None,
        version: int | None = None,
        encoded: Collection[str] = (),
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a table that fit, batch by batch, never all of them in memory. Raises `VersionGone`.

        Columns of texts that are `encoded` come as dictionaries: where values repeat, they cost less.
        """
        delta = self.table(name, version)
        if delta is None:
            return
        with reaching(self.url, version):
            dataset = dataset_of(delta, Storage(f"{self.url}/{name}", self.storage_options), encoded, _WHOLE.get(name))
            key = KEYS.get(name, ())
            yield from standing(dataset, (*delta.metadata().partition_columns, *key) if key else (), where, columns)

    def standing(
        self, table: Table, version: int | None, values: Mapping[str, pa.Array], find: Find
    ) -> Iterator[Standing]:
        """Of partitions, each with some values, the rows of a version that count, of keys that end with one of these.

        Of tables that runs revise; partitions that are not there are left out. Raises `VersionGone`.
        """
        delta = None if version is None else self.table(table.name, version)
        if delta is None:
            return
        key = (*table.partition_by, *table.key)
        with reaching(self.url, version):
            stored = stored_in(delta, table.partition_by)
            dataset = dataset_of(delta, self._storage(table))
            for partition, asked in values.items():
                files = [file for file in stored if file.partition == partition]
                if files:
                    retracted = Retracted.of(dataset, key, pc.field(key[0]) == partition)
                    rows, others = retracted.found(self.addresses(table.name, files), asked, find)
                    yield Standing(partition, rows, sum(file.rows for file in files) - others)

    def credits(
        self, result: Result, where: pc.Expression | Reading | None, columns: Sequence[str], models: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """Rows of credits of a version, with these columns and those of these models, which the version has.

        `where` leaves out whole orders, or reads columns of whole orders itself. Raises `VersionGone`.
        """
        made = [f"{model}_{part}" for model in models for part in COLUMNS_OF_MODEL]
        stored, learnt = self.models(result)
        worth = self._worth(result, [model for model in models if model in learnt])
        read = [*columns, *(f"{model}_{part}" for model in models if model in stored for part in COLUMNS_OF_MODEL)]
        read = list(dict.fromkeys([*read, *(CREDITED_FROM if worth else ())]))
        batches = where(read) if callable(where) else self.scan(CREDITS, where, read, result.credits_version)
        for rows in whole_orders(batches) if worth else (pa.Table.from_batches([batch]) for batch in batches):
            found = credited(rows, {}, worth).select([*columns, *made])
            if KIND in columns:
                found = found.set_column(columns.index(KIND), KIND, pc.fill_null(found[KIND], PURCHASE))
            yield found

    def models(self, result: Result) -> tuple[list[str], list[str]]:
        """The models of a version: those with columns in its table of credits, and those that learn. Both are sorted.

        Raises `VersionGone`.
        """
        delta = self.table(CREDITS, result.credits_version)
        names = [] if delta is None else [field.name for field in delta.schema().fields]
        stored = sorted(name.removesuffix("_credit") for name in names if name.endswith("_credit"))
        return stored, sorted(json.loads(result.settings).get("models", {}).keys() - stored)

    def columns_of_credits(self, result: Result) -> frozenset[str]:
        """The columns that a version's table of credits has; those of today if there is none. Raises `VersionGone`."""
        delta = self.table(CREDITS, result.credits_version)
        if delta is None:
            return frozenset(credits_table(()).stored.names)
        return frozenset(field.name for field in delta.schema().fields)

    def _worth(self, result: Result, models: Sequence[str]) -> dict[str, Worth]:
        """What models of a version have learnt; of months without a touchpoint, nothing."""
        found: dict[str, dict[str, float]] = {model: {} for model in models}
        if found and result.fitted_version is not None:
            where = pc.field("model").isin(pa.array(models, pa.string()))
            for batch in self.scan(FITTED.name, where, version=result.fitted_version):
                for row in batch.to_pylist():
                    found[row["model"]][SEPARATOR.join((*(row[name] for name in GROUP), row["channel"]))] = row["worth"]
        return dict(found)

    def changes(self, name: str, since: int | None) -> Changes:
        """What changed in a table since a version of it; None is the time before it was there. Raises `VersionGone`."""
        delta = self.table(name)
        if delta is None and since is None:
            return Changes(0)
        if delta is None:
            raise VersionGone(f"There is no {name} in the lake at {self.url} any more.")
        with reaching(self.url, since):
            return changes_since(delta, since or 0, Storage(f"{self.url}/{name}", self.storage_options))

    def stored(self, name: str, version: int) -> list[Stored]:
        """The files of a table at a version. Raises `VersionGone`."""
        delta = self.table(name, version)
        with reaching(self.url, version):
            return [] if delta is None else stored_in(delta, delta.metadata().partition_columns)

    def addresses(self, name: str, files: Iterable[Stored]) -> list[str]:
        """Where files of a table are, as `uris` says it."""
        return [f"{self.url}/{name}/{file.path}" for file in files]

    def rows(self, name: str, files: Iterable[Stored], schema: pa.Schema) -> pa.Table:
        """The rows of files that changed, in these columns; the partition's is in no file. Raises `VersionGone`."""
        files = tuple(files)
        if not files:  # and perhaps no folder, either
            return schema.empty_table()
        storage = Storage(f"{self.url}/{name}", self.storage_options)
        with reaching(storage.url, 0):
            filesystem = storage.filesystem()
            found = [pq.read_table(file.path, columns=schema.names, filesystem=filesystem) for file in files]
        return pa.concat_tables([schema.empty_table(), *(with_all(each, schema) for each in found)])

    def ledger(self, table: Table) -> Ledger:
        """A table as it is now, to be written; it is made if it is not there."""
        with reaching(self.url):
            return Ledger(table, self._storage(table), self._opened(table))

    def append(self, table: Table, rows: pa.Table, now_ms: int) -> int:
        """Add rows, with all columns that a reader sees, to a derived table. Returns its version."""
        ledger = self.ledger(table)
        parts = ledger.parts(f"part-{uuid.uuid4().hex}", now_ms)
        parts.write(rows)
        return ledger.commit(parts.close(), now_ms, notes={})

    def results(self) -> list[Result]:
        """Every version that was published, oldest first."""
        return published(self.scan(RESULTS.name))

    def publish(self, result: Result, now_ms: int) -> None:
        """Make a version seen. Raises `RunOvertaken` if another run has published since this one began."""
        publish(self.ledger(RESULTS), self.results(), result, now_ms)

    def renew(self, now_ms: int) -> int:
        """Make clicks of earlier releases what today's makes of them, some each time; how many files were replaced."""
        delta = self.table(CLICKS.name)
        if delta is None:
            return 0
        with reaching(self.url):
            return renew(delta, self._storage(CLICKS), now_ms)

    def tidy(self, *, history_hours: int) -> Tidied:
        """Merge small files, and delete those that no version of the last `history_hours` needs."""
        tidied = Tidied()
        for table in TABLES:
            delta = self.table(table.name)
            if delta is not None:
                with reaching(self.url):
                    tidied += tidy(table, delta, self._storage(table), history_hours)
        return tidied

    def tidy_derived(self, *, history_hours: int) -> Tidied:
        """The same for what runs have made; their replaced files are deleted whether or not any were merged."""
        tidied = Tidied()
        for table in (*DERIVED, credits_table(())):
            delta = self.table(table.name)
            if delta is not None:
                with reaching(self.url):
                    tidied += tidy(table, delta, self._storage(table), history_hours, is_replaced=True)
        return tidied

    def _storage(self, table: Table) -> Storage:
        return Storage(f"{self.url}/{table.name}", self.storage_options)

    def _opened(self, table: Table) -> DeltaTable:
        found = self.table(table.name)
        if found is not None:
            return found
        storage = self._storage(table)
        storage.make()
        try:
            return DeltaTable.create(
                storage.url,
                table.stored,
                mode="error",
                partition_by=table.partition_by,
                # A merge of files must not write more of them into the log than we do: least and greatest values.
                configuration={**_CONFIGURATION, "delta.dataSkippingStatsColumns": ",".join(table.statistics)},
                storage_options=self.storage_options,
            )
        except DeltaError:
            created = self.table(table.name)  # by another, just now
            if created is None:
                raise
            return created

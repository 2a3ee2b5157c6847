"""A table's rows, read by Arrow: which files there are is Delta's word, what is in them Parquet's.

Never trusts a bound that a file does not give. delta-rs makes datasets, too; but to it a column without statistics in
the log is one that no value fits (seen in 1.6), and such a filter finds nothing. Invariant: a filter finds every row
that fits; of a partition that cannot fit, no file is opened; a column as a dictionary says what it says as texts.

>>> dataset_of(DeltaTable("/tmp/lake/clicks"), storage).count_rows()   # doctest: +SKIP
7
"""

from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from clickclock.attribution.lake.files import Storage

_ENCODED: Final = pa.dictionary(pa.int32(), pa.string())


def of_clients(clients: Sequence[str]) -> pc.Expression:
    """That a row is of one of these clients; a row without a client is of none."""
    return pc.field("client_id").isin(pa.array(clients, pa.string()))


def dataset_of(
    delta: DeltaTable, storage: Storage, encoded: Collection[str] = (), wanted: pa.Schema | None = None
) -> ds.FileSystemDataset:
    """A version of a table; its columns of texts that are `encoded` are given as dictionaries.

    Columns of `wanted` that it does not have yet are null.
    """
    schema = pa.schema(delta.schema().to_arrow())
    schema = pa.schema([*schema, *(field for field in wanted or () if field.name not in schema.names)])
    schema = pa.schema([field.with_type(_ENCODED) if field.name in encoded else field for field in schema])
    partition_by = delta.metadata().partition_columns
    form = ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(dictionary_columns=set(encoded).difference(partition_by)),
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True),
    )
    if storage.folder is None:
        filesystem = storage.filesystem()
    else:
        filesystem = SubTreeFileSystem(str(storage.folder), LocalFileSystem())
    fragments = []
    for file in pa.table(delta.get_add_actions(flatten=True)).to_pylist():
        is_here = pc.scalar(True)
        for name in partition_by:
            value = pa.array([file[f"partition.{name}"]]).cast(schema.field(name).type)[0]
            is_here &= pc.field(name) == value if value.is_valid else pc.field(name).is_null()
        fragments.append(form.make_fragment(file["path"], filesystem, is_here))
    return ds.FileSystemDataset(fragments, schema, form, filesystem)


def with_all(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with all columns of `schema`; those that a release before did not write are null."""
    nothing = {name: pa.nulls(rows.num_rows, schema.field(name).type) for name in schema.names}
    return pa.table({name: rows[name] if name in rows.column_names else nothing[name] for name in nothing}).cast(schema)

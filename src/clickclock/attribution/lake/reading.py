"""A table's rows, read by Arrow: which files there are is Delta's word, what is in them Parquet's.

Never trusts a bound that a file does not give. delta-rs makes datasets, too; but to it a column without statistics in
the log is one that no value fits (seen in 1.6), and such a filter finds nothing. Invariant: a filter finds every row
that fits; of a partition that cannot fit, no file is opened.

>>> dataset_of(DeltaTable("/tmp/lake/clicks"), storage).count_rows()   # doctest: +SKIP
7
"""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from clickclock.attribution.lake.files import Storage


def dataset_of(delta: DeltaTable, storage: Storage) -> ds.FileSystemDataset:
    """A version of a table."""
    schema = pa.schema(delta.schema().to_arrow())
    partition_by = delta.metadata().partition_columns
    form = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True))
    if storage.folder is None:
        filesystem = storage.filesystem()
    else:
        filesystem = SubTreeFileSystem(str(storage.folder), LocalFileSystem())
    fragments = []
    for file in pa.table(delta.get_add_actions(flatten=True)).to_pylist():
        is_here = pc.scalar(True)
        for name in partition_by:
            value = pa.scalar(file[f"partition.{name}"], schema.field(name).type)
            is_here &= pc.field(name) == value if value.is_valid else pc.field(name).is_null()
        fragments.append(form.make_fragment(file["path"], filesystem, is_here))
    return ds.FileSystemDataset(fragments, schema, form, filesystem)

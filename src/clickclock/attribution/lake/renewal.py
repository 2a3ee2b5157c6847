"""Clicks that an earlier release took in, made what today's release makes of them: absent values are null.

Never changes what came: a row's query stays byte for byte. Invariants: of a row without an absent value the `revision`
alone changes; a file is replaced in one commit, and stays for whoever reads it; whoever changes it meanwhile makes us
lose, and the next time does it.

>>> renew(CLICKS, delta, storage, now_ms)   # doctest: +SKIP
3
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction
from numpy.typing import NDArray

from clickclock.attribution.clicks.absent import REVISION, is_absent
from clickclock.attribution.clicks.click import Flag
from clickclock.attribution.lake.erasing import commit_instead
from clickclock.attribution.lake.files import ROW_GROUP_ROWS, File, Storage
from clickclock.attribution.lake.finding import BATCH_ROWS
from clickclock.attribution.lake.load import Overtaken
from clickclock.attribution.lake.rows import with_query
from clickclock.attribution.lake.tables import CLICK_PARAMETERS, CLICKS

ROWS_MAX: Final = 2_000_000
"""As many rows are read in one upkeep: some ten seconds."""
_CLEANED: Final = tuple(name for name in CLICK_PARAMETERS if name != "client_id")


_log = logging.getLogger(__name__)


def is_of_today(metadata: pq.FileMetaData) -> bool:
    """Whether all rows of a file have the revision of today, as far as it says so."""
    names = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    if "revision" not in names:
        return False
    place = names.index("revision")
    told = (metadata.row_group(number).column(place).statistics for number in range(metadata.num_row_groups))
    return all(each is not None and each.has_min_max and each.null_count == 0 and each.min >= REVISION for each in told)


def renew(delta: DeltaTable, storage: Storage, now_ms: int) -> int:
    """Write files of clicks anew that have rows of an earlier revision; how many."""
    old = _files_of_before(delta)
    if not old:
        return 0
    added, removed = [], []
    for file in old:
        partition = {name: str(file[f"partition.{name}"]) for name in CLICKS.partition_by}
        added.append(_anew(file["path"], partition, storage, now_ms))
        removed.append(RemoveAction(file["path"], True, now_ms, file["size_bytes"], {**partition}))
    storage.sync([action.path for action in added])
    try:
        commit_instead(delta, storage, CLICKS, [*added, *removed])
    except Overtaken as told:
        _log.info("lake: clicks of an earlier release stay as they are for now: %s", told)
        return 0
    return len(old)


def renewed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows as today's release makes them."""
    is_old = np.less(pc.fill_null(rows["revision"], 0).to_numpy(zero_copy_only=False), REVISION)
    changed = np.flatnonzero(is_old & _have_absent(rows))
    place = rows.schema.names.index("revision")
    revisions = pa.array(np.where(is_old, REVISION, rows["revision"].to_numpy(zero_copy_only=False)), pa.int8())
    told = pa.Table.from_batches([rows.set_column(place, rows.schema.field(place), revisions)])
    if len(changed):
        cleaned = [_cleaned(row) for row in told.take(pa.array(changed)).to_pylist()]
        order = np.arange(rows.num_rows)
        order[changed] = rows.num_rows + np.arange(len(changed))
        told = pa.concat_tables([told, pa.Table.from_pylist(cleaned, rows.schema)]).take(pa.array(order))
    return told.combine_chunks().to_batches()[0]


def _files_of_before(delta: DeltaTable) -> list[dict[str, Any]]:
    """The first of them, by what the log says."""
    found, rows = [], 0
    for file in sorted(pa.table(delta.get_add_actions(flatten=True)).to_pylist(), key=lambda each: each["path"]):
        least, nulls = file.get("min.revision"), file.get("null_count.revision")
        if (least is None or least < REVISION or nulls) and file["num_records"] and (rows < ROWS_MAX):
            found.append(file)
            rows += file["num_records"]
    return found


def _anew(path: str, partition: dict[str, str], storage: Storage, now_ms: int) -> AddAction:
    folder = "".join(path.rpartition("/")[:2])
    files = storage.filesystem()
    file = File(CLICKS, files, f"{folder}part-{uuid.uuid4().hex}.zstd.parquet", {**partition})
    for group in _groups(ds.ParquetFileFormat().make_fragment(path, files)):
        file.writer.write_table(group, row_group_size=ROW_GROUP_ROWS)
    return file.close(now_ms)


def _groups(fragment: ds.ParquetFileFragment) -> Iterator[pa.Table]:
    """A file's rows, renewed, a row group at a time."""
    waiting: list[pa.RecordBatch] = []
    options = {"batch_size": BATCH_ROWS, "batch_readahead": 2, "fragment_readahead": 1}
    for batch in fragment.to_batches(schema=CLICKS.schema, **options):
        waiting += [renewed(batch)] if batch.num_rows else []
        if sum(each.num_rows for each in waiting) >= ROW_GROUP_ROWS:
            yield pa.Table.from_batches(waiting, CLICKS.schema)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting, CLICKS.schema)


def _have_absent(rows: pa.RecordBatch) -> NDArray[np.bool_]:
    """Which rows have an absent value, in a column or without one."""
    found = np.zeros(rows.num_rows, np.bool_)
    for name in _CLEANED:
        values = rows[name].dictionary_encode()
        are_absent = np.array([is_absent(name, value) for value in values.dictionary.to_pylist()], np.bool_)
        if are_absent.any():
            found |= pc.fill_null(pa.array(are_absent).take(values.indices), False).to_numpy(zero_copy_only=False)
    other = rows["other"]
    pairs = zip(other.keys.to_pylist(), other.items.to_pylist(), strict=True)
    are_absent = np.array([value is not None and is_absent(name, value) for name, value in pairs], np.bool_)
    if are_absent.any():
        ends = other.offsets.to_numpy() - other.offsets[0].as_py()
        found[np.searchsorted(ends, np.flatnonzero(are_absent), side="right") - 1] = True
    return found


def _cleaned(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its absent values, and with a query that is as it came."""
    query = with_query(dict(row))["query"]
    columns = {name: row[name] for name in _CLEANED}
    other = dict(row["other"] or ())
    absent = _absent_in(columns), _absent_in(other)
    flags = [*(row["flags"] or ()), *(f"{Flag.PLACEHOLDER}:{name}" for name in chain(*absent))]
    return row | {
        **dict.fromkeys(absent[0]),
        "other": {name: value for name, value in other.items() if name not in absent[1]} or None,
        "flags": list(dict.fromkeys(flags)),
        "shape": None,
        "query": query,
    }


def _absent_in(values: dict[str, str | None]) -> Sequence[str]:
    return [name for name, value in values.items() if value is not None and is_absent(name, value)]

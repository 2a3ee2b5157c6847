"""Which rows of the lake's files say an identifier, or were derived of what said it.

Never asks a table's log which files there are, never trusts a statistic, and never writes: every file in the folder is
read, those of old versions and those that nobody ever committed, too. Invariants: a text that says the identifier in
any encoding is found, in whatever column; rows of other clients never are.

>>> from clickclock.attribution.erasing.erasure import Identifier
>>> sought = Sought("shop", [Identifier(kind="cli_ubid", value="browser-1")])
>>> rows = pa.RecordBatch.from_pydict({"client_id": ["shop", "other"], "cli_ubid": ["browser-1", "browser-1"]})
>>> matching("clicks", rows, sought, Marks()).tolist()
[True, False]
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow.fs import FileInfo, FileSelector, PyFileSystem

from clickclock.attribution.erasing.erasure import Marks, Sought
from clickclock.attribution.lake.derived import CREDITS, IDENTITIES, UPLOADS
from clickclock.attribution.lake.files import Storage
from clickclock.attribution.lake.tables import CLICKS, ORDERS, VIEWS

BATCH_ROWS: Final = 2**17
AT_ONCE: Final = 2
"""Files that are looked into at once: each takes a processor and some hundred megabytes."""
LOG: Final = "_delta_log"
Flags: TypeAlias = NDArray[np.bool_]
"""Of each row, whether."""
Places: TypeAlias = NDArray[np.int64]
"""Rows by their numbers, in order."""
_OF_A_NETWORK: Final = ("gclid", "uclid")
_TEXTS: Final = frozenset({"string", "binary", "large_string", "large_binary"})
_RATHER_FEW: Final = (
    *("client_id", "seller_id", "asvt", "atag", "source", "profile", "shape", "journal", "user_agent", "referer"),
    *("utm_source", "utm_medium", "utm_campaign", "utm_content", "utm_term", "device_brand", "device_model"),
    *("fb_account_id", "fb_campaign_id", "fb_adset_id", "fb_ad_id", "gad_source", "address"),
)
"""Columns in which values repeat: each is looked at once, and not in every row."""


@dataclass
class Found:
    """The finds in one table's files."""

    files: dict[str, Places] = field(default_factory=dict)
    """By path in the table, which rows, from 0; files without any are not named."""
    rows: int = 0
    """How many of them the present version has."""
    unreadable: list[str] = field(default_factory=list)
    """Files that are no Parquet, or were never written to their end."""
    marks: Marks = field(default_factory=Marks)
    """By which rows of other tables are known that were derived of these."""
    looked_at: int = 0
    bytes: int = 0


def find(
    name: str,
    storage: Storage,
    live: Collection[str],
    is_to_go: Callable[[pa.RecordBatch], Flags],
    columns: list[str] | None = None,
) -> Found:
    """Look into every file of the table `name`, whose present version has the files `live`; at all columns or some."""
    found = Found()
    files = storage.filesystem()

    def look(file: FileInfo) -> tuple[Places, Marks] | None:
        try:
            return _find(name, files, file.path, is_to_go, columns)
        except pa.ArrowInvalid:
            return None
        except FileNotFoundError:  # another machine has just deleted it
            return np.empty(0, np.int64), Marks()

    there = files.get_file_info(FileSelector("", recursive=True, allow_not_found=True))
    there = [file for file in there if file.is_file and not _path(file).startswith(LOG)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for file, looked in zip(there, pool.map(look, there), strict=True):
            found.looked_at += 1
            found.bytes += file.size
            if looked is None:
                found.unreadable.append(_path(file))
            elif len(looked[0]):
                found.files[_path(file)] = looked[0]
                found.rows += len(looked[0]) * (_path(file) in live)
                found.marks |= looked[1]
    return found


def _path(file: FileInfo) -> str:
    path: str = file.path.removeprefix("/")
    return path


def _find(
    name: str,
    files: PyFileSystem,
    path: str,
    is_to_go: Callable[[pa.RecordBatch], Flags],
    columns: list[str] | None,
) -> tuple[Places, Marks]:
    places: list[Places] = [np.empty(0, np.int64)]
    more = Marks()
    start = 0
    with files.open_input_file(path) as source:
        metadata = pq.read_metadata(source)
        few = [each for each in metadata.schema.names if each in _RATHER_FEW]
        file = pq.ParquetFile(source, metadata=metadata, read_dictionary=few)
        for batch in file.iter_batches(BATCH_ROWS, columns=columns):
            is_it = is_to_go(batch)
            if is_it.any():
                places.append(np.flatnonzero(is_it) + start)
                more |= _marks(name, batch.filter(pa.array(is_it)))
            start += batch.num_rows
    return np.concatenate(places), more


def matching(name: str, rows: pa.RecordBatch, sought: Sought, marks: Marks) -> Flags:
    """Of each row of the table `name`, whether it is to go."""
    is_it = np.zeros(rows.num_rows, np.bool_)
    for field_name, column in zip(rows.schema.names, rows.columns, strict=True):
        is_it |= _says(column, sought)
        values = sought.values(field_name)
        if values and pa.types.is_string(column.type):
            is_it |= _says_whole(field_name, column, values, sought)
        marked = _marked(name, column.type, field_name, sought, marks)
        if marked:
            is_it |= _flags(pc.is_in(column, pa.array(sorted(marked), column.type)))
    if "client_id" in rows.schema.names and is_it.any():
        client = rows["client_id"]
        is_it &= _flags(pc.equal(client, sought.client_id), otherwise=True)
    return is_it


def _marked(name: str, kind: pa.DataType, field_name: str, sought: Sought, marks: Marks) -> Collection[Any]:
    """What a field may say of what is erased, without saying the identifier."""
    match field_name:
        case "code" | "other" | "person" if pa.types.is_int64(kind):
            return sought.codes | marks.persons
        case "cli_ubid" | "device_id" | "gaid" | "idfa" | "customer_id" if pa.types.is_int64(kind):
            return sought.codes
        # Uploads stay in memory with the click's random id, or they would be sent twice.
        case "id" | "click_id" if pa.types.is_string(kind) and name != UPLOADS.name:
            return marks.clicks
        case "order_id":
            return marks.orders | marks.credited if name == CREDITS else marks.orders
    return ()


def _marks(name: str, rows: pa.RecordBatch) -> Marks:
    """The keys of rows that were derived of these."""
    if name in {CLICKS.name, VIEWS.name}:
        return Marks(clicks=frozenset().union(*(_values(rows, each) for each in ("id", *_OF_A_NETWORK))))
    if name == ORDERS.name:
        return Marks(orders=_values(rows, "order_id"))
    if name == IDENTITIES.name:
        return Marks(persons=_values(rows, "person"))
    if name == CREDITS:
        return Marks(credited=_values(rows, "order_id"))
    return Marks()


def _values(rows: pa.RecordBatch, name: str) -> frozenset[Any]:
    return frozenset(pc.unique(rows[name]).drop_null().to_pylist())


def _says(column: pa.Array, sought: Sought) -> Flags:
    """Of each place of a column, whether any text in it says an identifier."""
    kind = column.type
    if column.null_count == len(column):
        return np.zeros(len(column), np.bool_)
    if pa.types.is_dictionary(kind):
        says = _says(column.dictionary, sought)
        return _flags(pa.array(says).take(column.indices)) if says.any() else np.zeros(len(column), np.bool_)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        inner = (column.keys, column.items) if pa.types.is_map(kind) else (column.values,)
        offsets = np.asarray(column.offsets)
        counts = np.concatenate([[0], np.cumsum(_any([_says(each, sought) for each in inner]))])
        is_in: Flags = counts[offsets[1:]] > counts[offsets[:-1]]
        return is_in
    if pa.types.is_struct(kind):
        return _any([_says(each, sought) for each in column.flatten()])
    says = np.zeros(len(column), np.bool_)
    if str(kind) in _TEXTS:
        for place in np.flatnonzero(_flags(pc.match_substring_regex(column, sought.pattern))).tolist():
            says[place] = sought.is_in(column[place].as_py())
    return says


def _any(flags: Sequence[Flags]) -> Flags:
    is_any: Flags = np.logical_or.reduce(flags)
    return is_any


def _says_whole(name: str, column: pa.Array, values: Collection[str], sought: Sought) -> Flags:
    says = _flags(pc.is_in(pc.ascii_lower(column), pa.array(sorted(values))))
    for place in np.flatnonzero(says).tolist():
        says[place] = sought.is_value(name, column[place].as_py())
    return says


def _flags(column: pa.Array, *, otherwise: bool = False) -> Flags:
    """Truths as numpy has them."""
    return np.array(pc.fill_null(column, otherwise).to_numpy(zero_copy_only=False), np.bool_)

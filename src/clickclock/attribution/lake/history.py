"""What a table's log says of files that are gone: their least and greatest values, and what was asked of the table.

Never changes what a version consists of: a log's entries keep their actions, and what is taken out of them are
statistics and remarks. Invariant: the entry of a file that the present version has is not touched; its statistics are
those of rows that are there.

>>> entry = json.dumps({"add": {"path": "gone", "stats": '{"minValues": {"cli_ubid": "browser-1"}}'}})
>>> reticent(entry, frozenset(), lambda text: "browser-1" in text)
'{"add": {"path": "gone"}}'
"""

import json
import re
from collections.abc import Callable, Collection
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyarrow.fs import FileSelector, PyFileSystem

from clickclock.attribution.lake.changes import paths_of
from clickclock.attribution.lake.files import Storage
from clickclock.attribution.lake.finding import LOG

Says = Callable[[str], bool]
"""Whether a text says what is to be erased."""

_ENTRY: Final = re.compile(r"\d{20}\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint.*\.parquet")
_LAST: Final = "_last_checkpoint"
_BUFFER_BYTES: Final = 2**16


def saying(storage: Storage, delta: DeltaTable, says: Says) -> list[str]:
    """The files of the log that say it, by their paths in the table."""
    live = frozenset(paths_of(delta))
    files = storage.filesystem()
    log = files.get_file_info(FileSelector(LOG, recursive=True, allow_not_found=True))
    paths = [file.path.removeprefix("/") for file in log if file.is_file]
    return [path for path in paths if _says(files, path, live, says)]


def hush(storage: Storage, delta: DeltaTable, paths: Collection[str], says: Says) -> None:
    """Take it out of these files of the log. If we die in between, what is left is found again."""
    live = frozenset(paths_of(delta))
    files = storage.filesystem()
    checkpoints = [path for path in paths if _CHECKPOINT.fullmatch(_name(path))]
    if checkpoints:
        delta.create_checkpoint()
        storage.sync([f"{LOG}/{_LAST}", f"{LOG}/{delta.version():020}.checkpoint.parquet"])
    for path in paths:
        if _ENTRY.fullmatch(_name(path)):
            told = "\n".join(reticent(line, live, says) for line in _read(files, path).splitlines())
            # An object store replaces it at once, and so does delta-rs in a folder. Its files take no Arrow buffers.
            with files.open_output_stream(path) as file, pa.BufferedOutputStream(file, _BUFFER_BYTES) as buffered:
                buffered.write(told.encode())
            storage.sync([path])
        else:  # a checkpoint that a later one has taken the place of, or what a crash has left
            files.delete_file(path)


def reticent(line: str, live: Collection[str], says: Says) -> str:
    """An action of the log without what says it."""
    if not _line_says(line, live, says):
        return line
    action: dict[str, Any] = json.loads(line)
    for kind, told in action.items():
        for remark in ("stats", "tags") if kind in {"add", "remove"} else ("operationParameters", "operationMetrics"):
            told.pop(remark, None)
    return json.dumps(action)


def _says(files: PyFileSystem, path: str, live: Collection[str], says: Says) -> bool:
    name = _name(path)
    try:
        if _CHECKPOINT.fullmatch(name):
            with files.open_input_file(path) as file:
                added = pq.ParquetFile(file).read(["add.path", "add.stats"])["add"].to_pylist()
            return any(add and unquote(add["path"]) not in live and says(add["stats"] or "") for add in added)
        return any(_line_says(line, live, says) for line in _read(files, path).splitlines())
    except FileNotFoundError:
        return False  # the log's own upkeep has just deleted it


def _line_says(line: str, live: Collection[str], says: Says) -> bool:
    if not says(line):
        return False
    try:
        add = json.loads(line).get("add")
    except ValueError:
        return True  # torn, and nothing that counts
    return add is None or unquote(add["path"]) not in live


def _read(files: PyFileSystem, path: str) -> str:
    with files.open_input_file(path) as file:
        told: bytes = file.read()
    return told.decode("utf-8", "replace")


def _name(path: str) -> str:
    return path.rpartition("/")[2]

"""Where bytes stand in a folder, looked for without any of the product's code.

Never trusts a table's log or a statistic: of Parquet, all values of all columns are written out plainly, and the least
and greatest values of the footer, too.

>>> traces(Path("no/such/folder"), b"x")
[]
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pyarrow as pa
import pyarrow.parquet as pq


def traces(folder: Path, *needles: bytes) -> list[str]:
    """The files that have one of them, in any case, percent-encoded or compressed or not."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(needle.lower() in text for needle in needles for text in _texts(path))
    ]


def _texts(path: Path) -> Iterator[bytes]:
    raw = path.read_bytes()
    yield raw.lower()
    if path.suffix == ".parquet":
        raw = _plain(path)
        yield raw.lower()
    yield unquote_to_bytes(unquote_to_bytes(raw)).lower()


def _plain(path: Path) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetFile(path) as file:
        told = [
            (column.statistics.min, column.statistics.max)
            for group in range(file.metadata.num_row_groups)
            for at in range(file.metadata.num_columns)
            if (column := file.metadata.row_group(group).column(at)).statistics is not None
            and column.statistics.has_min_max
        ]
        rows = file.read()
    pq.write_table(rows, sink, compression="none", use_dictionary=False, column_encoding=None)
    return bytes(sink.getvalue()) + repr(told).encode()

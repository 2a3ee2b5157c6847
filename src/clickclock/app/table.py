"""A file with a table, as Arrow: CSV, NDJSON or Parquet, the first two also compressed.

Never judges what is in it. Invariant: the column that is named as text is text, however much it looks like numbers or
dates; another one is of numbers only if each of its values is one.

>>> read_table("paths.csv.gz", text="path").num_columns   # doctest: +SKIP
4
"""

import lzma
import os
import sys
import zlib
from pathlib import Path

import pyarrow as pa
from pyarrow import csv, json, parquet

from clickclock.attribution.files.archive import DELIMITERS, MARKS_OF_UTF_16, Format, format_of
from clickclock.attribution.files.unpacked import refuse_strange, unpacked
from clickclock.foundation.errors import Malformed

STANDARD_INPUT = "-"
BLOCK_BYTES = 64 * 2**20
"""Bytes that are read at a time; a longer row is refused."""


def read_table(file: str, text: str) -> pa.Table:
    """The table of a file, whose ending says what it is, or of CSV on standard input. Raises `Malformed`."""
    form = Format.CSV if file == STANDARD_INPUT else format_of(Path(file))
    texts = {text: pa.string()}
    try:
        match form:
            case Format.CSV:
                content = _content(file)
                delimiter = max(DELIMITERS, key=content.partition(b"\n")[0].decode("utf-8", "replace").count)
                return csv.read_csv(
                    pa.py_buffer(content),
                    read_options=csv.ReadOptions(block_size=BLOCK_BYTES),
                    parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                    convert_options=csv.ConvertOptions(column_types=texts, null_values=[""]),
                )
            case Format.NDJSON:
                options = json.ParseOptions(explicit_schema=pa.schema(texts), newlines_in_values=False)
                blocks = json.ReadOptions(block_size=BLOCK_BYTES)
                return json.read_json(pa.py_buffer(_content(file)), read_options=blocks, parse_options=options)
            case Format.PARQUET:
                refuse_strange(Path(file))
                return parquet.ParquetFile(file).read()
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        said = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error).rstrip(".")
        raise Malformed(f"{file} cannot be read: {said}.") from error
    refuse_strange(Path(file))
    raise Malformed(f"{file}: its ending does not say what it is; let it be .csv, .ndjson or .parquet.")


def _content(file: str) -> bytes:
    if file == STANDARD_INPUT:
        found: bytes = sys.stdin.buffer.read()
    else:
        with unpacked(Path(file)) as stream:
            found = stream.read()
    if found.startswith(MARKS_OF_UTF_16):
        raise Malformed(f"{file} is written in UTF-16; save it as UTF-8.")
    return found

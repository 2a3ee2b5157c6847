"""A file's text, unpacked if it is compressed: with gzip, bzip2, xz or Zstandard, as its content says.

Never trusts a name, and never unpacks what holds several files (of a ZIP archive, the only one is taken). Invariant:
what is no table of text is refused with a sentence that says how to make one of it; half of a compressed file is an
error when its end is reached.

>>> with unpacked(Path("orders.csv.zst")) as file:   # doctest: +SKIP
...     file.readline()
"""

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Final, cast

import pyarrow as pa

from clickclock.foundation.errors import Malformed

ENDINGS: Final = (".gz", ".bz2", ".xz", ".zst", ".zstd")
"""Endings of the names of compressed files."""
PARQUET_MARK: Final = b"PAR1"
_MARK_BYTES: Final = 8


_ZIP: Final = b"PK\x03\x04"
_NAMES_SHOWN_MAX: Final = 5
_ENCRYPTED: Final = 0x1


def _zstandard(path: Path) -> IO[bytes]:
    return cast(IO[bytes], pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))


def _zip(path: Path) -> IO[bytes]:
    """The only file of an archive. Raises `Malformed` if there are several."""
    with zipfile.ZipFile(path) as bundle:
        files = [each for each in bundle.infolist() if not each.is_dir() and not each.filename.startswith("__MACOSX/")]
        if len(files) != 1:
            names = ", ".join(each.filename for each in files[:_NAMES_SHOWN_MAX]) or "none"
            raise Malformed(f"{path} has {len(files)} files, not one ({names}); unpack it and import the tables in it.")
        if files[0].flag_bits & _ENCRYPTED:
            raise Malformed(f"{path} is encrypted; unpack it first.")
        return bundle.open(files[0])  # which keeps the archive open for as long as itself


_OPEN: Final[Mapping[bytes, Callable[[Path], Any]]] = {
    b"\x1f\x8b": gzip.open,
    **{b"BZh%d1AY&" % level: bz2.open for level in range(1, 10)},
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": _zstandard,
    _ZIP: _zip,
}
_WORKBOOK: Final = (
    "a workbook; save its sheet as CSV (UTF-8) and import that, or run `clickclock import`. Give columns of "
    "ids the format Text before, or their digits are lost"
)
_BUNDLE: Final = "an archive of files; unpack it and import the tables in it"
_PACKED: Final = "compressed in a way that is not read here; unpack it, or compress it with gzip or Zstandard"
_BINARY: Final = "a binary file of another kind; write the table as Parquet, CSV or NDJSON"
_OLD_WORKBOOK: Final = b"\xd0\xcf\x11\xe0"
_STRANGE: Final = {
    _OLD_WORKBOOK: _WORKBOOK,
    b"7z\xbc\xaf": _BUNDLE,
    b"Rar!": _BUNDLE,
    b"\x04\x22\x4d\x18": _PACKED,
    b"\x1f\x9d": _PACKED,
    b"ARROW1": _BINARY,
    b"Obj\x01": _BINARY,
    b"SQLite f": _BINARY,
    b"%PDF": _BINARY,
}
_OF_WORKBOOKS: Final = ("xl/", "content.xml", "Index/")
"""Names in the workbooks of Excel, LibreOffice and Numbers, which are ZIP archives."""


def unpacked(path: Path) -> BufferedReader:
    """Open a file for reading its text. Raises `Malformed` for what is none, `OSError`."""
    begun = _begun(path)
    _refuse(path, begun)
    if begun.startswith(PARQUET_MARK):
        raise Malformed(f"{path} is Parquet; give it the ending .parquet, or --format parquet.")
    way = _way(begun)
    if way is None:
        return path.open("rb")
    packed = way(path)
    # Those of the standard library read ahead themselves.
    return BufferedReader(packed) if isinstance(packed, pa.NativeFile) else packed


def is_workbook(path: Path) -> bool:
    """Whether it is a workbook: of Excel, old or new, or of LibreOffice. Raises `OSError`."""
    begun = _begun(path)
    return begun.startswith(_OLD_WORKBOOK) or (begun.startswith(_ZIP) and _is_workbook(path))


def is_packed(path: Path) -> bool:
    """Whether it is compressed. Raises `OSError`."""
    return _way(_begun(path)) is not None


def refuse_strange(path: Path) -> None:
    """Refuse what is no table, and no Parquet file either. Raises `Malformed`, and nothing of a file that is gone."""
    with suppress(OSError):
        _refuse(path, _begun(path))


def _begun(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MARK_BYTES)


def _way(begun: bytes) -> Callable[[Path], Any] | None:
    return next((way for mark, way in _OPEN.items() if begun.startswith(mark)), None)


def _refuse(path: Path, begun: bytes) -> None:
    said = next((what for mark, what in _STRANGE.items() if begun.startswith(mark)), None)
    if begun.startswith(_ZIP) and _is_workbook(path):
        said = _WORKBOOK
    if said is not None:
        raise Malformed(f"{path} is {said}.")


def _is_workbook(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as bundle:
            return any(name.startswith(_OF_WORKBOOKS) for name in bundle.namelist())
    except zipfile.BadZipFile:
        return False

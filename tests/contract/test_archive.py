"""Archives: the same rows are the same clicks in every format, and what cannot be read is named and passed over."""

import bz2
import csv
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickclock.attribution.files import archive as door
from clickclock.attribution.files.archive import Archive, Format, format_of
from clickclock.attribution.importing.historical import Historical, Unusable
from clickclock.foundation.errors import Malformed

NEW_YEAR_MS = 1_767_225_600_000
ROWS = [
    {"client_id": "c", "asvt": 'a|b "c", d', "atag": "line\nbreak", "received_at": str(NEW_YEAR_MS)},
    {"client_id": "ü", "asvt": "", "atag": "a+b&c=d%", "received_at": "2026-01-01T00:00:01Z"},
]
CLICKS = [
    Historical(b"client_id=c&asvt=a|b%20%22c%22,%20d&atag=line%0Abreak", NEW_YEAR_MS),
    Historical(b"client_id=%C3%BC&atag=a%2Bb%26c%3Dd%25", NEW_YEAR_MS + 1000),
]


def write_csv(path: Path, rows: Sequence[dict[str, Any]], delimiter: str = ",", encoding: str = "utf-8") -> Path:
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_ndjson(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def write_parquet(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def packed(path: Path, ending: str, compress: Callable[[bytes], bytes]) -> Path:
    whole = path.with_name(path.name + ending)
    whole.write_bytes(compress(path.read_bytes()))
    return whole


def zipped(path: Path) -> Path:
    return packed(path, ".gz", gzip.compress)


def zstandard(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return bytes(sink.getvalue().to_pybytes())


def bundle(*names: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return sink.getvalue()


WAYS: dict[str, Callable[[Path], Path]] = {
    "csv": lambda folder: write_csv(folder / "a.csv", ROWS),
    "semicolons": lambda folder: write_csv(folder / "a.csv", ROWS, ";"),
    "tabs": lambda folder: write_csv(folder / "a.tsv", ROWS, "\t"),
    "byte order mark": lambda folder: write_csv(folder / "a.CSV", ROWS, encoding="utf-8-sig"),
    "ndjson": lambda folder: write_ndjson(folder / "a.ndjson", ROWS),
    "jsonl": lambda folder: write_ndjson(folder / "a.jsonl", ROWS),
    "parquet": lambda folder: write_parquet(folder / "a.parquet", ROWS),
    "csv.gz": lambda folder: zipped(write_csv(folder / "a.csv", ROWS)),
    "ndjson.gz": lambda folder: zipped(write_ndjson(folder / "a.ndjson", ROWS)),
    "csv.bz2": lambda folder: packed(write_csv(folder / "a.csv", ROWS), ".bz2", bz2.compress),
    "csv.xz": lambda folder: packed(write_csv(folder / "a.csv", ROWS), ".xz", lzma.compress),
    "csv.zst": lambda folder: packed(write_csv(folder / "a.csv", ROWS), ".zst", zstandard),
    "ndjson.zst": lambda folder: packed(write_ndjson(folder / "a.ndjson", ROWS), ".zst", zstandard),
    "compressed, which its name hides": lambda folder: packed(write_csv(folder / "a", ROWS), ".csv", zstandard),
    "plain, and its name says compressed": lambda folder: packed(write_csv(folder / "a.csv", ROWS), ".gz", bytes),
}


def opened(path: Path, form: Format | None = None) -> Archive:
    found = form or format_of(path)
    assert found is not None
    return Archive(path, found)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_rows_are_the_same_clicks_in_every_format(way: str, tmp_path: Path) -> None:
    assert [found for _, found in opened(WAYS[way](tmp_path)).clicks()] == CLICKS


def test_a_table_of_parquet_may_have_types(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    table = pa.table(
        {
            "client_id": pa.array(["c", "d"]).dictionary_encode(),
            "fb_ad_id": pa.array([23851234567890123, None], pa.int64()),
            "event_time": pa.array([at, at], pa.timestamp("ms", "UTC")),
            "received_at": pa.array([1767225600000000001, None], pa.timestamp("ns", "UTC")),
            "query": pa.array([None, b"a=\xff"], pa.binary()),
        }
    )
    pq.write_table(table, tmp_path / "typed.parquet")
    assert list(opened(tmp_path / "typed.parquet").clicks()) == [
        (1, Historical(b"client_id=c&fb_ad_id=23851234567890123&event_time=1767225600000", NEW_YEAR_MS)),
        (2, Historical(b"a=\xff", None)),
    ]


def said(path: Path, form: Format | None = None) -> dict[int, str]:
    return {number: str(found) for number, found in opened(path, form).clicks() if isinstance(found, Unusable)}


def test_a_row_of_csv_that_cannot_be_read_is_named_by_its_line_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'client_id,asvt\nc,"two\nlines"\nc\nc,v,w\n\nc,"a"b\nc,\xff\nc,"never ends\n')
    rows = list(opened(path).clicks())
    assert said(path) == {
        4: "its values are not as many as the header's names: 1, not 2",
        5: "its values are not as many as the header's names: 3, not 2",
        7: "',' expected after '\"'",
        9: "unexpected end of data",
    }
    assert [(number, found.query) for number, found in rows if isinstance(found, Historical)] == [
        (2, b"client_id=c&asvt=two%0Alines"),
        (8, b"client_id=c&asvt=%FF"),
    ]


def test_a_line_of_ndjson_that_is_no_object_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b'{"a": 1}\n\n[1]\n{"a": \n{"a": {"b": 1}}\n{"a": "\xff"}\n')
    assert list(said(path)) == [3, 4, 5, 6]


def test_a_line_that_is_too_long_is_named_and_passed_over(tmp_path: Path) -> None:
    long = b"x" * (2 * door.LINE_BYTES_MAX + 7)
    (tmp_path / "a.csv").write_bytes(b"client_id\n" + long + b"\nc\n" + b'"a\n' + long + b'\nb"\nd\n')
    (tmp_path / "a.log").write_bytes(b"a=" + long + b"\natag=b\n" + b"a=" + long)
    too_long = "it has more than 1,048,576 bytes"
    assert said(tmp_path / "a.csv") == {2: too_long, 4: too_long}
    assert [number for number, found in opened(tmp_path / "a.csv").clicks() if isinstance(found, Historical)] == [3, 7]
    assert said(tmp_path / "a.log", Format.LOG) == {1: too_long, 3: too_long}


def test_a_log_has_lines_of_other_requests(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(b'1.2.3.4 "GET /aclick?a=b HTTP/1.1" 204 0\n\n1.2.3.4 "GET / HTTP/1.1" 200 9\nhello\n')
    found = list(opened(path, Format.LOG).clicks())
    assert found[:2] == [(1, Historical(b"a=b", None, peer="1.2.3.4")), (3, None)]
    assert isinstance(found[2][1], Unusable)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"shop-1,s-9,v1\n", "has neither a column client_id nor query"),
        ("a.csv", b"", "has neither a column client_id nor query"),
        ("a.csv", b"", "there is no header"),
        ("a.csv", b"client_id|a\nc|1\n", "its first line has client_id\\|a"),
        ("a.csv", b"client_id,a,a\nc,1,2\n", "has these columns twice: a"),
        ("a.csv", b"client_id,a,,\nc,1,,\n", "has these columns twice: \\(no name\\)"),
        ("a.csv", b"client_id,a\rc,1\r", "ends its lines with CR alone; save it with LF or CR LF"),
        ("a.csv", b"client_id," + b"a" * 200_000 + b"\nc,1\n", "no header: a name has 200,000 characters"),
        ("a.csv", b"PK\x03\x1b[31m,\xff\n1,2\n", r"its first line has PK  \[31m,  \)"),
        ("a.csv", bundle("[Content_Types].xml", "xl/workbook.xml"), r"is a workbook; save its sheet as CSV \(UTF-8\)"),
        ("a.csv", bundle("mimetype", "content.xml"), "is a workbook; save its sheet as CSV"),
        ("a.parquet", bundle("xl/workbook.xml"), "is a workbook; save its sheet as CSV"),
        ("a.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a workbook; save its sheet as CSV"),
        ("a.csv", bundle("orders.csv", "more.csv"), r"has 2 files, not one \(orders.csv, more.csv\); unpack it"),
        ("a.csv", b"7z\xbc\xaf\x27\x1c", "is an archive of files; unpack it"),
        ("a.ndjson", b"PAR1....", "is Parquet; give it the ending .parquet"),
        ("a.csv", "client_id,a\nc,1\n".encode("utf-16"), "is written in UTF-16; save it as UTF-8"),
        ("a.ndjson", '{"client_id": "c"}\n'.encode("utf-16"), "is written in UTF-16; save it as UTF-8"),
        (
            "a.csv.gz",
            gzip.compress("client_id\nc\n".encode("utf-16"), mtime=0),
            "is written in UTF-16; save it as UTF-8",
        ),
        ("a.parquet", b"no parquet", "cannot be read"),
        *(
            (f"a.csv{ending}", compress(b"client_id\nc\n" * 999)[:-10], "cannot be read")
            for ending, compress in (
                *((".gz", partial(gzip.compress, mtime=0)), (".bz2", bz2.compress), (".xz", lzma.compress)),
                (".zst", zstandard),
            )
        ),
    ],
)
def test_a_file_that_cannot_be_read_at_all_says_why(name: str, content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Malformed, match=sentence):
        list(opened(tmp_path / name).clicks())


def test_a_file_has_to_be_there_and_its_version_tells_a_change(tmp_path: Path) -> None:
    archive = opened(tmp_path / "a.csv")
    with pytest.raises(Malformed, match="No such file"):
        archive.version()
    with pytest.raises(Malformed, match="is no file"):
        opened(tmp_path, Format.CSV).version()
    archive.path.write_bytes(b"client_id\n")
    before = archive.version()
    assert archive.version() == before
    archive.path.write_bytes(b"client_id\nc\n")
    assert archive.version() != before


def test_an_ending_says_the_format() -> None:
    assert format_of(Path("a.Csv.GZ")) is Format.CSV
    assert format_of(Path("a.json")) is None

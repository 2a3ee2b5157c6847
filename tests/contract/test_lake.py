"""The lake keeps its promises in a folder and in an object store."""

import asyncio
import csv
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars
import pyarrow as pa
import pytest
from click import ClickException, Command
from click.testing import CliRunner, Result

from clickclock.attribution.agents.compactor import LOADING, Compactor
from clickclock.attribution.agents.extractor import Format, Wanted, clicks, extract
from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.errors import LakeUnreachable
from clickclock.attribution.files.archive import Archive
from clickclock.attribution.files.archive import Format as ArchiveFormat
from clickclock.attribution.importing.historical import Historical
from clickclock.attribution.journal import segments
from clickclock.attribution.lake import Lake, Overtaken
from clickclock.cli.clicks_export import export, sink
from clickclock.cli.compact import compact
from clickclock.foundation.advance import heard
from clickclock.foundation.clock import SystemClock
from tests.kept import DAY_MS, RECEIVED_MS, ids, ids_in, keep, lines
from tests.object_store import BUCKET

ENTRIES = 200
JOURNAL = "a" * 32
READERS: dict[Format, Callable[[Path], polars.DataFrame]] = {
    Format.NDJSON: polars.read_ndjson,
    Format.CSV: partial(polars.read_csv, infer_schema=False),
    Format.PARQUET: polars.read_parquet,
}


def _load(
    lake: Lake, segment: int, entries: list[bytes], journal: str = JOURNAL, left_out: tuple[int, ...] = ()
) -> int:
    load = lake.load()
    writer = lake.writer(f"part-{journal}-{segment}-{time.monotonic_ns()}", RECEIVED_MS)
    writer.add(journal, segment, [b"".join(entries)], load.lacking(journal, segment))
    written = writer.close()
    load.commit([written], {journal: [segment]}, {journal: left_out})
    return written.rows


async def test_every_entry_of_the_journals_becomes_one_row(lake: Lake, tmp_path: Path) -> None:
    await keep(tmp_path / "journal" / "0", lines(ENTRIES))
    await keep(tmp_path / "journal" / "1", lines(ENTRIES, ENTRIES))
    done = await Compactor(tmp_path / "journal", lake, SystemClock(), processes=1).step()
    assert done.rows == 2 * ENTRIES
    assert ids_in(lake) == ids(2 * ENTRIES)
    orders = [row for batch in lake.scan("orders") for row in batch.to_pylist()]
    assert {(row["amount_minor"], row["items"][0]["price_minor"]) for row in orders} == {(990, 990)}
    rejections = [row for batch in lake.scan("rejections") for row in batch.to_pylist()]
    assert {row["faults"][0]["code"] for row in rejections} == {"missing"}
    assert {row["raw"] for row in rejections} == {b"client_id=c1&raw=\xff\0"}


def test_the_same_segment_loaded_again_brings_nothing(lake: Lake) -> None:
    assert [_load(lake, 7, lines(20)) for _ in range(2)] == [20, 0]
    assert ids_in(lake) == ids(20)


def test_of_two_that_load_one_segment_at_once_the_second_is_refused(lake: Lake) -> None:
    _load(lake, 1, lines(10))
    loads, written = [lake.load() for _ in range(2)], []
    for number, load in enumerate(loads):
        writer = lake.writer(f"part-{number}", RECEIVED_MS)
        writer.add(JOURNAL, 2, [b"".join(lines(10, 10))], load.lacking(JOURNAL, 2))
        written.append(writer.close())
    loads[0].commit(written[:1], {JOURNAL: [2]}, {})
    with pytest.raises(Overtaken):
        loads[1].commit(written[1:], {JOURNAL: [2]}, {})
    assert ids_in(lake) == ids(20)


async def test_many_that_load_different_journals_at_once_all_come_in(lake: Lake) -> None:
    _load(lake, 1, lines(10))
    names = [f"{number:032x}" for number in range(6)]
    loading = [
        asyncio.to_thread(_load, lake, 1, lines(10, 10 * (number + 1)), name) for number, name in enumerate(names)
    ]
    assert await asyncio.gather(*loading) == [10] * 6
    assert ids_in(lake) == ids(70)


def test_a_segment_that_was_passed_over_can_come_in_later_and_once(lake: Lake) -> None:
    _load(lake, 2, lines(10), left_out=(1,))
    assert [_load(lake, 1, lines(10, 10)) for _ in range(2)] == [10, 0]
    assert _load(lake, 2, lines(10)) == 0
    assert ids_in(lake) == ids(20)


def test_a_segment_that_was_taken_away_to_be_mended_can_come_in_later(lake: Lake) -> None:
    for segment, first in ((1, 0), (2, 10), (4, 30)):
        _load(lake, segment, lines(7, first))  # plain clicks and one other: no row for most tables
    assert [_load(lake, 3, lines(10, 20)) for _ in range(2)] == [10, 0]
    assert [_load(lake, segment, lines(7, 10 * (segment - 1))) for segment in (1, 2, 4)] == [0, 0, 0]


def test_many_small_files_are_merged_and_what_was_loaded_stays_noted(lake: Lake) -> None:
    for segment in range(1, 11):
        _load(lake, segment, lines(10, 10 * segment))
    tidied = lake.tidy(history_hours=0)
    assert tidied.merged > tidied.into > 0
    assert tidied.deleted >= tidied.merged
    assert ids_in(lake) == ids(100, 10)
    assert _load(lake, 5, lines(10, 50)) == 0
    clicks_table = lake.table("clicks")
    assert clicks_table is not None
    assert len(clicks_table.file_uris()) == 3  # one a day


def test_files_are_compressed_and_say_their_bounds(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    _load(lake, 1, lines(100))
    table = lake.table("clicks")
    assert table is not None
    assert {pa.parquet.read_metadata(uri).row_group(0).column(0).compression for uri in table.file_uris()} == {"ZSTD"}
    told = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert sum(each["num_records"] for each in told) == sum(batch.num_rows for batch in lake.scan("clicks"))
    assert {each["min.client_id"] for each in told} == {"c0"}


@pytest.mark.parametrize("as_format", Format)
def test_an_export_has_the_queries_byte_for_byte(tmp_path: Path, as_format: Format) -> None:
    lake = Lake(tmp_path / "lake")
    _load(lake, 1, lines(100))
    sent = {entry.split(b"\t")[1].decode(): entry.rstrip(b"\n").split(b"\t")[7] for entry in lines(100)}
    path = tmp_path / f"clicks.{as_format}"
    with path.open("wb") as file:
        assert extract(lake, Wanted(), as_format, file) == 70
    found = READERS[as_format](path).select("id", polars.col("query").cast(polars.String)).rows()
    assert {name: query.encode() for name, query in found} == {name: sent[name] for name, _ in found}
    assert len(found) == 70


def test_csv_for_people_begins_no_cell_with_a_formula_and_comes_back_as_it_was(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    query = b"client_id=c&cli_ubid=@u&seller_id=%2B1%2B1&utm_campaign==1%2B1&utm_term=a;-1"
    entry = encode(EntryKind.CLICK, "0" * 31 + "1", RECEIVED_MS, connection("", b"=agent()", b""), b"observed", query)
    _load(lake, 1, [entry])
    path = tmp_path / "clicks.csv"
    told = {}
    for raw in (True, False):
        with path.open("wb") as file:
            assert extract(lake, Wanted(), Format.CSV, file, raw=raw) == 1
        with path.open(newline="") as file:
            (told[raw],) = csv.DictReader(file)
    names = ("cli_ubid", "seller_id", "utm_campaign", "utm_term", "user_agent")
    assert [told[True][name] for name in names] == ["@u", "+1+1", "=1+1", "a;-1", "=agent()"]
    assert [told[False][name] for name in names] == ["'@u", "'+1+1", "'=1+1", "a;'-1", "'=agent()"]
    ((_, found),) = Archive(path, ArchiveFormat.CSV).clicks()
    assert isinstance(found, Historical)
    assert (found.query, found.received_ms) == (query, RECEIVED_MS)


def test_an_export_is_of_one_client_and_of_a_time(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    _load(lake, 1, lines(100))
    second_day = datetime.fromtimestamp((RECEIVED_MS + DAY_MS - 1000) / 1000, UTC)
    wanted = Wanted("c1", second_day, second_day + timedelta(days=1))
    rows = [row for batch in clicks(lake, wanted) for row in batch]
    numbers = [int(row["id"], 16) for row in rows]
    assert sorted(numbers) == [
        number for number in range(100) if number % 5 == 1 and number % 3 == 1 and number % 10 < 7
    ]


def test_a_lake_without_anything_exports_nothing(tmp_path: Path) -> None:
    assert list(clicks(Lake(tmp_path), Wanted())) == []


def test_an_object_store_that_does_not_answer_is_said_in_one_line() -> None:
    options = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true", "max_retries": "0"}
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    with pytest.raises(LakeUnreachable, match="does not answer") as refused:
        Lake(f"s3://{BUCKET}/lake", {**options, **keys}).load()
    assert "\n" not in str(refused.value)


async def test_a_segment_stays_while_the_object_store_does_not_answer(tmp_path: Path) -> None:
    await keep(tmp_path / "0", lines(20))
    options = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ALLOW_HTTP": "true", "max_retries": "0"}
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    before = segments(tmp_path / "0")
    with pytest.raises(LakeUnreachable):
        await Compactor(tmp_path, Lake(f"s3://{BUCKET}/lake", {**options, **keys}), SystemClock()).step()
    assert segments(tmp_path / "0") == before


async def test_several_processes_write_what_one_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clickclock.attribution.agents.compactor.ALONE_BYTES_MAX", 0)
    for slot in range(3):
        await keep(tmp_path / "journal" / str(slot), lines(ENTRIES, slot * ENTRIES))
    lake = Lake(tmp_path / "lake")
    of = sum(len(segments(slot)) for slot in (tmp_path / "journal").iterdir())
    said: list[tuple[str, int | None, int | None]] = []
    with heard(lambda *each: said.append(each)):
        done = await Compactor(tmp_path / "journal", lake, SystemClock(), processes=2).step()
    assert done.rows == 3 * ENTRIES
    assert ids_in(lake) == ids(3 * ENTRIES)
    # The other process begins with the first segment; which of the others we take depends on who is quicker.
    loading = [each for each in said if each[0] == LOADING]
    assert loading
    assert loading == sorted(loading)
    assert {(count, of) for _, count, of in loading} <= {(count, of) for count in range(1, of)}


async def test_the_command_line_compacts_and_exports(tmp_path: Path) -> None:
    await keep(tmp_path / "journal" / "0", lines(20))
    data = ["--data-dir", str(tmp_path)]

    def run(command: Command, *words: str) -> str:
        result = CliRunner().invoke(command, [*words, *data])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "20 entries" in await asyncio.to_thread(run, compact, "--all")
    exported = await asyncio.to_thread(run, export, "--client-id", "c1")
    rows: list[dict[str, Any]] = [json.loads(each) for each in exported.splitlines()]
    assert [row["client_id"] for row in rows] == ["c1"] * 4
    assert all(row["query"].startswith("client_id=c1&cli_ubid=u") for row in rows)
    parquet = tmp_path / "clicks.parquet"
    await asyncio.to_thread(run, export, "--format", "parquet", "--output", str(parquet))
    assert polars.read_parquet(parquet).height == 14


async def test_an_export_goes_through_a_pipe_or_a_link_and_replaces_neither(tmp_path: Path) -> None:
    await keep(tmp_path / "journal" / "0", lines(20))
    await asyncio.to_thread(CliRunner().invoke, compact, ["--all", "--data-dir", str(tmp_path)])

    async def to(output: Path) -> Result:
        return await asyncio.to_thread(
            CliRunner().invoke, export, ["--data-dir", str(tmp_path), "--output", str(output)]
        )

    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "clicks.ndjson"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDWR)  # a pipe holds all of it
    assert (await to(pipe)).exit_code == 0
    assert len(os.read(reading, 2**16).splitlines()) == 14
    os.close(reading)
    assert pipe.is_fifo()
    link.symlink_to(file)
    assert (await to(link)).exit_code == 0
    assert (link.is_symlink(), len(file.read_bytes().splitlines())) == (True, 14)


def test_an_output_that_is_full_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=full))
        with (
            pytest.raises(ClickException, match="Standard output cannot be written: No space left"),
            sink(None) as file,
        ):
            file.write(b"a line\n")


async def test_the_names_of_a_new_lake_and_of_its_tables_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keep(tmp_path / "journal" / "0", lines(20))
    lake = Lake(str(tmp_path / "lake"))
    synced: set[Path] = set()
    sync = os.fsync

    def note(fd: int) -> None:
        sync(fd)
        synced.add(Path(f"/proc/self/fd/{fd}").readlink())

    monkeypatch.setattr(os, "fsync", note)
    await Compactor(tmp_path / "journal", lake, SystemClock(), processes=1).step()
    assert {tmp_path, tmp_path / "lake"} <= synced

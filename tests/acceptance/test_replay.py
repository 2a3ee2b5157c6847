"""Imports and replays as their user meets them: the real program, killed in the middle, and what the lake has then."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickclock.attribution.clicks.address import pseudonym
from clickclock.attribution.journal import Tail
from clickclock.attribution.lake import CLICKS, ORDERS, REJECTIONS, Lake
from tests.acceptance.collecting import collecting

WITHIN_S = 60.0
T0_MS = 1_790_000_000_000
QUERY = "client_id=c&seller_id=s&asvt=v%7C1&atag=a&cli_ubid=u-{n}&event_time={at}"
ROWS = 40_000


class Folder:
    """One data folder, and commands on it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data_dir = path / "data"
        self.lake = Lake(self.data_dir / "lake")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "clickclock.cli", *arguments, "--data-dir", str(self.data_dir)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": "src"},
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=WITHIN_S)
        return process.returncode, output, errors

    def json(self, *arguments: str) -> dict[str, Any]:
        code, output, errors = self.run(*arguments, "--json")
        assert code == 0, errors
        answer = json.loads(output)
        assert isinstance(answer, dict)
        return answer

    def compact(self) -> None:
        code, _, errors = self.run("compact", "--all")
        assert code == 0, errors

    def rows(self, table: str = CLICKS.name) -> list[dict[str, Any]]:
        return [row for batch in self.lake.scan(table) for row in batch.to_pylist()]

    def write(self, name: str, text: str) -> str:
        path = self.path / name
        path.write_text(text)
        return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def table_of(count: int) -> Iterator[dict[str, str]]:
    for n in range(count):
        at_ms = T0_MS + n * 1000
        fixed = {"client_id": "c", "seller_id": "s", "asvt": "v|1", "atag": "a"}
        yield fixed | {"cli_ubid": f"u-{n}", "event_time": str(at_ms), "received_at": str(at_ms + 250)}


def test_clicks_come_from_every_kind_of_table_and_are_the_same_ones(folder: Folder) -> None:
    rows = list(table_of(3))
    pq.write_table(pa.Table.from_pylist(rows), folder.path / "a.parquet")
    csv = folder.write("a.csv", "\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]))
    ndjson = folder.write("a.txt", "\n".join(map(json.dumps, rows)))
    report = folder.json("attribution", "import-clicks", str(folder.path / "a.parquet"), csv)
    assert (report["rows"], report["kept"]["clicks"], report["known"], report["done"]) == (6, 3, 3, True)
    code, _, errors = folder.run("attribution", "import-clicks", ndjson)
    assert (code, "give --format" in errors) == (2, True)
    assert folder.json("attribution", "import-clicks", ndjson, "--format", "ndjson")["known"] == 3
    folder.compact()
    assert folder.json("attribution", "import-clicks", csv)["known"] == 3
    clicks = folder.rows()
    assert sorted(click["cli_ubid"] for click in clicks) == ["u-0", "u-1", "u-2"]
    assert {click["asvt"] for click in clicks} == {"v|1"}


def test_an_import_that_is_killed_neither_loses_nor_doubles_a_click(folder: Folder) -> None:
    rows = list(table_of(ROWS))
    # Every hundredth is there twice: two clicks, with all the same.
    lines = [",".join(row.values()) for n, row in enumerate(rows) for _ in range(1 + (n % 100 == 0))]
    file = folder.write("a.csv", "\n".join([",".join(rows[0]), *lines]))
    journal = folder.data_dir / "journal" / "import"
    for _ in range(2):
        process = folder.start("attribution", "import-clicks", file)
        tail = Tail(journal, from_end=True)
        deadline = time.monotonic() + WITHIN_S
        while not tail.read_more() and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        tail.close()
        process.kill()
        process.communicate()
        # On a machine that was busy elsewhere it may have come to its end first.
        assert process.returncode in (-signal.SIGKILL, 0)
        folder.compact()
        assert 0 < len(folder.rows()) <= len(lines)
    report = folder.json("attribution", "import-clicks", file)
    assert report["rows"] == len(lines) == report["kept"]["clicks"] + report["known"]
    assert report["known"] > 0
    folder.compact()
    clicks = folder.rows()
    assert len({click["id"] for click in clicks}) == len(clicks) == len(lines)
    assert len({click["cli_ubid"] for click in clicks}) == ROWS
    assert folder.json("attribution", "import-clicks", file)["kept"]["clicks"] == 0


def test_the_clicks_of_an_access_log_are_replayed(folder: Folder) -> None:
    good = QUERY.format(n=1, at=T0_MS)
    log = folder.write(
        "access.log",
        f'1.2.3.4 - - [21/Sep/2026:14:13:21 +0000] "GET /aclick?{good} HTTP/1.1" 502 0 "-" "phone"\n'
        '1.2.3.4 - - [21/Sep/2026:14:13:21 +0000] "GET /healthz HTTP/1.1" 200 0 "-" "probe"\n'
        f"https://clicks.example/aclick?{QUERY.format(n=2, at='soon')}\n",
    )
    code, output, errors = folder.run("replay", log)
    assert (code, errors) == (0, "")
    assert "3 rows looked at: 1 accepted, 1 refused." in output
    assert "1 row of other requests passed over." in output
    assert "badEventTime" in output
    assert "Kept 1 click, 1 rejection; 0 had been kept before." in output
    assert "clickclock compact --all" in output
    assert folder.json("attribution", "replay", log)["known"] == 2
    folder.compact()
    (click,) = folder.rows()
    assert (click["cli_ubid"], click["user_agent"]) == ("u-1", "phone")
    salt = bytes.fromhex((folder.data_dir / "address-salt").read_text())
    assert click["address"] == pseudonym("1.2.3.4", salt)
    assert click["received_at"].timestamp() * 1000 == T0_MS + 1000


def test_a_row_that_cannot_be_read_stops_everything_unless_it_may_be_left_out(folder: Folder) -> None:
    log = folder.write("queries.txt", f"{QUERY.format(n=1, at=T0_MS)}\nhello\n")
    code, output, errors = folder.run("replay", log)
    assert code == 1
    assert "it is no line of a log that is known" in output
    assert "1 row cannot be read, and nothing was kept" in errors
    assert not (folder.data_dir / "journal").exists()
    code, output, errors = folder.run("replay", log, "--dry-run")
    assert (code, "this is a dry run" in output) == (1, True)
    assert "1 row cannot be read, and nothing was kept" in errors
    assert folder.run("replay", log, "--dry-run", "--skip-unreadable")[0] == 0
    assert folder.json("replay", log, "--skip-unreadable")["kept"]["clicks"] == 1


def test_what_was_refused_is_replayed_once_the_accounts_allow_it(folder: Folder) -> None:
    settings = folder.path / "strict.toml"
    settings.write_text('[[accounts]]\nclient_id = "other"\n')
    folder.data_dir.mkdir()
    order = {"order_id": "7", "cli_ubid": "u", "event_time": T0_MS, "amount": "9.99", "currency": "EUR"}
    with collecting(folder.data_dir, "--config", str(settings)) as collector:
        url = collector.url
        assert httpx.get(f"{url}/aclick?{QUERY.format(n=1, at=T0_MS)}").status_code == 403
        assert httpx.get(f"{url}/aclick?client_id=c&seller_id=s&cli_ubid=u-2").status_code == 403
        assert httpx.post(f"{url}/orders", json={"client_id": "c", **order}).json()["rejected"] == 1
    folder.compact()
    rejected = {row["id"]: row["received_at"] for row in folder.rows(REJECTIONS.name)}
    assert len(rejected) == 3
    settings.write_text('[[accounts]]\nclient_id = "c"\n')
    chosen = ("replay", "rejections", "--config", str(settings), "--client-id", "c")
    assert folder.json(*chosen, "--until", "2020-01-01")["rows"] == 0
    assert folder.json(*chosen, "--dry-run")["kept"] == {
        "clicks": 1,
        "views": 0,
        "orders": 1,
        "events": 0,
        "rejections": 0,
    }
    report = folder.json(*chosen)
    assert (report["accepted"], report["refused"], report["known"]) == (2, 1, 0)
    folder.compact()
    assert folder.json(*chosen)["known"] == 2
    (click,), (placed,) = folder.rows(), folder.rows(ORDERS.name)
    assert {row["id"]: row["received_at"] for row in (click, placed)}.items() <= rejected.items()
    assert (placed["order_id"], placed["amount_minor"]) == ("7", 999)


def test_a_command_that_mixes_files_and_rejections_is_wrongly_called(folder: Folder) -> None:
    assert folder.run("replay", "rejections", "a.log")[0] == 2
    assert folder.run("replay", "a.log", "--client-id", "c")[0] == 2
    code, _, errors = folder.run("replay", "no-such.log")
    assert (code, "No such file" in errors) == (1, True)

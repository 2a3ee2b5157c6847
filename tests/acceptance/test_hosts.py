"""Collectors on two hosts, one lake in an object store: the real programs, each host with a data folder of its own."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.lake import Lake
from clickclock.foundation.clock import SystemClock
from tests.acceptance.clicking import call, click_path, collecting
from tests.credited import DAY_MS, HOUR_MS, START_MS, click, load, order, run
from tests.kept import ids_in
from tests.object_store import BUCKET


class Host:
    """A data folder, and the commands that are run there."""

    def __init__(self, folder: Path, lake: Lake) -> None:
        self.data = folder / "data"
        self.data.mkdir(parents=True)
        self._settings = folder / "clickclock.toml"
        options = "\n".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in lake.storage_options.items())
        self._settings.write_text(f'lake_url = "{lake.url}"\n[lake_options]\n{options}\n', encoding="utf-8")

    def start(self, *words: str) -> subprocess.Popen[str]:
        settings = ("--config", str(self._settings), "--data-dir", str(self.data))
        command = [sys.executable, "-m", "clickclock.cli", *words, *settings]
        environment = {**os.environ, "PYTHONPATH": "src"}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str) -> str:
        """What a command prints."""
        with self.start(*words) as process:
            told, wrong = process.communicate()
        assert process.returncode == 0, wrong
        return told

    def collect(self, *requests: tuple[str, str | None]) -> set[int]:
        """Send these paths and bodies to a collector; the answers."""
        with collecting(self.data) as collector:
            return {call(collector.url, path, body=body).status for path, body in requests}


def _click(person: str, number: int, days_ago: int = 0) -> tuple[str, None]:
    placed_ms = str(time.time_ns() // 1_000_000 - days_ago * DAY_MS - 60_000)
    return click_path(cli_ubid=person, gclid=f"{person}-{number}", utm_source="google", event_time=placed_ms), None


def _order(person: str, days_ago: int = 0) -> tuple[str, str]:
    order = {"client_id": "shop-1", "order_id": f"of-{person}", "cli_ubid": person, "amount": "9.90", "currency": "EUR"}
    return "/orders", json.dumps({**order, "event_time": time.time_ns() // 1_000_000 - days_ago * DAY_MS})


@pytest.fixture
def lake(object_store_options: dict[str, str], tmp_path: Path) -> Lake:
    """An empty lake in an object store."""
    return Lake(f"s3://{BUCKET}/{tmp_path.name}", object_store_options)


def test_who_clicks_on_one_host_and_buys_on_another_is_credited_by_one_run(lake: Lake, tmp_path: Path) -> None:
    west, east = Host(tmp_path / "west", lake), Host(tmp_path / "east", lake)
    assert west.collect(*(_click("anna", number) for number in range(9)), _order("bert")) == {202, 204}
    assert east.collect(*(_click("bert", number) for number in range(9)), _order("anna")) == {202, 204}
    with west.start("compact", "--all") as one, east.start("compact", "--all") as other:
        said = [one.communicate(), other.communicate()]
    assert [one.returncode, other.returncode] == [0, 0], said
    for host in (west, east):  # of two that make one table at the same moment, one comes again
        asyncio.run(Compactor(host.data / "journal", lake, SystemClock(), processes=1).step())
    found = ids_in(lake)
    assert (len(found), set(found.values())) == (20, {1})
    ran = json.loads(east.run("attribution", "run", "--json"))["result"]
    assert (ran["orders"], ran["credited"]) == (2, 2)


def test_several_processes_write_one_commit_and_what_is_credited_is_told_to_networks_once(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path / "host", lake)
    for person in ("anna", "bert", "cleo"):  # each collector leaves a journal of its own
        host.collect(*(_click(person, number, 2) for number in range(20)), _order(person, 2))
    monkeypatch.setattr("clickclock.attribution.agents.compactor.ALONE_BYTES_MAX", 0)
    done = asyncio.run(Compactor(host.data / "journal", lake, SystemClock(), processes=3).step())
    assert done.is_clean
    found = ids_in(lake)
    assert (len(found), set(found.values())) == (63, {1})
    host.run("attribution", "run")
    exported = json.loads(host.run("attribution", "export", "--network", "google", "--json"))
    assert len(exported["files"]) == 1, exported
    (told,) = exported["files"]
    assert told["conversion"] == 3
    assert "anna-19,Order," in Path(told["file"]).read_text()
    assert json.loads(host.run("attribution", "export", "--network", "google", "--json"))["files"] == []


def test_what_is_asked_on_one_host_is_of_all(lake: Lake, tmp_path: Path) -> None:
    load(lake, *(click(number, START_MS + number, cli_ubid="anna") for number in range(9)), click(9, START_MS))
    load(lake, order(10, "bought", START_MS + HOUR_MS, cli_ubid="anna"))
    run(lake, tmp_path)
    host = Host(tmp_path / "host", lake)
    assert "bought" in host.run("attribution", "order", "bought", "--client-id", "shop")
    host.run("attribution", "erase", "--client-id", "shop", "--cli-ubid", "anna")
    assert ids_in(lake).total() == 1

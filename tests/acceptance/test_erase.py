"""`clickclock attribution erase` beside a running service: no byte of the identifier is left in the data folder."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from clickclock.client import Client
from tests.acceptance.clicking import call, click_path, sighted, until
from tests.acceptance.service import running
from tests.acceptance.test_serve_clicks import COMPACTION, SCHEDULE, own_job, until_finished, with_clicks
from tests.ports import free_port
from tests.traces import traces

VICTIM = "257-0815|abc-4711"
ENCODED = "257-0815%7Cabc-4711"
DEVICE = "38400000-8cf0-11bd-b23e-10b96e40000d"
OTHERS = 5


def erase(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clickclock.cli", "attribution", *arguments, "--data-dir", os.fspath(data_dir)],
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def order(order_id: str, cli_ubid: str) -> str:
    told = {"client_id": "shop-1", "order_id": order_id, "cli_ubid": cli_ubid, "amount": "9.90", "currency": "EUR"}
    return json.dumps({**told, "event_time": time.time_ns() // 1_000_000})


def send(url: str, identifier: str, encoded: str, order_id: str, *, device: str) -> list[int]:
    """Clicks, a refused click, an order, and a view, of somebody."""
    sent = "&".join((f"cli_ubid={encoded}", f"device_id={device}", "client_id=shop-1"))
    return [
        call(url, click_path(cli_ubid=encoded)).status,
        call(url, click_path(cli_ubid=encoded, device_id=device, gclid=f"gclid-of-{order_id}")).status,
        call(
            url, click_path(cli_ubid=f"somebody-{order_id}", utm_content=f"for%2520{encoded.replace('%', '%25')}")
        ).status,
        call(url, click_path(atag=None, cli_ubid=None, ref=f"https%3A%2F%2Fa.example%2F{encoded}")).status,
        call(url, "/orders", body=order(order_id, identifier)).status,
        call(url, f"/appsflyer?event_name=viewproduct&sku_id=7&{sent}").status,
    ]


def test_nothing_of_an_identifier_is_left_and_everybody_else_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLICKCLOCK_SEGMENT_AGE_S", "1")
    port, data_dir = free_port(), tmp_path / "data"
    with running(data_dir, *with_clicks(port)) as service, Client(service.url) as client:
        own_job(client)
        client.update_schedule(SCHEDULE, {"paused": True})
        url = f"http://127.0.0.1:{port}"
        answers = send(url, VICTIM, ENCODED, "order-of-4711", device=DEVICE)
        assert answers == [204, 204, 204, 400, 202, 204], "all of it is kept"
        for number in range(OTHERS):
            send(url, f"other|{number}", f"other%7C{number}", f"order-of-{number}", device=f"device-of-{number}")
        until(lambda: len(sighted(data_dir)) == 6 * (OTHERS + 1), "all of it is kept")
        trigger = client.trigger_job(*COMPACTION)["trigger"]
        until_finished(client, trigger["triggerId"])
        send(url, VICTIM, ENCODED, "order-of-4711", device=DEVICE)  # in a segment that is still being written
        assert traces(data_dir, VICTIM.encode(), ENCODED.encode())

        done = erase(data_dir, "erase", "--client-id", "shop-1", "--cli-ubid", VICTIM, "--with-person", "--json")
        assert done.returncode == 0, done.stderr
        (receipt,) = json.loads(done.stdout)["receipts"]
        needles = (VICTIM, ENCODED, DEVICE, "order-of-4711")
        assert traces(data_dir, *(each.encode() for each in needles)) == []
        assert {place: rows for place, rows in receipt["rows"].items() if rows} == {
            "clicks": 6,
            "orders": 2,
            "rejections": 2,
            "events": 2,
        }
        assert len(receipt["identifiers"]) == 2
        assert VICTIM not in done.stdout + done.stderr
        assert (data_dir / "receipt-secret").stat().st_mode & 0o077 == 0

        until_finished(client, client.trigger_job(*COMPACTION)["trigger"]["triggerId"])
        assert len(lake_rows(data_dir, "clicks")) == 3 * OTHERS
        assert len(lake_rows(data_dir, "orders")) == OTHERS
        assert call(url, click_path(cli_ubid=ENCODED)).status == 204, "who comes again is new"
        assert service.stop() == 0


def lake_rows(data_dir: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = DeltaTable(data_dir / "lake" / table).to_pyarrow_table().to_pylist()
    return rows


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cli-ubid", "u-1"), "Give --client-id"),
        (("--client-id", "c", "--cli-ubid", "u-1", "--gaid", "x"), "Give one identifier"),
        (("--client-id", "c", "--cli-ubid", " "), "is empty"),
        (("--client-id", "c", "--cli-ubid", VICTIM, "--reason", f"letter of {ENCODED}"), "The reason contains"),
    ],
)
def test_what_was_asked_wrongly_is_refused(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    refused = erase(tmp_path, "erase", *arguments)
    assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr


def test_without_anything_to_go_on_with_or_too_old_it_says_so(tmp_path: Path) -> None:
    assert "no erasure to continue" in erase(tmp_path, "erase").stdout
    assert erase(tmp_path, "retain").stdout == "Nothing is old enough to delete.\n"
    assert json.loads(erase(tmp_path, "retain", "--json").stdout) == {"receipt": None}

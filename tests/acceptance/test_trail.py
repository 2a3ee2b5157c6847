"""What commands of this machine do with raw data is in the audit trail before it is done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clickclock.client import Client
from tests.acceptance.clicking import call, click_path, sighted, until
from tests.acceptance.service import running
from tests.acceptance.test_serve_clicks import with_clicks
from tests.ports import free_port

VISITOR = "visitor-4711"


def clickclock(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clickclock.cli", *arguments, "--data-dir", os.fspath(data_dir)],
        env={**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_SEGMENT_AGE_S": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_exports_and_erasures_are_in_the_trail_before_they_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLICKCLOCK_SEGMENT_AGE_S", "1")
    port, data_dir = free_port(), tmp_path / "data"
    with running(data_dir, *with_clicks(port)) as service, Client(service.url) as client:
        assert call(f"http://127.0.0.1:{port}", click_path(cli_ubid=VISITOR)).status == 204
        until(lambda: len(sighted(data_dir)) == 1, "the click is kept")
        until(lambda: "nothing to load" not in clickclock(data_dir, "compact", "--all").stdout, "the click is loaded")
        assert VISITOR in clickclock(data_dir, "clicks", "export", "--client-id", "shop-1").stdout
        assert clickclock(data_dir, "attribution", "export").returncode == 0
        erased = clickclock(data_dir, "attribution", "erase", "--client-id", "shop-1", "--cli-ubid", VISITOR)
        assert erased.returncode == 0, erased.stderr
        records = [each for kind in ("export", "erasure") for each in client.list_audit(resource=kind)["records"]]
        assert [(each["operation"], each["resourceId"], each["proof"], each["outcome"]) for each in records] == [
            ("clickclock attribution export", "conversions", "host", "done"),
            ("clickclock clicks export", "clicks/shop-1", "host", "done"),
            ("clickclock attribution erase", "shop-1", "host", "done"),
        ]
        assert VISITOR not in str(client.list_audit()), "the trail does not keep what was erased"
        assert len({each["chain"] for each in records}) == 1
        verified = subprocess.run(
            [sys.executable, "-m", "clickclock.cli", "--url", service.url, "audit", "verify"],
            env={**os.environ, "PYTHONPATH": "src"},
            check=False,
        )
        assert verified.returncode == 0


def test_nothing_leaves_where_it_cannot_be_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLICKCLOCK_SEGMENT_AGE_S", "1")
    port, data_dir = free_port(), tmp_path / "data"
    with running(data_dir, *with_clicks(port)):
        assert call(f"http://127.0.0.1:{port}", click_path(cli_ubid=VISITOR)).status == 204
        until(lambda: len(sighted(data_dir)) == 1, "the click is kept")
    assert clickclock(data_dir, "compact", "--all").returncode == 0
    (data_dir / "clickclock.db").write_bytes(b"no database" * 1000)
    (data_dir / "clickclock.db-wal").unlink(missing_ok=True)
    refused = clickclock(data_dir, "clicks", "export")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Traceback" not in refused.stderr
    (data_dir / "clickclock.db").unlink()
    (data_dir / "installation").unlink()
    assert VISITOR in clickclock(data_dir, "clicks", "export").stdout, "a host without a scheduler has no trail"

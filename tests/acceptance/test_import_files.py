"""Real exports from outside: the real program, killed in the middle, and asked without a terminal."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from clickclock.attribution.lake import ORDERS, Lake
from tests.exports import EXPORTS, NAMES, csv_of

WITHIN_S = 120.0
ORDERS_OF_SHOP = 30_000


def command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "clickclock.cli", *arguments, "--data-dir", str(folder / "data")]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": "src", "CLICKCLOCK_CLICK_PROFILE": "open"}
    return subprocess.run(
        command(folder, *arguments), capture_output=True, text=True, check=False, timeout=WITHIN_S, env=environment
    )


def kept(folder: Path, *arguments: str) -> dict[str, Any]:
    done = run(folder, "import", *arguments, "--yes", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def big_shop(folder: Path) -> str:
    header = ("Name", "Financial Status", "Created at", "Total", "Currency", "Email", "Lineitem name")
    rows = [
        dict(zip(header, (f"#{n}", "paid", "2026-11-01 10:00:00 +0100", f"{n}.90", "EUR", f"{n}@b", "x"), strict=True))
        for n in range(1, ORDERS_OF_SHOP + 1)
    ]
    path = folder / "orders_export.csv"
    path.write_text(csv_of(header, rows))
    return str(path)


def test_killed_in_the_middle_nothing_is_lost_and_nothing_is_there_twice(tmp_path: Path) -> None:
    path = big_shop(tmp_path)
    journal = tmp_path / "data" / "journal" / "import"
    arguments = command(tmp_path, "import", path, "--client-id", "shop-1", "--yes")
    with subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": "src"}
    ) as process:
        while process.poll() is None and not any(each.stat().st_size for each in journal.glob("*.live")):
            pass  # the first orders are being kept: a moment that only the files tell
        process.send_signal(signal.SIGKILL)
    answer = kept(tmp_path, path, "--client-id", "shop-1")
    assert answer["orders"]["kept"]["orders"] + answer["orders"]["known"] == ORDERS_OF_SHOP
    assert kept(tmp_path, path, "--client-id", "shop-1")["orders"]["known"] == ORDERS_OF_SHOP
    assert run(tmp_path, "compact", "--all").returncode == 0
    found = [row for batch in Lake(tmp_path / "data" / "lake").scan(ORDERS.name) for row in batch.to_pylist()]
    assert len(found) == len({row["order_id"] for row in found}) == ORDERS_OF_SHOP
    assert {path.name for path in (tmp_path / "data").iterdir()} <= {
        "journal",
        "lake",
        "mappings",
        "address-salt",
        "lake-lock",
    }, "nothing is left over"


def test_a_folder_of_exports_becomes_orders_costs_and_clicks(tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    for preset in ("shopify", "meta-ads", "ga4"):
        (folder / NAMES[preset]).write_bytes(EXPORTS[preset]())
    refused = run(tmp_path, "import", str(folder), "--client-id", "shop-1")
    assert refused.returncode == 1
    assert "nobody can be asked here" in refused.stderr
    assert not (tmp_path / "data").exists()
    answer = kept(tmp_path, str(folder), "--client-id", "shop-1")
    assert answer["orders"]["kept"]["orders"] == 3
    assert answer["clicks"]["kept"]["clicks"] == 1
    assert [each["amount"] for each in answer["costs"]["sums"]] == ["13.30"]

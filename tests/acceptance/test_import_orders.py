"""Orders and costs from files, and uploads, as their user meets them: the real program, on one data folder."""

import csv
import json
import os
import re
import subprocess
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clickclock.attribution.lake import COSTS, ORDERS, REJECTIONS, Lake
from tests.published import Order, add_clicks, publish

WITHIN_S = 60.0
T0_MS = 1_790_000_000_000
HEADER = "client_id,order_id,cli_ubid,event_time,amount,currency,sku_id,product_prices"
GOOD = f"c,A-1,u,{T0_MS},12.30,EUR,a|b,10|2.30"
BAD = f'c,A-2,,{T0_MS},"1,234.50",EUR,,'


class Folder:
    """One data folder, and commands on it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lake = Lake(path / "data" / "lake")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        process = subprocess.run(
            [sys.executable, "-m", "clickclock.cli", *arguments, "--data-dir", str(self.path / "data")],
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN_S,
            env={**os.environ, "PYTHONPATH": "src"},
        )
        return process.returncode, process.stdout, process.stderr

    def json(self, *arguments: str) -> dict[str, Any]:
        code, output, errors = self.run(*arguments, "--json")
        assert code == 0, errors
        answer = json.loads(output)
        assert isinstance(answer, dict)
        return answer

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [row for batch in self.lake.scan(table) for row in batch.to_pylist()]

    def write(self, name: str, *lines: str) -> str:
        path = self.path / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)


def cells(path: str) -> list[list[str]]:
    return list(csv.reader(Path(path).read_text().splitlines()))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_orders_of_a_table_are_imported_and_bad_ones_named(folder: Folder) -> None:
    file = folder.write("orders.csv", HEADER, GOOD, BAD)
    code, output, errors = folder.run("attribution", "import-orders", file)
    assert (code, errors) == (0, "")
    assert "2 rows looked at: 1 accepted, 1 refused." in output
    assert re.search(rf"^{re.escape(file)} +3 ", output, re.MULTILINE)
    assert (
        "cli_ubid: None of cli_ubid, device_id and customer_id is there; give at least one. amount: `1,234.50` is no"
        in output
    )
    assert "Kept 1 order, 1 rejection; 0 had been kept before." in output
    report = folder.json("attribution", "import-orders", file)
    assert (report["known"], report["kept"]["orders"], [row["number"] for row in report["refusedRows"]]) == (2, 0, [3])
    assert folder.run("compact", "--all")[0] == 0
    (order,), (rejection,) = folder.rows(ORDERS.name), folder.rows(REJECTIONS.name)
    assert (order["order_id"], order["amount_minor"], len(order["items"])) == ("A-1", 1230, 2)
    assert [fault["field"] for fault in rejection["faults"]] == ["cli_ubid", "amount"]


def test_an_import_of_half_a_file_says_so_and_keeps_nothing(folder: Folder) -> None:
    path = Path(folder.write("orders.ndjson", json.dumps({"order_id": "7"})))
    path.write_bytes(path.read_bytes()[:-5])
    code, output, errors = folder.run("attribution", "import-orders", str(path))
    assert (code, "This is not JSON" in output) == (1, True)
    assert "1 row cannot be read, and nothing was kept" in errors
    (folder.path / "orders.parquet").write_bytes(b"PAR1 and no end")
    code, _, errors = folder.run("attribution", "import-orders", str(folder.path / "orders.parquet"))
    assert (code, "cannot be read" in errors) == (1, True)


def test_costs_are_imported_as_a_whole_or_not_at_all(folder: Folder) -> None:
    header = "client_id,date,channel,campaign,amount,currency"
    bad = folder.write("bad.csv", header, "c,2026-09-01,google,x,10.00,EUR", "c,2026-09-31,google,x,NaN,EUR")
    code, output, errors = folder.run("attribution", "import-costs", bad)
    assert (code, "date: Give a day such as 2026-11-20. amount: This is required, and `NaN`" in output) == (1, True)
    assert "1 row cannot be imported, so nothing was" in errors
    good = folder.write("good.csv", header, "c,2026-09-01,google,x,10.00,EUR", "c,2026-09-02,google,x,2.50,EUR")
    assert folder.json("attribution", "import-costs", good, "--dry-run")["done"] is False
    assert folder.lake.table(COSTS.name) is None
    (total,) = folder.json("attribution", "import-costs", good)["sums"]
    assert (total["from"], total["until"], total["amount"]) == ("2026-09-01", "2026-09-02", "12.50")
    assert sorted(row["amount_minor"] for row in folder.rows(COSTS.name)) == [250, 1000]


def test_an_import_without_a_good_row_is_not_done(folder: Folder) -> None:
    of_orders = folder.write("empty.csv", HEADER)
    of_costs = folder.write("costs.csv", "client_id,date,channel,amount,currency")
    for what, file in (("orders", of_orders), ("costs", of_costs)):
        code, output, errors = folder.run("attribution", f"import-{what}", file)
        assert (code, f"{file} has no row." in output) == (1, True)
        assert f"there is no row in {file}; look at where the table comes from." in errors
    bad = folder.write("bad.csv", HEADER, BAD)
    for more in ((), ("--dry-run",)):
        code, output, errors = folder.run("attribution", "import-orders", bad, *more)
        assert (code, "0 accepted, 1 refused" in output, "every row is refused" in errors) == (1, True, True)
    good = folder.write("good.csv", HEADER, GOOD)
    assert folder.json("attribution", "import-orders", good, of_orders)["empty"] == [of_orders]


def test_a_workbook_says_what_to_do(folder: Folder) -> None:
    path = folder.path / "orders.xlsx"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("xl/workbook.xml", "")
    for more in ((), ("--format", "csv")):
        code, _, errors = folder.run("attribution", "import-orders", str(path), *more)
        assert (code, "is a workbook; save its sheet as CSV (UTF-8)" in errors) == (1, True)


async def test_conversions_are_exported_once(folder: Folder) -> None:
    (folder.path / "data").mkdir()
    code, output, _ = folder.run("attribution", "export")
    assert (code, "There is no result yet" in output) == (0, True)
    days = (datetime(2026, 11, 20, 12, tzinfo=UTC) - datetime.now(UTC)) / timedelta(days=1) + 2
    order = Order("A-1", 990, days=days)
    await add_clicks(folder.path, folder.lake, [order])
    publish(folder.lake, [order])
    (file,) = folder.json("attribution", "export", "--network", "google", "--conversion-name", "Sale")["files"]
    assert (file["conversion"], file["restate"], file["clientId"]) == (1, 0, "shop-1")
    assert cells(file["file"])[2][:2] == ["g-A-1", "Sale"]
    code, output, _ = folder.run("attribution", "export")
    assert (code, "There is nothing new for the networks." in output) == (0, True)
    code, _, errors = folder.run("attribution", "export", "--model", "lats")
    assert (code, "no model lats; give one of last, linear" in errors) == (1, True)

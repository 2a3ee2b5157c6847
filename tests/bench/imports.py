"""Files as people have them: a million orders by a preset, and a large file recognised (`… -m tests.bench imports`).

The program itself imports, as a process of its own: a Shopify export with one row for each order. The same with half of
the rows shows whether memory grows with the file.
"""

import os
import shutil
import sys
import time
from pathlib import Path

from clickclock.app.recognising import Told, recognised
from clickclock.foundation.config import load
from tests.bench.report import Goal, Report

ROWS_PER_S_GOAL = 60_000
MEMORY_MB_GOAL = 500
RECOGNISED_S_GOAL = 1
HEADER = (
    "Name,Email,Financial Status,Paid at,Fulfillment Status,Currency,Subtotal,Shipping,Taxes,Total,Created at,"
    "Lineitem quantity,Lineitem name,Lineitem price,Lineitem sku,Cancelled at,Refunded Amount,Note Attributes,Vendor\n"
)


def run(folder: Path, *, quick: bool) -> Report:
    """A million orders (--quick: 100,000), and a file of two gigabytes (200 MB)."""
    orders, large = (100_000, 200 * 10**6) if quick else (1_000_000, 2 * 10**9)
    report = Report(f"imports: {orders:,} orders of a Shopify export; a file of {large / 1e9:g} GB", with_ratios=False)
    folder.mkdir(exist_ok=True)
    for count in (orders // 2, orders):
        path = folder / "orders_export.csv"
        with path.open("w") as file:
            file.write(HEADER)
            file.writelines(_line(number) for number in range(count))
        seconds, memory_mb = _imported(folder, path, report)
        goal = Goal(least=ROWS_PER_S_GOAL) if count == orders else None
        report.add(f"import of {count:,} orders by a preset", "rows/s", round(count / seconds), goal)
        report.add(f"the most memory of it, {count:,} orders", "MB", round(memory_mb), Goal(MEMORY_MB_GOAL))
    size = path.stat().st_size
    with path.open("ab") as file:
        content = path.read_bytes()[len(HEADER) :]
        while size < large:
            size += file.write(content)
    begun = time.perf_counter()
    recognised(load(None, {}, {"data_dir": folder / "none"}), [path], Told(client_id="shop-1"))
    took = time.perf_counter() - begun
    report.add(f"a file of {large / 1e9:g} GB is recognised", "s", round(took, 2), Goal(RECOGNISED_S_GOAL))
    path.unlink()
    return report


def _line(number: int) -> str:
    at = f"2026-{1 + number % 10:02d}-{1 + number // 7 % 28:02d} {number % 24:02d}:{number % 60:02d}:07 +0100"
    amounts = f"20.00,4.90,3.90,{(number % 9000) / 100 + 1:.2f}"
    who = f"customer{number % 50_000}@example.com"
    bought = f"1,Pizza,12.00,P-{number % 100},,0.00,cli_ubid: v{number},Trattoria"
    return f"#{1000 + number},{who},paid,{at},fulfilled,EUR,{amounts},{at},{bought}\n"


def _imported(folder: Path, path: Path, report: Report) -> tuple[float, float]:
    """Seconds, and the most memory in megabytes."""
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    program = [sys.executable, "-m", "clickclock.cli", "import", str(path), "--client-id", "shop-1"]
    command = [*program, "--yes", "--json", "--data-dir", str(data)]
    begun = time.perf_counter()
    with (folder / "report.json").open("w") as output:
        child = os.posix_spawn(
            sys.executable,
            command,
            {**os.environ},
            file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), 1)],
        )
        _, status, usage = os.wait4(child, 0)
    if status:
        report.faults.append(f"the import of {path} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - begun, usage.ru_maxrss / 1024

"""Fifty million clicks and 2.5 million orders, credited by all models: `python -m tests.bench attribution_large`."""

from pathlib import Path

from tests.bench.attribution import ORDERS_PER_CLICK, credit_all
from tests.bench.report import Goal, Report


def run(folder: Path, *, quick: bool) -> Report:
    """All of it (--quick: five million clicks)."""
    clicks = 5_000_000 if quick else 50_000_000
    report = Report(f"attribution: {clicks:,} clicks and {int(clicks * ORDERS_PER_CLICK):,} orders, all models")
    credit_all(report, folder / "all", clicks, Goal(most=480), Goal(), Goal(most=4.5))
    return report

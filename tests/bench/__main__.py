"""The benchmarks: `python -m tests.bench [NAME…] [--quick] [--json FILE]`, or `make bench ARGS="due --quick"`.

Never asserts a time. Invariant: the exit code is 0 unless something was lost, doubled, or did not run.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from rich.console import Console

from tests.bench import machine
from tests.bench.report import Report

BENCHMARKS = (
    *("raw", "due", "steady", "trigger", "idle", "history", "backfill", "kills", "replicas", "containers", "apply"),
    *("listeners", "audit", "access", "start", "backup", "dashboard", "report_pages"),
    *("clicks", "compaction", "imports", "models", "attribution", "attribution_large", "scale"),
)


def main() -> int:
    """Run what is asked for, all by default; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="The benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="smaller and shorter: to have a look, not for the record")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all numbers to this file")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write the tables as a page of Markdown")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="folder for data (default: a temporary one)")
    asked = parser.parse_args()
    if unknown := sorted(set(asked.names) - set(BENCHMARKS)):
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    # A table in a file is as wide as it needs to be.
    console = Console(width=None if sys.stdout.isatty() else 160)
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    reports = []
    # As the program makes its own data folder; it would say so of one that others may enter.
    os.umask(0o077)
    with tempfile.TemporaryDirectory(prefix="clickclock-bench-", dir=asked.folder) as folder:
        described = machine.describe(Path(folder))
        for line in described:
            console.print(line, highlight=False)
        console.print()
        for name in asked.names or BENCHMARKS:
            reports.append(_run(name, Path(folder) / name, quick=asked.quick))
            reports[-1].show(console)
    if asked.json:
        content = {"machine": described, "quick": asked.quick, "reports": [each.as_json() for each in reports]}
        asked.json.write_text(json.dumps(content, indent=1) + "\n")
    if asked.page:
        asked.page.write_text(_page(described, reports, quick=asked.quick))
    return 1 if any(each.faults for each in reports) else 0


def _page(described: list[str], reports: list[Report], *, quick: bool) -> str:
    """All tables, and where they are from."""
    run = "A quick run of the" if quick else "The"
    where = f"{run} [benchmarks](performance.md), {datetime.now(UTC):%-d %B %Y}: {'; '.join(described)}."
    return "\n\n".join(["# Performance: results", where, *(each.as_markdown() for each in reports)]) + "\n"


def _run(name: str, folder: Path, *, quick: bool) -> Report:
    folder.mkdir()
    try:
        run: Callable[..., Report] = import_module(f"tests.bench.{name}").run
        return run(folder, quick=quick)
    except Exception:  # noqa: BLE001 - one benchmark that does not run must not keep the others from running
        return Report(name, faults=[f"did not run: {traceback.format_exc()}"])


if __name__ == "__main__":
    sys.exit(main())

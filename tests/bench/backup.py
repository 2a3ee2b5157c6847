"""A backup of a store with a million triggers, while jobs start each second (`python -m tests.bench backup`).

How long the first and the second take, and how late jobs start meanwhile, against the same time without a backup.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.history_rows import write
from tests.bench.report import Goal, Report, percentile
from tests.bench.service import APPLICATION, Service

JOBS = 20
"""Each starts once a second."""
QUIET_S = 30.0
GOAL_S = 60
GOAL_LAG = 1.5


def run(folder: Path, *, quick: bool) -> Report:
    """A million (--quick: 100,000)."""
    count = 100_000 if quick else 1_000_000
    report = Report(f"backup: {count:,} triggers in the store; {JOBS} jobs start each second", with_ratios=False)
    with Service(folder, "--no-clicks") as service:
        service.stop()
        write(service.data_dir / "clickclock.db", datetime.now(UTC), count)
        size_mb = (service.data_dir / "clickclock.db").stat().st_size / 1e6
        report.notes.append(f"the store: {size_mb:,.0f} MB")
        service.start()
        service.create_job("beat", "/bin/true")
        service.create_schedules([{"jobName": "beat", "kind": "interval", "expression": "PT1S"} for _ in range(JOBS)])
        quiet_ms, busy_ms, took_s = [], [], []
        for _ in range(2):
            quiet_ms += _lags_ms(service, lambda: time.sleep(QUIET_S))
            begun = time.perf_counter()
            busy_ms += _lags_ms(service, lambda: _backup(service.data_dir, folder / "backups"))
            took_s.append(time.perf_counter() - begun)
    report.add("the first backup", "s", took_s[0], Goal(most=GOAL_S))
    report.add("the second, of little that is new", "s", took_s[1])
    quiet, busy = percentile(quiet_ms, 0.99), percentile(busy_ms, 0.99)
    report.add("lag meanwhile, 99 of 100", "ms", busy, Goal(most=GOAL_LAG * quiet), {"without a backup": quiet})
    report.notes.append(f"{len(quiet_ms)} starts without and {len(busy_ms)} with a backup")
    return report


def _backup(data_dir: Path, place: Path) -> None:
    words = ["backup", "create", "--data-dir", str(data_dir), "--backup-url", str(place)]
    subprocess.run([sys.executable, "-m", "clickclock.cli", *words], check=True, capture_output=True)


def _lags_ms(service: Service, work: Callable[[], None]) -> list[float]:
    """How late each trigger of a stretch of time started."""
    begun = datetime.now(UTC)
    work()
    given = {"application": APPLICATION, "jobName": "beat", "from": begun.isoformat(), "limit": 1000}
    rows = service.get("jobTrigger", **given).json()["triggers"]
    return [each["lagMs"] for each in rows if each.get("lagMs") is not None]

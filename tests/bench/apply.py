"""Ten thousand jobs with schedules as files (`python -m tests.bench apply`): made, found unchanged, changed, exported.

The real command, from its start to its end, against the real service: what a person waits for.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.report import Goal, Report
from tests.bench.service import Service

FILES = 100
FIRST_MOST_S = 10.0
SAME_MOST_S = 2.0


def run(folder: Path, *, quick: bool) -> Report:
    """10,000 jobs in 100 files (--quick: 1,000)."""
    per_file = 10 if quick else 100
    count = FILES * per_file
    files = folder / "jobs"
    _write(files, per_file, priority=60)
    report = Report(f"apply: {count:,} jobs, each with a schedule, in {FILES} files")
    with Service(folder) as service:
        first_s = _apply(service, files, f"{2 * count} created, 0 unchanged.", report)
        report.add("all are new", "s", first_s, Goal(most=FIRST_MOST_S))
        same_s = [_apply(service, files, f"{2 * count} unchanged.", report) for _ in range(3)]
        report.add("nothing is new, best of 3", "s", min(same_s), Goal(most=SAME_MOST_S))
        _write(files, per_file, priority=70)
        changed_s = _apply(service, files, f"{count} changed, {count} unchanged.", report)
        report.add("every job is changed", "s", changed_s)
        begun_s = time.perf_counter()
        _clickclock(service, "export", "--output-dir", str(folder / "exported"))
        report.add("export, a file for each", "s", time.perf_counter() - begun_s)
        _apply(service, folder / "exported", f"{2 * count} unchanged.", report)
    return report


def _write(folder: Path, per_file: int, priority: int) -> None:
    folder.mkdir(exist_ok=True)
    for file in range(FILES):
        lines = [f"application: app-{file:02}", "jobs:"]
        for number in range(per_file):
            lines += [
                f"  - jobName: job-{number:04}",
                f"    command: python export.py --number {number} --day today",
                f"    description: Exports number {number} of {file}.",
                "    labels: {tier: gold}",
                "    maxRetries: 3",
                f"    priority: {priority}",
                "    schedules:",
                f'      - expression: "{number % 60} {file % 24} * * *"',
                "        timeZone: Europe/Berlin",
            ]
        (folder / f"{file:02}.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _apply(service: Service, files: Path, expected: str, report: Report) -> float:
    begun_s = time.perf_counter()
    said = _clickclock(service, "apply", "-f", str(files), "--set", "bench", "--prune")
    took_s = time.perf_counter() - begun_s
    if not said.endswith(expected):
        report.faults.append(f"expected {expected!r}, and it said {said[-200:]!r}")
    return took_s


def _clickclock(service: Service, *words: str) -> str:
    command = [sys.executable, "-m", "clickclock.cli", "--url", service.url, *words]
    environment = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return (done.stdout + done.stderr).strip()

"""`kill -9` of the service, again and again, under twenty fires a second (`python -m tests.bench kills`).

The storm itself is the crash tests': here it is only longer, and timed.
"""

import asyncio
import time
from pathlib import Path

from tests.bench.report import Goal, Report
from tests.crash.ground import Ground, Tally
from tests.crash.storm import storm

KILLS = 50


def run(folder: Path, *, quick: bool) -> Report:
    """50 kills (--quick: 5)."""
    kills = 5 if quick else KILLS
    report = Report(f"kills: {kills} kill -9 of the service in a row, under 20 fires a second")
    begun = time.perf_counter()
    tally = asyncio.run(_storm(folder, kills))
    report.add("runs", "", tally.runs)
    report.add("lost", "", len(tally.lost), Goal(most=0))
    report.add("doubled", "", len(tally.doubled), Goal(most=0))
    report.add("exit codes unknown", "", len(tally.unknown), Goal(most=0))
    report.notes.append(f"took {time.perf_counter() - begun:.0f} s")
    report.faults += tally.faults
    return report


async def _storm(folder: Path, kills: int) -> Tally:
    ground = Ground(folder)
    try:
        return await storm(ground, kills)
    finally:
        await ground.clear()

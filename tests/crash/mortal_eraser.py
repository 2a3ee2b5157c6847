"""The eraser, made mortal: one step of the real one, that kills itself with SIGKILL at a chosen call.

Never lives but in a process of its own (`nursery.py`), by `{"folder": …, "death": {…} or null}`.
"""

import asyncio
from pathlib import Path
from typing import Any

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.agents.eraser import Eraser
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.files.docket import Docket
from clickclock.attribution.files.export_files import ExportFiles
from clickclock.attribution.lake import Lake
from clickclock.foundation.clock import SystemClock
from tests.crash.mortal import Death, doom


def live(order: dict[str, Any]) -> None:
    """One step."""
    if order["death"] is not None:
        doom(Death(**order["death"]))
    folder = Path(order["folder"])
    lake, clock = Lake(folder / "lake"), SystemClock()
    compactor = Compactor(folder / "journal", lake, clock, processes=1)
    files, docket = ExportFiles(folder / "exports"), Docket(folder / "erasure.json")
    eraser = Eraser(folder / "journal", lake, files, docket, clock, compactor.step, Policies(), b"secret" * 6)
    asyncio.run(eraser.step())

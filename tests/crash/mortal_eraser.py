"""The eraser, made mortal: one step of the real one, that kills itself with SIGKILL at a chosen call.

Run as a process of its own: `python -m tests.crash.mortal_eraser '{"folder": …, "death": {…} or null}'`.
"""

import asyncio
import json
import sys
from pathlib import Path

from clickclock.attribution.compactor import Compactor
from clickclock.attribution.docket import Docket
from clickclock.attribution.eraser import Eraser
from clickclock.attribution.export_files import ExportFiles
from clickclock.attribution.lake import Lake
from clickclock.attribution.policy import Policies
from clickclock.foundation.clock import SystemClock
from tests.crash.mortal import Death, doom

if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    if order["death"] is not None:
        doom(Death(**order["death"]))
    folder = Path(order["folder"])
    lake, clock = Lake(folder / "lake"), SystemClock()
    compactor = Compactor(folder / "journal", lake, clock, processes=1)
    files, docket = ExportFiles(folder / "exports"), Docket(folder / "erasure.json")
    eraser = Eraser(folder / "journal", lake, files, docket, clock, compactor.step, Policies(), b"secret" * 6)
    asyncio.run(eraser.step())

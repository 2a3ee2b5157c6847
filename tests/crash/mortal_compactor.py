"""The compactor, made mortal: one step of the real one, that kills itself with SIGKILL at a chosen call.

Run as a process of its own: `python -m tests.crash.mortal_compactor '{"journals": …, "lake": …, "processes": 1,
"death": {…} or null}'`.
"""

import asyncio
import json
import sys
from pathlib import Path

from clickclock.attribution.compactor import Compactor
from clickclock.attribution.lake import Lake
from clickclock.foundation.clock import SystemClock
from tests.crash.mortal import Death, doom

if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    if order["death"] is not None:
        doom(Death(**order["death"]))
    compactor = Compactor(Path(order["journals"]), Lake(order["lake"]), SystemClock(), processes=order["processes"])
    done = asyncio.run(compactor.step())
    sys.stdout.write(json.dumps({"segments": done.segments, "rows": done.rows, "damages": done.damages}))

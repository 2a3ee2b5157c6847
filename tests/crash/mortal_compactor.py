"""The compactor, made mortal: one step of the real one, that kills itself with SIGKILL at a chosen call.

Run as a process of its own: `python -m tests.crash.mortal_compactor '{"journals": …, "lake": …, "options": {…},
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
    lake = Lake(order["lake"], order["options"])
    compactor = Compactor(Path(order["journals"]), lake, SystemClock(), processes=1)
    done = asyncio.run(compactor.step())
    sys.stdout.write(json.dumps({"segments": done.segments, "rows": done.rows, "damages": done.damages}))

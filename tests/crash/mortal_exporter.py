"""The exporter, made mortal: one step of the real one, that kills itself with SIGKILL at a chosen call.

Run as a process of its own: `python -m tests.crash.mortal_exporter '{"lake": …, "folder": …, "death": {…}}'`.
"""

import json
import sys
from pathlib import Path

from clickclock.attribution.exporter import Exporter, Wanted
from clickclock.attribution.lake import Lake
from clickclock.attribution.outbox import Outbox
from clickclock.attribution.policy import Policies
from clickclock.foundation.clock import ManualClock
from tests.crash.mortal import Death, doom
from tests.published import NOW

if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    doom(Death(**order["death"]))
    outbox = Outbox(Path(order["folder"]))
    Exporter(Lake(order["lake"]), Policies(), ManualClock(NOW), outbox).step(Wanted("last"))

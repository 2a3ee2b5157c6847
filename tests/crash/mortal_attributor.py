"""The attributor, made mortal: one run of the real one, that kills itself with SIGKILL at a chosen call.

Run as a process of its own: `python -m tests.crash.mortal_attributor '{"lake": …, "scratch": …, "death": {…}}'`.
"""

import json
import sys
from pathlib import Path

from clickclock.attribution.lake import Lake
from tests.crash.mortal import Death, doom
from tests.credited import run

if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    doom(Death(**order["death"]))
    run(Lake(order["lake"]), Path(order["scratch"]))

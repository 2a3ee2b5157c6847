"""The compactor, made mortal: one step of the real one, that kills itself with SIGKILL at a chosen call.

Never lives but in a process of its own (`nursery.py`), by `{"journals": …, "lake": …, "options": {…},
"death": {…} or null}`.
"""

import asyncio
from pathlib import Path
from typing import Any

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.lake import Lake
from clickclock.foundation.clock import SystemClock
from tests.crash.mortal import Death, doom


def live(order: dict[str, Any]) -> None:
    """One step."""
    if order["death"] is not None:
        doom(Death(**order["death"]))
    lake = Lake(order["lake"], order["options"])
    compactor = Compactor(Path(order["journals"]), lake, SystemClock(), processes=1)
    asyncio.run(compactor.step())

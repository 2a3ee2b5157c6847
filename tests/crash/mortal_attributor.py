"""The attributor, made mortal: one run of the real one, that kills itself with SIGKILL at a chosen call.

Never lives but in a process of its own (`nursery.py`), by `{"lake": …, "scratch": …, "death": {…}}`.
"""

from pathlib import Path
from typing import Any

from clickclock.attribution.lake import Lake
from tests.crash.mortal import Death, doom
from tests.credited import run


def live(order: dict[str, Any]) -> None:
    """One run."""
    doom(Death(**order["death"]))
    run(Lake(order["lake"]), Path(order["scratch"]))

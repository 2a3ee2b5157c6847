"""The exporter, made mortal: one step of the real one, that kills itself with SIGKILL at a chosen call.

Never lives but in a process of its own (`nursery.py`), by `{"lake": …, "folder": …, "death": {…}}`.
"""

from pathlib import Path
from typing import Any

from clickclock.attribution.agents.exporter import Exporter
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.files.outbox import Outbox
from clickclock.attribution.lake import Lake
from clickclock.attribution.uploads.export import Wanted
from clickclock.foundation.clock import ManualClock
from tests.crash.mortal import Death, doom
from tests.published import NOW


def live(order: dict[str, Any]) -> None:
    """One step."""
    doom(Death(**order["death"]))
    outbox = Outbox(Path(order["folder"]))
    Exporter(Lake(order["lake"]), Policies(), ManualClock(NOW), outbox).step(Wanted("last"))

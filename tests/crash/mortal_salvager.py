"""A salvage, made mortal: the real one of a segment, that kills itself with SIGKILL at a chosen call.

Never lives but in a process of its own (`nursery.py`), by `{"segment": …, "death": {…}}`.
"""

from pathlib import Path
from typing import Any

from clickclock.attribution.journal import Segment, State, salvage
from tests.crash.mortal import Death, doom


def live(order: dict[str, Any]) -> None:
    """One salvage."""
    doom(Death(**order["death"]))
    path = Path(order["segment"])
    salvage(Segment(int(path.stem), path, State.SEALED))

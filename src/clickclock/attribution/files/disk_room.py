"""Whether the disk of a folder is short of room.

Asks the system once a second at most. Invariant: where it cannot be asked, the disk is not short: who writes will see.

>>> DiskRoom(Path("/"), 0, 0.0, time.monotonic).is_short()
False
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

ASKED_EVERY_S: Final = 1.0


class DiskRoom:
    """The disk of one folder. It is short below so many free bytes, or so great a part of it, whichever is less."""

    def __init__(
        self, folder: Path, bytes_min: int, share_min: float, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = folder
        self._bytes_min, self._share_min = bytes_min, share_min
        self._monotonic_s = monotonic_s
        self._asked_s = float("-inf")
        self._is_short = False

    def is_short(self) -> bool:
        """As the system said within the last second."""
        now_s = self._monotonic_s()
        if now_s - self._asked_s >= ASKED_EVERY_S:
            self._asked_s = now_s
            self._is_short = self._ask()
        return self._is_short

    def _ask(self) -> bool:
        try:
            found = os.statvfs(self._folder)
        except OSError:
            return False
        free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
        return free < min(self._bytes_min, total * self._share_min)

"""The file that keeps an attempt's output, on this host: read in pieces, and removed.

Never writes one: whoever runs attempts does, each in its own way. Invariant: a name that could leave the folder has no
file.

>>> read("/var/lib/clickclock/logs", "../../../etc/passwd", 0, 100, ended=True) is None
True
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from clickclock.scheduler.executors import LogChunk
from clickclock.scheduler.supervisor.spawn import cut_note, log_path


def read(
    logs: str, name: str, offset: int, limit: int, *, ended: bool, bytes_max: int | None = None
) -> LogChunk | None:
    """Up to `limit` bytes from `offset`; None when there is no such file. `ended`: nothing more will be written.

    `bytes_max`: the file is cut there now and then, and what is going to be cut is not told.
    """
    try:
        with Path(log_path(logs, name)).open("rb") as file:
            if bytes_max is not None:
                note = cut_note(bytes_max)
                is_cut = os.pread(file.fileno(), len(note), bytes_max) == note
                limit = max(0, min(limit, bytes_max + (len(note) if is_cut else 0) - offset))
            data = os.pread(file.fileno(), limit, offset)
            size = os.fstat(file.fileno()).st_size
    except (FileNotFoundError, ValueError):
        return None
    return LogChunk(data, offset + len(data), ended and offset + len(data) >= size)


def remove(logs: str, names: Sequence[str]) -> None:
    """Delete output files, and folders that this leaves empty; unknown names are passed over."""
    for name in names:
        with contextlib.suppress(ValueError, OSError):
            path = Path(log_path(logs, name))
            path.unlink()
            path.parent.rmdir()

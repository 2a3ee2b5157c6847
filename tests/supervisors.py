"""Kills the supervisor of a data folder. Never kills by a number alone: the system soon gives it to another."""

import fcntl
import os
import signal
from contextlib import suppress
from pathlib import Path


def supervisor_of(data_dir: Path) -> int | None:
    """The process that holds the folder's lock; None if nobody does, or if it has not yet said its number."""
    with suppress(FileNotFoundError), (data_dir / "supervisor" / "lock").open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(lock.read() or 0) or None
    return None


def kill_supervisor(data_dir: Path) -> bool:
    """`kill -9`, and whether there was one."""
    pid = supervisor_of(data_dir)
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pid is not None

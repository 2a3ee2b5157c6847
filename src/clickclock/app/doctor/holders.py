"""The holders of a port or a lock of this machine, as the kernel reports them.

Never takes either, not even for a moment: somebody may be just about to start. Invariant: of processes that this user
may not look into only the number is told.

>>> listener_on(1) is None
True
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_LISTENS = "0A"
UNSEEN = "a process that this user may not look into"
_COMMAND_MAX = 100


def listener_on(port: int) -> str | None:
    """The process that listens on a port; None if none does."""
    sockets = {
        columns[9]
        for table in ("tcp", "tcp6")
        for columns in _rows(_PROC / "net" / table)
        if columns[1].endswith(f":{port:04X}") and columns[3] == _LISTENS
    }
    if not sockets:
        return None
    wanted = {f"socket:[{each}]" for each in sockets}
    return next((told(pid) for pid in _pids() if wanted & set(_open_files(pid))), UNSEEN)


def ports_of(pid: int) -> set[int]:
    """The ports that a process listens on, as far as this user may see."""
    own = set(_open_files(pid))
    return {
        int(columns[1].rpartition(":")[2], 16)
        for table in ("tcp", "tcp6")
        for columns in _rows(_PROC / "net" / table)
        if columns[3] == _LISTENS and f"socket:[{columns[9]}]" in own
    }


def holder_of(lock: Path) -> int | None:
    """The process that holds a file's lock exclusively; None if nobody does. 0: one of another container."""
    try:
        inode = str(lock.stat().st_ino)
    except OSError:
        return None
    for columns in _rows(_PROC / "locks"):
        # A line of who waits has `->` before the kind.
        if columns[1] == "FLOCK" and columns[3] == "WRITE" and columns[5].rpartition(":")[2] == inode:
            return int(columns[4])
    return None


def works_on(pid: int, folder: Path) -> bool:
    """Whether a process lives and has a folder among the words of its command."""
    with contextlib.suppress(OSError):
        return any(word.startswith("/") and folder.samefile(word) for word in _words(pid) if Path(word).exists())
    return False


def has_children(pid: int) -> bool:
    """Whether a process has started others that live."""
    lists = (_PROC / str(pid) / "task").glob("*/children")
    with contextlib.suppress(OSError):
        return any(each.read_text(encoding="ascii").split() for each in lists)
    return False


def told(pid: int) -> str:
    """A process as people know it."""
    command = " ".join(_words(pid)).strip()[:_COMMAND_MAX]
    return f"process {pid} ({command})" if command else f"process {pid}"


def _words(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _rows(table: Path) -> Iterator[list[str]]:
    try:
        lines = table.read_text(encoding="ascii").splitlines()
    except OSError:  # no IPv6, or a hardened /proc
        return
    for line in lines:
        columns = line.split()
        if columns and columns[0].endswith(":"):
            yield columns


def _pids() -> Iterator[int]:
    return (int(path.name) for path in _PROC.iterdir() if path.name.isdecimal())


def _open_files(pid: int) -> Iterator[str]:
    try:
        for each in (_PROC / str(pid) / "fd").iterdir():
            yield str(each.readlink())
    except OSError:  # it has ended, or is somebody else's
        return

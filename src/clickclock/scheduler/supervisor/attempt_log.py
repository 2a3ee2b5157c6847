"""The file that an attempt writes its output to: named, opened, and held to a limit while it is written.

Never reads output and never moves a byte of it. Invariants: an offset means the same byte for as long as that byte is
kept; of an output that is longer than its limit the beginning and the end are kept, and the middle is a hole in the
file; where a file system cannot make holes, the end is cut off, and a line says so.

>>> look_again_s(0, 0.25, 1_000_000, running=1), look_again_s(250_000_000, 0.25, 1_000_000, running=1)
(0.5, 0.01)
"""

import errno
import os

NAME_BYTES_MAX = 200
LOOK_S_MIN, LOOK_S_MAX = 0.25, 4.0
"""How often logs are measured: while they grow, and while they are quiet."""
LOOK_S_HURRIED = 0.01
"""While one grows so quickly that a look would come too late, as often as this."""
LOOKS_PER_S = 10_000
"""How many files may be measured in a second on average: each costs some microseconds."""
_BLOCKS_OVER = 8
"""A file system may need some blocks more, for what is not whole and for where the blocks are."""
_FOLDER_LETTERS = 7
"""Names begin with a UUID version 7, so seven hexadecimal digits make one log folder per 17 minutes or so."""
_KEEP_SIZE_AND_PUNCH_HOLE = 0x01 | 0x02


def log_path(logs: str, name: str) -> str:
    """Where an attempt's output is; raises `ValueError` for a name that could leave the folder."""
    if not name or name[0] == "." or "/" in name or "\0" in name or len(os.fsencode(name)) > NAME_BYTES_MAX:
        raise ValueError(f"{name!r} cannot be the name of an attempt.")
    return f"{logs}/{name[:_FOLDER_LETTERS]}/{name}.log"


def open_log(path: str) -> int:
    """A descriptor that appends to the log; makes its folder when it is the first there."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def keeps_ends(logs: str) -> bool:
    """Whether the folder's file system can free the middle of a file, and tell readers where that is."""
    path = f"{logs}/.ends.{os.getpid()}"
    try:
        probe = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        os.unlink(path)
        block = os.fstat(probe).st_blksize
        os.write(probe, b"x" * (3 * block))
        _punch(probe, block, block)
        return os.lseek(probe, 0, os.SEEK_HOLE) == block and os.lseek(probe, block, os.SEEK_DATA) == 2 * block
    except OSError:
        return False
    finally:
        os.close(probe)


def hold(path: str, bytes_max: int, *, ends_kept: bool) -> int:
    """Hold a log to its limit, give or take some blocks; its size in bytes, with what was left out.

    `ends_kept`: free the middle; otherwise, or if that fails, cut the end off. Raises `OSError`.
    """
    status = os.stat(path)
    if status.st_size <= bytes_max:
        return status.st_size
    if not ends_kept:
        _cut(path, status.st_size, bytes_max)
    elif status.st_blocks * 512 > bytes_max + _BLOCKS_OVER * status.st_blksize:
        try:
            _free_middle(path, bytes_max)
        except OSError:
            _cut(path, status.st_size, bytes_max)
    return status.st_size


def look_again_s(grown: int, look_s: float, bytes_max: int, *, running: int) -> float:
    """How soon to measure again, when the quickest log has `grown` by so many bytes in the last `look_s` seconds."""
    if grown == 0:
        return min(2 * look_s, LOOK_S_MAX)
    quarter_full_s = look_s * bytes_max / 4 / grown
    return min(LOOK_S_MIN, max(LOOK_S_HURRIED, running / LOOKS_PER_S, quarter_full_s))


def cut_note(bytes_max: int) -> bytes:
    """The line at the end of a log that was cut."""
    return b"\n[clickclock: output cut here at %d bytes]\n" % bytes_max


def _free_middle(path: str, bytes_max: int) -> None:
    """Keep half of the limit at the beginning and half at the end, in whole blocks."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        block, half = status.st_blksize, bytes_max // 2
        begin, end = max(1, half // block) * block, (status.st_size - half) // block * block
        if end > begin:
            _punch(descriptor, begin, end - begin)
    finally:
        os.close(descriptor)


def _punch(descriptor: int, begin: int, count: int) -> None:
    """Make a hole; raises `OSError` where that cannot be done."""
    try:
        import ctypes  # noqa: PLC0415  (some interpreters are built without it)

        libc = ctypes.CDLL(None, use_errno=True)
        # On 32 bits only this one takes offsets of 64; some C libraries have it not, and need it not.
        fallocate = libc.fallocate64 if hasattr(libc, "fallocate64") else libc.fallocate
    except (ImportError, AttributeError):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP)) from None
    where = ctypes.c_int64(begin), ctypes.c_int64(count)
    while fallocate(descriptor, _KEEP_SIZE_AND_PUNCH_HOLE, *where) != 0:
        if (number := ctypes.get_errno()) != errno.EINTR:
            raise OSError(number, os.strerror(number))


def _cut(path: str, size: int, bytes_max: int) -> None:
    note = cut_note(bytes_max)
    if size > bytes_max + len(note) or not _ends_with(path, note):
        os.truncate(path, bytes_max)
        descriptor = open_log(path)
        os.write(descriptor, note)
        os.close(descriptor)


def _ends_with(path: str, note: bytes) -> bool:
    with open(path, "rb") as file:
        file.seek(-len(note), os.SEEK_END)
        return file.read() == note

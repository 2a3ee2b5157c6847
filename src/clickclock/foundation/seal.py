"""This process, closed to the other processes of its user. A job may be one of them, and /proc would show it all.

Never closes anything to root with all its capabilities. Invariants: what this process and its libraries read of the
environment stays as it was; where the interpreter or the system cannot do it, nothing is changed.

>>> seal()   # doctest: +SKIP
"""

import os
from contextlib import suppress

_PR_SET_DUMPABLE = 4
_ENV_START, _ENV_END = 47, 48
"""Where /proc/self/stat has the place of the environment that the process began with, counted after its name."""


def close() -> None:
    """No other process of this user looks into this one, traces it, or gets its memory in a core file."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes  # noqa: PLC0415  (some interpreters are built without it)

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def seal() -> None:
    """Close this process, and empty the copy of its environment that /proc shows. Call it before there are threads.

    The system shows the memory where the environment was when the process began, whatever was unset since. Every
    variable moves to memory of our own, and that place is overwritten.
    """
    close()
    with suppress(ImportError, OSError, AttributeError, ValueError, IndexError):
        import ctypes  # noqa: PLC0415  (as above)

        fields = _stat().rpartition(b")")[2].split()
        start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        libc = ctypes.CDLL(None)
        block = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
        count = 0
        while block[count] is not None:
            count += 1
        for name, is_variable, value in [block[index].partition(b"=") for index in range(count)]:
            if is_variable and libc.setenv(name, value, 1) != 0:
                return  # no memory: better seen than lost
        if 0 < start < end:
            ctypes.memset(start, 0, end - start)


def _stat() -> bytes:
    descriptor = os.open("/proc/self/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)

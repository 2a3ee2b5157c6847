"""Memory of a process that works through tables, and then ends: what was given back is kept for what is asked for next.

Never for a service, which would hold for ever what it needed once. Invariant: it changes how fast a process works and
how much of its memory is idle, and nothing else.

>>> keep()   # doctest: +SKIP
"""

import ctypes
import os
import platform
from typing import Final

MAPPED_BYTES_MIN: Final = 32 * 2**20
"""Smaller pieces are taken from memory that is kept; this is the most that the C library allows."""
KEPT_BYTES_MAX: Final = 512 * 2**20
"""Bytes of returned memory that are kept."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""As `malloc.h` of glibc numbers them."""


def keep() -> None:
    """Have Arrow ask the C library for memory, and that one keep what it has.

    Arrow looks when it is loaded: call this before, or in a process that was started by one which did. Each
    block needs as much memory as the one before it, and what went back to the system comes again page by page.
    """
    os.putenv("ARROW_DEFAULT_MEMORY_POOL", "system")  # noqa: TID251 (Arrow asks there alone, and only once)
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        # By itself each thread has an arena of its own, and none gets what another gave back.
        libc.mallopt(_ARENA_MAX, max((os.cpu_count() or 1) // 2, 1))
        libc.mallopt(_MMAP_THRESHOLD, MAPPED_BYTES_MIN)
        libc.mallopt(_TRIM_THRESHOLD, KEPT_BYTES_MAX)

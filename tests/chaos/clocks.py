"""A machine whose clock is wrong: a small library that stands before libc's `clock_gettime`. Needs `cc`.

Never touches the monotonic clock. Invariant: all processes that a replica starts have the same wrong clock.
"""

import os
import subprocess
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t which, struct timespec *told) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, told);
    const char *ahead_s = getenv("CLOCK_AHEAD_S");
    if (!failed && which == CLOCK_REALTIME && ahead_s) told->tv_sec += atol(ahead_s);
    return failed;
}
"""


def wrong_clock(folder: Path, ahead_s: int) -> dict[str, str]:
    """The environment of a program whose wall clock is ahead by so many seconds."""
    library = folder / "clock.so"
    if not library.exists():
        source = folder / "clock.c"
        source.write_text(SOURCE, encoding="ascii")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": os.fspath(library), "CLOCK_AHEAD_S": str(ahead_s)}

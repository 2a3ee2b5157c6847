"""A disk that is slow or fails, for a whole program: a small library that stands before libc's `fdatasync`.

Never touches what a program writes, only what it is told of the sync. Invariant: a sync that is said to have failed was
not done, as far as this can say.
"""

import os
import subprocess
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long calls;

static long setting(const char *name) {
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

int fdatasync(int fd) {
    static int (*real)(int);
    long every = setting("SYNC_FAILS_EVERY"), takes_ms = setting("SYNC_TAKES_MS");
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    if (takes_ms) usleep((useconds_t)takes_ms * 1000);
    if (every && ++calls % every == 0) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}
"""


def disk(folder: Path, *, fails_every: int = 0, takes_ms: int = 0) -> dict[str, str]:
    """The environment of a program whose every so many-th `fdatasync` fails, and each takes so long. Needs `cc`."""
    library = folder / "disk.so"
    if not library.exists():
        source = folder / "disk.c"
        source.write_text(SOURCE, encoding="ascii")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return {
        "LD_PRELOAD": os.fspath(library),
        "SYNC_FAILS_EVERY": str(fails_every),
        "SYNC_TAKES_MS": str(takes_ms),
    }

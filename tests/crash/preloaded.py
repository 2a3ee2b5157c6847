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
#include <unistd.h>

static atomic_long calls;

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    if (TAKES_MS) usleep((useconds_t)TAKES_MS * 1000);
    if (FAILS_EVERY && ++calls % FAILS_EVERY == 0) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}
"""


def disk(folder: Path, *, fails_every: int = 0, takes_ms: int = 0) -> dict[str, str]:
    """The environment of a program whose every so many-th `fdatasync` fails, and each takes so long. Needs `cc`."""
    # The library knows all by itself: a process of ours is started without the service's variables.
    library = folder / f"disk-{fails_every}-{takes_ms}.so"
    if not library.exists():
        source = folder / "disk.c"
        source.write_text(SOURCE, encoding="ascii")
        known = (f"-DFAILS_EVERY={fails_every}L", f"-DTAKES_MS={takes_ms}L")
        subprocess.run(["cc", *known, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": os.fspath(library)}

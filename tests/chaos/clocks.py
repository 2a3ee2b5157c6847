"""A machine whose clock is wrong, and is stepped: a library that stands before libc's `clock_gettime`. Needs `cc`.

Never touches the monotonic clock. Invariant: all processes that a replica starts have the same wrong clock, and a step
reaches all of them at once: how far it is ahead is in a file that they share in memory.
"""

import os
import struct
import subprocess
from pathlib import Path

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

static volatile const long *ahead_s;

__attribute__((constructor)) static void open_file(void) {
    int file = open(AHEAD_FILE, O_RDONLY | O_CLOEXEC);
    void *page = file < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) ahead_s = page;
}

int clock_gettime(clockid_t which, struct timespec *told) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, told);
    if (!failed && which == CLOCK_REALTIME && ahead_s) told->tv_sec += *ahead_s;
    return failed;
}
"""


class WrongClock:
    """The wall clock of one machine."""

    def __init__(self, folder: Path, name: str, ahead_s: int) -> None:
        """`folder` keeps a library and a file for each clock; the clock is ahead by `ahead_s` seconds."""
        self._file, self._library = folder / f"clock-{name}", folder / f"clock-{name}.so"
        self.step(ahead_s)
        if not self._library.exists():
            source = folder / "clock.c"
            source.write_text(SOURCE, encoding="ascii")
            # The library knows its file by itself: a process of ours is started without the service's variables.
            where = f'-DAHEAD_FILE="{self._file}"'
            subprocess.run(["cc", where, "-shared", "-fPIC", "-O1", "-o", self._library, source, "-ldl"], check=True)

    @property
    def environment(self) -> dict[str, str]:
        """What a program that goes by it has in its environment."""
        return {"LD_PRELOAD": os.fspath(self._library)}

    def step(self, ahead_s: int) -> None:
        """Set how far it is ahead, from now on, also for programs that run."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("@l", ahead_s))

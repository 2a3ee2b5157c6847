"""How a supervisor comes to be in the background, and that there is one for each folder.

It never serves: `loop.py` does. Invariant: when the starter ends, one supervisor listens in the folder, this or that.

>>> main("/var/lib/clickclock/supervisor")   # doctest: +SKIP
"""

import contextlib
import fcntl
import os

from clickclock.foundation.seal import close
from clickclock.scheduler.supervisor.link import listen, reach
from clickclock.scheduler.supervisor.loop import Supervisor

_ERRORS = 2


def main(folder: str) -> None:
    """Become the supervisor of `folder`, in the background; or return at once if there is one."""
    close()
    _close_all()
    lock = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    os.ftruncate(lock, 0)
    here = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = listen(here)
    if os.fork():
        os._exit(0)  # the service waited for this: from now on it can connect
    os.write(lock, b"%d\n" % os.getpid())  # for people: who holds it
    os.chdir("/")
    Supervisor(folder, listener).run()
    os.unlink(reach(here))  # before the lock goes with us


def _close_all() -> None:
    """What the service was started with, such as a lock of `flock`, is not to be kept when it ends, by us or by jobs.

    Of what there is, since a container may allow a thousand million descriptors.
    """
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > _ERRORS:
            with contextlib.suppress(OSError):  # that by which the folder was read is closed by now
                os.close(descriptor)

"""Processes that are born with everything imported, so that hundreds can be killed without seconds of loading for each.

A server that only ever imports forks them: `python -m tests.crash.nursery DESCRIPTOR`. Never do two share more than
that: there is no loop, no connection and no open file in it yet. Invariant: a child is a process of its own that does
the real thing, ends as a program ends, and dies its own death.

>>> Child("mortal_eraser", {"folder": "/tmp/data", "death": None}).wait()   # doctest: +SKIP
0
"""

import asyncio
import atexit
import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

ROOT = Path(__file__).parents[2]
ORDER_BYTES_MAX = 2**16
IMPORTED = (
    "clickclock.app.service",
    "tests.crash.mortal",
    "tests.crash.mortal_attributor",
    "tests.crash.mortal_caller",
    "tests.crash.mortal_compactor",
    "tests.crash.mortal_eraser",
    "tests.crash.mortal_exporter",
    "tests.crash.mortal_salvager",
)


class Child:
    """One life of a module of this folder: its `live(order)`. As `subprocess.Popen` is to a program."""

    def __init__(self, module: str, order: Any) -> None:
        told, tells = os.pipe()
        output, writes = os.pipe()
        # What it complains of is shown if the test fails.
        self._complaints = TemporaryFile("w+")  # noqa: SIM115 (it is open as long as the child is)
        said = json.dumps({"module": f"tests.crash.{module}", "order": order}).encode()
        assert len(said) <= ORDER_BYTES_MAX
        socket.send_fds(_server(), [said], [tells, writes, self._complaints.fileno()])
        os.close(tells)
        os.close(writes)
        self.stdout: IO[str] = os.fdopen(output, encoding="utf-8")
        self._told = os.fdopen(told, "rb", buffering=0)
        self.pid = int(self._told.readline())
        self._code: int | None = None

    def send_signal(self, number: signal.Signals) -> None:
        """Nothing, if it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        """The exit code, if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout_s: float | None = None) -> int:
        """Until it has ended; the exit code, below 0 for a signal."""
        if self._code is None:
            readable, _, _ = select.select([self._told], [], [], timeout_s)
            if not readable:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout_s or 0.0)
            self._code = int(self._told.readline())
            self._told.close()
            self._complaints.seek(0)
            sys.stderr.write(self._complaints.read())
            self._complaints.close()
        return self._code


async def lived(module: str, order: Any) -> int:
    """A whole life; how it ended."""
    child = Child(module, order)
    with child.stdout:
        return await asyncio.to_thread(child.wait)


@cache
def _server() -> socket.socket:
    """Our end of the server's socket. It ends when that is closed, and so with us."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.nursery", str(its.fileno())],
        cwd=ROOT,
        # Who forks must have no threads: those of the linear algebra begin with the import.
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        pass_fds=[its.fileno()],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    its.close()

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def _serve(orders: socket.socket) -> Any:
    """Fork whatever is ordered. In a child this returns, with the order."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a witness ended
    while True:
        said, descriptors, _, _ = socket.recv_fds(orders, ORDER_BYTES_MAX, 3)
        if not said:
            sys.exit()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            orders.close()
            _bear(*descriptors)
            return json.loads(said)
        for descriptor in descriptors:
            os.close(descriptor)


def _bear(told: int, output: int, errors: int) -> None:
    """Become the child; what forked it stays behind as the witness of its end."""
    if child := os.fork():
        os.close(output)
        os.write(told, b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os.close(told)
    os.setsid()
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.close(output)
    os.close(errors)


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    life = _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(importlib.import_module(life["module"]).live(life["order"]))

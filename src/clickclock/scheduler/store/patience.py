"""How long a database may take to answer: what waits longer is cut off, so that it is tried again elsewhere.

Never knows what was asked. A server that is gone says so; one that hangs, or a network that swallows what is sent, says
nothing, and whoever waits would wait for as long as TCP believes in it. Invariants: a connection is cut only while the
transaction that took too long is on it; who waited gets the driver's error at once.

>>> patience = Patience(seconds=10.0)
>>> patience.close()
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

LOOKS_PER_PATIENCE = 10


class Patience:
    """One thread that looks at the transactions of all others."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[float, Any]] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look, name="store-patience", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def over(self, driver: Any) -> Iterator[None]:
        """While this thread works on the driver's connection."""
        key = threading.get_ident()
        with self._lock:
            self._waiting[key] = time.monotonic() + self._seconds, driver
        try:
            yield
        finally:
            with self._lock:
                del self._waiting[key]

    def _look(self) -> None:
        while not self._closed.wait(self._seconds / LOOKS_PER_PATIENCE):
            now_s = time.monotonic()
            # Under the lock: nobody who has his answer gives the connection away meanwhile.
            with self._lock:
                for until_s, driver in self._waiting.values():
                    if until_s < now_s:
                        cut(driver)

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
        self._thread.join()


def cut(driver: Any) -> None:
    """End the connection's socket under the driver, which notices at once."""
    # If it broke by itself, there is nothing to cut.
    with contextlib.suppress(Exception), socket.socket(fileno=os.dup(driver.fileno())) as channel:
        channel.shutdown(socket.SHUT_RDWR)

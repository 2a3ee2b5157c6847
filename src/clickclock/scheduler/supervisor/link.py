"""The supervisor's end of the wire: one service at a time, the newest; JSON objects, one per line.

Never blocks and never keeps a service waiting for another: whoever connects replaces who was there, and that one is
told. Invariants: a request is handed on whole or not at all; a service that reads nothing is cut off when the outbox
is full, and learns all when it connects again.

In: `hello`, `start`, `stop`, `forget`, each with an `id`. Out: `{"hello": 2, "holds_s": 1, "attempts": […]}`,
`{"done": 3}`, `{"done": 4, "error": "…"}`, `{"seen": [{"name": …, "at": …, "exit": …}]}`, `{"replaced": true}`.
"""

import json
import os
import selectors
import socket
from collections.abc import Callable
from typing import Any

PROTOCOL = 2
SOCKET_NAME = "socket"
OUTBOX_BYTES_MAX = 64 << 20
"""About 500,000 sightings that nobody read."""
_READ_BYTES = 1 << 16
"""Few enough that the memory for them need not be mapped anew for each message."""
_encode = json.JSONEncoder(separators=(",", ":")).encode


def line_of(message: dict[str, Any]) -> bytes:
    """A message as it goes over the wire."""
    return _encode(message).encode() + b"\n"


def reach(folder: int) -> str:
    """A path to the socket that is short however long the folder's is: an address has room for 107 bytes only."""
    return f"/proc/self/fd/{folder}/{SOCKET_NAME}"


def listen(folder: int) -> socket.socket:
    """A socket in the open directory `folder`, for its owner only; call it with the lock held."""
    if os.path.lexists(reach(folder)):
        os.unlink(reach(folder))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    inherited = os.umask(0o177)
    listener.bind(reach(folder))
    os.umask(inherited)
    listener.listen(16)
    return listener


class Link:
    """A listening socket and the one service that is connected, if any."""

    def __init__(
        self,
        listener: socket.socket,
        selector: selectors.BaseSelector,
        greet: Callable[[], dict[str, Any]],
        obey: Callable[[dict[str, Any]], None],
    ) -> None:
        """`greet` gives all that a new service should know; `obey` carries out one request."""
        self._selector, self._greet, self._obey = selector, greet, obey
        self._listener = listener
        self._service: socket.socket | None = None
        self._inbox, self._outbox = bytearray(), bytearray()
        selector.register(listener, selectors.EVENT_READ, self._accept)

    @property
    def connected(self) -> bool:
        """Whether a service is there."""
        return self._service is not None

    def send(self, message: dict[str, Any]) -> None:
        """Put a message in the outbox; without a service it is dropped."""
        if self._service is not None:
            self._outbox += line_of(message)

    def flush(self) -> None:
        """Send what the socket takes now; the rest goes when it has room."""
        if self._service is None:
            return
        try:
            while self._outbox:
                del self._outbox[: self._service.send(self._outbox)]
        except BlockingIOError:
            if len(self._outbox) > OUTBOX_BYTES_MAX:
                self._drop()
                return
        except OSError:
            self._drop()
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outbox else 0)
        if self._selector.get_key(self._service).events != events:
            self._selector.modify(self._service, events, self._read)

    def _accept(self) -> None:
        service, _ = self._listener.accept()
        self.send({"replaced": True})
        self.flush()
        self._drop()
        service.setblocking(False)
        self._service = service
        self._selector.register(service, selectors.EVENT_READ, self._read)
        self.send({"hello": PROTOCOL, **self._greet()})

    def _read(self) -> None:
        if self._service is None:
            return
        try:
            chunk = self._service.recv(_READ_BYTES)
        except BlockingIOError:
            return  # woken because there is room to write: the turn ends with `flush`
        except OSError:
            chunk = b""
        if not chunk:
            self._drop()
            return
        self._inbox += chunk
        if b"\n" in chunk:
            *lines, self._inbox = self._inbox.split(b"\n")
            for line in lines:
                self._take(line)

    def _take(self, line: bytearray) -> None:
        try:
            self._obey(json.loads(line.decode()))
        except (ValueError, KeyError, TypeError):
            self._drop()  # not our protocol: better no service than a wrong one

    def _drop(self) -> None:
        if self._service is not None:
            self._selector.unregister(self._service)
            self._service.close()
            self._service = None
        self._inbox.clear()
        self._outbox.clear()

"""One connection to the service's own port: uvicorn's, with limits for what is no body and errors of our form.

Never reads a body, and never knows a path. Invariants: a request's address and header fields, and so the fields behind
a chunked body, take no more memory than `HEAD_BYTES_MAX` and one read beyond it; who begins none, or falls silent in
one, is not waited for for ever; what is no HTTP is answered like every other error.

>>> uvicorn.Config(app, http=Connection)   # doctest: +SKIP
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from clickclock.foundation.errors import Malformed
from clickclock.foundation.ids import new_id
from clickclock.foundation.problem import problem

HEAD_BYTES_MAX = 2**17
"""httptools takes an address of 64 KiB, and fields of that length say more than enough."""
UNREADABLE = (
    "This is no request of HTTP/1.1 whose address is ASCII and has at most 65,535 bytes; percent-encode the rest."
)
TOO_LONG = f"The address and the header fields are longer than {HEAD_BYTES_MAX:,} bytes; send less beside the body."


class Connection(HttpToolsProtocol):
    """Reads requests, and answers those that cannot be read."""

    silence_s_max = 30.0
    """Seconds until the first piece of a request, and between two of them."""
    cycle: RequestResponseCycle | None  # type: ignore[assignment] # None before the first request, whatever uvicorn says
    _is_in_head = False
    _bodiless_bytes = 0
    """Read since a request began, its header fields ended, or a piece of its body came; that read not counted."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._wait_for_more()

    def data_received(self, data: bytes) -> None:
        self._bodiless_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._bodiless_bytes > HEAD_BYTES_MAX:
            self.send_400_response(TOO_LONG)
        elif self._is_the_clients_turn():
            self._wait_for_more()

    def _is_the_clients_turn(self) -> bool:
        if self.cycle is None or self.cycle.response_complete:
            return self._is_in_head
        return self.cycle.more_body and not self.pipeline  # nor a request that waits for the answer to the one before

    def _wait_for_more(self) -> None:
        # uvicorn's own timer, with which it waits for the next request: it is taken back by whatever comes.
        self.timeout_keep_alive_task = self.loop.call_later(self.silence_s_max, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        self._is_in_head, self._bodiless_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head, self._bodiless_bytes = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._bodiless_bytes = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Tell what is wrong, and hang up."""
        request_id = new_id()
        told = problem(Malformed(msg if msg == TOO_LONG else UNREADABLE), request_id)
        headers = (
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(told.body)),
            (b"x-request-id", request_id.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        )
        lines = [b"HTTP/1.1 %d Bad Request" % told.status, *(b"%s: %s" % each for each in headers), b"", told.body]
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()

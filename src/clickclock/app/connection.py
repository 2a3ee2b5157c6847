"""One connection to the service's own port: uvicorn's, with limits for what is no body and errors of our form.

Never reads a body, and never knows a path. Invariants: a request's address and header fields, and so the fields behind
a chunked body, take no more memory than `HEAD_BYTES_MAX` and one read beyond it; who begins none, or falls silent in
one, is not waited for for ever; what is no HTTP is answered like every other error, after all that was asked before it;
the offer of another protocol changes nothing, and no body is read as a request.

>>> uvicorn.Config(app, http=Connection)   # doctest: +SKIP
"""

import asyncio
import logging
from typing import Self

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from clickclock.app.peer import Peers
from clickclock.foundation.access import SAME_USER
from clickclock.foundation.errors import Malformed
from clickclock.foundation.framing import HTTP_2_GOODBYE, fault, is_http_2, unreadable, without_offer
from clickclock.foundation.ids import new_id
from clickclock.foundation.problem import problem

HEAD_BYTES_MAX = 2**17
"""httptools takes an address of 64 KiB, and fields of that length say more than enough."""
BAD_ADDRESS = "The address is no path with a query in ASCII of at most 65,535 bytes; percent-encode the rest."
TOO_LONG = f"The address and the header fields are longer than {HEAD_BYTES_MAX:,} bytes; send less beside the body."
_log = logging.getLogger(__name__)


class Connection(HttpToolsProtocol):
    """Reads requests, and answers those that cannot be read."""

    silence_s_max = 30.0
    """Seconds until the first piece of a request, and between two of them."""
    cycle: RequestResponseCycle | None  # type: ignore[assignment] # None before the first request, whatever uvicorn says
    _is_in_head = False
    _bodiless_bytes = 0
    """Read since a request began, its header fields ended, or a piece of its body came; that read not counted."""
    _last_words = b""
    """The answer to what could not be read. Nothing after that is read."""

    peers: Peers | None = None
    """Who knows whose process is at the other end; None where nobody wants to know."""
    _is_same_user = False

    @classmethod
    def knowing(cls, peers: Peers | None) -> type[Self]:
        """Connections that ask this once, when they are made."""
        return type(cls.__name__, (cls,), {"peers": peers})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        if self.peers is not None and self.client is not None and self.server is not None:
            self._is_same_user = self.peers.is_same_user(self.client, (self.server[0], self.server[1] or 0))
        self._wait_for_more()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        if self._last_words:
            return
        self._bodiless_bytes += len(data)
        try:
            self._parse(data)
        except HttpParserError as error:
            if is_http_2(error) and self.cycle is None:
                self._last_words = HTTP_2_GOODBYE
                self._hang_up()
            else:
                self.send_400_response(_sentence(error))
            return
        if self.transport.is_closing():
            return
        if self._bodiless_bytes > HEAD_BYTES_MAX:
            self.send_400_response(TOO_LONG)
        elif self._is_the_clients_turn():
            self._wait_for_more()

    def _parse(self, data: bytes | memoryview) -> None:
        while data:
            parser = self.parser
            try:
                parser.feed_data(data)
            except HttpParserUpgrade as offer:
                # We speak nothing else. The parser would take the body for a request.
                head = without_offer(parser.get_method(), self.url, parser.get_http_version(), self.headers)
                self.parser = HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's
                self.parser.feed_data(head)
                data = memoryview(data)[offer.args[0] :]
            else:
                return

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
        if self._is_same_user:
            self.scope[SAME_USER] = True  # type: ignore[typeddict-unknown-key]  # our own

    def on_headers_complete(self) -> None:
        self._is_in_head, self._bodiless_bytes = False, 0
        method, version = self.parser.get_method(), self.parser.get_http_version()
        coding = b", ".join([value for name, value in self.headers if name == b"transfer-encoding"]).lower()
        # A CONNECT has no body, and makes an offer that cannot be left out.
        doubt = fault(method, version, coding, has_body=method == b"CONNECT")
        if doubt is not None:
            raise Malformed(doubt)
        if self.parser.should_upgrade():
            return
        if version == "1.0":
            self.expect_100_continue = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._bodiless_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        was_last = not self.pipeline
        super().on_response_complete()
        if was_last and self._last_words:
            self._hang_up()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong when all that was asked before has its answer, and hang up."""
        _log.warning("a request could not be read: %s", msg)
        self._last_words = _last_words(msg, self.server_state.default_headers)
        broken = self.cycle if self.cycle is not None and self.cycle.more_body else None
        if broken is not None and broken in (waiting := [cycle for cycle, _ in self.pipeline]):
            del self.pipeline[waiting.index(broken)]
        elif broken is not None and broken.response_started:
            self.transport.close()  # it has an answer, or half of one
        elif broken is not None or self.cycle is None or self.cycle.response_complete:
            self._hang_up()

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(self._last_words)
            self.transport.close()


def _sentence(error: HttpParserError) -> str:
    if not isinstance(error, HttpParserCallbackError):
        return unreadable(error)
    return str(error.__context__) if isinstance(error.__context__, Malformed) else BAD_ADDRESS


def _last_words(message: str, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    request_id = new_id()
    told = problem(Malformed(message), request_id)
    headers = (
        *default_headers,
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(told.body)),
        (b"x-request-id", request_id.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"connection", b"close"),
    )
    lines = [b"HTTP/1.1 %d Bad Request" % told.status, *(b"%s: %s" % each for each in headers), b"", told.body]
    return b"\r\n".join(lines)

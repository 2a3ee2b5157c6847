"""One connection to the service's own port: uvicorn's, with limits for what is no body and errors of our form.

Never reads a body, and never knows a path. Invariants: a request's address and header fields, and so the fields behind
a chunked body, take no more memory than `HEAD_BYTES_MAX` and one read beyond it; all connections together stay within
their `Budget`; who begins no request, or falls silent in one, is not waited for for ever, and a head and a body have so
long in all, however often a byte of them comes; what is no HTTP is answered like every other error, after all that was
asked before it; the offer of another protocol changes nothing, and no body is read as a request.

>>> uvicorn.Config(app, http=Connection)   # doctest: +SKIP
"""

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Self

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from clickclock.app.budget import Budget
from clickclock.app.peer import Peers
from clickclock.foundation.access import CERTIFICATE, SAME_USER
from clickclock.foundation.errors import ClickclockError, Malformed
from clickclock.foundation.framing import HTTP_2_GOODBYE, fault, is_http_2, unreadable, without_offer
from clickclock.foundation.gate import CLOSED
from clickclock.foundation.ids import new_id
from clickclock.foundation.problem import TooManyBodies, TooManyConnections, TooSlow, problem
from clickclock.foundation.reach import is_loopback

HEAD_BYTES_MAX = 2**17
"""httptools takes an address of 64 KiB, and fields of that length say more than enough."""
BAD_ADDRESS = "The address is no path with a query in ASCII of at most 65,535 bytes; percent-encode the rest."
TOO_LONG = f"The address and the header fields are longer than {HEAD_BYTES_MAX:,} bytes; send less beside the body."
_log = logging.getLogger(__name__)


class Connection(HttpToolsProtocol):
    """Reads requests, and answers those that cannot be read."""

    silence_s_max = 30.0
    """Seconds until the first piece of a request, and between two of them."""
    head_s_max = 20.0
    """Seconds from the first piece of a request to the end of its header fields."""
    body_s_max = 120.0
    """Seconds from there to the end of its body: the longest one takes so long at half a megabit a second."""
    budget = Budget()
    cycle: RequestResponseCycle | None  # type: ignore[assignment] # None before the first request, whatever uvicorn says
    _is_in_head = False
    _bodiless_bytes = 0
    """Read since a request began, its header fields ended, or a piece of its body came; that read not counted."""
    _last_words = b""
    """The answer to what could not be read. Nothing after that is read."""
    _parts = 0
    """Heads and bodies that have begun; by its number, the one that is timed is known."""
    _timed = 0
    _timer: asyncio.TimerHandle | None = None

    peers: Peers | None = None
    """The one that knows whose process is at the other end; None if nobody needs it."""
    _is_same_user = False
    _names: tuple[str, ...] = ()
    """Of the certificate that the other end has proved to be its."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._held: dict[RequestResponseCycle, int] = {}

    @classmethod
    def knowing(cls, peers: Peers | None, budget: Budget) -> type[Self]:
        """Connections that ask this once, when they are made, and share this budget."""
        return type(cls.__name__, (cls,), {"peers": peers, "budget": budget})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        if len(self.connections) > self.budget.connections_max:
            self._refuse(TooManyConnections())
            return
        if self.peers is not None and self.client is not None and self.server is not None:
            self._is_same_user = self.peers.is_same_user(self.client, (self.server[0], self.server[1] or 0))
        self._names = _names(transport.get_extra_info("peercert"))
        self._wait_for_more()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._give_back(list(self._held))
        if self._timer is not None:
            self._timer.cancel()

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
                self._refuse(_fault(error))
            return
        if self.transport.is_closing():
            return
        self._keep_time()
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

    def _keep_time(self) -> None:
        """Give the part of a request that has begun and not ended its time, in all."""
        is_in_body = self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete
        part = self._parts if self._is_in_head or is_in_body else 0
        if part == self._timed:
            return
        if self._timer is not None:
            self._timer.cancel()
        within_s = self.head_s_max if self._is_in_head else self.body_s_max
        self._timed, self._timer = part, self.loop.call_later(within_s, self._refuse, TooSlow()) if part else None

    def _give_back(self, cycles: list[RequestResponseCycle]) -> None:
        for cycle in cycles:
            self.budget.bodies_bytes -= self._held.pop(cycle)

    def _wait_for_more(self) -> None:
        # uvicorn's own timer, with which it waits for the next request: it is taken back by whatever comes.
        self.timeout_keep_alive_task = self.loop.call_later(self.silence_s_max, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        self._is_in_head, self._bodiless_bytes = True, 0
        self._parts += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head, self._bodiless_bytes = False, 0
        self._parts += 1
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
        if (self._is_same_user or self._names) and not _is_passed_on(self.headers):
            self.scope[SAME_USER] = self._is_same_user  # type: ignore[typeddict-unknown-key]  # our own
            self.scope[CERTIFICATE] = self._names  # type: ignore[typeddict-unknown-key]  # our own
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._bodiless_bytes = 0
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if not self.budget.has_room(len(body)):
                raise TooManyBodies
            self.budget.bodies_bytes += len(body)
            self._held[cycle] = self._held.get(cycle, 0) + len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        was_last = not self.pipeline
        super().on_response_complete()
        if self._held:
            self._give_back([cycle for cycle in self._held if cycle.response_complete])
        if was_last and self._last_words:
            self._hang_up()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Malformed(msg))

    def _refuse(self, error: ClickclockError) -> None:
        """Say what is wrong when all that was asked before has its answer, and hang up."""
        _log.warning("a request could not be read: %s", error)
        self._last_words = _last_words(error, self.server_state.default_headers)
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


def _names(certificate: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The names of a client's certificate: its common name first, then the others; none without one."""
    if not certificate:
        return ()
    subject = [value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"]
    return (*subject, *(value for _, value in certificate.get("subjectAltName", ())))


def _is_passed_on(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a proxy asks for somebody on another machine: it may be ours, and who is behind it is not."""
    said = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
    return any(not is_loopback(hop.strip()) for value in said for hop in value.split(","))


def _fault(error: HttpParserError) -> ClickclockError:
    if not isinstance(error, HttpParserCallbackError):
        return Malformed(unreadable(error))
    return error.__context__ if isinstance(error.__context__, ClickclockError) else Malformed(BAD_ADDRESS)


def _last_words(error: ClickclockError, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    request_id = new_id()
    told = problem(error, request_id)
    headers = (
        *default_headers,
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(told.body)),
        (b"x-request-id", request_id.encode()),
        *CLOSED,
        (b"connection", b"close"),
        *((name.encode(), value.encode()) for name, value in told.headers.items()),
    )
    first = b"HTTP/1.1 %d %s" % (told.status, HTTPStatus(told.status).phrase.encode())
    return b"\r\n".join([first, *(b"%s: %s" % each for each in headers), b"", told.body])

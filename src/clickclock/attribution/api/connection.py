"""One connection of a client, from its first byte to its last.

Never decides what an answer says, only that it goes out, once, in the order of the requests, and not before what it
acknowledges is on disk. Invariants: a request costs no task, no future and no timer; whatever a client does, it gets an
answer or the end of its connection, and costs nobody else theirs; what a connection may hold is bounded.

>>> loop.create_server(lambda: Connection(shared), sock=listening)   # doctest: +SKIP
"""

import asyncio
import logging
from typing import Final, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from clickclock.attribution.api.answers import CLOSED, GOODBYE, Answer
from clickclock.attribution.api.fast_path import ARRIVED, QUIET
from clickclock.attribution.api.head import body_too_long, query_too_long, read
from clickclock.attribution.api.refusing import Refusing, Stop
from clickclock.attribution.api.request import Later, Request
from clickclock.attribution.api.routes import CLICKS, VIEWS
from clickclock.attribution.api.shared import Shared
from clickclock.attribution.clicks.country import located
from clickclock.attribution.clicks.template import NOTHING
from clickclock.attribution.files.counters import cell
from clickclock.attribution.registering.refusal import Code, Refusal
from clickclock.foundation.framing import VERSIONS, is_http_2, unreadable, without_offer

PIECE_BYTES: Final = 16 * 1024
"""So much is parsed at a time, then it is looked at what came of it."""
_PATH_BYTES_MAX: Final = 1024
_CONNECTIONS: Final = cell("clickclock_refused_total", "connections")
_BODIES: Final = cell("clickclock_refused_total", "bodies")
_BLANK_LINE: Final = b"\r\n\r\n"
_SPACES: Final = 2  # in a request line
_REPEATED_BYTES_MAX: Final = 2048
"""A longer block is parsed each time: it would be kept for every connection."""
_ONLY_ASCII: Final = bytes(range(128)) + b"x" * 128

_log = logging.getLogger(__name__)


class Connection(Refusing):
    """One client."""

    __slots__ = (
        "_clicked",
        "_fed",
        "_is_said_again",
        "_rest_said",
        "_said",
        "_salt_number",
        "_seen_s",
        "_turn_is_over",
        "accepted",
        "columns",
        "request",
        "rest_bytes",
        "template",
    )

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._parser = HttpRequestParser(self)
        self._fed = b""
        self._said: list[tuple[bytes, bytes]] | None = None
        """The header block before this one; who repeats it has it read once."""
        self._salt_number = 0
        """The salt of the origin of that block, as `Shared` counts them."""
        self._rest_said = b""
        """All of the last request behind its query, if the one before it had the same."""
        self._is_said_again = self._turn_is_over = False
        self._clicked = b""
        """The target of the last request, if it was a click that changed nothing about the connection."""
        self.request, self.rest_bytes = b"", 0
        self.template, self.columns, self.accepted = NOTHING, b"", ARRIVED
        self._seen_s = shared.now_s

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        shared = self._shared
        shared.came(self)
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if isinstance(peer, tuple) else ""
        self.transport.set_write_buffer_limits(shared.limits.unsent_bytes_max)
        if shared.is_draining:
            self.ending = True
            self.transport.close()
        elif len(shared.connections) > shared.limits.connections_max:
            shared.cells[_CONNECTIONS] += 1
            sentence = "Too many connections are open. Nothing was kept."
            self._hear_no_more(shared.answers.unavailable(sentence, CLOSED))

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        shared = self._shared
        shared.went(self)
        self._drop_body()
        self.transport = self._parser = None
        del self._on_disk
        self.unfed = b""
        # What waits for the disk is still told, and then counted. The client is gone, its clicks are kept.
        self.ending = True

    def data_received(self, data: bytes) -> None:
        shared = self._shared
        self._seen_s = shared.now_s
        if (self.click is QUIET or self._is_at_rest()) and data.endswith(self._rest_said):
            self.click = ARRIVED
            self.request = data
            shared.arrivals.add(self)
            return
        shared.received_bytes += len(data)
        self._settle()
        self._read(data)

    def _is_at_rest(self) -> bool:
        """Whether the client repeats itself, and nothing of it waits or is half here."""
        return bool(self._rest_said) and not (self.click or self.waiting or self._begun_s or self.ending or self.unfed)

    def forget_origin(self) -> None:
        self._settle()
        self._rest_said = b""

    def read_again(self) -> None:
        self.click = None
        self._read(self.request)

    def _read(self, data: bytes) -> None:
        if (
            not data.endswith(_BLANK_LINE)
            or data.find(_BLANK_LINE) + len(_BLANK_LINE) != len(data)  # other than one request without a body
            or self._begun_s
            or self.ending
            or self.unfed
            or not data.isascii()
            or len(data) > PIECE_BYTES
            or self._has_many_waiting()
        ):
            self._take(data)
            return
        self._feed(data)
        if self._is_said_again:
            self._learn(data)

    def eof_received(self) -> bool:
        # A client may end its side when it has asked; it still gets its answers. Half a line stays half a line.
        self._settle()
        self._eof, self.unfed, self._held = True, b"" if self._held else self.unfed, False
        self.ending = self.ending or not self.unfed
        return bool(self.waiting or self.unfed) and not self._lingers

    # What the parser calls.

    def on_url(self, url: bytes) -> None:
        self._begun_s = self._begun_s or self._shared.now_s
        self._target += url
        limits = self._shared.limits
        if len(self._target) > limits.query_bytes_max + _PATH_BYTES_MAX:
            self._refuse(query_too_long(limits.query_bytes_max), is_cut=True)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        if len(self._headers) > self._shared.limits.headers_max:
            sentence = f"Send at most {self._shared.limits.headers_max} header fields."
            self._refuse(Refusal(431, Code.HEADERS_TOO_LARGE, sentence))

    def on_headers_complete(self) -> None:
        headers = self._headers
        if headers == self._said and self._salt_number == self._shared.salt_number:
            headers.clear()
            self._is_said_again = not self._rest_said
        else:
            self._rest_said, self.template = b"", NOTHING
            self.head = head = read(headers)
            head.origin = self._shared.origins.of(self._peer, head.forwarded, head.agent, head.referer)
            head.country = self._shared.origins.country(self._peer, head.forwarded)
            self._said, self._headers = headers, []
            self._salt_number = self._shared.salt_number
        if self.head.is_unusual or cast(HttpRequestParser, self._parser).get_http_version() not in VERSIONS:
            self._left_bytes, self._body = self.head.content_length, bytearray() if self.head.has_body else None
            self._check_head(self.head)

    def on_body(self, data: bytes) -> None:
        shared, self._partial_bytes = self._shared, 0  # what may come between two pieces of a body is limited, too
        if self._body is None:
            self._body = bytearray()
        self._body += data
        self._left_bytes = max(0, self._left_bytes - len(data))  # of a chunked one nobody knows
        shared.bodies_bytes += len(data)
        most = shared.routes.body_bytes_max(self._target.partition(b"?")[0])
        if len(self._body) > most:
            self._refuse(body_too_long(most), is_cut=True)
        if shared.bodies_bytes > shared.limits.bodies_bytes_max:
            shared.cells[_BODIES] += 1
            sentence = "Too many large requests are under way. Nothing was kept."
            self._hear_no_more(shared.answers.unavailable(sentence, CLOSED))
            raise Stop

    def on_message_complete(self) -> None:
        shared, head, parser = self._shared, self.head, self._parser
        assert parser is not None
        if head.has_body and parser.should_upgrade():
            return  # it takes the body for the other protocol's: see `_feed`
        target, self._target = self._target, b""
        self._begun_s, self._partial_bytes = 0.0, 0
        if parser.should_keep_alive() and not shared.is_draining:
            persistence = head.persistence
        else:
            persistence, self.ending = CLOSED, True
        method = parser.get_method()
        path, _, query = target.partition(b"?")
        answer: Answer | Later
        self._clicked = b""
        is_known = path in (CLICKS, VIEWS) and method == b"GET"
        if is_known and head.is_simple and len(query) <= shared.limits.query_bytes_max:
            is_view = path == VIEWS
            query = located(query, head.country)
            answer = shared.routes.click(query, head.origin, persistence, self._on_disk, is_view=is_view)
            if persistence is head.persistence and not is_view:
                self._clicked = target
        else:
            body = bytes(self._body or b"")
            self._drop_body()
            self._headers.clear()  # fields behind a chunked body say nothing here
            request = Request(method, path, query, head, body, persistence, self._on_disk, self._peer)
            answer = shared.routes.answer(request, self._flush)
            self._turn_is_over = True
        if isinstance(answer, Later) or answer.kept:
            self.waiting.append(answer)
        else:
            self._say(answer)
            self._turn_is_over = True

    # Reading.

    def _learn(self, data: bytes) -> None:
        """This client repeats itself: what follows its query is the same each time, and need not be parsed again."""
        self._is_said_again = False
        start = b"GET " + self._clicked
        is_so = self._clicked and data.startswith(start + b" HTTP/1.1\r\n") and not (self._begun_s or self.ending)
        if is_so and len(data) - len(start) <= _REPEATED_BYTES_MAX:
            self._rest_said = data[len(start) :]
            self.rest_bytes = len(self._rest_said)
        self._clicked = b""

    def _feed(self, data: bytes | memoryview, raw: bytes | None = None) -> None:
        """Parse it. `raw` is what came, if the parser gets something else in its place."""
        self._begun_s = self._begun_s or self._shared.now_s
        parser = cast(HttpRequestParser, self._parser)
        try:
            parser.feed_data(data)
        except HttpParserUpgrade as offer:
            # We speak nothing else and pass over the offer: the body is one, and what follows it is HTTP as before.
            if target := self._target:
                self._target, self._parser = b"", HttpRequestParser(self)
                line = parser.get_method(), target.translate(_ONLY_ASCII), parser.get_http_version()
                self._feed(without_offer(*line, self._said or []))
                self._target = target if self._begun_s else b""
            if (rest := data[offer.args[0] :]) and not self.ending:
                self._feed(rest)
            return
        except HttpParserCallbackError as error:
            if not isinstance(error.__context__, Stop):
                _log.exception("a request could not be answered", exc_info=error.__context__)
                self._hear_no_more(self._shared.routes.private.broken())
        except HttpParserError as error:
            if not self.ending and is_http_2(error) and self._said is None:
                self._hear_no_more(GOODBYE)
            elif not self.ending:  # else it is only more than was to come
                self._refuse_unreadable(unreadable(error), bytes(data if raw is None else raw))
        if self._begun_s:
            self._look_at_partial(len(data))

    def _look_at_partial(self, size: int) -> None:
        """A request that is not whole: its headers, and fields behind a chunked body, may not go on for ever."""
        self._partial_bytes += size
        limits = self._shared.limits
        most = limits.headers_bytes_max + limits.query_bytes_max + PIECE_BYTES
        if self._partial_bytes > most and not self.ending:
            self._refuse_headers()

    def _take(self, data: bytes) -> None:
        """Handle what is long, unusual, or comes while the client waits: piece by piece."""
        if self.ending:
            self._partial_bytes += len(data)
            if self._partial_bytes > self._shared.limits.discarded_bytes_max:
                self.abort()
            return
        data, self.unfed = self.unfed + data, b""
        view, at, self._turn_is_over = memoryview(data), 0, False
        while at < len(data) and not self.ending:
            must_wait = self._has_many_waiting() or self._stuck_s
            if must_wait or self._turn_is_over:
                self.unfed = data[at:]
                assert self.transport is not None
                self.transport.pause_reading()
                if not must_wait:  # but what may take long was answered: all other connections go first
                    asyncio.get_running_loop().call_soon(self._go_on)
                return
            if (self._held or not self._begun_s) and (raw := self._raw_line(data, at)):
                if raw < 0:
                    self.unfed, self._held = data[at:], True
                    self._begun_s = self._begun_s or self._shared.now_s
                    return
                at, self._fed = raw, _BLANK_LINE[:2]
                continue
            self._held = False
            end = at + min(PIECE_BYTES, self._left_bytes or PIECE_BYTES)
            # Behind a blank line, of which a part may have come before, the next request may begin, as behind a body.
            begun = at - len(self._fed)
            blank = (self._fed + data[at:end]).find(_BLANK_LINE)
            end = end if blank < 0 else min(end, begun + blank + len(_BLANK_LINE))
            self._feed(view[at:end])
            self._fed = (self._fed + data[at:end])[1 - len(_BLANK_LINE) :]
            at = end
        if self._eof:
            self.ending = True
            self._rest()

    def _raw_line(self, data: bytes, at: int) -> int:
        """Parse a request line with bytes above 7F in its target, which the parser would refuse, once it is whole.

        Returns where it goes on, -1 if the line is not whole yet, 0 if it is an ordinary one.
        """
        end = data.find(b"\r\n", at)
        line = data[at : end if end >= 0 else len(data)]
        if len(line) > self._shared.limits.query_bytes_max + _PATH_BYTES_MAX or not line[:1].isupper():
            return 0  # for the parser to refuse
        if end < 0:
            return 0 if b"\n" in line else -1
        if line.isascii() or line.count(b" ") != _SPACES:
            return 0
        self._held = False
        self._feed(line.translate(_ONLY_ASCII) + b"\r\n", line + b"\r\n")
        if not self.ending:
            self._target = line.split(b" ")[1]
        return end + 2

    def _go_on(self) -> None:
        """Read on, first what came already."""
        if self.transport is not None and not self._stuck_s:
            data, self.unfed = self.unfed, b""
            self.transport.resume_reading()
            self._take(data)

    # Ending.

    def check(self) -> None:
        """End it if it took too long; to be called every second or so."""
        shared = self._shared
        now_s, limits, transport = shared.now_s, shared.limits, self.transport
        if transport is None:
            return
        if self._stuck_s:
            if now_s - self._stuck_s > limits.unsent_s:
                transport.abort()
        elif self._lingers:
            quiet_s = now_s - max(self._seen_s, self._begun_s)
            if quiet_s > limits.linger_s or now_s - self._begun_s > limits.body_s:
                transport.abort()
        elif self.waiting or (self.click and self.click is not QUIET):
            return
        elif self.ending:
            if now_s - self._seen_s > limits.unsent_s:  # it is closed as soon as the client has read the rest
                transport.abort()
        elif self._begun_s:
            if now_s - self._begun_s > (limits.request_s if self._body is None else limits.body_s):
                sentence = "The rest of the request did not come in time; send it again. Nothing was kept."
                self._hear_no_more(shared.answers.problem(408, "tooSlow", sentence, CLOSED))
        elif now_s - self._seen_s > limits.idle_s:
            transport.close()

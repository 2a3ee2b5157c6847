"""The half of a connection that refuses: a request that is none, or that is over a limit, is the connection's last.

Never judges. Invariants: an answer that says that a request is kept goes out when it is on disk; what a refused
request held in memory is let go of at once.

>>> refusing._refuse(body_too_long(5))   # doctest: +SKIP
"""

from typing import Never

from httptools import HttpRequestParser

from clickclock.attribution.api.answers import CLOSED, CONTINUE, Answer
from clickclock.attribution.api.head import HEADERS_TOO_LONG, Head, fault, read
from clickclock.attribution.api.outgoing import Outgoing
from clickclock.attribution.api.shared import Shared
from clickclock.attribution.registering.refusal import CUT_BYTES_MAX, Code, Refusal, target_in


class Stop(Exception):
    """Raised through the parser: nothing more of this connection is parsed."""


class Refusing(Outgoing):
    """A request that is not whole yet, and how it is refused."""

    __slots__ = ("_body", "_headers", "_left_bytes", "_parser", "_peer", "_target", "head")

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._peer = ""
        self._parser: HttpRequestParser | None = None
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self.head = Head()
        self._body: bytearray | None = None
        self._left_bytes = 0  # of a body whose length was said, what has not come

    def _check_head(self, head: Head) -> None:
        """Refuse a faulty head, or ask for the body where the client waits for that."""
        assert self._parser is not None
        most = self._shared.routes.body_bytes_max(self._target.partition(b"?")[0])
        version = self._parser.get_http_version()
        if found := fault(self._parser.get_method(), version, head, self._shared.limits, most):
            self._refuse(found, head=head, is_cut=head.has_body)
        if head.expects and head.has_body and version == "1.1" and not self._parser.should_upgrade():
            self._say(CONTINUE)

    def _refuse(self, refusal: Refusal, *, head: Head | None = None, is_cut: bool = False) -> Never:
        """Out of the parser."""
        self._turn_away(refusal, self._target, head, is_cut=is_cut)
        raise Stop

    def _refuse_unreadable(self, sentence: str, data: bytes) -> None:
        """What the parser does not take for a request. `data` is the piece of it that came last."""
        target, is_cut = self._target, self._body is not None or not self._headers
        if is_cut and self._body is None:  # so the line itself may be wrong, and the parser has told only its beginning
            line, is_whole = target_in(data)
            target, is_cut = (line, not is_whole) if line.startswith(target[:1] or line) else (target, True)
        if b" " in target:
            sentence = "There is a space in the address, where it ends; write it as %20."
        self._turn_away(Refusal(400, Code.MALFORMED, sentence), target, None, is_cut=is_cut)

    def _refuse_headers(self) -> None:
        """More than all header fields may be, or what stands behind a piece of a body."""
        sentence = HEADERS_TOO_LONG % self._shared.limits.headers_bytes_max
        is_cut = self._body is not None or not self._headers
        self._turn_away(Refusal(431, Code.HEADERS_TOO_LARGE, sentence), self._target, None, is_cut=is_cut)

    def _turn_away(self, refusal: Refusal, target: bytes, head: Head | None, *, is_cut: bool) -> None:
        """Keep what there is of a click or an order in the request, and answer; this ends the connection."""
        shared = self._shared
        if head is None and self._body is not None:
            head = self.head
        if head is None:  # it is not whole; what came of it says whence it came
            head = read(self._headers)
            head.origin = shared.origins.of(self._peer, head.forwarded, head.agent, head.referer)
        path, _, query = target.partition(b"?")
        body = bytes(self._body[:CUT_BYTES_MAX] if self._body else b"")
        answer = shared.routes.refuse(
            refusal,
            path,
            query[:CUT_BYTES_MAX],
            body,
            head.origin,
            CLOSED,
            self._on_disk,
            is_cut=is_cut,
            is_prefetch=head.is_prefetch,
        )
        self._hear_no_more(answer)

    def _hear_no_more(self, answer: Answer) -> None:
        """The last answer of this connection."""
        self.ending = True
        self._begun_s = self._begun_s or self._shared.now_s or 1.0
        self._drop_body()
        if answer.kept:
            self.waiting.append(answer)
        else:
            self._say(answer)

    def _drop_body(self) -> None:
        if self._body is not None:
            self._shared.bodies_bytes -= len(self._body)
            self._body = None

r"""Answers of the collector's port, as bytes: most are made once a second, with the second's date, and used many times.

Never decides what is answered. Invariants: whoever asked with HEAD gets no body; a 204 has none and no length; scripts
of any page may read what pages ask for, and nothing else; none is cached unless it says so, and no body is framed.

>>> Answers(0).simple(204, b"").data.split(b"\r\n")[0]
b'HTTP/1.1 204 No Content'
"""

import json
from collections.abc import Iterable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final

from uuid_utils import uuid7

from clickclock.attribution.clicks.account import Profile
from clickclock.attribution.files.counters import STATUSES, cell
from clickclock.foundation.errors import Fault
from clickclock.foundation.framing import HTTP_2_GOODBYE
from clickclock.foundation.problem import INTERNAL, INTERNAL_SENTENCE

OPEN: Final = b""
"""The connection stays open, as HTTP/1.1 means it."""
KEPT: Final = b"Connection: keep-alive\r\n"
"""It stays open because the client asked for it: one of HTTP/1.0 wants to hear it."""
CLOSED: Final = b"Connection: close\r\n"
RETRY_AFTER: Final = b"Retry-After: 1\r\n"
JSON: Final = b"Content-Type: application/json\r\n"
REQUEST_ID: Final = b"X-Request-Id: %b\r\n"
"""Every refusal has it, as the answer to a HEAD has no body."""

_LINES: Final = {int(each): f"HTTP/1.1 {int(each)} {HTTPStatus(int(each)).phrase}\r\n".encode() for each in STATUSES}
_VIEWED: Final = cell("clickclock_views_total")
_CELLS: Final = {int(each): cell("clickclock_responses_total", each) for each in STATUSES}
STAY: Final = b"Strict-Transport-Security: max-age=31536000\r\n"
"""A browser that was here once never comes without TLS again."""
FOR_PAGES: Final = b"Access-Control-Allow-Origin: *\r\n"
"""Scripts of any page may read the answer."""
_BODY: Final = (
    b"X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
    b"Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
)
_UNCACHED: Final = b"Cache-Control: no-store\r\n"


class Answer:
    """One answer. `kept` are the numbers that count up once what it acknowledges is on disk, whoever still listens."""

    __slots__ = ("data", "is_head", "kept", "persistence", "status", "uses")

    def __init__(
        self, data: bytes, status: int, persistence: bytes = OPEN, kept: Iterable[int] = (), *, is_head: bool = False
    ) -> None:
        self.data = data
        self.status = status
        """The cell in which answers of this status are counted."""
        self.persistence = persistence
        self.kept = tuple(kept)
        self.is_head = is_head
        self.uses = 0
        """How often it was kept and written since that was last counted."""


CONTINUE: Final = Answer(b"HTTP/1.1 100 Continue\r\n\r\n", cell("clickclock_responses_total", "100"))
"""Goes before an answer."""
GOODBYE: Final = Answer(HTTP_2_GOODBYE, cell("clickclock_responses_total", "400"), CLOSED)
"""For a client that begins with HTTP/2."""


class Answers:
    """Makes answers of the present second."""

    def __init__(self, now_s: float, usual: bytes = FOR_PAGES) -> None:
        """`usual` are the header lines of all of them."""
        self.date = b""
        self._usual = usual
        self.accepted = {
            profile: {each: self.click(profile, (), each) for each in (OPEN, KEPT, CLOSED)} for profile in Profile
        }
        """The 204 of a click without flags, by its profile and what becomes of the connection: always the same ones."""
        self.viewed = {each: self.view(each) for each in (OPEN, KEPT, CLOSED)}
        """The same of a view."""
        self._unavailable: dict[tuple[str, bytes, bool], Answer] = {}
        self.refresh(now_s)

    def refresh(self, now_s: float) -> None:
        """Let answers carry the date of `now_s` (seconds since 1970) from now on."""
        self.date = f"Date: {formatdate(now_s, usegmt=True)}\r\n".encode()
        self._unavailable.clear()
        for profile, answers in self.accepted.items():
            for persistence, answer in answers.items():
                answer.data = self.click(profile, (), persistence).data
        for persistence, answer in self.viewed.items():
            answer.data = self.view(persistence).data

    def click(self, profile: Profile, flags: Iterable[str], persistence: bytes, *, is_head: bool = False) -> Answer:
        """The 204 of a click."""
        kept = [cell("clickclock_clicks_total", profile)]
        kept += [cell("clickclock_click_flags_total", flag) for flag in flags]
        return self.simple(204, persistence, kept=kept, is_head=is_head)

    def view(self, persistence: bytes, *, is_head: bool = False) -> Answer:
        """The 204 of a view."""
        return self.simple(204, persistence, kept=(_VIEWED,), is_head=is_head)

    def simple(
        self,
        status: int,
        persistence: bytes,
        fields: bytes = b"",
        body: bytes | None = None,
        *,
        kept: Iterable[int] = (),
        is_head: bool = False,
        caching: bytes = _UNCACHED,
    ) -> Answer:
        """Any answer; `fields` and `caching` are header lines with their ends. `body` None: it can have none."""
        length = b"" if body is None else _BODY + b"Content-Length: %d\r\n" % len(body)
        head = b"".join((_LINES[status], self.date, self._usual, caching, fields, length, persistence, b"\r\n"))
        data = head if body is None or is_head else head + body
        return Answer(data, _CELLS[status], persistence, kept, is_head=is_head)

    def problem(  # noqa: PLR0913 (each is a part of the answer)
        self,
        status: int,
        code: str,
        message: str,
        persistence: bytes,
        *,
        faults: Iterable[Fault] = (),
        fields: bytes = b"",
        request_id: str = "",
        kept: Iterable[int] = (),
        is_head: bool = False,
    ) -> Answer:
        """A refusal, in the form of the service's other errors.

        `request_id` is the id of what was kept; where nothing was, another is made, by which the answer is known.
        """
        request_id = request_id or uuid7().hex
        fields = JSON + REQUEST_ID % request_id.encode() + fields
        body = {
            "status": "error",
            "code": code,
            "message": message,
            "errors": [_told(fault) for fault in faults],
            "requestId": request_id,
        }
        text = json.dumps(body).encode() + b"\n"
        return self.simple(status, persistence, fields, text, kept=kept, is_head=is_head)

    def broken(self) -> Answer:
        """500: a fault of ours, and the log says which."""
        return self.problem(500, INTERNAL, INTERNAL_SENTENCE, CLOSED)

    def unavailable(self, message: str, persistence: bytes, *, is_head: bool = False) -> Answer:
        """503: nothing was kept, and the same request may be sent again in a second.

        Under overload it is the commonest answer, so each is made once a second.
        """
        known = self._unavailable.get((message, persistence, is_head))
        if known is None:
            known = self.problem(503, "unavailable", message, persistence, fields=RETRY_AFTER, is_head=is_head)
            self._unavailable[message, persistence, is_head] = known
        return known


def _told(fault: Fault) -> dict[str, Any]:
    told = {"field": fault.field, "message": fault.message}
    code = getattr(fault, "code", None)
    return {**told, "code": code} if code else told

r"""Where one request ends and the next begins: the rules that both services' ports apply.

Never reads a body, and knows no path.
Invariants: a body is never read as a request, whatever the header fields say. A length that two readers could
understand in two ways is refused. The offer of another protocol changes nothing.

>>> fault(b"POST", "1.1", b"gzip, chunked", has_body=True)
'Send the body with a Content-Length, or chunked in HTTP/1.1.'
>>> without_offer(b"GET", b"/", "1.1", [(b"Upgrade", b"h2c"), (b"Host", b"h")])
b'GET / HTTP/1.1\r\nHost: h\r\n\r\n'
"""

from collections.abc import Sequence
from typing import Final

from httptools import HttpParserError

VERSIONS: Final = ("1.0", "1.1")
ONLY_HTTP_1: Final = "This port speaks HTTP/1.1 alone; send that, or put a proxy that speaks HTTP/2 in front."
_PREFACE: Final = "Pause on PRI/Upgrade"
"""The parser's words for a connection that begins with HTTP/2."""
_SETTINGS: Final = bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_GOAWAY: Final = bytes((0, 0, 8 + len(ONLY_HTTP_1), 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 13)) + ONLY_HTTP_1.encode()
HTTP_2_GOODBYE: Final = _SETTINGS + _GOAWAY
"""What a client of HTTP/2 understands (RFC 9113, section 6.8): no stream was taken, and HTTP_1_1_REQUIRED, in words."""


def fault(method: bytes, version: str, coding: bytes, *, has_body: bool) -> str | None:
    """What leaves the end of a request in doubt; None if nothing does. `coding` is that of the transfer, lower case."""
    if version not in VERSIONS:
        return ONLY_HTTP_1
    if coding not in {b"", b"chunked"} or (coding and version != "1.1"):
        return "Send the body with a Content-Length, or chunked in HTTP/1.1."
    if method == b"CONNECT" and has_body:
        return "This is no proxy: CONNECT opens no connection here, and takes no body."
    return None


def without_offer(method: bytes, target: bytes, version: str, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A request's head without its offer of another protocol, which a server may ignore (RFC 9110, section 7.8).

    The parser ends a request at a head that makes the offer, and takes its body for the other protocol. This head is
    parsed by a new parser instead, and the body after it.
    """
    line = b"%b %b HTTP/%b" % (method, target, version.encode())
    fields = [b"%b: %b" % field for field in headers if field[0].lower() != b"upgrade"]
    return b"\r\n".join((line, *fields, b"", b""))


def is_http_2(error: HttpParserError) -> bool:
    """Whether the parser refused the bytes with which a client of HTTP/2 begins."""
    return str(error) == _PREFACE


def unreadable(error: HttpParserError) -> str:
    """The sentence about bytes that the parser refuses."""
    return (
        ONLY_HTTP_1 if is_http_2(error) else f"This is no request that can be read: {str(error) or 'it is malformed'}."
    )

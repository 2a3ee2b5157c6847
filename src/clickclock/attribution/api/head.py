"""The header block of a request: what of it matters here, read once and used again while a client repeats it.

Never trusts what a client says of itself: whose forwarding counts is decided in `origin.py`.
Invariants: names are compared in any case; a field that may come several times is joined as HTTP says; a fault of the
block is told once, with the status it is answered with.

>>> read([(b"Host", b"h"), (b"USER-agent", b"curl")]).agent
b'curl'
"""

from dataclasses import dataclass
from typing import Final

from clickclock.attribution.api.answers import KEPT, OPEN
from clickclock.attribution.api.limits import Limits
from clickclock.attribution.orders.shop_order import SHOPS
from clickclock.attribution.registering.refusal import Code, Refusal
from clickclock.foundation import framing

_JOINED: Final = frozenset({b"x-forwarded-for", b"connection", b"transfer-encoding", b"if-none-match"})
_SIGNATURES: Final = frozenset(shop.signature for shop in SHOPS)
_USUAL_BYTES_MAX: Final = 4096
_PURPOSES: Final = frozenset({b"sec-purpose", b"purpose", b"x-purpose", b"x-moz"})
"""Where clients say what they ask for; the first is the standard's."""
_IN_ADVANCE: Final = (b"prefetch", b"prerender", b"preview")


@dataclass(slots=True)
class Head:
    """What a header block says."""

    agent: bytes = b""
    referer: bytes = b""
    forwarded: bytes = b""
    content_type: bytes = b""
    content_length: int = 0
    etags: bytes = b""
    hosts: int = 0
    has_body: bool = False
    coding: bytes = b""
    """Encoding of the transfer."""
    encoding: bytes = b""
    """Encoding of the content; identity is none."""
    authorization: bytes = b""
    expects: bytes = b""
    signatures: tuple[tuple[bytes, bytes], ...] = ()
    """Of a body: pairs of a field's name, in small letters, and its value."""
    is_prefetch: bool = False
    """Whether a program asks in advance, before anybody has clicked."""
    is_simple: bool = True
    """Whether a click goes the short way: there is no body, and somebody has clicked."""
    persistence: bytes = OPEN
    """What an answer says of the connection if it stays open."""
    size: int = 0
    """Bytes of the block."""
    is_unusual: bool = False
    """Whether there may be something to say before the request is whole: anything but a plain GET's head."""
    origin: bytes = b""
    """The columns of an entry that say whence it came; filled in by who knows the peer."""
    country: bytes = b""
    """The parameter that says where the visitor is, for a click that says it not itself; filled in likewise."""


def read(headers: list[tuple[bytes, bytes]]) -> Head:
    """The head of a request with these fields."""
    fields: dict[bytes, bytes] = {}
    hosts = size = 0
    for raw_name, value in headers:
        name = raw_name.lower()
        size += len(name) + len(value) + 4
        hosts += name == b"host"
        fields[name] = fields[name] + b", " + value if name in fields and name in _JOINED else value
    coding = fields.get(b"transfer-encoding", b"").strip().lower()
    length = fields.get(b"content-length", b"0").strip()
    has_body = bool(coding) or length != b"0"
    said = fields.get(b"connection", b"").lower()
    is_prefetch = not _PURPOSES.isdisjoint(fields) and any(
        purpose in fields[name].lower() for name in _PURPOSES & fields.keys() for purpose in _IN_ADVANCE
    )
    return Head(
        agent=fields.get(b"user-agent", b""),
        referer=fields.get(b"referer", b""),
        forwarded=fields.get(b"x-forwarded-for", b""),
        content_type=fields.get(b"content-type", b"").partition(b";")[0].strip().lower(),
        content_length=int(length) if length.isdigit() else 0,
        etags=fields.get(b"if-none-match", b""),
        hosts=hosts,
        has_body=has_body,
        coding=coding,
        encoding=fields.get(b"content-encoding", b"").strip().lower().replace(b"identity", b""),
        authorization=fields.get(b"authorization", b""),
        expects=fields.get(b"expect", b"").strip().lower(),
        signatures=tuple((name, fields[name].strip()) for name in _SIGNATURES & fields.keys()) if has_body else (),
        is_prefetch=is_prefetch,
        is_simple=not (has_body or is_prefetch),
        persistence=KEPT if b"keep-alive" in said else OPEN,
        size=size,
        is_unusual=has_body or hosts != 1 or size > _USUAL_BYTES_MAX or b"expect" in fields,
    )


HEADERS_TOO_LONG: Final = "The header fields are too long; send at most %d bytes of them."


def body_too_long(most: int) -> Refusal:
    """A body of more than `most` bytes."""
    return Refusal(413, Code.TOO_LARGE, f"The body is too long; send at most {most} bytes.")


def query_too_long(most: int) -> Refusal:
    """A query of more than `most` bytes."""
    return Refusal(414, Code.QUERY_TOO_LONG, f"The query is too long; send at most {most} bytes.")


def fault(method: bytes, version: str, head: Head, limits: Limits, body_bytes_max: int) -> Refusal | None:
    """The fault of a head; None if it has none. `version` is that of the request line, such as 1.1."""
    if (doubt := framing.fault(method, version, head.coding, has_body=head.has_body)) is not None:
        return Refusal(400, Code.MALFORMED, doubt)
    if head.size > limits.headers_bytes_max:
        return Refusal(431, Code.HEADERS_TOO_LARGE, HEADERS_TOO_LONG % limits.headers_bytes_max)
    if head.hosts > 1 or (not head.hosts and version == "1.1"):
        return Refusal(400, Code.MALFORMED, "Send one Host field.")
    if head.expects not in {b"", b"100-continue"}:
        return Refusal(417, Code.EXPECTATION_FAILED, "Only 100-continue may be expected.")
    if head.content_length > body_bytes_max:
        return body_too_long(body_bytes_max)
    return None

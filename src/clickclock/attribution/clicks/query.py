"""A raw query string → its parameters: one authoritative parser, and a fast one that never disagrees with it.

Never changes a value beyond undoing the encoding: nothing is trimmed, folded or repaired, and a repeated parameter has
the value that came first. Never knows what a parameter means.
Invariants: `split_plain` gives what `split` gives, or None; what it accepts has neither a control byte nor a backslash.

>>> split(b"atag=a%7Cb&asvt=1+2&atag=late")
{'atag': 'a|b', 'asvt': '1 2'}
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from clickclock.foundation import errors

UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
"""What no address gives a meaning to. Source: RFC 3986, section 2.3."""
PARAMETERS_MAX: Final = 100
"""More than four times what any client was seen to send; each one costs time and a line of every report."""


class Reason(StrEnum):
    """Why a request is refused: the code of a fault, stable for programs."""

    MISSING = "missing"
    BAD_EVENT_TIME = "badEventTime"
    UNKNOWN_CLIENT = "unknownClient"
    BROKEN_ENCODING = "brokenEncoding"
    NOT_UTF8 = "notUtf8"
    NUL = "nul"
    TOO_MANY_PARAMETERS = "tooManyParameters"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Fault(errors.Fault):
    """One thing wrong with a request: the parameter, a sentence that says what to do, and a code for programs."""

    code: Reason


class Unreadable(errors.Malformed):
    """The query cannot be read; fix the named parameters and send it again."""

    def __init__(self, found: tuple[Fault, ...], parameters: dict[str, str]) -> None:
        super().__init__(None, list(found))
        self.found = found
        """Every fault, with its code."""
        self.parameters = parameters
        """What could be read."""


def split(query: bytes) -> dict[str, str]:
    """Every parameter by name, decoded: the first value of each. Raises `Unreadable` with every fault.

    `+` is a space. A part without `=` is a parameter with an empty value, and an empty part is nothing. Every part has
    to be readable, the repeated too; a repeated one does not take the place of a first one that is not. A query with
    too many parts is not read at all.
    """
    parts = [part for part in query.split(b"&") if part]
    if len(parts) > PARAMETERS_MAX:
        sentence = f"There are {len(parts)} parameters; send at most {PARAMETERS_MAX}."
        raise Unreadable((Fault("query", sentence, Reason.TOO_MANY_PARAMETERS),), {})
    parameters: dict[str, str] = {}
    found: dict[Fault, None] = {}  # a set that keeps its order
    lost: set[str] = set()
    for part in parts:
        raw_name, _, raw_value = part.partition(b"=")
        name, flaws = _decoded(raw_name)
        value, flaws_of_value = _decoded(raw_value)
        flaws += flaws_of_value
        if flaws:
            lost.add(name)
        elif name not in lost:
            parameters.setdefault(name, value)
        for flaw in flaws:
            found[Fault(shown(name), _SENTENCES[flaw], flaw)] = None
    if found:
        raise Unreadable(tuple(found), parameters)
    return parameters


_ESCAPED_AMPERSAND: Final = "amp;"


def escaped(text: bytes, kept: frozenset[int] = UNRESERVED) -> bytes:
    """UTF-8 as a name or a value of a query has it: each byte that is not in `kept` is percent-encoded.

    >>> escaped("a b/ü".encode())
    b'a%20b%2F%C3%BC'
    """
    return b"".join(b"%c" % each if each in kept else b"%%%02X" % each for each in text)


def may_escape_ampersands(names: Iterable[str]) -> bool:
    """Whether a name may begin with `amp;`, as in a link that was written for HTML and taken out of it as text."""
    return "&amp;" in "&" + "&".join(names)


def with_ampersands(parameters: dict[str, str]) -> dict[str, str]:
    """The parameters as the link meant them: `amp;utm_source` is `utm_source`. The first value of each name counts."""
    meant: dict[str, str] = {}
    for name, value in parameters.items():
        while name.startswith(_ESCAPED_AMPERSAND):
            name = name.removeprefix(_ESCAPED_AMPERSAND)  # noqa: PLW2901 (the same name, as it was meant)
        meant.setdefault(name, value)
    return meant


_NAME_SHOWN_MAX: Final = 64


def shown(name: str) -> str:
    """A parameter's name, cut if it is long."""
    return name if len(name) <= _NAME_SHOWN_MAX else name[: _NAME_SHOWN_MAX - 1] + "…"


_SENTENCES: Final = {
    Reason.BROKEN_ENCODING: "A % is not followed by two hexadecimal digits; write a percent sign as %25.",
    Reason.NUL: "There is a NUL character; leave it out.",
    Reason.NOT_UTF8: "The bytes are not UTF-8; encode the text as UTF-8, then percent-encode it.",
}

_DIGITS: Final = "0123456789abcdefABCDEF"
_BYTES: Final = {(high + low).encode(): bytes.fromhex(high + low) for high in _DIGITS for low in _DIGITS}


def _decoded(raw: bytes) -> tuple[str, tuple[Reason, ...]]:
    """The text, and what is wrong with it."""
    flaws: tuple[Reason, ...] = ()
    text = raw.replace(b"+", b" ")
    if b"%" in text:
        first, *others = text.split(b"%")
        pieces = [first]
        for other in others:
            byte = _BYTES.get(other[:2])
            if byte is None:
                flaws = (Reason.BROKEN_ENCODING,)
                pieces += (b"%", other)
            else:
                pieces += (byte, other[2:])
        text = b"".join(pieces)
    if b"\0" in text:
        flaws += (Reason.NUL,)
    try:
        return text.decode(), flaws
    except UnicodeDecodeError:
        return text.decode(errors="backslashreplace"), (*flaws, Reason.NOT_UTF8)


_decode: Final = msgspec.json.Decoder(dict[str, str]).decode
# As numbers: looking for one takes a third of looking for bytes.
_QUOTE, _BACKSLASH, _DELETE = b'"\\\x7f'
_byte_that_is_not_text: Final[Callable[[bytes], object]] = re.compile(rb"%[^2-7]").search


def split_plain(query: bytes) -> dict[str, str] | None:
    """What `split` gives, at a seventh of its cost, or None: then ask `split`.

    The query is rewritten as a JSON object for a decoder in C. That is refused where it could mean something else than
    the query: whatever would end a JSON string early, and encoded bytes that are no ASCII text. The decoder itself
    refuses control bytes, half escapes, and each part that has not exactly one `=`.
    """
    if (
        not query.isascii()
        or _QUOTE in query
        or _BACKSLASH in query
        or _DELETE in query
        or _byte_that_is_not_text(query) is not None
    ):
        return None
    spelled = query.replace(b"%", b"\\u00")
    text = spelled.replace(b"+", b" ").replace(b"&", b'","').replace(b"=", b'":"')
    try:
        parameters = _decode(b'{"' + text + b'"}')
    except msgspec.DecodeError:
        return None
    # n parts have n - 1 ampersands and n equals signs, and each of them became two bytes longer. Fewer names than
    # parts: one is repeated, and the decoder kept its last value.
    count = len(parameters)
    return parameters if len(text) - len(spelled) == 4 * count - 2 and count <= PARAMETERS_MAX else None

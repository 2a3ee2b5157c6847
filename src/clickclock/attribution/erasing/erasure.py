r"""An erasure: which identifiers of a client are to go, and how they are recognised, in whatever way they were written.

Never does I/O. An identifier stands in a text where nothing that identifiers are made of goes on before or behind it
(letters, digits, `-`, `_`, `~`, and a point between them), after all percent-encoding and all escapes of JSON, however
many lie upon each other, are undone. One that is so short that seller or campaign ids could be the same is only
recognised behind its own name. Invariants: `pattern` finds every text that `is_in` would say yes to; texts of other
clients are nobody's business here.

>>> sought = Sought("shop", [Identifier(kind="cli_ubid", value="ab|Xy-12345")])
>>> sought.is_in(b'{"referer": "https%3A%2F%2Fshop.example%2F%3Fu%3Dab%257CXy-12345%26x%3D1"}')
True
>>> sought.is_in(b"cli_ubid=ab%7CXy-123456&gclid=1")
False
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from clickclock.attribution.clicks.identifier import CUSTOMER, DEVICE, NAMESPACES, code, folded

ORDER_ID: Final = "order_id"
NAMES: Final = {
    **{kind: tuple(name for name, space in NAMESPACES.items() if space == NAMESPACES[kind]) for kind in NAMESPACES},
    CUSTOMER: (CUSTOMER,),
    ORDER_ID: (ORDER_ID, "item_identifier"),
}
"""By kind of identifier, the fields and parameters that bring it."""
DISTINCTIVE_CHARS: Final = 8
DISTINCTIVE_DIGITS: Final = 12
"""Shorter than that, and of digits alone shorter than this, it could be anybody's number."""
_LAYERS_MAX: Final = 8
"""A URL in a URL in a URL is three."""
_GAP_MAX: Final = 16
"""Between a name and its value: `=`, `": "`, or these encoded."""
_GOES_ON: Final = r"(?![\w~-]|\.[\w~-])"
_BEGINS: Final = r"(?<![\w~-])(?<![\w~-]\.)"
_PERCENT: Final = re.compile(rb"%([0-9a-fA-F]{2})")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS: Final = frozenset("bfnrt")
_TWISTED: Final = r"%(?:25)+%|%(?:25)*5c|\\u00(?:25|5c)"
"""Where the encoding itself is encoded, digits and all, only undoing it tells what stands there."""


class Identifier(msgspec.Struct, frozen=True):
    """What a person, or an order, is known by."""

    kind: str
    """One of `NAMES`."""
    value: str

    @property
    def is_distinctive(self) -> bool:
        """Whether it means the same wherever it stands."""
        is_number = self.value.isascii() and self.value.isdigit()
        return len(self.value) >= (DISTINCTIVE_DIGITS if is_number else DISTINCTIVE_CHARS)

    @property
    def is_device(self) -> bool:
        """Whether it is the same in either case."""
        return NAMESPACES.get(self.kind) == DEVICE

    def digest(self, client_id: str, secret: bytes) -> str:
        """What proves, to who has the secret and the identifier, that this one was meant; it tells nobody else."""
        value = folded(self.value) if self.is_device else self.value
        said = "\x1f".join((client_id, NAMESPACES.get(self.kind, self.kind), value))
        return blake2b(said.encode(), key=secret[:64], digest_size=16).hexdigest()


class Marks(msgspec.Struct, frozen=True):
    """Keys of derived rows that do not have the identifier itself."""

    clicks: frozenset[str] = frozenset()
    """Ids of erased clicks, and the ids that networks gave them."""
    orders: frozenset[str] = frozenset()
    """Orders to be erased, every message about them."""
    persons: frozenset[int] = frozenset()
    """Whose credits were computed with what is erased."""
    credited: frozenset[str] = frozenset()
    """Orders that stay, and have credits that were."""

    def __or__(self, other: "Marks") -> "Marks":
        return Marks(*(getattr(self, name) | getattr(other, name) for name in self.__struct_fields__))


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asked for, and how far it is, until it is done."""

    id: str
    client_id: str
    asked: Identifier
    with_person: bool = False
    """Whether all identifiers go that are known to be the same person's, and their orders."""
    reason: str = ""
    until_ms: int
    """Entries after this time, in milliseconds since 1970, are new."""
    identifiers: tuple[Identifier, ...] = ()
    """All that go; empty until they are known."""
    marks: Marks = Marks()
    rows: dict[str, int] = {}
    """How many were found, by place."""
    result: int | None = None
    """The result version that the derived tables stand for while this goes on; 0 if they stand for none."""
    versions: dict[str, int] = {}
    """The version of each table that was written anew."""

    def found(self, place: str, rows: int) -> "Erasure":
        """The same, after so many rows were found in a place. Those that a run found before it died count once."""
        return msgspec.structs.replace(self, rows={**self.rows, place: max(rows, self.rows.get(place, 0))})


class Sought:
    """A search: identifiers of one client."""

    def __init__(self, client_id: str, identifiers: Sequence[Identifier]) -> None:
        """Raises `ValueError` if there is nothing to look for."""
        if not identifiers or not all(each.value for each in identifiers):
            raise ValueError("an identifier has at least one character")
        self.client_id = client_id
        self.identifiers = tuple(identifiers)
        self.codes = frozenset(
            code(client_id, each.kind, each.value) for each in identifiers if each.kind in (*NAMESPACES, CUSTOMER)
        )
        self.pattern = "(?is)" + "|".join([*map(_pattern, identifiers), _TWISTED])
        """A regular expression of RE2 and of Python, of texts as they come. Finds more than is meant."""
        self._client = re.compile(rf"{_BEGINS}client_id\W{{1,{_GAP_MAX}}}?{re.escape(_undone(client_id))}{_GOES_ON}")
        self._exact = re.compile("|".join(map(_exact, identifiers)))

    def is_in(self, text: bytes | str) -> bool:
        """Whether one of them stands in a text."""
        return self._exact.search(_undone(text)) is not None

    def is_of_client(self, text: bytes | str) -> bool:
        """Whether a request as it came is one of the client's, or of nobody's that can be told."""
        undone = _undone(text)
        return "client_id" not in undone or self._client.search(undone) is not None

    def values(self, name: str) -> frozenset[str]:
        """Whole values of the field `name` that are one of them, as `folded`."""
        return frozenset(folded(each.value) for each in self.identifiers if name in NAMES[each.kind])

    def is_value(self, name: str, value: str) -> bool:
        """Whether the whole value of the field `name` is one of them."""
        return any(
            name in NAMES[each.kind]
            and (folded(value) == folded(each.value) if each.is_device else value == each.value)
            for each in self.identifiers
        )


def _undone(text: bytes | str) -> str:
    """The text without any encoding. A plus is a space: which of the two it was meant to be, nobody knows."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    for _ in range(_LAYERS_MAX):
        if b"%" not in raw and b"\\" not in raw:
            break
        decoded = _PERCENT.sub(lambda found: bytes.fromhex(found[1].decode()), raw)
        undone = _without_escapes(decoded.decode("utf-8", "replace"))
        if undone.encode("utf-8", "replace") == raw:
            break
        raw = undone.encode("utf-8", "replace")
    return raw.decode("utf-8", "replace").replace("+", " ")


def _without_escapes(text: str) -> str:
    if "\\" not in text:
        return text
    units = _ESCAPE.sub(_unescaped, text)
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # pairs become one character


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return " " if found[2] in _CONTROLS else found[2]


def _exact(identifier: Identifier) -> str:
    value = f"(?{'i' if identifier.is_device else ''}:{re.escape(_undone(identifier.value))})"
    if identifier.is_distinctive:
        return f"{_BEGINS}{value}{_GOES_ON}"
    names = "|".join(NAMES[identifier.kind])
    return rf"{_BEGINS}(?:{names})\W{{1,{_GAP_MAX}}}?{value}{_GOES_ON}"


def _pattern(identifier: Identifier) -> str:
    written = dict.fromkeys((identifier.value, _undone(identifier.value)))
    value = f"(?:{'|'.join(''.join(map(_any_form, each)) for each in written)})"
    if identifier.is_distinctive:
        return value
    names = "|".join(NAMES[identifier.kind])
    return f"(?:{names}).{{1,{4 * _GAP_MAX}}}?{value}"


def _any_form(char: str) -> str:
    """A character as it is, percent-encoded any number of times, or as JSON may escape it."""
    if char in " +":
        return r"(?:[ +]|%(?:25)*20|%(?:25)*2b|\\+u002b|\\+u0020)"
    percent = "".join(f"%(?:25)*{byte:02x}" for byte in char.encode())
    units = char.encode("utf-16-be")
    escaped = "".join(rf"\\+u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    return rf"(?:\\*{re.escape(char)}|{percent}|{escaped})"

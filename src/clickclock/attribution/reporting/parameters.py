"""Parameters of a question, as a query string or a command line gives them: read one by one, every fault told.

Never guesses. Invariants: an unread parameter is a fault; all faults are reported together.

>>> parameters = Parameters({"version": ["3"], "from": ["2026-13-01"]})
>>> parameters.one("version", version_of), parameters.one("from", day_of), [fault.field for fault in parameters.faults]
(3, None, ['from'])
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Final, TypeVar

from clickclock.attribution.orders.money import DIGITS
from clickclock.foundation.errors import Fault, Malformed

VERSION_MAX: Final = 2**53
"""JavaScript counts no further."""
TEXT_CHARS_MAX: Final = 256
"""As long as the names of clients and orders may be, and more than anybody calls a campaign."""
_SHOWN_CHARS_MAX: Final = 64

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class Parameters:
    """The given parameters, each any number of times, and all their faults."""

    def __init__(self, given: Mapping[str, Sequence[str]]) -> None:
        self.faults: list[Fault] = []
        self._given = given
        self._known: list[str] = []

    def names(self, name: str) -> tuple[str, ...]:
        """Values that may be separated by commas, each once."""
        self._known.append(name)
        parts = (part.strip() for value in self._given.get(name, ()) for part in value.split(","))
        return tuple(dict.fromkeys(part for part in parts if part))

    def several(self, name: str, of: type[E], noun: str, otherwise: tuple[E, ...]) -> tuple[E, ...]:
        """Some of a list; an empty text is none of them."""
        known = {_bare(each): each for each in of}
        given = self.names(name)
        strange = [part for part in given if _bare(part) not in known]
        self.faults += [no_such(name, part, list(of), noun) for part in strange]
        chosen = dict.fromkeys(known[_bare(part)] for part in given if part not in strange)
        return tuple(chosen) if self._given.get(name) else otherwise

    def one(self, name: str, parse: Callable[[str], T], *, required: bool = False) -> T | None:
        """A value that may be given once; `parse` raises `ValueError` with what to give instead."""
        self._known.append(name)
        values = self._given.get(name, ())
        if len(values) > 1:
            self.faults.append(Fault(name, "This is given twice; give it once."))
        elif not values and required:
            self.faults.append(Fault(name, "This is required; give it."))
        if len(values) != 1:
            return None
        try:
            return parse(values[0])
        except ValueError as error:
            self.faults.append(Fault(name, str(error)))
            return None

    def finish(self) -> None:
        """Refuse what nobody has read, and all that was wrong. Raises `Malformed`."""
        strange = [name for name in self._given if name not in self._known]
        self.faults += [no_such(name, name, self._known, "parameter") for name in strange]
        if self.faults:
            raise Malformed(faults=self.faults)


def no_such(field: str, name: str, known: Sequence[str], noun: str, where: str = "") -> Fault:
    """What to say of a name that nobody knows."""
    return Fault(field, f"There is no {noun} {name[:_SHOWN_CHARS_MAX]!r}{where}; there are: {', '.join(known)}.")


def version_of(text: str) -> int:
    """The number of a result version."""
    if not (text.isascii() and text.isdigit() and 0 < int(text[:_SHOWN_CHARS_MAX]) < VERSION_MAX):
        raise ValueError("Give the number of a version, from 1 on.")
    return int(text)


def number_of(least: int, most: int) -> Callable[[str], int]:
    """What reads a whole number within bounds.

    >>> number_of(1, 1000)("20")
    20
    """

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise ValueError(f"Give a number from {least} to {most}.")
        return int(text)

    return read


def day_of(text: str) -> date:
    """A day."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 (a day of an account, whatever its zone)
    except ValueError:
        raise ValueError("Give a day such as 2026-11-20.") from None


def text_of(given: str) -> str:
    """Any text that says something."""
    if not 0 < len(given) <= TEXT_CHARS_MAX:
        raise ValueError(f"Give between 1 and {TEXT_CHARS_MAX} characters, or leave it out.")
    return given


def currency_of(code: str) -> str:
    """A currency."""
    if code not in DIGITS:
        raise ValueError("Give a currency by its code of ISO 4217, such as EUR.")
    return code


def member_of(kind: type[E]) -> Callable[[str], E]:
    """What reads one of these words."""

    def read(text: str) -> E:
        try:
            return kind(text)
        except ValueError:
            raise ValueError(f"Give one of: {', '.join(kind)}.") from None

    return read


def flag_of(text: str) -> bool:
    """Yes or no."""
    if text not in _FLAGS:
        raise ValueError("Give true or false.")
    return _FLAGS[text]


_FLAGS: Final = {"true": True, "false": False}


def _bare(name: str) -> str:
    """`ad_set` and `adSet` are one name."""
    return name.replace("_", "").lower()

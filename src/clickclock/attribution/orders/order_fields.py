"""The fields of an order's JSON, read one by one: each gives its value, or a fault and None.

Never stops at the first fault, never guesses: what is not exactly what was asked for is a fault that says what to give.
Invariants: a placeholder such as `undefined` is as good as nothing; no text has a character that a table cannot hold.

>>> fields = Fields({"order_id": "7", "amuont": "1"}, ("order_id", "amount"))
>>> fields.text("order_id")
'7'
>>> fields.refuse_unknown()
>>> fields.faults[0].message
'There is no such field; did you mean `amount`?'
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeVar

from clickclock.attribution.clicks import absent, query
from clickclock.attribution.orders import money
from clickclock.attribution.orders.lost_digits import reason
from clickclock.foundation import errors
from clickclock.foundation.instant import is_local
from clickclock.foundation.strict_json import StrictJson

ID_CHARS_MAX: Final = 256
"""Twice the longest identifier that was seen."""
QUANTITY_MAX: Final = 1_000_000
FAULTS_MAX: Final = 50
"""Nobody fixes more at once, and an order of a thousand bad items would answer with megabytes."""
EVENT_TIME_MS_MIN: Final = 10**12
EVENT_TIME_MS_MAX: Final = 10**13 - 1
"""September 2001 and the year 2286: 13 digits. A number outside is in some other unit."""
_SHOWN_CHARS_MAX: Final = 64
WORD_CHARS_MAX: Final = 32

Choice = TypeVar("Choice", bound=StrEnum)


class Reason(StrEnum):
    """The code of an order's fault, stable for programs."""

    MISSING = "missing"
    UNKNOWN_CLIENT = "unknownClient"
    UNAUTHORIZED = "unauthorized"
    NOT_JSON = "notJson"
    TOO_LARGE = "tooLarge"
    UNKNOWN_FIELD = "unknownField"
    UNKNOWN_EVENT = "unknownEvent"
    BAD_TEXT = "badText"
    ID_ROUNDED = "idRounded"
    BAD_EVENT_TIME = "badEventTime"
    BAD_AMOUNT = "badAmount"
    BAD_CURRENCY = "badCurrency"
    BAD_STATUS = "badStatus"
    BAD_ITEMS = "badItems"
    BAD_KIND = "badKind"


@dataclass(frozen=True, slots=True)
class Fault(errors.Fault):
    """One thing wrong with an order: the field, a sentence that says what to do, and a code for programs."""

    code: Reason | query.Reason


class NotJson(errors.Malformed):
    """This is not JSON; the text says where it breaks."""

    code = "notJson"


read_json = StrictJson(NotJson).read
"""The value that a text is in JSON. Raises `NotJson`."""


class Fields:
    """The fields of one object. Each reader gives the value, or None where it is absent or faulty."""

    def __init__(
        self,
        given: Mapping[str, Any],
        known: tuple[str, ...],
        place: str = "",
        faults: list[Fault] | None = None,
        *,
        is_kept: bool = False,
    ) -> None:
        """`is_kept` of what was acknowledged before: then an id is whatever it was."""
        self.given = given
        self.faults: list[Fault] = [] if faults is None else faults
        """In the order of reading; shared with the object that this one is a part of."""
        self.faulty: set[str] = set()
        self._known = known
        self._place = place
        self._is_kept = is_kept

    def fault(self, name: str, message: str, code: Reason) -> None:
        self.faulty.add(name)
        self.faults.append(Fault(self._place + name, message, code))

    @property
    def is_full(self) -> bool:
        """Whether there are more faults than are reported: to look for another would be wasted work."""
        return len(self.faults) > FAULTS_MAX

    def refuse_unknown(self) -> None:
        """A misspelt `refunded_amount` that nobody noticed would be money: so every unknown name is a fault."""
        free: tuple[str, ...] | None = None
        for name in self.given:
            if name not in self._known:
                free = free or tuple(each for each in self._known if each not in self.given)
                shown = _unstorable.sub("?", name[:_SHOWN_CHARS_MAX])
                self.fault(shown, _unknown_field(shown, free, self._known), Reason.UNKNOWN_FIELD)
            if self.is_full:
                return

    def text(self, name: str, *, required: bool = False) -> str | None:
        value = self.given.get(name)
        if self._is_absent(name, value):
            if required:
                said = f"This is required, and `{value}` is as good as nothing" if value else "This is required"
                self.fault(name, f"{said}; give it.", Reason.MISSING)
            return None
        if not isinstance(value, str):
            self.fault(name, 'Give text, in quotes: "…".', Reason.BAD_TEXT)
        elif len(value) > ID_CHARS_MAX:
            self.fault(name, f"This has {len(value):,} characters; give at most {ID_CHARS_MAX}.", Reason.BAD_TEXT)
        elif _unstorable.search(value):
            self.fault(name, _UNSTORABLE, Reason.BAD_TEXT)
        else:
            return value
        return None

    def _is_absent(self, name: str, value: object) -> bool:
        if self._is_kept and isinstance(value, str) and name not in absent.IDENTIFIERS:
            return value in _ONCE_ABSENT
        return is_absent(name, value)

    def id(self, name: str, *, required: bool = False, is_name: bool = False) -> str | None:
        """A text that names one thing. A number that some program made of it may be the name of several."""
        value = self.given.get(name)
        if name in absent.IDENTIFIERS and is_absent(name, value):
            return None
        rounded = reason(value, is_name=is_name) if isinstance(value, str | float) and not self._is_kept else None
        if rounded is not None:
            self.fault(name, f"{rounded}.", Reason.ID_ROUNDED)
            return None
        return self.text(name, required=required)

    def choice(self, name: str, choices: type[Choice], default: Choice, code: Reason) -> Choice | None:
        value = self.text(name)
        if value is None:
            return None if name in self.faulty else default
        try:
            return choices(value)
        except ValueError:
            self.fault(name, f"Give one of {', '.join(choices)}.", code)
            return None

    def word(self, name: str, code: Reason) -> str | None:
        """A word as `word_of` reads it."""
        value = self.text(name)
        if value is None:
            return None
        try:
            return word_of(value)
        except ValueError as error:
            self.fault(name, f"{error}.", code)
            return None

    def currency(self, name: str) -> str | None:
        value = self.text(name, required=True)
        if value is None or value in money.DIGITS:
            return value
        shown, capitals = value[:_SHOWN_CHARS_MAX], value.upper()
        said = f"give it in capitals: `{capitals}`" if capitals in money.DIGITS else "give its three letters"
        self.fault(name, f"`{shown}` is no currency of ISO 4217; {said}.", Reason.BAD_CURRENCY)
        return None

    def minor(self, name: str, currency: str | None, *, required: bool = False, if_negative: str = "") -> int | None:
        """An amount in minor units of `currency`; where that is not known, it is only seen whether it is one.

        `if_negative` says where a negative one goes.
        """
        if isinstance(self.given.get(name), int | float):
            sentence = 'Give the amount as text, such as "12.30": in a number, programs lose digits.'
            self.fault(name, sentence, Reason.BAD_AMOUNT)
            return None
        value = self.text(name, required=required)
        if value is None:
            return None
        try:
            if currency is not None:
                return money.to_minor(value, currency)
            money.parts(value)
        except money.NoAmount as error:
            hint = if_negative if isinstance(error, money.NegativeAmount) else ""
            self.fault(name, f"{error} {hint}".rstrip(), Reason.BAD_AMOUNT)
        return None

    def event_time_ms(self, name: str) -> int | None:
        given = self.given.get(name)
        value = _whole(given)
        if value is not None and EVENT_TIME_MS_MIN <= value <= EVENT_TIME_MS_MAX:
            return value
        wanted = "milliseconds since 1970 (13 digits)"
        if is_absent(name, given):
            self.fault(name, f"This is required; give {wanted}.", Reason.MISSING)
        elif value is not None and EVENT_TIME_MS_MIN <= value * 1000 <= EVENT_TIME_MS_MAX:
            self.fault(name, f"These are seconds; give {wanted}.", Reason.BAD_EVENT_TIME)
        elif value is not None:
            sentence = f"This is before 9 September 2001 or after 2286; give {wanted}."
            self.fault(name, sentence, Reason.BAD_EVENT_TIME)
        elif isinstance(given, str) and is_local(given):
            shown = given[:_SHOWN_CHARS_MAX]
            sentence = f"`{shown}` has no time zone; give {wanted}, or in a table 2026-11-20T10:00:00+01:00."
            self.fault(name, sentence, Reason.BAD_EVENT_TIME)
        else:
            sentence = f"Give {wanted}; a table may also say 2026-11-20T10:00:00+01:00."
            self.fault(name, sentence, Reason.BAD_EVENT_TIME)
        return None

    def quantity(self, name: str) -> int | None:
        given = self.given.get(name)
        value = 1 if is_absent(name, given) else _whole(given)
        if value is not None and 1 <= value <= QUANTITY_MAX:
            return value
        self.fault(name, f"Give a whole number from 1 to {QUANTITY_MAX:,}.", Reason.BAD_ITEMS)
        return None


_DIGITS: Final = re.compile(r"[0-9]{1,16}")
_ONCE_ABSENT: Final = frozenset({"", "null", "undefined", "None", "NaN", "00000000-0000-0000-0000-000000000000"})
"""As good as nothing in every release; an order that was acknowledged keeps whatever else it says."""
_unstorable: Final = re.compile("[\0\ud800-\udfff]")
"""What JSON can write, and neither UTF-8 nor a database's text can hold."""
_UNSTORABLE: Final = "This has a NUL character, or is no UTF-8 (half of a surrogate pair, say); write it as UTF-8 text."
_is_word: Final = re.compile(rf"[a-z][a-z0-9_]{{0,{WORD_CHARS_MAX - 1}}}").fullmatch


def word_of(text: str) -> str:
    """A word of small letters, digits and `_`; capital letters, blanks and hyphens are read as these.

    Raises `ValueError`.
    """
    word = re.sub("[ -]+", "_", text.strip()).lower()
    if not _is_word(word):
        shown = text[:_SHOWN_CHARS_MAX]
        raise ValueError(f"`{shown}` is no word; give at most {WORD_CHARS_MAX} letters, digits and _")
    return word


def is_absent(name: str, value: object) -> bool:
    """Whether this field's value is as good as nothing."""
    return value is None or (isinstance(value, str) and absent.is_absent(name, value))


def _whole(value: object) -> int | None:
    """A whole number. Text of digits is one, too: some programs write 64-bit numbers so, to lose no digit."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else None


@lru_cache(maxsize=256)
def _unknown_field(name: str, free: tuple[str, ...], known: tuple[str, ...]) -> str:
    """Kept, because one program makes one mistake ten thousand times. `free` are the known ones that are not given."""
    close = get_close_matches(name, free, 1) or get_close_matches(name, known, 1)
    return f"There is no such field; did you mean `{close[0]}`?" if close else "There is no such field; leave it out."

"""A click's values, as engines see them: null where they are absent, and in the small letters that everybody makes.

Never runs anything. Invariants: `value_of` is null exactly where `absent.is_absent` is true, and `small_letters_of`
gives what `account.small_letters` gives, on each engine.

>>> value_of(ibis.literal("x"), "gclid").type()
String(length=None, nullable=True)
"""

from collections.abc import Callable
from functools import cache, reduce
from inspect import Parameter, Signature
from operator import and_, or_
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

import ibis

from clickclock.attribution.clicks.absent import (
    ABSENT_PATTERN,
    BARS_PATTERN,
    BEGINNINGS,
    BEGINNINGS_OF_NOBODY,
    DIGEST_BYTES,
    EXACTLY,
    IDENTIFYING,
    LENGTH_MAX,
    NOBODY_PATTERN,
    OPAQUE,
    WORD_BYTES_MAX,
)
from clickclock.attribution.clicks.account import BLANKS, DISPUTED
from clickclock.attribution.lake.tables import CLICK_PARAMETERS

NUMBER: Final = "int64"
_CLEANED: Final = tuple(name for name in CLICK_PARAMETERS if name != "client_id")
"""Each takes its time. Without a client's id, a click would not have been taken."""
ONE_OF_EACH_KIND: Final = ("cli_ubid", "atag", "utm_source")
"""One that identifies, one that a partner fills in, and one of neither kind: `value_of` has no other rules."""
_NOTHING: Final = ("", "null", "NULL", "undefined", "None", "NaN", "(not set)")


def with_values(clicks: Any) -> Any:
    """Clicks of an earlier revision, with null for absent values that it may have kept."""
    return clicks.mutate(**{name: value_of(clicks[name], name) for name in _CLEANED})


def says_something(value: Any) -> Any:
    """Whether a value without a column is not absent, as far as an older version may have kept one.

    Without a regular expression: for each value of a map, an engine would compile it anew.
    """
    is_macro = value.startswith("{") | value.startswith("${") | value.startswith("__") | value.startswith("%%")
    return ~(value.isin(_NOTHING) | is_macro)


def value_of(value: Any, name: str) -> Any:
    """A value of this parameter; null if it is absent. Nearly none begins so that it might be."""
    size = function("bit_length", "string", returns=NUMBER)(value)
    if name in IDENTIFYING:
        pattern, beginnings = NOBODY_PATTERN, BEGINNINGS_OF_NOBODY
        may_be = (size <= WORD_BYTES_MAX * 8) | value.contains("{") | value.endswith(" ")
        may_be |= reduce(or_, (size == count * 8 for count in DIGEST_BYTES))
    else:
        pattern, beginnings, may_be = ABSENT_PATTERN, BEGINNINGS, ibis.literal(False)
    for first, end in beginnings:
        begins = [value >= first] * bool(first) + [value < end] * bool(end)
        may_be |= reduce(and_, begins)
    is_absent = folded_of(value).re_search(pattern) & (value.length() <= LENGTH_MAX)
    if name not in IDENTIFYING:
        is_absent |= value == EXACTLY
    if name in OPAQUE:
        is_absent &= ~value.re_search(BARS_PATTERN)
    return ibis.ifelse(may_be, ibis.ifelse(is_absent, ibis.null("string"), value), value)


def small_letters_of(value: Any) -> Any:
    """`account.small_letters` of a text. Nearly all are ASCII without blanks around, and take the short way."""
    trimmed = value.re_replace(f"^[{BLANKS}]+|[{BLANKS}]+$", "")
    is_usual = _is_ascii(value) & (value >= "!") & (value.right(1) >= "!")
    return ibis.ifelse(is_usual, value.lower(), trimmed.translate(*DISPUTED).lower())


def folded_of(value: Any) -> Any:
    """`identifier.folded` of a text."""
    return _small(value, value.translate(ascii_uppercase, ascii_lowercase))


def _small(value: Any, otherwise: Any) -> Any:
    """In small letters where it is ASCII, as nearly all is: `otherwise` takes six times as long."""
    return ibis.ifelse(_is_ascii(value), value.lower(), otherwise)


def _is_ascii(value: Any) -> Any:
    return function("bit_length", "string", returns=NUMBER)(value) == value.length() * 8


@cache
def function(name: str, *takes: str, returns: str) -> Callable[..., Any]:
    """A function that the engine has."""

    def declared() -> None: ...

    function: Any = declared
    function.__signature__ = Signature(
        [Parameter(f"a{place}", Parameter.POSITIONAL_ONLY) for place in range(len(takes))]
    )
    made: Callable[..., Any] = ibis.udf.scalar.builtin(function, name=name, signature=(takes, returns))
    return made

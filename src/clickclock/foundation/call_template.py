r"""A template of a call: text with names in braces, `https://partner.example/s2s?order={order_id}&sum={credit}`.

Never does I/O, and is no program: a name stands for one value. Invariant: a value is quoted for the place where it
goes, so that no value ends a parameter, a string or an address.

>>> fill("https://p.example/?id={click.subid}", {"click.subid": "a&b=c"}, in_address)
'https://p.example/?id=a%26b%3Dc'
>>> fill('{"id": "{order_id}", "sum": {credit}}', {"order_id": 'A"1', "credit": "9.90"}, in_json)
'{"id": "A\\"1", "sum": 9.90}'
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

import msgspec

NAMES: Final = (
    *("postback_id", "kind", "client_id", "order_id", "click_id", "credit", "currency", "model"),
    *("ordered_at", "ordered_s", "clicked_at", "clicked_s", "token"),
)
"""What a template may name, beside the parameters of the click."""
NUMBERS: Final = frozenset(("credit", "ordered_s", "clicked_s"))
"""Whose values are numbers, also without quotes around them."""
OF_CLICK: Final = "click."
"""Before the name of a parameter of the click."""
_NAME: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_.-]+)?)(\?)?\}")


class Name(NamedTuple):
    """A name that a template has."""

    name: str
    is_optional: bool
    """Whether the call is made, with nothing in this place, where there is no value."""


def names_in(template: str) -> Iterator[Name]:
    """Every name in a template, in its order."""
    for found in _NAME.finditer(template):
        yield Name(found[1], found[2] is not None)


def before_names(template: str) -> str:
    """The text before the first name."""
    found = _NAME.search(template)
    return template if found is None else template[: found.start()]


def check(template: str) -> None:
    """Raise `ValueError` that has every name which stands for nothing."""
    known = (*NAMES, f"{OF_CLICK}PARAMETER")
    faults = []
    for name, is_optional in names_in(template):
        is_of_click = name.startswith(OF_CLICK)
        if not is_of_click and name not in NAMES:
            faults.append(f"unknown name {{{name}}}; give one of {', '.join(known)}")
        elif is_optional and not is_of_click:
            faults.append(f"{{{name}?}} always has a value; leave the question mark out")
    if faults:
        raise ValueError("; ".join(faults))


def fill(template: str, values: Mapping[str, str], quoted: Callable[[str], str]) -> str:
    """The text with its values; nothing where a value is missing."""
    return _NAME.sub(lambda found: quoted(values.get(found[1], "")), template)


def in_address(value: str) -> str:
    """A value in an address: each character that means something there is escaped."""
    return quote(value, safe="")


def in_form(value: str) -> str:
    """A value in a body of `application/x-www-form-urlencoded`."""
    return quote_plus(value)


def in_json(value: str) -> str:
    """A value in a string of JSON, without the quotes around it."""
    return msgspec.json.encode(value).decode()[1:-1]

r"""Templates: what the plain clicks of one client look like, as one regular expression for all up to the query's end.

Never takes a click that is not plain: whatever fits no template is for `judge` to look at, which alone decides. A query
is judged by its template at a fifth of the cost, because nothing of it has to be cut off or decoded.
Invariants: what a template takes with a time that `times` allows, `judge` finds plain; there are `TEMPLATES_MAX` at
most.

>>> template: Template = re.compile(rb"GET /\?client_id=c&event_time=([0-9]{13})").fullmatch
>>> request = b"GET /?client_id=c&event_time=1800000000000 HTTP/1.1"
>>> first, last = times(1_800_000_000_500)
>>> first <= template(request, 0, len(request) - 9)[1] <= last
True
"""

import re
from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import Final

from clickclock.attribution.clicks.absent import DIGESTS, IDENTIFYING
from clickclock.attribution.clicks.account import GOOGLE, Account, Accounts
from clickclock.attribution.clicks.click import AHEAD_MAX_MS, STALE_AFTER_MS, Click
from clickclock.attribution.clicks.consent import SAYING

TEMPLATES_MAX: Final = 256
"""Each takes about 10 KB, and as many milliseconds to make, once or twice, while others wait."""
SEEN_MIN: Final = 32
"""Before so many clicks were alike, a template would cost more than it saves."""
_SEEN_MAX: Final = 1024
_PARAMETERS_MAX: Final = 32
_CLIENT_ID_MAX: Final = 256

_NAME: Final = rb"[\w.~-]+"
_PLAIN: Final = rb"[!#$'-*,-<>-\[\]-~]"
# Letters, digits and hyphens need no escape. An escaped one might hide a placeholder.
_ESCAPE: Final = rb"(?:%(?:2[0-9A-CEFa-cef]|3[A-Fa-f]|40|5[B-Fb-f]|60|7[B-Fb-f])|\+)"
_WORD: Final = rb"[nN](?:[uU][lL]|[iI][lL]|[aA][nN]|[oO][nNtT]|[/%.])|[uU][nN][dDsS]"
_SAYS_SOMETHING: Final = rb"(?:[0-9A-MO-TV-Za-mo-tv-z\-.,/:;!~|^?]|_(?=[^_])|(?!%b)[nNuU])" % _WORD
"""How nearly all values begin; no value that is absent does. `judge` looks at the others."""
_either_case: Final = partial(re.sub, "([a-f])", lambda letter: f"[{letter[1]}{letter[1].upper()}]")
# Not `(?i:…)`: with that, the first byte no longer says which of them to try.
_DIGEST: Final = "|".join(_either_case(each[:6]) for each in DIGESTS).encode()
_WORDS: Final = rb"[A-Za-z_.+/-]*+(?:%[0-9A-Fa-f]{2}[A-Za-z_.+/-]*+)*+(?:&|\Z)"
_NAMES_SOMEBODY: Final = (
    rb"(?:[1-9][0-9]{5}|[A-Za-z][A-Za-z]{2}[A-Za-z_./-]*+[0-9]|(?!%b)(?:[1-9]|0(?=[1-9A-Za-z])|[A-Za-z](?!%b)))"
) % (_DIGEST, _WORDS)
"""The same of a value that identifies: six digits or three letters begin no digest; letters alone may be a word."""
_PLAIN_ID: Final = rb"[!#$'-*,-<>-Z^-z|~]"
_ESCAPE_ID: Final = rb"%(?:2[1-9A-CEFa-cef]|3[A-Fa-f]|40|60|7[Cc])"
_VALUE: Final = rb"%b*+(?:%b%b*+)*+" % (_PLAIN, _ESCAPE, _PLAIN)
_ID: Final = rb"%b*+(?:%b%b*+)*+" % (_PLAIN_ID, _ESCAPE_ID, _PLAIN_ID)
_MILLISECONDS: Final = rb"([0-9]{13})"
_DECIDING: Final = frozenset(name.encode() for name in ("client_id", *SAYING))
"""Another value of these may be another judgement."""
_is_word: Final = re.compile("[0-9A-Za-z-]+").fullmatch
_is_simple: Final = re.compile(rb"(?:%b=[^&]*&)*%b=[^&]*" % (_NAME, _NAME)).fullmatch


Template = Callable[[bytes, int, int], re.Match[bytes] | None]
"""Called with a request, 0 and where its query ends; the only group of what it finds is the time of the click."""
NOTHING: Final[Template] = re.compile(rb"(?!)").fullmatch
"""Takes no click."""


def times(received_ms: int) -> tuple[bytes, bytes]:
    """The first and the last time of a plain click that is received now, as 13 digits: they compare like numbers."""
    return b"%013d" % max(0, received_ms - STALE_AFTER_MS), b"%013d" % (received_ms + AHEAD_MAX_MS)


def template_of(click: Click, account: Account, start: bytes, escaped: Set[bytes] | None) -> Template:
    """Clicks like this plain click of this account: `start`, and the same names in the same order.

    Values of `escaped` names may have escapes, None: all; not to look for any saves a sixth. Without a `gclid`, no
    value may make it a click of Google. `NOTHING` if all that does not suffice.
    """
    parameters = click.parameters
    if not _is_simple(click.query) or len(parameters) > _PARAMETERS_MAX or len(click.client_id) > _CLIENT_ID_MAX:
        return NOTHING
    google = () if "gclid" in parameters else [rule for rule in account.channel_rules if rule.channel == GOOGLE]
    parts = []
    for part in click.query.split(b"&"):
        name, _, value = part.partition(b"=")
        same = re.escape(value)
        like = _MILLISECONDS if name == b"event_time" else same if name in _DECIDING else None
        like = like or _like(name.decode(), may_have_escapes=escaped is None or name in escaped)
        excluded = [rule.values for rule in google if rule.parameter == name.decode()]
        if not all(map(_are_spelled_one_way, excluded)):
            return NOTHING
        parts += [re.escape(name), b"=", *map(_none_of, excluded), like, b"&"]
    return re.compile(re.escape(start) + b"".join(parts[:-1])).fullmatch


def _are_spelled_one_way(values: Sequence[str]) -> bool:
    """Whether these are some values, of nothing but bytes that a template takes only as they are."""
    return bool(values) and all(_is_word(value) for value in values)


def _none_of(values: Sequence[str]) -> bytes:
    """A value that is none of these, in any case or with blanks behind. A template takes no blanks before a value."""
    return rb"(?!(?i:%b)(?:\+|%%20)*+(?:&|\Z))" % "|".join(values).encode()


def _like(name: str, *, may_have_escapes: bool) -> bytes:
    """A value of this parameter that is not absent, and has no bytes that need an escape."""
    if name in IDENTIFYING:
        return _NAMES_SOMEBODY + (_ID if may_have_escapes else _PLAIN_ID + b"*+")
    return _SAYS_SOMETHING + (_VALUE if may_have_escapes else _PLAIN + b"*+")


class Templates:
    """The templates of those who send many clicks."""

    def __init__(self, accounts: Accounts, start: bytes) -> None:
        """`start` is what stands before the query in each request."""
        self._accounts = accounts
        self._start = start
        self._known: dict[tuple[str, ...], tuple[Set[bytes] | None, Template]] = {}
        """And its `escaped` names."""
        self._seen: dict[tuple[str, ...], int] = {}

    def of(self, click: Click) -> Template:
        """The template for what is like this plain click; `NOTHING` as long as few of its kind were seen."""
        kind = (click.client_id, *click.parameters)
        if kind in self._known:
            escaped, template = self._known[kind]
            if escaped is None or _escaped(click.query) <= escaped:
                return template
            escaped = None  # and not one more name each time: every kind has two templates made for it at most
        else:
            seen = self._seen.get(kind, 0) + 1
            if len(self._seen) >= _SEEN_MAX:
                self._seen.clear()
            if seen < SEEN_MIN or len(self._known) >= TEMPLATES_MAX:
                self._seen[kind] = seen
                return NOTHING
            self._seen.pop(kind, None)
            escaped = _escaped(click.query)
        account = self._accounts.find(click.client_id)
        assert account is not None  # else it would not be plain
        template = template_of(click, account, self._start, escaped)
        self._known[kind] = escaped, template
        return template


def _escaped(query: bytes) -> Set[bytes]:
    """The names whose values have escapes."""
    return {part.partition(b"=")[0] for part in query.split(b"&") if b"%" in part or b"+" in part}

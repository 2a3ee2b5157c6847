r"""Templates: what the plain clicks of one client look like, as one regular expression for all of the query.

Never takes a click that is not plain: whatever fits no template is for `judge` to look at, which alone decides. A query
is judged by its template at a fifth of the cost, because nothing of it has to be decoded.
Invariants: what a template takes, `judge` finds plain under the same profile; there are `TEMPLATES_MAX` at most.

>>> like = Template(Profile.STRICT, re.compile(rb"client_id=c&event_time=([0-9]{13})").fullmatch)
>>> [like.takes(b"client_id=c&event_time=1800000000000", times(now_ms)) for now_ms in (1_800_000_000_500, 0)]
[True, False]
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from clickclock.attribution.account import PLACEHOLDERS, Account, Accounts, Profile
from clickclock.attribution.click import AHEAD_MAX_MS, STALE_AFTER_MS, Click

TEMPLATES_MAX: Final = 256
"""Each takes about 10 KB, and as many milliseconds to make while others wait."""
SEEN_MIN: Final = 32
"""Before so many clicks were alike, a template would cost more than it saves."""
_SEEN_MAX: Final = 1024
_PARAMETERS_MAX: Final = 32
_CLIENT_ID_MAX: Final = 256

_NAME: Final = rb"[\w.~-]+"
_PLAIN: Final = rb"[!#$'-*,-<>-\[\]-~]"
# Letters, digits and hyphens need no escape. Who escapes them might have written a placeholder so.
_ESCAPE: Final = rb"(?:%(?:2[0-9A-CEFa-cef]|3[A-Fa-f]|40|5[B-Fb-f]|60|7[B-Fb-f])|\+)"
_PLACEHOLDER: Final = b"|".join(re.escape(each.encode()) for each in sorted(PLACEHOLDERS - {""}))
_VALUE: Final = rb"(?!(?:%b)(?:&|\Z))(?=[^&])%b*+(?:%b%b*+)*+" % (_PLACEHOLDER, _PLAIN, _ESCAPE, _PLAIN)
_MILLISECONDS: Final = rb"([0-9]{13})"
_is_simple: Final = re.compile(rb"(?:%b=[^&]*&)*%b=[^&]*" % (_NAME, _NAME)).fullmatch


@dataclass(frozen=True, slots=True)
class Template:
    """What one client's plain clicks look like."""

    profile: Profile
    match: Callable[[bytes], re.Match[bytes] | None]
    """Its only group is the time of the click."""

    def takes(self, query: bytes, times: tuple[bytes, bytes]) -> bool:
        """Whether this is surely a plain click of that profile, received when these are the `times` of one."""
        found = self.match(query)
        return found is not None and times[0] <= found[1] <= times[1]


def times(received_ms: int) -> tuple[bytes, bytes]:
    """The first and the last time of a plain click that is received now, as 13 digits: they compare like numbers."""
    return b"%013d" % max(0, received_ms - STALE_AFTER_MS), b"%013d" % (received_ms + AHEAD_MAX_MS)


def template_of(click: Click, account: Account) -> Template | None:
    """What is like this plain click of this account: the same names in the same order; None if that does not suffice.

    Where a channel rule might ask for a `gclid` that is not there, the values decide, which are for `judge` to read.
    """
    parameters = click.parameters
    if not _is_simple(click.query) or len(parameters) > _PARAMETERS_MAX or len(click.client_id) > _CLIENT_ID_MAX:
        return None
    if "gclid" not in parameters and any(rule.parameter in parameters for rule in account.channel_rules):
        return None
    parts = []
    for part in click.query.split(b"&"):
        name, _, value = part.partition(b"=")
        like = {b"client_id": re.escape(value), b"event_time": _MILLISECONDS}.get(name, _VALUE)
        parts.append(re.escape(name) + b"=" + like)
    return Template(click.profile, re.compile(b"&".join(parts)).fullmatch)


class Templates:
    """The templates of those who send many clicks."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._known: dict[tuple[str, ...], Template | None] = {}
        self._seen: dict[tuple[str, ...], int] = {}

    def of(self, click: Click) -> Template | None:
        """The template for what is like this plain click; None as long as few of its kind were seen."""
        kind = (click.client_id, *click.parameters)
        if kind in self._known:
            return self._known[kind]
        seen = self._seen.get(kind, 0) + 1
        if len(self._seen) >= _SEEN_MAX:
            self._seen.clear()
        if seen < SEEN_MIN or len(self._known) >= TEMPLATES_MAX:
            self._seen[kind] = seen
            return None
        account = self._accounts.find(click.client_id)
        assert account is not None  # else it would not be plain
        template = self._known[kind] = template_of(click, account)
        self._seen.pop(kind, None)
        return template

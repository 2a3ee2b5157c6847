r"""The entry of a judged click: what the journal keeps, whatever the judgement; and of a refused order.

Never judges. Invariant: the raw request is in the line byte for byte, accepted or not; without consent, what is left
of it, and nothing of where it came from.

>>> from clickclock.attribution.clicks.account import Accounts
>>> from clickclock.attribution.clicks.click import judge
>>> from clickclock.attribution.clicks.entry import connection
>>> line_of(judge(b"a=b", 5, Accounts()), "0" * 32, 5, connection("", b"", b""), b"a=b")[:2]
b'r\t'
"""

from typing import Final

import msgspec

from clickclock.attribution.clicks.click import Click, Flag, Rejection
from clickclock.attribution.clicks.consent import anonymous, without_visitor
from clickclock.attribution.clicks.entry import EntryKind, encode, encode_plain
from clickclock.attribution.orders import amendment

CLICK, VIEW, ORDER = "click", "view", "order"
"""What a rejection was to be."""
_PREFETCH: Final = " prefetch"
"""Stands behind the profile: nothing else in an entry says with which purpose a request came."""


def line_of(
    judged: Click | Rejection, entry_id: str, received_ms: int, origin: bytes, query: bytes, *, is_view: bool = False
) -> bytes:
    """One line for the journal. `origin` are the columns of `entry.connection`."""
    if Flag.NO_CONSENT in judged.flags:
        origin, query = without_visitor(origin), anonymous(query)
    if isinstance(judged, Click):
        if judged.plain:
            return encode_plain(entry_id, received_ms, origin, judged.profile, query, is_view=is_view)
        kind = EntryKind.VIEW if is_view else EntryKind.CLICK
        return encode(kind, entry_id, received_ms, origin, acceptance_of(judged), query)
    detail = detail_of(judged, VIEW if is_view else CLICK)
    return encode(EntryKind.REJECTION, entry_id, received_ms, origin, detail, query)


def acceptance_of(click: Click) -> bytes:
    """What the entry of a click says beside its query, for `accepted` to read."""
    return (click.profile + _PREFETCH * (Flag.PREFETCH in click.flags)).encode()


def accepted(detail: bytes) -> tuple[str, bool]:
    """What the entry of a click says beside its query: the profile that accepted it, and whether it is a prefetch.

    >>> accepted(b"observed prefetch"), accepted(b"open/1")
    (('observed', True), ('open', False))
    """
    said = detail.decode("ascii", "replace").partition("/")[0]
    return said.removesuffix(_PREFETCH), said.endswith(_PREFETCH)


def detail_of(rejection: Rejection | amendment.Rejection, was: str) -> bytes:
    """What the entry of a refused request says of it, as JSON: what it was, the kind, every fault, and any flag."""
    faults = [{"field": each.field, "message": each.message, "code": each.code} for each in rejection.faults]
    flags = rejection.flags if isinstance(rejection, Rejection) else ()
    return msgspec.json.encode(
        {"was": was, "kind": rejection.kind, "faults": faults} | ({"flags": flags} if flags else {})
    )

r"""A sighting: what somebody who watches is shown of an entry, with its flags or its faults.

Never judges anew: a click is read under the profile that accepted it, a rejection has the faults that it was given.
Invariants: every entry makes a sighting, however odd; `query` or `order` is the request as it came.

>>> from clickclock.attribution.clicks.entry import decode
>>> line = b"r\t0\t1800000000000\t\t\t\t{}\tclient_id=shop-1\n"
>>> sight(decode(line)).client_id
'shop-1'
"""

import json
from enum import StrEnum
from typing import Any

import msgspec

from clickclock.attribution.clicks.absent import present
from clickclock.attribution.clicks.account import Accounts, Profile
from clickclock.attribution.clicks.click import Click, Flag, judge
from clickclock.attribution.clicks.entry import Entry, EntryKind
from clickclock.attribution.clicks.query import Unreadable, split, split_plain
from clickclock.attribution.registering.identification import is_query
from clickclock.attribution.registering.registration import accepted
from clickclock.foundation.instant import instant_of
from clickclock.foundation.record import rfc3339


class Seen(StrEnum):
    """The kind of an entry, for readers."""

    CLICK = "click"
    VIEW = "view"
    REJECTION = "rejection"
    ORDER = "order"
    OTHER = "other"


class Sighting(msgspec.Struct, frozen=True):
    """One entry as it is shown. `client_id` is None where the request names none that can be read."""

    seen: Seen
    client_id: str | None
    fields: dict[str, Any]
    """By name, in JSON's types."""


SEEN = {
    EntryKind.PLAIN_CLICK: Seen.CLICK,
    EntryKind.CLICK: Seen.CLICK,
    EntryKind.VIEW: Seen.VIEW,
    EntryKind.REJECTION: Seen.REJECTION,
    EntryKind.ORDER: Seen.ORDER,
    EntryKind.OTHER: Seen.OTHER,
}
"""What an entry of each kind is."""
_ACCOUNTS = {profile.value: Accounts(default_profile=profile) for profile in Profile}
_IDENTIFIERS = ("cli_ubid", "device_id", "customer_id")


def sight(entry: Entry) -> Sighting:
    """An entry as it is shown."""
    seen = SEEN[entry.kind]
    refusal = _refusal(entry.detail) if seen is Seen.REJECTION else {}
    # By its kind: the query of a click may begin like an order.
    is_order = seen is Seen.ORDER or refusal.get("was") == "order"
    is_json = is_order or (refusal.get("was") == "identification" and not is_query(entry.raw))
    request = _object(entry.raw) if is_json else _parameters(entry.raw)
    plain = {name: value for name, value in request.items() if isinstance(value, str)}
    identifier = next((name for name in _IDENTIFIERS if present(plain, name) is not None), None)
    client_id = present(plain, "client_id")
    fields: dict[str, Any] = {
        "id": entry.id,
        "receivedAt": _instant(entry.received_ms),
        "clientId": client_id,
        "sellerId": present(plain, "seller_id"),
        "identifierName": identifier,
        "identifier": identifier and plain[identifier],
    }
    if seen in {Seen.CLICK, Seen.VIEW}:
        fields |= _judged(entry)
    fields |= refusal
    if is_order:
        fields["order"] = request or _text(entry.raw)
    else:
        fields |= {"parameters": request, "query": _text(entry.raw)}
    fields |= {"address": entry.address, "agent": _text(entry.agent), "referer": _text(entry.referer)}
    return Sighting(seen, client_id, fields)


def _judged(entry: Entry) -> dict[str, Any]:
    profile, is_prefetch = accepted(entry.detail)
    click = judge(entry.raw, entry.received_ms, _ACCOUNTS.get(profile, _ACCOUNTS[Profile.OPEN]))
    more = [Flag.PREFETCH] if is_prefetch else []
    if not isinstance(click, Click):  # accepted by rules that are no longer these
        return {"profile": profile, "eventTime": None, "effectiveTime": _instant(entry.received_ms), "flags": more}
    return {
        "profile": profile,
        "eventTime": None if click.event_time_ms is None else _instant(click.event_time_ms),
        "effectiveTime": _instant(click.effective_ms),
        "flags": [*click.remarks, *more],
    }


def _refusal(detail: bytes) -> dict[str, Any]:
    told = _object(detail)
    faults = told.get("faults")
    return {
        "was": told.get("was"),
        "kind": told.get("kind"),
        "faults": [fault for fault in faults if isinstance(fault, dict)] if isinstance(faults, list) else [],
        "flags": flags if isinstance(flags := told.get("flags"), list) else [],
    }


def _parameters(raw: bytes) -> dict[str, str]:
    """Those of a query, as far as they can be read."""
    try:
        return {**(split_plain(raw) or split(raw))}
    except Unreadable as unreadable:
        return dict(unreadable.parameters)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _instant(ms: int) -> str:
    return rfc3339(instant_of(ms))

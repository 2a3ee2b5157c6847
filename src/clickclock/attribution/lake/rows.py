r"""Entries, one by one, as rows of the lake: the way for whatever is not a plain click.

Never loses an entry: what the rules of today would not accept any more was accepted once, and becomes a row of what can
still be read of it. Invariant: a plain click becomes the same row here as in `plain.py`.

>>> from clickclock.attribution.clicks.entry import decode
>>> table, row = row_of(decode(b"c\t01\t1800000000000\t\t\t\tstrict\tclient_id=c"), "j", 7)
>>> table.name, row["client_id"], row["shape"]
('clicks', 'c', 'client_id=')
"""

from datetime import datetime
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks import click, query
from clickclock.attribution.clicks.absent import REVISION, is_absent, present
from clickclock.attribution.clicks.account import SENT_AT, Account, Accounts, Profile
from clickclock.attribution.clicks.entry import Entry, EntryKind
from clickclock.attribution.clicks.shape import EVENT_TIME, cut, rebuild
from clickclock.attribution.lake.tables import CLICK_PARAMETERS, CLICKS, EVENTS, ORDERS, REJECTIONS, VIEWS, Table
from clickclock.attribution.orders import amendment
from clickclock.attribution.registering.identification import is_query
from clickclock.attribution.registering.registration import accepted
from clickclock.foundation.instant import instant_of, ms_of


class _Anyone(Accounts):
    """Every client id, under one profile and no further rule: whoever wrote the journal has asked already."""

    def __init__(self, profile: Profile) -> None:
        super().__init__((), profile)
        self.default = Account(client_id="*", profile=profile, channel_rules=())

    def find(self, _client_id: str) -> Account:
        return self.default


_ANYONE: Final = {profile: _Anyone(profile) for profile in Profile}


def row_of(entry: Entry, journal: str, segment: int) -> tuple[Table, dict[str, Any]]:
    """The row of an entry, and the table where it belongs."""
    head: dict[str, Any] = {
        "id": entry.id,
        "received_at": instant_of(entry.received_ms),
        "address": entry.address or None,
        "user_agent": text_of(entry.agent),
        "referer": text_of(entry.referer),
        "journal": journal,
        "segment": segment,
    }
    match entry.kind:
        case EntryKind.PLAIN_CLICK | EntryKind.CLICK:
            return CLICKS, head | _click(entry)
        case EntryKind.VIEW:
            return VIEWS, head | _click(entry)
        case EntryKind.ORDER:
            return ORDERS, head | _order(entry)
        case EntryKind.REJECTION:
            return REJECTIONS, head | _rejection(entry)
        case EntryKind.OTHER:
            parameters = _parameters(entry.raw)
            name, client_id = entry.detail.decode("utf-8", "backslashreplace"), parameters.get("client_id")
            columns = {"name": name, "client_id": client_id, "parameters": parameters, "raw": entry.raw}
            return EVENTS, head | columns


def text_of(raw: bytes) -> str | None:
    """A header's text; bytes that are not UTF-8 become escapes, and nothing becomes None."""
    return raw.decode("utf-8", "backslashreplace") if raw else None


def _click(entry: Entry) -> dict[str, Any]:
    profile, is_prefetch = accepted(entry.detail)
    judged = click.judge_fully(entry.raw, entry.received_ms, _ANYONE[Profile(profile)])
    if isinstance(judged, click.Rejection):
        query, parameters = entry.raw, _parameters(entry.raw)
        said_ms, effective_ms, flags = None, entry.received_ms, []
    else:
        query, parameters = judged.query, judged.parameters
        said_ms, effective_ms, flags = judged.event_time_ms, judged.effective_ms, judged.remarks
    if is_prefetch:
        flags = [*flags, click.Flag.PREFETCH.value]
    columns = {name: present(parameters, name) for name in CLICK_PARAMETERS}
    other = {name: value for name, value in parameters.items() if _is_other(name, value)}
    shape = cut(query)
    if shape is not None:
        values = {**other, **columns, EVENT_TIME: str(said_ms)}
        if rebuild(shape, lambda name: values.get(name) or "") != query:
            shape = None
    return {
        "event_time": instant_of(effective_ms),
        "event_time_sent": _sent(said_ms, effective_ms),
        "flags": flags,
        "profile": profile,
        "revision": REVISION,
        **columns,
        "other": other or None,
        "shape": shape,
        "query": query if shape is None else None,
    }


def with_query(row: dict[str, Any]) -> dict[str, Any]:
    """A row of clicks or views with its query as it came, in bytes, and `other` as a dictionary; without `shape`."""
    shape = row.pop("shape")
    other = row["other"] = dict(row["other"] or ())
    if shape is None:
        return row
    sent = row["event_time_sent"] or row["event_time"]

    def value(name: str) -> str:
        if name == EVENT_TIME:
            return str(ms_of(sent))
        found = other[name] if name in other else row[name]
        assert isinstance(found, str)
        return found

    return row | {"query": rebuild(shape, value)}


def _is_other(name: str, value: str) -> bool:
    """Whether a parameter has no column, and a value. When a request was sent says nothing of the click in it."""
    return name not in CLICK_PARAMETERS and name not in {EVENT_TIME, SENT_AT} and not is_absent(name, value)


def _order(entry: Entry) -> dict[str, Any]:
    judged = amendment.judge(entry.raw, entry.received_ms, entry_id=entry.id, is_kept=True)
    kept = {"raw": entry.raw, "call": entry.detail or None}
    if isinstance(judged, amendment.Rejection):
        return kept | {"client_id": judged.client_id, "order_id": judged.order_id}
    return kept | {
        "event_time": instant_of(judged.effective_ms),
        "event_time_sent": _sent(judged.event_time_ms, judged.effective_ms),
        "client_id": judged.client_id,
        "order_id": judged.order_id,
        "cli_ubid": judged.cli_ubid,
        "device_id": judged.device_id,
        "seller_id": judged.seller_id,
        "amount_minor": judged.amount_minor,
        "currency": judged.currency,
        "status": str(judged.status),
        "refunded_minor": judged.refunded_minor,
        "items": [msgspec.to_builtins(item) for item in judged.items],
        "customer_id": judged.customer_id,
        "kind": judged.kind,
    }


def _sent(said_ms: int | None, effective_ms: int) -> datetime | None:
    """The time that the client named, where another one counts."""
    return None if said_ms is None or said_ms == effective_ms else instant_of(said_ms)


class _Detail(msgspec.Struct):
    """What a rejection's entry says of it."""

    kind: str = ""
    faults: list[dict[str, str]] = []
    what: str | None = None
    was: str | None = None
    flags: list[str] = []


_detail: Final = msgspec.json.Decoder(_Detail).decode


def _rejection(entry: Entry) -> dict[str, Any]:
    detail = _detail(entry.detail)
    what = detail.what or detail.was
    names = ("field", "code", "message")
    return {
        "what": what,
        "kind": detail.kind,
        "client_id": _client_id_of(
            entry.raw, is_json=what == "order" or (what == "identification" and not is_query(entry.raw))
        ),
        "faults": [{name: fault.get(name) for name in names} for fault in detail.faults],
        "raw": entry.raw,
        "flags": detail.flags,
    }


class _Who(msgspec.Struct):
    client_id: str | None = None


_who: Final = msgspec.json.Decoder(_Who).decode


def _client_id_of(raw: bytes, *, is_json: bool) -> str | None:
    if not is_json:
        return _parameters(raw).get("client_id")
    try:
        return _who(raw).client_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # A refused request can be anything, and one such line must not keep its segment out of the lake.
        return None


def _parameters(raw: bytes) -> dict[str, str]:
    """What can be read of a query."""
    try:
        return query.split(raw)
    except query.Unreadable as problem:
        return problem.parameters

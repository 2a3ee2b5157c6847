"""A page that an ad led to, as Segment and RudderStack pass it on: the query of a click.

Never judges a click. Invariants: our own values stand first in the query, because the first of a name counts; a page
that no ad led to is no click.

>>> event = {"type": "page", "anonymousId": "a-1", "properties": {"url": "https://shop.example/menu?gclid=x"}}
>>> page_click(event, "shop-1").query
b'client_id=shop-1&cli_ubid=a-1&landing_page=https%3A%2F%2Fshop.example%2Fmenu&gclid=x'
>>> page_click({"type": "page", "properties": {"url": "https://shop.example/menu"}}, "shop-1") is None
True
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks.absent import CLICK_IDS
from clickclock.attribution.clicks.ad import COLUMNS
from clickclock.attribution.clicks.query import Unreadable, escaped, split, with_ampersands
from clickclock.foundation.instant import ms_of

_TYPES: Final = frozenset(("page", "screen"))
_LEADS: Final = frozenset((*COLUMNS, *CLICK_IDS)) - {"seller_id"}
_LEADS_BEGIN: Final = ("utm_", "fb_")
"""What an ad leaves in an address, as for the tag."""
_CAMPAIGN: Final = {
    "source": "utm_source",
    "medium": "utm_medium",
    "name": "utm_campaign",
    "content": "utm_content",
    "term": "utm_term",
}
"""The fields of `context.campaign`; they count where the address does not say it."""
_ADVERTISING: Final = frozenset(("advertising", "marketing", "targeting"))
"""Categories of consent, in any case, that ads need."""
_PRINTABLE: Final = frozenset(range(0x21, 0x7F))


class PageClick(msgspec.Struct, frozen=True):
    """A click that an event says."""

    query: bytes
    agent: bytes
    """What the visitor's browser said of itself."""
    referer: bytes


def page_click(event: Any, client_id: str) -> PageClick | None:
    """The click of a page event; None if it is another event, or no ad led to the page."""
    if not isinstance(event, dict) or _text(event.get("type")) not in _TYPES:
        return None
    context, said = _object(event.get("context")), _object(event.get("properties"))
    page, device = _object(context.get("page")), _object(context.get("device"))
    address, _, behind = (_text(said.get("url")) or _text(page.get("url"))).partition("#")[0].partition("?")
    led = behind or (_text(said.get("search")) or _text(page.get("search"))).removeprefix("?")
    query = escaped(led.encode("utf-8", "replace"), _PRINTABLE)
    campaign = _campaign(context, query)
    if not campaign and not _is_lead(query):
        return None
    own = {
        "client_id": client_id,
        "cli_ubid": _text(said.get("cli_ubid")) or _text(event.get("anonymousId")),
        "device_id": _text(said.get("device_id")) or _text(device.get("advertisingId")) or _text(device.get("id")),
        "seller_id": _text(said.get("seller_id")),
        "consent": consent_of(context),
        "event_time": _time_ms(event.get("timestamp") or event.get("originalTimestamp")),
        "landing_page": address,
        **campaign,
    }
    parts = [
        b"%b=%b" % (name.encode(), escaped(value.encode("utf-8", "replace"))) for name, value in own.items() if value
    ]
    return PageClick(
        b"&".join([*parts, query] if query else parts),
        _text(context.get("userAgent")).encode("utf-8", "replace"),
        _text(page.get("referrer")).encode("utf-8", "replace"),
    )


def _is_lead(query: bytes) -> bool:
    try:
        return any(name in _LEADS or name.startswith(_LEADS_BEGIN) for name in with_ampersands(split(query)))
    except Unreadable:
        return True  # the judge says why it is refused


def _campaign(context: Mapping[str, Any], query: bytes) -> dict[str, str]:
    campaign = _object(context.get("campaign"))
    found = {ours: text for theirs, ours in _CAMPAIGN.items() if (text := _text(campaign.get(theirs)))}
    return {name: text for name, text in found.items() if b"%b=" % name.encode() not in query}


def consent_of(context: Mapping[str, Any]) -> str:
    """What the visitor allows ads, if the event says it; nothing otherwise."""
    given = _object(_object(context.get("consent")).get("categoryPreferences"))
    said = [value for name, value in given.items() if str(name).lower() in _ADVERTISING]
    return ("granted" if all(each is True for each in said) else "denied") if said else ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time_ms(value: Any) -> str:
    """Milliseconds since 1970 of a time in ISO 8601; what is none is left to the judge."""
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return _text(value)
    return str(ms_of(at)) if at.tzinfo is not None else _text(value)

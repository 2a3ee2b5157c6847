"""Meta's upload files: events for the Conversions API, as the JSON that is posted to it.

Never does I/O, and never says who somebody is: identifiers are only there as SHA-256. Invariants: an event's time is in
seconds; its id is the same whenever the event is made, so that Meta, and a pixel that uses the order's id, count it
once; a value is written with the digits of its currency.

The fields are those of https://developers.facebook.com/docs/marketing-api/conversions-api/parameters. A mobile
advertising id would go into `madid`, which must not be hashed and belongs to app events alone; here it is one of the
hashed `external_id`.

>>> hashed(" U-77 ") == hashed("u-77")
True
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from clickclock.attribution.money import to_text
from clickclock.attribution.upload import Upload

EVENTS_MAX: Final = 1000
"""Of one file: Meta takes so many in one request."""
EVENT_NAME: Final = "Purchase"
MS_PER_S: Final = 1000


class Click(msgspec.Struct, frozen=True):
    """What is known of a click, as far as Meta asks for it."""

    click_ms: int
    cli_ubid: str | None = None
    device_id: str | None = None
    fbclid: str | None = None
    fbc: str | None = None
    """Meta's own cookie, if the page passed it on."""
    user_agent: str | None = None
    page: str | None = None
    """The page that the click came from."""


def events(uploads: Iterable[Upload], clicks: Mapping[str, Click]) -> bytes:
    """A file of events: the body of one request, but for the access token."""
    return msgspec.json.encode({"data": [_event(each, clicks[each.click_id]) for each in uploads]})


def hashed(identifier: str) -> str:
    """An identifier as Meta compares it: without spaces around it, in small letters, hashed."""
    return sha256(identifier.strip().lower().encode()).hexdigest()


def _event(upload: Upload, click: Click) -> dict[str, Any]:
    identifiers = [each for each in (click.cli_ubid, click.device_id) if each is not None]
    user_data: dict[str, Any] = {"external_id": list(dict.fromkeys(map(hashed, identifiers)))}
    fbc = click.fbc or (click.fbclid and f"fb.1.{click.click_ms}.{click.fbclid}")
    if fbc:
        user_data["fbc"] = fbc
    event: dict[str, Any] = {
        "event_name": EVENT_NAME,
        "event_time": upload.conversion_ms // MS_PER_S,
        "event_id": upload.name,
        "action_source": "other",
        "user_data": user_data,
        "custom_data": {
            "value": msgspec.Raw(to_text(upload.value_minor, upload.currency).encode()),
            "currency": upload.currency,
            "order_id": upload.order_id,
        },
    }
    if click.user_agent and (click.page or "").startswith(("https://", "http://")):
        # Of an event on a website, Meta requires these two; of any other, neither.
        event |= {"action_source": "website", "event_source_url": click.page}
        user_data["client_user_agent"] = click.user_agent
    return event

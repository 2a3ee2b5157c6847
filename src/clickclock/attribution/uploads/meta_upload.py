"""Meta's upload files: events for the Conversions API, as the JSON that is posted to it.

Never does I/O, and never says who somebody is: identifiers are only there as SHA-256. Invariants: no value is in an
event that has not Meta's form; an event's time is in seconds; its id is the same whenever the event is made, so that
Meta, and a pixel that uses the order's id, count it once; a value is written with the digits of its currency.

The fields are those of https://developers.facebook.com/docs/marketing-api/conversions-api/parameters. A mobile
advertising id would go into `madid`, which must not be hashed and belongs to app events alone; here it is one of the
hashed `external_id`.

>>> hashed(" U-77 ") == hashed("u-77")
True
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from clickclock.attribution.clicks.absent import present
from clickclock.attribution.orders.money import to_text
from clickclock.attribution.uploads.upload import Upload
from clickclock.attribution.uploads.upload_form import is_agent, is_click_id, is_fbc, is_page
from clickclock.foundation.instant import ms_of

EVENTS_MAX: Final = 1000
"""Of one file: Meta takes so many in one request."""
EVENT_NAME: Final = "Purchase"
"""The name of a purchase's event."""
MS_PER_S: Final = 1000


class Click(msgspec.Struct, frozen=True):
    """Facts about a click, as far as Meta asks for them."""

    click_ms: int
    cli_ubid: str | None = None
    device_id: str | None = None
    fbclid: str | None = None
    fbc: str | None = None
    """Meta's own cookie, if the page passed it on."""
    user_agent: str | None = None
    page: str | None = None
    """The page that the click came from."""


def click_of(row: Mapping[str, Any]) -> Click:
    """The facts in a row of the lake."""
    other = dict(row["other"] or ())
    return Click(
        ms_of(row["event_time"]),
        present(row, "cli_ubid"),
        present(row, "device_id") or present(row, "gaid") or present(row, "idfa"),
        present(other, "fbclid"),
        present(other, "fbc") or present(other, "_fbc"),
        row["user_agent"],
        row["referer"],
    )


class How(StrEnum):
    """What became of a value that has not Meta's form."""

    MADE = "made"
    """It was made anew, from the click id."""
    LEFT_OUT = "left_out"


class Change(NamedTuple):
    """A field of an event that is not as the click had it."""

    field: str
    how: How


def fitting(click: Click, now_ms: int) -> tuple[Click | None, tuple[Change, ...]]:
    """The click with those values alone that Meta can read, and what was changed; None if nobody is left in it.

    One value without its form makes Meta refuse the whole request, and any visitor may have written it. So `fbc` is
    made of the click id where it does not fit.
    """
    changes: list[Change] = []
    has_fbclid = click.fbclid is not None and is_click_id(click.fbclid)
    fbc = f"fb.1.{click.click_ms}.{click.fbclid}" if has_fbclid else None
    if click.fbc is not None and is_fbc(click.fbc, now_ms):
        fbc = click.fbc
    elif click.fbc is not None or (click.fbclid is not None and not has_fbclid):
        changes.append(Change("fbc", How.MADE if fbc else How.LEFT_OUT))
    agent = click.user_agent if click.user_agent and is_agent(click.user_agent) else None
    if click.user_agent and agent is None:
        changes.append(Change("client_user_agent", How.LEFT_OUT))
    page = click.page if click.page and is_page(click.page) else None
    if page is None and (click.page or "").lower().startswith(("https://", "http://")):
        changes.append(Change("event_source_url", How.LEFT_OUT))
    if fbc is None and click.cli_ubid is None and click.device_id is None:
        return None, ()
    fits = msgspec.structs.replace(click, fbclid=None, fbc=fbc, user_agent=agent, page=page)
    return fits, tuple(changes)


def events(uploads: Iterable[Upload], clicks: Mapping[str, Click], called: str = EVENT_NAME) -> bytes:
    """A file of events, by the `fitting` click of each: the body of one request, but for the access token."""
    return msgspec.json.encode({"data": [_event(each, clicks[each.click_id], called) for each in uploads]})


def hashed(identifier: str) -> str:
    """An identifier as Meta compares it: without spaces around it, in small letters, hashed."""
    return sha256(identifier.strip().lower().encode()).hexdigest()


def _event(upload: Upload, click: Click, called: str) -> dict[str, Any]:
    identifiers = [each for each in (click.cli_ubid, click.device_id) if each is not None]
    user_data: dict[str, Any] = {}
    if identifiers:
        user_data["external_id"] = list(dict.fromkeys(map(hashed, identifiers)))
    if click.fbc is not None:
        user_data["fbc"] = click.fbc
    event: dict[str, Any] = {
        "event_name": called,
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
    if click.user_agent and click.page:
        # Meta requires these two of an event on a website, and neither of any other.
        event |= {"action_source": "website", "event_source_url": click.page}
        user_data["client_user_agent"] = click.user_agent
    return event

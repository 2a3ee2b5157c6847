"""What can be asked of clicks as they came, of files for networks and of receipts: operations of the OpenAPI document.

Never says what the code does not do. Invariant: every parameter has a description and an example.

>>> paths()["/attribution/funnel"]["get"]["operationId"]
'getFunnel'
"""

from typing import Final

from clickclock.attribution.api import check, erasures
from clickclock.attribution.api.operations import ASKING, CLIENT, limit, operation, parameter, payload
from clickclock.attribution.api.questions import READERS
from clickclock.attribution.api.schemas import array, field, nullable, ref
from clickclock.attribution.api.stream import FILTERS, PERMISSION, TooManyViewers
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.registering import recent
from clickclock.attribution.registering.sighting import Seen
from clickclock.attribution.reporting import postbacks as postback
from clickclock.attribution.reporting import uploads as upload_file
from clickclock.attribution.reporting.funnel import Width
from clickclock.foundation.errors import Forbidden, Invalid, Malformed, Unauthenticated
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.openapi import EVENT_STREAM, Schema, event_stream
from clickclock.foundation.problem import ForeignHost, ForeignOrigin, TooLarge


def paths() -> dict[str, dict[str, Schema]]:
    """Each operation, by its path and method."""
    return {
        "/attribution/clicks": {"get": _clicks()},
        "/attribution/clicks/stream": {"get": _stream()},
        "/attribution/funnel": {"get": _funnel()},
        "/attribution/uploads": {"get": _uploads()},
        "/attribution/postbacks": {"get": _postbacks()},
        "/attribution/erasures": {"get": _erasures()},
        "/attribution/check": {"get": _check("checkClick"), "post": _check("checkText", has_body=True)},
    }


def _clicks() -> Schema:
    kinds = parameter("kind", "Which of them; all if not given. Separated by commas, or given several times.", "click")
    return operation(
        "listClicks",
        "The last clicks, rejections and orders, newest first",
        READERS["clicks"].permission,
        [CLIENT, kinds, limit("At most so many.", recent.LIMIT, recent.LIMIT_MAX)],
        {
            "application/json": payload(
                clicks={
                    "type": "array",
                    "description": "Each as the stream shows it, with its event's name as `seen`.",
                    "items": _SIGHTING,
                }
            )
        },
        ASKING,
    )


def _stream() -> Schema:
    return operation(
        "watchClicks",
        "Clicks, orders and rejections, as they come",
        PERMISSION,
        [
            parameter("clientId", FILTERS["clientId"], "shop-1"),
            parameter("kind", FILTERS["kind"], Seen.CLICK, enum=list(Seen)),
        ],
        {EVENT_STREAM: event_stream("Clicks, orders and rejections as they come.", _EVENT, _SIGHTING)},
        [Unauthenticated, Forbidden, Malformed, ForeignHost, TooManyViewers],
    )


def _funnel() -> Schema:
    hour = "An hour before `to` if not given."
    return operation(
        "getFunnel",
        "What came in a span of time, and how much of it earned credit",
        READERS["funnel"].permission,
        [
            parameter("from", f"Its beginning. {hour}", "2026-11-20T09:00:00Z", format="date-time"),
            parameter("to", "Its end; now if not given.", "2026-11-20T10:00:00Z", format="date-time"),
            parameter("bucket", "The width of a bucket: minutes for up to a day.", "minute", enum=list(Width)),
            CLIENT,
            parameter("model", "The model whose credit is counted; `last` if not given.", "last"),
        ],
        {"application/json": payload(funnel=ref("Funnel", "What came, and what became of it."))},
        [*ASKING, VersionGone],
    )


def _uploads() -> Schema:
    lists = "Separated by commas, or given several times."
    return operation(
        "listUploads",
        "The files for ad networks of the last 180 days, and what the next export would tell",
        READERS["uploads"].permission,
        [
            parameter("network", f"Which networks; all if not given. {lists}", "google"),
            CLIENT,
            limit("At most so many files.", upload_file.LIMIT, upload_file.LIMIT_MAX),
        ],
        {
            "application/json": payload(
                files=array("#/components/schemas/UploadFile", "Newest first."),
                hasMore=field("boolean", "Whether there are older ones."),
                next=ref("UploadsNext", "What the next export would tell."),
            )
        },
        [*ASKING, VersionGone, Invalid],
    )


def _postbacks() -> Schema:
    return operation(
        "listPostbacks",
        "The calls to partners with what became of each, and those that are made next",
        READERS["postbacks"].permission,
        [
            parameter("partner", "Which partner; all if not given.", "affiliate"),
            CLIENT,
            parameter("orderId", "Only those about this order.", "A-1001"),
            parameter("state", "Only those in this state.", postback.State.WAITING, enum=list(postback.State)),
            limit("At most so many.", postback.LIMIT, postback.LIMIT_MAX),
        ],
        {
            "application/json": payload(
                postbacks=array("#/components/schemas/Postback", "Newest first."),
                hasMore=field("boolean", "Whether there are older ones."),
                next=ref("PostbacksNext", "What partners are called about next."),
            )
        },
        [*ASKING, VersionGone, Invalid],
    )


def _erasures() -> Schema:
    return operation(
        "listErasures",
        "The receipts of what was erased, newest first",
        READERS["erasures"].permission,
        [
            parameter("kind", "`erasure` or `retention`; both if not given.", "erasure"),
            CLIENT,
            limit("At most so many.", erasures.LIMIT, erasures.LIMIT_MAX),
        ],
        {
            "application/json": payload(
                receipts=array("#/components/schemas/Receipt", "Newest first."),
                hasMore=field("boolean", "Whether there are older ones."),
                underWay=nullable("UnderWay", "The erasure that is not done yet; null if there is none."),
            )
        },
        ASKING,
    )


def _check(name: str, *, has_body: bool = False) -> Schema:
    text = parameter("click", "An address, a query or a line of a server's log.", "https://shop.example/?gclid=x")
    told = operation(
        name,
        "What the collector would make of a click",
        check.PERMISSION,
        [
            *([] if has_body else [{**text, "required": True}]),
            parameter("clientId", "The client that the tag names; for landing pages.", "shop-1"),
            parameter("sellerId", "The seller that the tag names; for landing pages.", "s-9"),
        ],
        {"application/json": payload(check=ref("Check", "What the collector would make of it."))},
        [Unauthenticated, Forbidden, Malformed, ForeignHost, *([ForeignOrigin, TooLarge] if has_body else [])],
    )
    body = {"required": True, "content": {"text/plain": {"schema": text["schema"], "example": text["example"]}}}
    return told | ({"requestBody": body} if has_body else {})


_SIGHTING: Final[Schema] = {"type": "object", "additionalProperties": True}
_EVENT: Final = f'id: 0.1.42\nevent: click\ndata: {{"id": "{EXAMPLE_ID}", "clientId": "shop-1"}}\n\n'

"""What came and what became of it, as schemas of the OpenAPI document: funnels, files for networks, receipts.

Never says what the code does not do. Invariant: every field has a description.

>>> sorted(traffic_schemas())[:4]
['Funnel', 'Postback', 'PostbacksNext', 'PostbacksOfPartner']
"""

from collections.abc import Mapping
from typing import Any, Final

from clickclock.attribution.api.schemas import array, field, record
from clickclock.attribution.erasing.receipt import Kind
from clickclock.attribution.reporting.postbacks import State
from clickclock.attribution.uploads.upload import Kind as UploadKind
from clickclock.attribution.uploads.upload import Network
from clickclock.foundation.openapi import Schema

_COUNTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "integer"}}


def traffic_schemas() -> Mapping[str, Schema]:
    """Each by name."""
    return {
        "Funnel": _funnel(),
        "UploadFile": _file(),
        "UploadsNext": record(
            "What the next export would tell the networks.",
            version=field(["integer", "null"], "The result version; null while there is none."),
            model=field("string", "Whose credit it tells."),
            networks=array(
                "#/components/schemas/UploadsOfNetwork", "Each network that was asked about, and each kind."
            ),
        ),
        "UploadsOfNetwork": record(
            "What it would tell one network about orders of one kind.",
            network=field("string", "Which.", enum=list(Network)),
            orderKind=field("string", "The kind of orders: `purchase`, or that of a `[[conversion]]` table."),
            kinds=_counts("How many rows of each kind: `conversion`, `restate`, `retract`."),
            fates=_counts("Of how many credits it tells nothing, by the reason."),
        ),
        "Postback": _postback(),
        "PostbacksNext": record(
            "What partners are called about next.",
            version=field(["integer", "null"], "The result version; null while there is none."),
            partners=array("#/components/schemas/PostbacksOfPartner", "Each partner that was asked about."),
        ),
        "PostbacksOfPartner": record(
            "What one partner is called about next.",
            partner=field("string", "Its name in the configuration."),
            model=field("string", "The model whose credit is reported."),
            kinds=_counts("How many calls of each kind: `conversion`, `restate`, `retract`."),
            fates=_counts("About how many credits it is not called, by the reason."),
        ),
        "Receipt": _receipt(),
        "UnderWay": record(
            "An erasure that is not done yet. It does not tell the identifier.",
            id=field("string", "Its id, and that of its receipt."),
            clientId=field("string", "The client."),
            asked=field("string", "The kind of the identifier."),
            withPerson=field("boolean", "Whether all identifiers of the same person go."),
            reason=field("string", "Why."),
            rows=_counts("Rows that were found so far, by place."),
        ),
    }


def _counts(description: str) -> Schema:
    return {**_COUNTS, "description": description}


def _numbers(description: str) -> Schema:
    return {"type": "array", "description": description, "items": {"type": "integer"}}


def _each(description: str, name: str, meaning: str) -> Schema:
    one = record("A count.", **{name: field("string", meaning)}, clicks=field("integer", "How many clicks have it."))
    return {"type": "array", "description": description, "items": one}


def _funnel() -> Schema:
    received: dict[str, Any] = {
        "from": field("string", "Its beginning.", format="date-time"),
        "to": field("string", "Its end, which is not in it.", format="date-time"),
        "clientId": field(["string", "null"], "The client that was asked about; null for all."),
        "version": field(["integer", "null"], "The result version that journeys are of; null while there is none."),
        "model": field("string", "The model whose credit is counted."),
        "received": field("integer", "Clicks that came: accepted and rejected ones."),
        "rejected": field("integer", "Clicks that were refused and kept."),
        "accepted": field("integer", "Clicks that were answered 204."),
        "inLake": field("integer", "Accepted clicks that are in the lake; the others come into it within a minute."),
        "inJourneys": field(
            ["integer", "null"], "Clicks before orders that were placed in the month before `from` or later."
        ),
        "credited": field(["integer", "null"], "Clicks of these that the model gives a part of an order."),
        "reasons": _each("Why clicks were refused, the commonest first.", "code", "The code of the fault."),
        "flags": _each("What was let pass in the lake's clicks, the commonest first.", "flag", "The flag."),
        "firstMs": field("integer", "When the first bucket begins, in ms since 1970."),
        "widthMs": field("integer", "The width of a bucket, in ms."),
        "clicks": _numbers("Accepted clicks of each bucket, oldest first."),
        "views": _numbers("Accepted views of each bucket."),
        "rejections": _numbers("Refused clicks, views, orders and identifications of each bucket."),
        "orders": _numbers("Orders and their amendments of each bucket."),
    }
    return record("What came in a span of time, and how much of it earned credit.", **received)


def _file() -> Schema:
    return record(
        "A file that was written for an ad network.",
        file=field("string", "Its name."),
        network=field("string", "For whom.", enum=list(Network)),
        orderKind=field("string", "The kind of its orders: `purchase`, or that of a `[[conversion]]` table."),
        clientId=field("string", "Whose orders."),
        exportedAt=field("string", "When it was written.", format="date-time"),
        bytes=field(["integer", "null"], "Its size; null where it is not in the folder of exports."),
        kinds=_counts("How many rows of each kind."),
        values={
            "type": "object",
            "description": "The sum of their values, by currency.",
            "additionalProperties": {"type": "string"},
        },
    )


def _postback() -> Schema:
    return record(
        "A call to a partner about an order.",
        id=field("string", "Its id, the same at each attempt."),
        partner=field("string", "The partner's name in the configuration."),
        kind=field("string", "What it tells.", enum=list(UploadKind)),
        clientId=field("string", "Whose order."),
        orderId=field("string", "The order."),
        clickId=field("string", "The click that earned it."),
        credit=field("string", "What the model gives the click, without what was refunded."),
        currency=field("string", "Its currency."),
        model=field("string", "The model."),
        orderedAt=field("string", "When the order was placed.", format="date-time"),
        writtenAt=field("string", "When it was decided.", format="date-time"),
        state=field("string", "What became of it.", enum=list(State)),
        attempts=field("integer", "How often it was sent."),
        attemptedAt=field(["string", "null"], "When it was sent last.", format="date-time"),
        why=field(["string", "null"], "The partner's last answer, where it did not take it."),
    )


def _receipt() -> Schema:
    digest = record(
        "What stands for an identifier.",
        kind=field("string", "The kind of the identifier."),
        digest=field("string", "Who has the identifier and the data folder's secret can compute it again."),
    )
    return record(
        "What was erased, when and why, without what was erased.",
        id=field("string", "Its id."),
        kind=field("string", "Whether somebody asked, or the rows were too old.", enum=list(Kind)),
        createdAt=field("string", "When it was done.", format="date-time"),
        reason=field("string", "What was given as the reason."),
        clientId=field(["string", "null"], "The client; null for retention."),
        identifiers={
            "type": "array",
            "description": "What was asked for, and what goes with it.",
            "items": digest,
        },
        before={
            "type": "object",
            "description": "Of retention: by table, the first day that stays.",
            "additionalProperties": {"type": "string"},
        },
        rows=_counts("How many rows went, by place."),
        total=field("integer", "Rows of all places."),
        verifiedFiles=field("integer", "Files that were read afterwards."),
        verifiedBytes=field("integer", "Their bytes."),
    )

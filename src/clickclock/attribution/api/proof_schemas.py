"""What the proof of an order's credit looks like, as schemas of the OpenAPI document.

Never says what the code does not do: the fields are those of `proof_document.py`, and a test compares. Invariant: every
field has a description.

>>> sorted(proof_schemas())[:3]
['CrowdedDevice', 'Identifier', 'NotApplied']
"""

from collections.abc import Mapping
from typing import Any, Final

from clickclock.attribution.api.schemas import array, field, nullable, record, ref, texts
from clickclock.attribution.crediting.journey import Reason
from clickclock.attribution.crediting.touchpoint import Fate
from clickclock.attribution.orders import amendment
from clickclock.attribution.reporting.result import Kind
from clickclock.foundation.openapi import Schema

_CURRENCY: Final = field("string", "Of every amount.")


def proof_schemas() -> Mapping[str, Schema]:
    """The proof, and every part of it, by name."""
    return {
        "Proof": _proof(),
        "ProofResult": record(
            "A result version.",
            version=field("integer", "Counts from 1."),
            createdAt=_time("When it was made."),
            kind=field("string", "How it was made.", enum=list(Kind)),
        ),
        "ProofOrder": record(
            "The order as it stands.",
            placedAt=_time("When it was placed."),
            month=field("string", "In which it was placed, in the account's time zone."),
            amount=field("string", "What was paid."),
            refunded=field("string", "What of it was paid back."),
            currency=_CURRENCY,
            status=_STATUS,
            kind=field("string", "What the customer did."),
            sellerIds=texts("Its sellers."),
        ),
        "ProofAmendment": record(
            "What one message said of the order.",
            id=field("string", "Under which it is kept."),
            time=_time("From when it counts."),
            receivedAt=_time("When it came."),
            amount=field("string", "What was paid."),
            refunded=field("string", "What of it was paid back."),
            currency=_CURRENCY,
            status=_STATUS,
            kind=field(["string", "null"], "What the customer did; null if it says nothing of it."),
        ),
        "Identifier": record("A person's identifier.", **_IDENTIFIER),
        "PersonIdentifier": record(
            "An identifier of the person.", **_IDENTIFIER, code=field("string", "The lake's number of it, as text.")
        ),
        "PersonLink": record(
            "What ties two identifiers together.",
            between=array("#/components/schemas/Identifier", "The two."),
            clicks=texts("Clicks that had both."),
            orders=texts("Orders that had both."),
            identifications=texts("Identifications that named both."),
        ),
        "Person": record(
            "Whose order it is.",
            code=field("string", "The lake's number of the person, as text."),
            identifiers=array("#/components/schemas/PersonIdentifier", "What belongs to the person."),
            links=array("#/components/schemas/PersonLink", "What ties them together."),
        ),
        "SharedIdentifier": record(
            "An identifier that is nobody's.",
            **_IDENTIFIER,
            links=field("integer", "With how many others it was seen; 0 if its value identifies nobody."),
            why=field("string", "The same as a sentence."),
        ),
        "CrowdedDevice": record(
            "A device that links nobody.",
            **_IDENTIFIER,
            visitors=field("integer", "How many visitors it had within the window."),
            why=field("string", "The same as a sentence."),
        ),
        "StoredDifference": record(
            "Where what is stored is not what was computed anew.",
            place=field("integer", "The touchpoint, from 1; 0 for the order."),
            column=field("string", "The column."),
            stored=field("string", "What is stored."),
            computed=field("string", "What was computed."),
        ),
        **_parts(),
    }


def _parts() -> Mapping[str, Schema]:
    return {
        "NotApplied": record(
            "A rule that was not applied.", rule=field("string", "The rule."), why=field("string", "Why not.")
        ),
        "ProofClick": _click(),
        "ProofCredit": _credit(),
        "ProofTouchpoint": _touchpoint(),
    }


def _time(description: str) -> Schema:
    return field("string", description, format="date-time")


_STATUS: Final = field("string", "What became of it.", enum=list(amendment.Status))
_IDENTIFIER: Final[Mapping[str, Schema]] = {
    "kind": field("string", "Which kind: `cli_ubid`, `device_id` or `customer_id`."),
    "value": field("string", "Its value."),
}


def _proof() -> Schema:
    reason = field(["string", "null"], "Why it has no touchpoint; null if it has.", enum=[*Reason, None])
    return record(
        "Why an order is credited as it is.",
        clientId=field("string", "Whose order it is."),
        orderId=field("string", "The order."),
        differs=array("#/components/schemas/StoredDifference", "None; if there are any, something is wrong."),
        result=ref("ProofResult", "The result version."),
        order=ref("ProofOrder", "The order as it stands: when, how much, of whom."),
        amendments=array("#/components/schemas/ProofAmendment", "All that was ever said of the order."),
        person=nullable("Person", "Whose order it is, by which identifiers; null if nobody's."),
        sharedIdentifiers=array("#/components/schemas/SharedIdentifier", "Identifiers that are nobody's."),
        crowdedDevices=array("#/components/schemas/CrowdedDevice", "Devices that link nobody."),
        reason=reason,
        why=field(["string", "null"], "The same as a sentence."),
        clicks=array("#/components/schemas/ProofClick", "Every click of the person."),
        journey=texts("The touchpoints' clicks, first to last."),
        credits=array("#/components/schemas/ProofCredit", "Each model's credit, with its arithmetic."),
    )


def _click() -> Schema:
    named: dict[str, Any] = {
        "channel": "string",
        "sellerId": ["string", "null"],
        "campaign": ["string", "null"],
        "adSet": ["string", "null"],
        "ad": ["string", "null"],
        "atag": ["string", "null"],
        "asvt": ["string", "null"],
        "clickId": ["string", "null"],
    }
    apart = record(
        "What sets it apart from another click.", click=field("string", "That click."), by=texts("By what they differ.")
    )
    return record(
        "A click of the person, or a view that may earn credit, and what became of it.",
        id=field("string", "The click."),
        kind=field("string", "Whether the ad was clicked, or seen.", enum=["click", "view"]),
        time=_time("When it was."),
        timeSent=field(["string", "null"], "The time that it named.", format="date-time"),
        timeCounted=field("string", "Which time counts.", enum=["sent", "received", "corrected"]),
        receivedAt=_time("When it came."),
        daysBeforeOrder=field("number", "So many days before the order; less than 0 if after it."),
        windowDays=field("number", "So many days before an order such a click, or view, may be."),
        fate=field("string", "What became of it.", enum=list(Fate)),
        why=field("string", "The same as a sentence."),
        cause=field(["string", "null"], "The click that decided it, if another did."),
        apart={"anyOf": [apart, {"type": "null"}], "description": "What sets it apart; null if nothing had to."},
        flags=texts("What is remarkable."),
        notApplied=array("#/components/schemas/NotApplied", "Rules that were not applied, and why."),
        **{name: field(kind, f"The {name} that it has.") for name, kind in named.items()},
        identifiers=array("#/components/schemas/Identifier", "Those that it has."),
    )


def _credit() -> Schema:
    numbers = {"type": "object", "description": "By channel.", "additionalProperties": {"type": "number"}}
    fitted = record("What a month taught.", month=field("string", "The month."), channels=numbers)
    return record(
        "One model's credit.",
        model=field("string", "The model."),
        amount=field("string", "What is divided."),
        refunded=field("string", "What of it was paid back."),
        currency=_CURRENCY,
        fitted={"anyOf": [fitted, {"type": "null"}], "description": "Of models that learn; null for others."},
        sumOfWeights=field("number", "Of all touchpoints."),
        touchpoints=array("#/components/schemas/ProofTouchpoint", "First to last."),
    )


def _touchpoint() -> Schema:
    return record(
        "One touchpoint's part.",
        place=field("integer", "From 1."),
        click=field("string", "The click."),
        channel=field("string", "Its channel."),
        weight=field("number", "By the model."),
        share=field("number", "Its part of the sum of weights."),
        exact=field("string", "Its part of the amount before rounding."),
        credit=field("string", "Its part of the amount."),
        isRoundedUp=field("boolean", "Whether it got a unit that was left over."),
        exactRefund=field("string", "Its part of the refund before rounding."),
        refund=field("string", "Its part of the refund."),
        isRefundRoundedUp=field("boolean", "Whether it got a unit of it that was left over."),
    )

"""A proof of credit as JSON: camelCase names, amounts as decimal strings beside a currency, a sentence for each click.

Never computes a credit. Invariants: what is in the proof is in the document; no number in it is larger than JavaScript
can hold, and no amount is a float.

>>> amount(Fraction(100, 3), "EUR")
'0.33333333'
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from clickclock.attribution.crediting.columns.identity import LINKS_MAX
from clickclock.attribution.crediting.journey import Considered, Reason
from clickclock.attribution.crediting.policy import Policy, in_days
from clickclock.attribution.crediting.touchpoint import Fate
from clickclock.attribution.models import ByChannel
from clickclock.attribution.orders.amendment import Amendment
from clickclock.attribution.orders.money import DIGITS, to_text
from clickclock.attribution.reporting.proof import Credit, Difference, Evidence, Identifier, Person, Proof, sellers
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.instant import DAY_MS, HOUR_MS, instant_of
from clickclock.foundation.record import rfc3339

EXTRA_DIGITS: Final = 6
"""Digits shown beyond the minor unit of a share; further digits are left out."""
SENTENCES: Final[Mapping[Fate, str]] = {
    Fate.SHARED_IDENTIFIER: "Its identifiers are shared: they are nobody's.",
    Fate.RETRY: "The same parameters came at most 10 s before, of a time as near: it is one click, sent again.",
    Fate.CLICK_ID_SPENT: "Its click id was on an earlier click, and counts once.",
    Fate.BOT: "Its user agent is a known bot's.",
    Fate.PREFETCH: "A program asked for it in advance, before anybody clicked.",
    Fate.FLOOD: "There were too many clicks within ten minutes.",
    Fate.REPEAT: "A click on the same ad counted less than an hour before.",
    Fate.COUNTED: "It counts.",
    Fate.NOT_BEFORE_ORDER: "It was not before the order.",
    Fate.OUTSIDE_WINDOW: "It was longer before the order than its window of {window}.",
    Fate.OTHER_SELLER: "It is of another seller than the order.",
    Fate.TOO_SOON: "The order followed it sooner than anybody can order.",
    Fate.IN_JOURNEY: "It is a touchpoint of the order.",
    Fate.GAVE_WAY: "A click is a touchpoint of the order, and where a click counts no view does.",
}
_REPEATED_VIEW: Final = "A view of the same ad counted less than an hour before."
NO_NETWORK: Final = (
    "The visitor's address is not known, so floods from its network were not looked for: a server sent the click "
    "without the visitor's X-Forwarded-For or User-Agent, or it was imported."
)
REASONS: Final[Mapping[Reason, str]] = {
    Reason.SHARED_IDENTIFIER: "All identifiers of the order are shared, so that it is nobody's.",
    Reason.NO_CLICK: "The person never clicked.",
    Reason.NO_TOUCHPOINT: "No click of the person counted before the order.",
    Reason.NONE_ELIGIBLE: "No touchpoint before the order was within its window, of its seller and early enough.",
}


def document(proof: Proof, result: Result, differs: Sequence[Difference]) -> dict[str, Any]:
    """The proof of an order in a result version, whose stored rows differ so."""
    order, currency = proof.order, proof.order.currency
    return {
        "clientId": order.client_id,
        "orderId": order.order_id,
        "differs": [
            {"place": each.place, "column": each.column, "stored": each.stored, "computed": each.computed}
            for each in differs
        ],
        "result": {"version": result.version, "createdAt": rfc3339(result.created_at), "kind": result.kind.value},
        "order": {
            "placedAt": _time(order.placed_ms),
            "month": proof.month,
            "amount": to_text(order.amount_minor, currency),
            "refunded": to_text(order.refunded_minor, currency),
            "currency": currency,
            "status": order.status.value,
            "kind": order.kind,
            "sellerIds": sorted(sellers(order)),
        },
        "amendments": [_amendment(each) for each in proof.amendments],
        "person": None if proof.person is None else _person(proof.person),
        "sharedIdentifiers": [
            {**_identifier(each), "links": links, "why": _why_shared(links)} for each, links in proof.shared.items()
        ],
        "crowdedDevices": [
            {**_identifier(each), "visitors": visitors, "why": _why_crowded(visitors, proof.policy)}
            for each, visitors in proof.crowded.items()
        ],
        "reason": None if proof.reason is None else proof.reason.value,
        "why": None if proof.reason is None else REASONS[proof.reason],
        "clicks": [_click(each, proof) for each in proof.clicks],
        "journey": [each.judged.touch.id for each in proof.touchpoints],
        "credits": [_credit(each, proof) for each in proof.credits],
    }


def amount(exact: Fraction, currency: str) -> str:
    """A part of a minor unit and all, as a decimal string, cut after `EXTRA_DIGITS` more than the currency has."""
    digits = DIGITS[currency] + EXTRA_DIGITS
    text = str(exact.numerator * 10**EXTRA_DIGITS // exact.denominator).rjust(digits + 1, "0")
    return f"{text[:-digits]}.{text[-digits:]}"


def _time(ms: int) -> str:
    return rfc3339(instant_of(ms))


def _amendment(amendment: Amendment) -> dict[str, Any]:
    return {
        "id": amendment.entry_id,
        "time": _time(amendment.effective_ms),
        "receivedAt": _time(amendment.received_ms),
        "amount": to_text(amendment.amount_minor, amendment.currency),
        "refunded": to_text(amendment.refunded_minor, amendment.currency),
        "currency": amendment.currency,
        "status": amendment.status.value,
        "kind": amendment.kind,
    }


def _person(person: Person) -> dict[str, Any]:
    return {
        # As text: 64 bits are more than JavaScript's numbers have.
        "code": str(person.code),
        "identifiers": [{**_identifier(each), "code": str(each.code)} for each in person.identifiers],
        "links": [
            {
                "between": [_identifier(link.one), _identifier(link.other)],
                "clicks": list(link.clicks),
                "orders": list(link.orders),
                "identifications": list(link.identifications),
            }
            for link in person.links
        ],
    }


def _why_shared(links: int) -> str:
    if not links:
        return "This value identifies nobody."
    return f"It was seen with {links} others, more than the {LINKS_MAX} of one person: it is nobody's."


def _why_crowded(visitors: int, policy: Policy) -> str:
    most, days = policy.visitors_per_device_max, policy.window_days_max
    who = f"{visitors} visitors (cli_ubid, customer_id)"
    return f"It had {who} within {days} d, more than {most}: it links none of them."


def _identifier(identifier: Identifier) -> dict[str, Any]:
    return {"kind": identifier.kind, "value": identifier.value}


def _click(considered: Considered, proof: Proof) -> dict[str, Any]:
    judged, touch = considered.judged, considered.judged.touch
    evidence: Evidence = proof.evidence[touch.id]
    window_ms, apart = (
        proof.policy.window_ms(touch.channel, touch.seller_id, is_view=touch.is_view),
        proof.apart.get(touch.id),
    )
    window = f"{window_ms // HOUR_MS} h" if touch.is_view else f"{window_ms // DAY_MS} d"
    why = SENTENCES[considered.fate].format(window=window)
    if touch.is_view and considered.fate is Fate.REPEAT:
        why = _REPEATED_VIEW
    return {
        "id": touch.id,
        "kind": "view" if touch.is_view else "click",
        "time": _time(touch.time_ms),
        "timeSent": None if evidence.sent_ms is None else _time(evidence.sent_ms),
        "timeCounted": _counted(evidence),
        "receivedAt": _time(touch.received_us // 1000),
        "daysBeforeOrder": round((proof.order.placed_ms - touch.time_ms) / DAY_MS, 6),
        "windowDays": in_days(window_ms),
        "fate": considered.fate.value,
        "why": why + ("" if evidence.is_time_sent else _time_of(evidence)),
        "cause": judged.cause,
        "apart": None if apart is None else {"click": apart.click, "by": list(apart.by)},
        "flags": [flag.value for flag in considered.flags],
        "notApplied": [] if evidence.has_network else [{"rule": "networkFlood", "why": NO_NETWORK}],
        "channel": touch.channel,
        "sellerId": touch.seller_id,
        "campaign": touch.campaign,
        "adSet": touch.ad_set,
        "ad": touch.ad,
        "atag": touch.atag,
        "asvt": touch.asvt,
        "clickId": evidence.click_id,
        "identifiers": [_identifier(each) for each in evidence.seen.identifiers],
    }


def _counted(evidence: Evidence) -> str:
    if evidence.is_time_sent:
        return "sent"
    return "received" if evidence.touch.time_ms == evidence.touch.received_us // 1000 else "corrected"


def _time_of(evidence: Evidence) -> str:
    """Why another time counts than what it named."""
    if _counted(evidence) == "corrected" and evidence.sent_ms is not None:
        return f" It named {_time(evidence.sent_ms)}; that was corrected, for its sent_at shows that its clock was off."
    said = "it named none" if evidence.sent_ms is None else f"it named {_time(evidence.sent_ms)}, which is later"
    return f" Its time is that of its receipt: {said}."


def _credit(credit: Credit, proof: Proof) -> dict[str, Any]:
    currency, model = proof.order.currency, credit.model
    channels = sorted({each.judged.touch.channel for each in proof.touchpoints})
    return {
        "model": credit.name,
        "amount": to_text(proof.order.amount_minor, currency),
        "refunded": to_text(proof.order.refunded_minor, currency),
        "currency": currency,
        # What the month taught of these channels (there may be thousands more): the conversions each is credited with.
        "fitted": {"month": proof.month, "channels": {name: model.credit.get(name, 0.0) for name in channels}}
        if isinstance(model, ByChannel)
        else None,
        "sumOfWeights": credit.total,
        "touchpoints": [
            {
                "place": place,
                "click": each.judged.touch.id,
                "channel": each.judged.touch.channel,
                "weight": weight,
                "share": weight / credit.total,
                "exact": amount(of_amount.exact, currency),
                "credit": to_text(of_amount.minor, currency),
                "isRoundedUp": of_amount.is_rounded_up,
                "exactRefund": amount(of_refund.exact, currency),
                "refund": to_text(of_refund.minor, currency),
                "isRefundRoundedUp": of_refund.is_rounded_up,
            }
            for place, (each, weight, of_amount, of_refund) in enumerate(
                zip(proof.touchpoints, credit.weights, credit.amount, credit.refund, strict=True), 1
            )
        ],
    }

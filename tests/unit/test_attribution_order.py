"""A proof of credit is drawn as a tree that a person can read."""

from copy import deepcopy
from typing import Any, Final

from clickclock.cli.attribution_order import drawn

CLICK: Final[dict[str, Any]] = {
    "id": "b",
    "time": "2026-05-12T12:00:00.000Z",
    "fate": "in_journey",
    "why": "It is a touchpoint of the order.",
    "cause": None,
    "flags": [],
    "notApplied": [],
    "timeCounted": "sent",
    "apart": None,
    "channel": "meta",
    "campaign": "spring",
    "adSet": None,
    "ad": "ad-7",
}
REPEAT: Final = {**CLICK, "id": "c", "fate": "repeat", "why": "It is a repeat.", "cause": "b", "flags": ["bot"]}
TOUCHPOINT: Final = {
    "place": 1,
    "channel": "meta",
    "weight": 1,
    "share": 1 / 3,
    "exact": "3.33333333",
    "credit": "3.34",
    "isRoundedUp": True,
    "refund": "0.00",
}
U1: Final = {"kind": "cli_ubid", "value": "u1"}
PROOF: Final[dict[str, Any]] = {
    "clientId": "shop",
    "orderId": "7",
    "differs": [],
    "result": {"version": 3, "createdAt": "2026-05-18T00:00:00.000Z", "kind": "full"},
    "order": {"placedAt": "2026-05-17T12:00:00.000Z", "amount": "10.00", "currency": "EUR", "status": "completed"},
    "amendments": [
        {
            "time": "2026-05-17T12:00:00.000Z",
            "amount": "10.00",
            "refunded": "0.00",
            "currency": "EUR",
            "status": "completed",
        }
    ],
    "person": {
        "code": "-5",
        "identifiers": [U1, {"kind": "device_id", "value": "d1"}],
        "links": [
            {
                "between": [U1, {"kind": "device_id", "value": "d1"}],
                "clicks": ["b", "c"],
                "orders": [],
                "identifications": [],
            }
        ],
    },
    "sharedIdentifiers": [{"kind": "device_id", "value": "test", "links": 0, "why": "its value identifies nobody"}],
    "crowdedDevices": [
        {"kind": "device_id", "value": "tablet", "visitors": 12, "why": "it had 12 visitors at one time"}
    ],
    "why": None,
    "clicks": [CLICK, REPEAT],
    "journey": ["b"],
    "credits": [
        {
            "model": "linear",
            "amount": "10.00",
            "currency": "EUR",
            "fitted": {"month": "2026-05", "channels": {"google": 3.0, "meta": 1.0}},
            "sumOfWeights": 3,
            "touchpoints": [TOUCHPOINT],
        }
    ],
}


def lines(proof: dict[str, Any]) -> list[str]:
    return [line.lstrip("│├└─ ").strip() for line in drawn(proof).splitlines()]


def test_the_tree_says_the_person_every_click_and_the_arithmetic() -> None:
    told = lines(PROOF)
    assert told[0] == "order 7 of shop"
    assert "person -5: cli_ubid u1, device_id d1" in told
    assert told[told.index("cli_ubid u1 is device_id d1, seen together on") + 1] == "clicks b, c"
    assert "2 clicks, touchpoints among them: 1" in told
    assert told[told.index("It is a repeat. That was b.") + 1 :][:2] == ["flagged", "bot"]
    assert "channels weigh as their conversions of 2026-05: google 3, meta 1" in told
    assert told[-1] == "1. meta: 1 / 3 = 33.3%, exactly 3.33333333, rounded up to 3.34"


def test_a_share_that_needs_no_rounding_is_not_said_to_be_rounded() -> None:
    proof = deepcopy(PROOF)
    proof["credits"][0]["touchpoints"] = [{**TOUCHPOINT, "exact": "10.00000000", "credit": "10.00", "refund": "1.00"}]
    assert lines(proof)[-1] == "1. meta: 1 / 3 = 33.3%, 10.00, less 1.00 refunded"


def test_what_differs_from_what_is_stored_comes_before_all_that_is_proven() -> None:
    difference = {"place": 1, "column": "last_credit", "stored": "999", "computed": "1000"}
    told = lines({**PROOF, "differs": [difference]})
    assert told[3:5] == ["DIFFERS FROM WHAT IS STORED", "last_credit of row 1: stored 999, computed 1000"]


def test_an_order_without_credit_says_why() -> None:
    told = lines({**PROOF, "person": None, "clicks": [], "journey": [], "credits": [], "why": "It is nobody's."})
    assert told[-1] == "no credit: It is nobody's."


def test_what_a_client_sent_cannot_move_the_cursor() -> None:
    proof = {**PROOF, "orderId": "7\x1b[2J"}
    assert "\x1b" not in drawn(proof)


def test_views_are_told_from_clicks() -> None:
    seen = {**CLICK, "id": "v", "kind": "view", "fate": "gave_way", "why": "A click counts."}
    told = lines({**PROOF, "clicks": [{**CLICK, "kind": "click"}, seen]})
    assert "1 click, 1 view, touchpoints among them: 1" in told
    assert next(line for line in told if "  v  " in line).split("  ")[1].endswith(", seen")
    assert "A click counts." in told


def test_a_click_says_which_time_counted_and_what_told_it_apart() -> None:
    late = {**CLICK, "timeCounted": "received", "why": "The time of its receipt counts."}
    other = {**CLICK, "id": "d", "apart": {"click": "b", "by": ["utm_campaign", "utm_source"]}}
    told = lines({**PROOF, "clicks": [late, other]})
    assert "The time of its receipt counts." in told
    assert "not the ad of b: utm_campaign, utm_source" in told


def test_identifiers_that_link_nobody_say_why() -> None:
    told = lines(PROOF)
    place = told.index("shared identifiers, which are nobody's")
    assert told[place + 1] == "device_id test: its value identifies nobody"
    place = told.index("crowded devices, which link nobody")
    assert told[place + 1] == "device_id tablet: it had 12 visitors at one time"

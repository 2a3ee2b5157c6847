"""A proof of credit says where every unit of an order went, and finds what was stored wrongly."""

import json
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.identifier import code
from clickclock.attribution.crediting.credit import split
from clickclock.attribution.crediting.journey import Reason
from clickclock.attribution.crediting.policy import Policy, SellerRule
from clickclock.attribution.crediting.touchpoint import Touch
from clickclock.attribution.models import ByChannel, JourneyModel
from clickclock.attribution.models.last import Last
from clickclock.attribution.models.linear import Linear
from clickclock.attribution.orders.amendment import Amendment, Item, Status
from clickclock.attribution.orders.order import fold
from clickclock.attribution.reporting.proof import (
    Evidence,
    Guards,
    Link,
    Proof,
    Seen,
    differences,
    identifiers,
    identify,
    parts,
    prove,
    rows,
    sellers,
)
from clickclock.attribution.reporting.proof_document import EXTRA_DIGITS, amount, document
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.instant import DAY_MS

NOON = datetime(2026, 5, 17, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)
MODELS: dict[str, JourneyModel] = {
    "last": Last(),
    "linear": Linear(),
    "markov": ByChannel({"google": 3.0, "meta": 1.0, "of others": 9.0}),
}


def amendment(**other: Any) -> Amendment:
    given_values = {
        "event_time_ms": NOON_MS,
        "amount_minor": 1000,
        "currency": "EUR",
        "status": Status.COMPLETED,
        "refunded_minor": 0,
        "cli_ubid": "u1",
        "device_id": "D1",
        "seller_id": "s1",
        "items": (),
        "received_ms": NOON_MS + 5,
        "entry_id": "e1",
    }
    return Amendment("shop", "7", **{**given_values, **other})


def seen(name: str, where: str = "click", **values: str) -> Seen:
    return Seen(name, where, identifiers("shop", values, Policy()))


def click(name: str, days: float, channel: str = "google", **other: Any) -> Evidence:
    """A click so many days before the order."""
    time_ms = NOON_MS - round(days * DAY_MS)
    given_values: dict[str, Any] = {
        "ad_key": name,
        "parameters": name,
        **dict.fromkeys(("is_spent", "is_bot", "is_flood"), False),
    }
    touch = Touch(name, time_ms, time_ms * 1000, 3, channel, "s1", **{**given_values, **other})
    click_id = f"gclid-{name}" if channel == "google" else None
    return Evidence(touch, seen(name, cli_ubid="u1"), click_id, sent_ms=touch.time_ms)


CLICKS = [
    click("a", 31),
    click("b", 5, "meta"),
    click("c", 4),
    click("d", 3.99, ad_key="c"),
    click("e", 1),
    click("f", -1),
]


def proven(
    *amendments: Amendment,
    clicks: list[Evidence] | None = None,
    policy: Policy | None = None,
    shared: dict[int, int] | None = None,
) -> Proof:
    said = amendments or (amendment(),)
    order = fold(said)
    return prove(
        said,
        order,
        month="2026-05",
        policy=policy or Policy(),
        models=MODELS,
        evidence=CLICKS if clicks is None else clicks,
        orders=[seen("7", "order", cli_ubid="u1", device_id="D1")],
        guards=Guards(shared or {}),
    )


def test_every_click_is_there_with_its_fate_and_the_journey_in_its_order() -> None:
    proof = proven()
    assert {each.judged.touch.id: each.fate.value for each in proof.clicks} == {
        "a": "outside_window",
        "b": "in_journey",
        "c": "in_journey",
        "d": "repeat",
        "e": "in_journey",
        "f": "not_before_order",
    }
    assert [each.judged.touch.id for each in proof.touchpoints] == ["b", "c", "e"]
    assert proof.reason is None


def test_each_models_credit_is_shown_with_its_weights_its_exact_shares_and_what_they_were_rounded_to() -> None:
    last, linear, markov = proven().credits
    assert [part.minor for part in last.amount] == [0, 0, 1000]
    assert (linear.weights, linear.total) == ((1, 1, 1), 3)
    assert [(part.exact, part.minor, part.is_rounded_up) for part in linear.amount] == [
        (Fraction(1000, 3), 333, False),
        (Fraction(1000, 3), 333, False),
        (Fraction(1000, 3), 334, True),
    ]
    # Meta 1, Google 3 for its two touchpoints: 250, 375 and 375.
    assert (markov.weights, [part.minor for part in markov.amount]) == ((1.0, 1.5, 1.5), [250, 375, 375])


def test_a_refund_is_split_beside_the_amount_and_the_amendments_are_told_in_their_order() -> None:
    refund = amendment(event_time_ms=NOON_MS + 9, status=Status.PARTIALLY_REFUNDED, refunded_minor=100, entry_id="e2")
    proof = proven(refund, amendment())
    assert [each.entry_id for each in proof.amendments] == ["e1", "e2"]
    assert [part.minor for part in proof.credits[1].refund] == [33, 33, 34]
    assert [part.minor for part in proof.credits[1].amount] == [333, 333, 334]


def test_what_was_refunded_of_nothing_is_nothing() -> None:
    proof = proven(amendment(amount_minor=0, status=Status.REFUNDED))
    assert [part.minor for part in (*proof.credits[1].amount, *proof.credits[1].refund)] == [0] * 6


@given(st.integers(0, 10**15), st.lists(st.integers(0, 9) | st.floats(0, 1e9), min_size=1, max_size=8).filter(any))
def test_parts_are_those_of_the_split_and_their_exact_shares_sum_to_the_amount(
    amount_minor: int, weights: list[float]
) -> None:
    found = parts(amount_minor, weights)
    assert [part.minor for part in found] == split(amount_minor, weights)
    assert sum(part.exact for part in found) == amount_minor
    assert all(part.is_rounded_up == (part.minor > part.exact) and abs(part.minor - part.exact) < 1 for part in found)


def test_a_person_is_all_that_is_linked_and_each_link_says_where_it_was_seen() -> None:
    own = identifiers("shop", {"cli_ubid": "u1", "device_id": "D1"}, Policy())
    person = identify(
        own,
        [
            seen("7", "order", cli_ubid="u1", device_id="D1"),
            seen("a", cli_ubid="u1", device_id="d1"),
            seen("b", cli_ubid="u2", gaid="d1"),
            seen("c", cli_ubid="u3"),
            seen("d", cli_ubid="u4", device_id="d4"),
        ],
        Guards(),
    )
    assert person is not None
    assert person.code == min(
        code("shop", kind, value) for kind, value in (("cli_ubid", "u1"), ("cli_ubid", "u2"), ("gaid", "d1"))
    )
    assert [(each.kind, each.value) for each in person.identifiers] == [
        ("cli_ubid", "u1"),
        ("cli_ubid", "u2"),
        ("device_id", "D1"),
    ]
    assert [
        (link.one.value, link.other.value, link.clicks, link.orders) for link in map(sorted_link, person.links)
    ] == [
        ("u1", "D1", ("a",), ("7",)),
        ("u2", "D1", ("b",), ()),
    ]


def sorted_link(link: Link) -> Link:
    one, other = sorted((link.one, link.other), key=lambda each: each.kind)
    return Link(one, other, link.clicks, link.orders, link.identifications)


def test_a_shared_identifier_links_nobody_and_is_reported_with_its_links() -> None:
    shared = {code("shop", "device_id", "D1"): 51}
    proof = proven(shared=shared)
    assert proof.person is not None
    assert [each.value for each in proof.person.identifiers] == ["u1"]
    assert proof.person.links == ()
    assert [(each.value, links) for each, links in proof.shared.items()] == [("D1", 51)]


def test_an_order_whose_identifiers_are_all_shared_is_nobodys_and_says_so() -> None:
    shared = {code("shop", "device_id", "D1"): 51, code("shop", "cli_ubid", "u1"): 0}
    proof = proven(shared=shared, clicks=[])
    assert (proof.person, proof.reason, proof.credits) == (None, Reason.SHARED_IDENTIFIER, ())
    (row,) = rows(proof)
    assert (row["place"], row["person"], row["reason"], row["touches"]) == (0, None, "shared_identifier", 0)


@pytest.mark.parametrize(
    ("clicks", "why"), [([], "no_click"), ([click("f", -1)], "no_touchpoint"), ([click("a", 31)], "none_eligible")]
)
def test_an_order_without_touchpoints_has_one_row_that_says_why(clicks: list[Evidence], why: str) -> None:
    (row,) = rows(proven(clicks=clicks))
    assert (row["place"], row["reason"], row["click_id"]) == (0, why, None)


def test_the_sellers_of_an_order_are_its_own_and_those_of_its_items() -> None:
    order = fold([amendment(items=(Item("x", "s2"), Item("y")))])
    assert sellers(order) == {"s1", "s2"}
    same_seller = Policy(seller_rule=SellerRule.SAME_SELLER)
    assert len(proven(policy=same_seller).touchpoints) == 3
    assert proven(amendment(seller_id="s9"), policy=same_seller).reason is Reason.NONE_ELIGIBLE


def test_of_two_names_for_one_device_the_stronger_is_shown() -> None:
    found = identifiers("shop", {"gaid": "ABC", "device_id": "abc", "cli_ubid": None, "idfa": "x"}, Policy())
    assert [(each.kind, each.value) for each in found] == [("device_id", "abc"), ("idfa", "x")]


def test_what_is_stored_as_computed_has_no_differences() -> None:
    proof = proven()
    stored = rows(proof)
    assert [row["place"] for row in stored] == [1, 2, 3]
    assert stored[0]["order_day"] == date(2026, 5, 17)
    assert differences(proof, reversed(stored)) == []


def test_the_last_digit_of_a_share_is_no_difference() -> None:
    proof = proven()
    stored = [{**row, "linear_share": row["linear_share"] + 1e-16} for row in rows(proof)]
    assert differences(proof, stored) == []
    stored[1]["linear_share"] += 1e-9
    assert [each.column for each in differences(proof, stored)] == ["linear_share"]


def test_what_is_stored_otherwise_is_told_by_row_and_column() -> None:
    proof = proven()
    stored = rows(proof)
    stored[2]["last_credit"] = 999
    stored[0]["channel"] = None
    found = differences(proof, stored)
    assert [(each.place, each.column, each.stored, each.computed) for each in found] == [
        (1, "channel", "", "meta"),
        (3, "last_credit", "999", "1000"),
    ]


def test_a_row_that_is_missing_and_one_too_many_are_differences() -> None:
    proof = proven()
    stored = rows(proof)
    assert [(each.place, each.stored) for each in differences(proof, stored[1:])] == [(1, "")]
    extra = {**stored[0], "place": 4}
    assert [(each.place, each.computed) for each in differences(proof, [*stored, extra])] == [(4, "")]
    assert len(differences(proof, [])) == 3


def test_the_document_is_json_with_amounts_as_text_beside_their_currency() -> None:
    proof = proven()
    told = json.loads(json.dumps(document(proof, Result(version=3, created_at=NOON), differences(proof, rows(proof)))))
    assert (told["differs"], told["result"]["version"], told["reason"], told["why"]) == ([], 3, None, None)
    assert told["order"] | {"amount": "10.00", "refunded": "0.00", "currency": "EUR"} == told["order"]
    assert told["journey"] == ["b", "c", "e"]
    assert [(each["id"], each["fate"], each["cause"]) for each in told["clicks"]][3] == ("d", "repeat", "c")
    linear = told["credits"][1]
    assert (linear["model"], linear["sumOfWeights"], linear["currency"], linear["fitted"]) == ("linear", 3, "EUR", None)
    assert linear["touchpoints"][2] == {
        "place": 3,
        "click": "e",
        "channel": "google",
        "weight": 1,
        "share": 1 / 3,
        "exact": "3.33333333",
        "credit": "3.34",
        "isRoundedUp": True,
        "exactRefund": "0.00000000",
        "refund": "0.00",
        "isRefundRoundedUp": False,
    }
    assert told["credits"][2]["fitted"] == {"month": "2026-05", "channels": {"google": 3.0, "meta": 1.0}}
    assert told["person"]["code"] == str(proof.person and proof.person.code)
    assert told["clicks"][0]["why"] == "It was longer before the order than its window of 30 d."
    assert told["clicks"][0]["clickId"] == "gclid-a"


def test_an_exact_share_is_cut_and_never_rounded() -> None:
    assert EXTRA_DIGITS == 6
    assert amount(Fraction(2, 3), "EUR") == "0.00666666"
    assert amount(Fraction(2000, 3), "JPY") == "666.666666"
    assert amount(Fraction(5), "KWD") == "0.005000000"

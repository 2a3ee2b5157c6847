"""An order's journey: which touchpoints are before it, within their windows, of its sellers and early enough."""

from typing import Any

import pytest

from clickclock.attribution.crediting.credit import split
from clickclock.attribution.crediting.journey import Considered, Reason, journey, reason
from clickclock.attribution.crediting.policy import InvalidTraffic, Policy, SellerRule, Window
from clickclock.attribution.crediting.touchpoint import Fate, Touch, judge
from clickclock.attribution.models.journey import Journey
from clickclock.attribution.models.last import Last
from clickclock.foundation.instant import DAY_MS

POLICY = Policy()
ORDER_MS = 1_779_000_000_000
SAME_SELLER = Policy(seller_rule=SellerRule.SAME_SELLER)


def touch(name: str, before_ms: int, **other: Any) -> Touch:
    """A click so long before the order."""
    given: dict[str, Any] = {
        "received_us": 0,
        "strength": 3,
        "channel": "google",
        "seller_id": "s1",
        "ad_key": name,
        "parameters": name,
        "is_spent": False,
        "is_bot": False,
        "is_flood": False,
    }
    return Touch(id=name, time_ms=ORDER_MS - before_ms, **(given | other))


def considered(*touches: Touch, policy: Policy = POLICY, sellers: tuple[str, ...] = ()) -> list[Considered]:
    return journey(ORDER_MS, sellers, judge(touches, policy), policy)


def fate(click: Touch, policy: Policy = POLICY, sellers: tuple[str, ...] = ()) -> Fate:
    (only,) = considered(click, policy=policy, sellers=sellers)
    return only.fate


def test_the_may_case_of_the_window_the_first_click_is_out_and_the_last_gets_all() -> None:
    policy = Policy(windows=(Window(days=14),))
    clicks = [touch(f"{day:02} May", (17 - day) * DAY_MS) for day in (1, 12, 13)]
    found = considered(*clicks, policy=policy)
    assert {each.judged.touch.id: each.fate.value for each in found} == {
        "01 May": "outside_window",
        "12 May": "in_journey",
        "13 May": "in_journey",
    }
    channels = tuple(each.judged.touch.channel for each in found if each.fate is Fate.IN_JOURNEY)
    assert split(1700, Last().weights(Journey(channels))) == [0, 1700]


@pytest.mark.parametrize(
    ("channel", "days"), [("google", 30), ("meta", 7), ("onsite", 14), ("newsletter", 30), ("other", 30)]
)
def test_a_click_counts_until_its_channels_window_has_passed_to_the_millisecond(channel: str, days: int) -> None:
    assert fate(touch("a", days * DAY_MS, channel=channel)) is Fate.IN_JOURNEY
    assert fate(touch("a", days * DAY_MS + 1, channel=channel)) is Fate.OUTSIDE_WINDOW


def test_the_first_window_that_matches_the_channel_and_the_seller_of_the_click_counts() -> None:
    windows = (Window(channel="meta", seller_id="s1", days=1), Window(seller_id="s1", days=2), Window(days=3))
    policy = Policy(windows=windows)
    for channel, seller_id, days in (("meta", "s1", 1), ("google", "s1", 2), ("meta", "s2", 3), ("meta", None, 3)):
        click = {"channel": channel, "seller_id": seller_id}
        assert fate(touch("a", days * DAY_MS, **click), policy) is Fate.IN_JOURNEY
        assert fate(touch("a", days * DAY_MS + 1, **click), policy) is Fate.OUTSIDE_WINDOW


def test_a_click_at_the_orders_moment_or_later_cannot_have_caused_it() -> None:
    lenient = Policy(order_after_click_ms_min=0)
    assert fate(touch("a", 0), lenient) is Fate.NOT_BEFORE_ORDER
    assert fate(touch("a", -1), lenient) is Fate.NOT_BEFORE_ORDER
    assert fate(touch("a", 1), lenient) is Fate.IN_JOURNEY


def test_nobody_orders_within_a_second() -> None:
    assert fate(touch("a", 999)) is Fate.TOO_SOON
    assert fate(touch("a", 1000)) is Fate.IN_JOURNEY


def test_a_click_that_the_order_followed_too_soon_is_only_flagged_where_invalid_traffic_is_included() -> None:
    policy = Policy(invalid_traffic=InvalidTraffic.INCLUDE)
    (found,) = considered(touch("a", 999, is_bot=True), policy=policy)
    assert (found.fate, found.flags) == (Fate.IN_JOURNEY, (Fate.BOT, Fate.TOO_SOON))


@pytest.mark.parametrize("before_ms", [-1, 0, 1000])
def test_only_what_was_too_soon_is_flagged_so(before_ms: int) -> None:
    (found,) = considered(touch("a", before_ms))
    assert found.flags == ()


def test_any_seller_is_credited_unless_the_rule_is_the_same_seller() -> None:
    click = touch("a", DAY_MS, seller_id="s2")
    assert fate(click, sellers=("s1",)) is Fate.IN_JOURNEY
    assert fate(click, SAME_SELLER, ("s1",)) is Fate.OTHER_SELLER
    assert fate(click, SAME_SELLER, ("s1", "s2")) is Fate.IN_JOURNEY


def test_an_order_that_names_no_seller_is_every_sellers() -> None:
    assert fate(touch("a", DAY_MS, seller_id="s2"), SAME_SELLER) is Fate.IN_JOURNEY


def test_a_click_without_a_seller_is_no_sellers() -> None:
    assert fate(touch("a", DAY_MS, seller_id=None), SAME_SELLER, ("s1",)) is Fate.OTHER_SELLER


def test_the_first_rule_that_applies_is_the_one() -> None:
    policy = Policy(seller_rule=SellerRule.SAME_SELLER, order_after_click_ms_min=90 * DAY_MS)
    stranger = {"seller_id": "s2"}
    assert fate(touch("a", 0, **stranger), policy, ("s1",)) is Fate.NOT_BEFORE_ORDER
    assert fate(touch("a", 31 * DAY_MS, **stranger), policy, ("s1",)) is Fate.OUTSIDE_WINDOW
    assert fate(touch("a", DAY_MS, **stranger), policy, ("s1",)) is Fate.OTHER_SELLER
    assert fate(touch("a", DAY_MS), policy, ("s1",)) is Fate.TOO_SOON


def test_a_click_that_was_no_touchpoint_keeps_its_fate_and_is_considered_all_the_same() -> None:
    found = considered(touch("a", DAY_MS, ad_key="ad"), touch("b", DAY_MS - 1, ad_key="ad"))
    assert [(each.judged.touch.id, each.fate.value, each.judged.cause) for each in found] == [
        ("a", "in_journey", None),
        ("b", "repeat", "a"),
    ]


def test_a_repeat_does_not_come_back_because_what_it_repeats_is_too_old() -> None:
    found = considered(touch("a", 30 * DAY_MS + 1, ad_key="ad"), touch("b", 30 * DAY_MS, ad_key="ad"))
    assert [each.fate.value for each in found] == ["outside_window", "repeat"]
    assert reason(found) is Reason.NONE_ELIGIBLE


def test_at_one_moment_the_stronger_identifier_is_the_last_touch() -> None:
    found = considered(touch("a", DAY_MS, strength=3), touch("b", DAY_MS, strength=2))
    assert [each.judged.touch.id for each in found] == ["b", "a"]


def test_why_an_order_is_credited_to_nobody() -> None:
    assert reason(considered(touch("a", DAY_MS), touch("b", 0))) is None
    assert reason([], has_person=False) is Reason.SHARED_IDENTIFIER
    assert reason([]) is Reason.NO_CLICK
    assert reason(considered(touch("a", DAY_MS, is_bot=True), touch("b", -1))) is Reason.NO_TOUCHPOINT
    assert reason(considered(touch("a", -1))) is Reason.NO_TOUCHPOINT
    assert reason(considered(touch("a", 31 * DAY_MS), touch("b", -1))) is Reason.NONE_ELIGIBLE
    assert reason(considered(touch("a", 1))) is Reason.NONE_ELIGIBLE
    same_seller = considered(touch("a", DAY_MS), policy=SAME_SELLER, sellers=("s2",))
    assert reason(same_seller) is Reason.NONE_ELIGIBLE

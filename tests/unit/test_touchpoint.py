"""Each click has one fate: which rule leaves it out, where two of them would, and which click is to blame."""

from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.crediting.policy import InvalidTraffic, Policy
from clickclock.attribution.crediting.touchpoint import (
    NO_PERSON,
    RETRY_MS,
    RETRY_US,
    Fate,
    Judged,
    Touch,
    judge,
    repeated,
)

POLICY = Policy()
INCLUDING = Policy(invalid_traffic=InvalidTraffic.INCLUDE)
HOUR_MS = 3_600_000
MINUTE_MS = 60_000


def touch(name: str, time_ms: int = 0, **other: Any) -> Touch:
    """A click on an ad of its own, received when it was made."""
    given: dict[str, Any] = {
        "received_us": time_ms * 1000,
        "strength": 3,
        "channel": "google",
        "seller_id": None,
        "ad_key": name,
        "parameters": name,
        "is_spent": False,
        "is_bot": False,
        "is_flood": False,
    }
    return Touch(id=name, time_ms=time_ms, **(given | other))


def fates(*touches: Touch, policy: Policy = POLICY) -> dict[str, Fate]:
    return {each.touch.id: each.fate for each in judge(touches, policy)}


def told(*touches: Touch, policy: Policy = POLICY) -> list[tuple[str, str, str | None]]:
    return [(each.touch.id, each.fate.value, each.cause) for each in judge(touches, policy)]


def test_a_click_counts() -> None:
    assert judge([touch("a")], POLICY) == [Judged(touch("a"), Fate.COUNTED)]
    assert judge([], POLICY) == []


def test_times_more_than_ten_seconds_apart_are_two_clicks_however_soon_they_were_received() -> None:
    sent: dict[str, Any] = {"received_us": 0, "parameters": "same"}
    clicks = [touch("a", 0, **sent), touch("b", 10_000, **sent), touch("c", 10_001, **sent), touch("d", 20_002, **sent)]
    assert told(*clicks) == [
        ("a", "counted", None),
        ("b", "retry", "a"),
        ("c", "counted", None),
        ("d", "counted", None),
    ]


def test_the_same_parameters_within_ten_seconds_are_a_retry_of_the_first() -> None:
    sent: dict[str, Any] = {"parameters": "same"}
    assert told(
        touch("a", received_us=0, **sent),
        touch("b", received_us=10_000_000, **sent),
        touch("c", received_us=10_000_001, **sent),
    ) == [("a", "counted", None), ("b", "retry", "a"), ("c", "counted", None)]


def test_retries_are_counted_from_the_click_and_not_from_each_other() -> None:
    clicks = [touch(str(second), received_us=second * 1_000_000, parameters="same") for second in (0, 6, 12, 18)]
    assert told(*clicks) == [
        ("0", "counted", None),
        ("6", "retry", "0"),
        ("12", "counted", None),
        ("18", "retry", "12"),
    ]


def test_of_two_received_at_once_the_larger_id_is_the_retry() -> None:
    assert fates(touch("b", parameters="same"), touch("a", parameters="same")) == {
        "a": Fate.COUNTED,
        "b": Fate.RETRY,
    }


def test_what_was_received_first_is_no_retry_even_if_it_is_later_in_the_journey() -> None:
    late, early = touch("a", 5, received_us=0, parameters="same"), touch("b", 0, received_us=1, parameters="same")
    assert told(late, early) == [("b", "retry", "a"), ("a", "counted", None)]


def test_other_parameters_are_no_retry() -> None:
    assert set(fates(touch("a", parameters=1), touch("b", parameters=2)).values()) == {Fate.COUNTED}


def test_a_click_id_that_was_spent_does_not_count_again_and_says_who_spent_it() -> None:
    assert told(touch("a", is_spent=True, spent_by="earlier")) == [("a", "click_id_spent", "earlier")]


def test_less_than_an_hour_after_one_that_counted_the_same_ad_is_a_repeat() -> None:
    assert told(
        touch("a", 0, ad_key="ad"),
        touch("b", HOUR_MS - 1, ad_key="ad"),
        touch("c", HOUR_MS, ad_key="ad"),
        touch("d", HOUR_MS, ad_key="other"),
    ) == [("a", "counted", None), ("b", "repeat", "a"), ("c", "counted", None), ("d", "counted", None)]


def test_the_hour_rolls_from_what_counted_and_not_from_repeats() -> None:
    clicks = [touch(f"{minute:03}", minute * MINUTE_MS, ad_key="ad") for minute in (0, 40, 80, 120, 139, 140)]
    assert told(*clicks) == [
        ("000", "counted", None),
        ("040", "repeat", "000"),
        ("080", "counted", None),
        ("120", "repeat", "080"),
        ("139", "repeat", "080"),
        ("140", "counted", None),
    ]


def test_what_was_left_out_before_makes_no_repeat() -> None:
    assert told(
        touch("a", 0, ad_key="ad", is_bot=True),
        touch("b", 1, ad_key="ad", is_spent=True),
        touch("c", 2, ad_key="ad", is_flood=True),
        touch("d", 3, ad_key="ad", is_prefetch=True),
        touch("e", 4, ad_key="ad"),
        touch("f", 5, ad_key="ad"),
    ) == [
        ("a", "bot", None),
        ("b", "click_id_spent", None),
        ("c", "flood", None),
        ("d", "prefetch", None),
        ("e", "counted", None),
        ("f", "repeat", "e"),
    ]


def test_invalid_traffic_that_is_included_goes_on_with_its_flags() -> None:
    judged = judge(
        [touch("a", 0, ad_key="ad", is_bot=True), touch("b", 1, ad_key="ad", is_bot=True, is_flood=True)], INCLUDING
    )
    assert [(each.fate, each.flags, each.cause) for each in judged] == [
        (Fate.COUNTED, (Fate.BOT,), None),
        (Fate.REPEAT, (Fate.BOT, Fate.FLOOD), "a"),
    ]


def test_the_hundred_and_first_click_within_ten_minutes_is_a_flood() -> None:
    clicks = [touch(f"{number:03}", number) for number in range(101)]
    found = fates(*clicks)
    assert found.pop("100") is Fate.FLOOD
    assert set(found.values()) == {Fate.COUNTED}


def test_the_ten_minutes_of_a_flood_begin_after_their_first_moment() -> None:
    policy = Policy(clicks_per_person_max=1)
    assert fates(touch("a", 0), touch("b", 10 * MINUTE_MS), policy=policy)["b"] is Fate.COUNTED
    assert fates(touch("a", 1), touch("b", 10 * MINUTE_MS), policy=policy)["b"] is Fate.FLOOD


def test_clicks_at_one_moment_are_a_flood_all_together() -> None:
    policy = Policy(clicks_per_person_max=1)
    assert fates(touch("a", 5), touch("b", 5), policy=policy) == {"a": Fate.FLOOD, "b": Fate.FLOOD}


def test_retries_are_not_counted_for_a_flood_but_spent_click_ids_and_bots_are() -> None:
    policy = Policy(clicks_per_person_max=1)
    again = touch("a", 0, parameters="same"), touch("b", 1, parameters="same")
    assert fates(*again, policy=policy) == {"a": Fate.COUNTED, "b": Fate.RETRY}
    assert fates(touch("a", 0, is_spent=True), touch("b", 1), policy=policy)["b"] is Fate.FLOOD
    assert fates(touch("a", 0, is_bot=True), touch("b", 1), policy=policy)["b"] is Fate.FLOOD


@pytest.mark.parametrize(
    ("holds", "fate"),
    [
        ({"strength": NO_PERSON}, Fate.SHARED_IDENTIFIER),
        ({"parameters": "same"}, Fate.RETRY),
        ({"is_spent": True}, Fate.CLICK_ID_SPENT),
        ({"is_bot": True}, Fate.BOT),
        ({"is_prefetch": True}, Fate.PREFETCH),
        ({"is_flood": True}, Fate.FLOOD),
        ({"ad_key": "ad"}, Fate.REPEAT),
    ],
)
def test_the_first_rule_that_applies_is_the_one(holds: dict[str, Any], fate: Fate) -> None:
    first = touch("a", 0, parameters="same", ad_key="ad")
    every = {
        "strength": NO_PERSON,
        "parameters": "same",
        "is_spent": True,
        "is_bot": True,
        "is_prefetch": True,
        "is_flood": True,
        "ad_key": "ad",
    }
    from_here = dict(list(every.items())[list(every).index(next(iter(holds))) :])
    assert fates(first, touch("b", 1, **from_here))["b"] is fate
    assert fates(first, touch("b", 1, **holds))["b"] is fate


def test_a_click_of_no_person_counts_for_nothing_and_makes_no_repeat() -> None:
    clicks = touch("a", 0, ad_key="ad", strength=NO_PERSON), touch("b", 1, ad_key="ad", strength=0)
    assert told(*clicks) == [("a", "shared_identifier", None), ("b", "counted", None)]


def test_ties_are_broken_by_strength_then_by_receipt_then_by_id() -> None:
    clicks = [
        touch("d", 7, strength=0, received_us=9),
        touch("c", 7, strength=2, received_us=3),
        touch("b", 7, strength=2, received_us=4),
        touch("a", 7, strength=3, received_us=0),
        touch("e", 7, strength=2, received_us=4),
        touch("f", 6, strength=3, received_us=99),
    ]
    assert [each.touch.id for each in judge(clicks, POLICY)] == ["f", "d", "c", "b", "e", "a"]


@given(st.lists(st.tuples(st.integers(0, 40_000_000), st.integers(-15_000, 40_000)), max_size=40))
def test_a_retry_is_near_what_it_repeats_and_of_those_that_are_none_no_two_are_near(
    clicks: list[tuple[int, int]],
) -> None:
    clicks.sort(key=lambda click: click[0])
    found = repeated([received for received, _ in clicks], [time for _, time in clicks])

    def are_near(one: int, other: int) -> bool:
        (came, at), (came_again, at_again) = clicks[one], clicks[other]
        return abs(came - came_again) <= RETRY_US and abs(at - at_again) <= RETRY_MS

    kept = [place for place, sent in enumerate(found) if sent is None]
    assert not any(are_near(*pair) for pair in combinations(kept, 2))
    assert all(
        sent in kept and sent < place and are_near(sent, place) for place, sent in enumerate(found) if sent is not None
    )


KINDS = st.fixed_dictionaries(
    {
        "time_ms": st.sampled_from([0, 1, 10_000, 10_001, HOUR_MS - 1, HOUR_MS, HOUR_MS + 1]),
        "received_us": st.sampled_from([0, 1, 10_000_000, 10_000_001]),
        "strength": st.integers(NO_PERSON, 3),
        "ad_key": st.integers(0, 1),
        "parameters": st.integers(0, 1),
        "is_spent": st.booleans(),
        "is_bot": st.booleans(),
        "is_prefetch": st.booleans(),
        "is_flood": st.booleans(),
    }
)
TOUCHES = st.lists(KINDS, max_size=12).map(lambda kinds: [touch(str(nth), **kind) for nth, kind in enumerate(kinds)])
POLICIES = st.sampled_from([POLICY, INCLUDING, Policy(clicks_per_person_max=2)])


@given(TOUCHES, POLICIES, st.randoms())
def test_fates_do_not_depend_on_the_order_in_which_clicks_are_given(
    touches: list[Touch], policy: Policy, random: Random
) -> None:
    shuffled = random.sample(touches, len(touches))
    assert judge(shuffled, policy) == judge(touches, policy)


@given(TOUCHES, POLICIES)
def test_two_clicks_on_one_ad_that_count_are_an_hour_apart_and_each_repeat_is_not(
    touches: list[Touch], policy: Policy
) -> None:
    judged = judge(touches, policy)
    counted = {each.touch.id: each.touch for each in judged if each.fate is Fate.COUNTED}
    for one, other in combinations(counted.values(), 2):
        assert one.ad_key != other.ad_key or abs(other.time_ms - one.time_ms) >= HOUR_MS
    for each in judged:
        if each.fate is Fate.REPEAT:
            assert each.cause is not None
            last = counted[each.cause]
            assert last.ad_key == each.touch.ad_key
            assert 0 <= each.touch.time_ms - last.time_ms < HOUR_MS

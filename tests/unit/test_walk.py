"""The walk: cases worked out by hand, and the plain definitions held against it on small worlds full of ties."""

import pickle
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clickclock.attribution.crediting.columns import journey_columns as walking
from clickclock.attribution.crediting.columns.journey_columns import REASONS, TOUCHED, Columns, walk
from clickclock.attribution.crediting.columns.months import name, number
from clickclock.attribution.crediting.columns.terms import Ads, Orders, Terms, terms_of
from clickclock.attribution.crediting.journey import journey, reason
from clickclock.attribution.crediting.policy import InvalidTraffic, Policies, Policy, SellerRule, ViewWindow, Window
from clickclock.attribution.crediting.touchpoint import Fate, Touch, judge
from clickclock.foundation.instant import DAY_MS

NOON_MS = 1_800_014_400_000
"""12:00 UTC on 2027-01-15."""
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

Journeys = dict[str, list[str] | str]
"""By order: the ids of its clicks in their order, or the reason why there are none."""
Unconverted = dict[tuple[int, str], tuple[str, tuple[str, ...]]]
"""By person and month: the client and the channels."""


@dataclass(frozen=True)
class Order:
    order_id: str
    placed_ms: int
    sellers: frozenset[str] = frozenset()


def code_of_ad(place: int) -> int:
    return 10 * place - 15


@dataclass(frozen=True)
class Person:
    touches: list[Touch] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    client_id: str = "shop"


def touch(click_id: str, after_ms: int, **others: Any) -> Touch:
    """A click so long after noon, received at once, unlike all others but in its ad and its channel."""
    common = {"strength": 3, "channel": "google", "seller_id": None, "ad_key": "ad", "parameters": click_id}
    marks = {"is_spent": False, "is_bot": False, "is_flood": False}
    time_ms = NOON_MS + after_ms
    return Touch(**{"id": click_id, "time_ms": time_ms, "received_us": 1000 * time_ms, **common, **marks, **others})


def order(order_id: str, after_ms: int, *sellers: str) -> Order:
    return Order(order_id, NOON_MS + after_ms, frozenset(sellers))


def month_of(instant_ms: int, policy: Policy) -> str:
    return datetime.fromtimestamp(instant_ms / 1000, UTC).astimezone(policy.zone).strftime("%Y-%m")


def as_tables(people: Sequence[Person], policies: Policies) -> tuple[list[str], list[str], Columns, Orders, Terms]:
    """The ids of the rows' clicks, those of the orders, and what `walk` is given."""
    clients = sorted({person.client_id for person in people})
    clicks = [(person.client_id, touch) for person in people for touch in person.touches]
    placed = [(person.client_id, order) for person in people for order in person.orders]
    channels = sorted({touch.channel for _, touch in clicks})
    sellers = sorted({touch.seller_id or "" for _, touch in clicks}.union(*(order.sellers for _, order in placed)))
    meanings = sorted({(client_id, each.channel, each.seller_id, each.is_view) for client_id, each in clicks}, key=repr)
    ads = Ads(
        ad=np.array([code_of_ad(place) for place in range(len(meanings))], np.int64),
        client=np.array([clients.index(client_id) for client_id, *_ in meanings], np.int32),
        channel=np.array([channels.index(channel) for _, channel, *_ in meanings], np.int16),
        seller=np.array([-1 if seller is None else sellers.index(seller) for _, _, seller, _ in meanings], np.int32),
        is_view=np.array([is_view for *_, is_view in meanings], np.bool_),
        clients=clients,
        channels=channels,
        sellers=sellers,
    )
    months = [number(month_of(order.placed_ms, policies.find(client_id))) for client_id, order in placed]
    orders = Orders(
        client=np.array([clients.index(client_id) for client_id, _ in placed], np.int32),
        month=np.array(months, np.int32),
        seller_starts=np.cumsum([0, *(len(order.sellers) for _, order in placed)]),
        sellers=np.array([sellers.index(seller) for _, order in placed for seller in order.sellers], np.int32),
    )
    codes: dict[Hashable, int] = defaultdict(lambda: 7 * len(codes) - 20)
    rows = []
    order_number = count()
    for person_number, person in enumerate(people, start=-1):
        for touch in person.touches:
            ad = code_of_ad(meanings.index((person.client_id, touch.channel, touch.seller_id, touch.is_view)))
            keys = ad, codes[touch.ad_key], codes[touch.parameters]
            marks = touch.is_spent, touch.is_bot or touch.is_prefetch, touch.is_flood
            rows.append((person_number, touch.time_ms, False, *touch.place[1:], -1, *keys, *marks))
        rows += [
            (person_number, order.placed_ms, True, 0, 0, "", next(order_number), 0, 0, 0, True, True, True)
            for order in person.orders
        ]
    rows.sort()
    ids = [row[5] for row in rows]

    def column(place: int) -> NDArray[np.int64]:
        return np.array([row[place] for row in rows], np.int64)

    columns = Columns(
        person=column(0),
        time_ms=column(1),
        is_order=column(2) > 0,
        received_us=column(4),
        number=column(6),
        ad=column(7),
        ad_key=column(8),
        parameters=column(9),
        is_spent=column(10) > 0,
        is_bot=column(11) > 0,
        is_flood=column(12) > 0,
        ids=lambda places: [ids[place] for place in places.tolist()],
    )
    return ids, [order.order_id for _, order in placed], columns, orders, terms_of(ads, policies)


def rows_of(columns: object, *wanted: str) -> Iterator[dict[str, int]]:
    for row in zip(*(getattr(columns, each).tolist() for each in wanted), strict=True):
        yield dict(zip(wanted, row, strict=True))


def walked(people: Sequence[Person], policies: Policies) -> tuple[Journeys, Unconverted]:
    """What the walk finds, in words."""
    ids, order_ids, columns, orders, terms = as_tables(people, policies)
    found = walk(columns, orders, terms)
    journeys: Journeys = {}
    for row in rows_of(found.journeys, "number", "place", "touches", "row", "reason"):
        order_id = order_ids[row["number"]]
        if row["place"]:
            clicks = journeys.setdefault(order_id, [])
            assert isinstance(clicks, list)
            clicks.append(ids[row["row"]])
            assert (row["place"], row["reason"]) == (len(clicks), TOUCHED)
        else:
            assert (row["touches"], row["row"]) == (0, -1)
            journeys[order_id] = REASONS[row["reason"]].value
    for row in rows_of(found.journeys, "number", "touches"):
        if row["touches"]:
            assert row["touches"] == len(journeys[order_ids[row["number"]]])
    told = found.unconverted
    paths = [tuple(told.steps[start:end].tolist()) for start, end in pairwise(told.offsets.tolist())]
    assert len(set(paths)) == len(paths)
    unconverted: Unconverted = {}
    for row in rows_of(told, "client", "month", "person", "path"):
        person_and_month = row["person"] + 1, name(row["month"])
        assert person_and_month not in unconverted
        channels = tuple(terms.ads.channels[channel] for channel in paths[row["path"]])
        unconverted[person_and_month] = terms.ads.clients[row["client"]], channels
    return journeys, unconverted


def defined(people: Sequence[Person], policies: Policies) -> tuple[Journeys, Unconverted]:
    """What the definitions say, one person and order at a time."""
    journeys: Journeys = {}
    unconverted: Unconverted = {}
    for place, person in enumerate(people):
        policy = policies.find(person.client_id)
        judged = judge(
            [each for each in person.touches if policy.window_ms(each.channel, each.seller_id, is_view=each.is_view)],
            policy,
        )
        for each in person.orders:
            considered = journey(each.placed_ms, each.sellers, judged, policy)
            why = reason(considered)
            clicks = [one.judged.touch.id for one in considered if one.fate is Fate.IN_JOURNEY]
            journeys[each.order_id] = clicks if why is None else str(why)
        paths: dict[str, list[str]] = defaultdict(list)
        for one in judged:
            if one.fate is Fate.COUNTED and not one.touch.is_view:
                paths[month_of(one.touch.time_ms, policy)].append(one.touch.channel)
        for month in {month_of(each.placed_ms, policy) for each in person.orders}:
            paths.pop(month, None)
        unconverted |= {(place, month): (person.client_id, tuple(path)) for month, path in paths.items()}
    return journeys, unconverted


def journeys_of(person: Person, **policy: Any) -> Journeys:
    policies = Policies(Policy(**policy))
    found = walked([person], policies)
    assert found == defined([person], policies)
    return found[0]


def test_a_click_within_the_hour_gives_way_to_the_last_that_counted_and_not_to_the_last_of_all() -> None:
    chain = [touch(str(minutes), minutes * MINUTE_MS) for minutes in (0, 40, 80, 119, 140, 200)]
    assert journeys_of(Person(chain, [order("o", DAY_MS)])) == {"o": ["0", "80", "140", "200"]}


def test_a_repeat_is_one_of_the_same_ad_only() -> None:
    clicks = [touch("a", 0), touch("b", MINUTE_MS, ad_key="other"), touch("c", 2 * MINUTE_MS)]
    assert journeys_of(Person(clicks, [order("o", DAY_MS)])) == {"o": ["a", "b"]}


def test_a_retry_is_told_by_when_it_was_received_if_its_time_is_as_near() -> None:
    received_us = [1_000_000_000, 1_010_000_000, 1_010_000_001, 1_020_000_001]
    clicks = [
        touch(str(place), -place * 3000, received_us=received, parameters="same", ad_key=place)
        for place, received in enumerate(received_us)
    ]
    # The second came 10 s after the first; the third later than that; the fourth 10 s after the third.
    assert journeys_of(Person(clicks, [order("o", DAY_MS)])) == {"o": ["2", "0"]}


def test_clicks_sent_late_all_at_once_are_several_and_their_retries_are_none() -> None:
    sent = [("a", -40 * DAY_MS), ("b", -8 * DAY_MS), ("again", -40 * DAY_MS), ("c", -DAY_MS), ("b again", -8 * DAY_MS)]
    clicks = [
        touch(name, after_ms, received_us=place * 2_000_000, parameters="same")
        for place, (name, after_ms) in enumerate(sent)
    ]
    # However they interleave. The last one came eight seconds after the first, and six after what it repeats.
    assert journeys_of(Person(clicks, [order("o", 0)])) == {"o": ["b", "c"]}


def test_of_retries_received_at_once_the_smallest_id_counts() -> None:
    clicks = [touch(name, place * 1000, received_us=5, parameters="same") for place, name in enumerate("cab")]
    assert journeys_of(Person(clicks, [order("o", DAY_MS)])) == {"o": ["a"]}


def test_a_click_that_does_not_count_makes_no_repeat_of_the_next() -> None:
    clicks = [touch("a", 0, is_spent=True), touch("b", 1, is_bot=True), touch("c", 2, is_flood=True), touch("d", 3)]
    person = Person(clicks, [order("o", DAY_MS)])
    assert journeys_of(person) == {"o": ["d"]}
    assert journeys_of(person, invalid_traffic=InvalidTraffic.INCLUDE) == {"o": ["b"]}


def test_a_flood_counts_ten_minutes_and_peers_but_no_retries() -> None:
    times_ms = [0, 1, 300_000, 300_000, 600_000, 600_001, 900_000]
    clicks = [touch(str(place), time_ms, ad_key=place) for place, time_ms in enumerate(times_ms)]
    clicks += [touch(f"retry {place}", 0, parameters="0") for place in range(3)]
    # In the ten minutes up to each, itself and its peers among them: 1, 2, 4, 4, 4, 4, 3; what is received in the same
    # microsecond as click 0 and says the same is a retry of it.
    found = journeys_of(Person(clicks, [order("o", DAY_MS)]), clicks_per_person_max=3)
    assert found == {"o": ["0", "1", "6"]}


def test_windows_end_to_the_millisecond_and_begin_after_a_second() -> None:
    clicks = [
        touch("google early", -30 * DAY_MS - 1, ad_key=1),
        touch("google", -30 * DAY_MS, ad_key=2),
        touch("meta early", -7 * DAY_MS - 1, ad_key=3, channel="meta"),
        touch("meta", -7 * DAY_MS, ad_key=4, channel="meta"),
        touch("a second before", -1000, ad_key=5),
        touch("too soon", -999, ad_key=6),
        touch("at once", 0, ad_key=7),
        touch("after", 1, ad_key=8),
    ]
    person = Person(clicks, [order("o", 0)])
    assert journeys_of(person) == {"o": ["google", "meta", "a second before"]}
    included = journeys_of(person, invalid_traffic=InvalidTraffic.INCLUDE)
    assert included == {"o": ["google", "meta", "a second before", "too soon"]}


def test_a_window_of_a_channel_and_seller_is_theirs_alone() -> None:
    clicks = [
        touch("far", -5 * DAY_MS, seller_id="far"),
        touch("near", -5 * DAY_MS, seller_id="near", ad_key="n"),
        touch("none", -5 * DAY_MS, ad_key="none"),
    ]
    windows = (Window(channel="google", seller_id="near", days=4), Window(seller_id="far", days=5))
    assert journeys_of(Person(clicks, [order("o", 0)]), windows=windows) == {"o": ["far", "none"]}


DAY_OF_VIEWS = (ViewWindow(channel="meta", hours=24), ViewWindow(seller_id="s", hours=1))


def view(view_id: str, after_ms: int, **others: Any) -> Touch:
    return touch(view_id, after_ms, **{"channel": "meta", "ad_key": "seen", "is_view": True, **others})


def test_a_view_earns_an_order_within_its_window_where_no_click_does() -> None:
    seen = [
        view("early", -DAY_MS - 1, ad_key=1),
        view("first", -DAY_MS, ad_key=2),
        view("repeat", -DAY_MS + HOUR_MS - 1, ad_key=2),
        view("of no window", -HOUR_MS, channel="google", ad_key=3),
        view("of a seller", -HOUR_MS, channel="google", ad_key=4, seller_id="s"),
    ]
    person = Person(seen, [order("o", 0)])
    assert journeys_of(person, view_windows=DAY_OF_VIEWS) == {"o": ["first", "of a seller"]}
    assert journeys_of(person) == {"o": "no_click"}
    old = touch("old", -31 * DAY_MS)
    assert journeys_of(Person([*seen, old], person.orders), view_windows=DAY_OF_VIEWS) == {
        "o": ["first", "of a seller"]
    }
    clicked = Person([*seen, touch("clicked", -29 * DAY_MS)], [*person.orders, order("later", 2 * DAY_MS)])
    assert journeys_of(clicked, view_windows=DAY_OF_VIEWS) == {"o": ["clicked"], "later": "none_eligible"}


def test_views_are_no_flood_of_clicks_and_no_path_without_an_order() -> None:
    many = [view(str(place), place, ad_key=place) for place in range(9)]
    person = Person([*many, touch("a", 9)], [order("o", DAY_MS)])
    assert journeys_of(person, view_windows=DAY_OF_VIEWS, clicks_per_person_max=2) == {"o": ["a"]}
    policies = Policies(Policy(view_windows=DAY_OF_VIEWS))
    assert walked([Person(many)], policies) == defined([Person(many)], policies) == ({}, {})


def test_the_seller_rule_asks_for_a_seller_that_the_order_names() -> None:
    clicks = [touch(str(seller), 0, ad_key=seller, seller_id=seller) for seller in ("a", "b", None)]
    orders = [
        order("of a", DAY_MS, "a"),
        order("of all", DAY_MS, "a", "b"),
        order("c", DAY_MS, "c"),
        order("any", DAY_MS),
    ]
    assert journeys_of(Person(clicks, orders), seller_rule=SellerRule.SAME_SELLER) == {
        "of a": ["a"],
        "of all": ["a", "b"],
        "c": "none_eligible",
        "any": ["None", "a", "b"],
    }


def test_an_order_credited_to_nobody_says_why() -> None:
    assert journeys_of(Person([], [order("o", 0)])) == {"o": "no_click"}
    assert journeys_of(Person([touch("late", 0)], [order("o", 0)])) == {"o": "no_touchpoint"}
    assert journeys_of(Person([touch("bot", 0, is_bot=True)], [order("o", DAY_MS)])) == {"o": "no_touchpoint"}
    assert journeys_of(Person([touch("old", 0)], [order("o", 31 * DAY_MS)])) == {"o": "none_eligible"}


def test_one_click_can_earn_several_orders() -> None:
    person = Person([touch("a", 0), touch("b", HOUR_MS)], [order("1", 1000), order("2", DAY_MS), order("3", DAY_MS)])
    assert journeys_of(person) == {"1": ["a"], "2": ["a", "b"], "3": ["a", "b"]}


def test_a_month_without_an_order_is_unconverted_in_the_zone_of_its_account() -> None:
    # 2027-01-31 22:30 and 23:30 UTC: in Berlin the second one is in February.
    clicks = [
        touch("a", 16 * DAY_MS + 630 * MINUTE_MS, channel="meta"),
        touch("b", 16 * DAY_MS + 690 * MINUTE_MS, ad_key=1),
    ]
    people = [Person(clicks), Person(clicks, [order("o", 17 * DAY_MS)], "other"), Person(clicks, client_id="other")]
    policies = Policies(Policy(time_zone="Europe/Berlin"), {"other": Policy()})
    _, unconverted = walked(people, policies)
    assert unconverted == {
        (0, "2027-01"): ("shop", ("meta",)),
        (0, "2027-02"): ("shop", ("google",)),
        (1, "2027-01"): ("other", ("meta", "google")),
        (2, "2027-01"): ("other", ("meta", "google")),
    }


def test_nothing_is_walked_without_a_word() -> None:
    assert walked([], Policies()) == ({}, {})
    assert walked([Person([touch("a", 0)])], Policies())[0] == {}


def test_a_click_on_an_unknown_ad_is_an_error() -> None:
    _, _, columns, _, terms = as_tables([Person([touch("a", 0)])], Policies())
    for code in (-16, -14):
        with pytest.raises(ValueError, match="derive clicks and ads anew"):
            terms.ads.find(columns.ad * 0 + code)


def test_what_a_walk_needs_can_be_sent_to_another_process() -> None:
    _, _, columns, orders, terms = as_tables([Person([touch("a", 0)], [order("o", DAY_MS)])], Policies())
    sent_walk, sent_orders, sent_terms = pickle.loads(pickle.dumps((walk, orders, terms)))  # noqa: S301
    found = pickle.loads(pickle.dumps(sent_walk(columns, sent_orders, sent_terms)))  # noqa: S301
    assert found.journeys.touches.tolist() == [1]


TIMES_MS = st.one_of(
    st.integers(0, 9).map(lambda steps: steps * 20 * MINUTE_MS),
    st.integers(0, 6).map(lambda steps: steps * 2 * MINUTE_MS),
    st.integers(-80, 80).map(lambda half_days: half_days * DAY_MS // 2),
    st.integers(0, 5).map(lambda steps: steps * 5000),
    st.sampled_from(
        [-1, 1, 9_999, 10_000, 10_001, 599_999, 600_001, HOUR_MS - 1, HOUR_MS + 1, -30 * DAY_MS - 1, -7 * DAY_MS, 1000]
    ),
)
POLICIES = st.builds(
    Policy,
    time_zone=st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York", "Pacific/Apia"]),
    windows=st.lists(
        st.builds(
            Window,
            channel=st.none() | st.sampled_from(["google", "meta", "mail"]),
            seller_id=st.none() | st.sampled_from(["a", "b"]),
            days=st.sampled_from([1, 3, 40]),
        ),
        max_size=2,
    ).map(tuple),
    view_windows=st.lists(
        st.builds(
            ViewWindow,
            channel=st.none() | st.sampled_from(["google", "meta", "mail"]),
            seller_id=st.none() | st.sampled_from(["a", "b"]),
            hours=st.sampled_from([1, 24, 720]),
        ),
        max_size=2,
    ).map(tuple),
    seller_rule=st.sampled_from(SellerRule),
    invalid_traffic=st.sampled_from(InvalidTraffic),
    clicks_per_person_max=st.integers(1, 5),
    order_after_click_ms_min=st.sampled_from([0, 1000, 20 * MINUTE_MS]),
)
SELLERS = st.sampled_from(["a", "b", "c"])
CLICKS = st.builds(
    touch,
    click_id=st.just(""),
    after_ms=TIMES_MS,
    received_us=st.integers(0, 8).map(lambda steps: steps * 5_000_000) | st.integers(0, 20_000_001),
    strength=st.integers(0, 3),
    channel=st.sampled_from(["google", "meta", "mail"]),
    seller_id=st.none() | SELLERS,
    ad_key=st.integers(0, 1),
    parameters=st.integers(0, 12) | st.integers(0, 2),
    is_spent=st.sampled_from([False] * 9 + [True]),
    is_bot=st.sampled_from([False] * 9 + [True]),
    is_prefetch=st.sampled_from([False] * 9 + [True]),
    is_flood=st.sampled_from([False] * 9 + [True]),
)
VIEWS = CLICKS.map(
    lambda each: msgspec.structs.replace(
        each,
        is_view=True,
        ad_key=("seen", each.ad_key),
        parameters=("seen", each.parameters),
        is_spent=False,
    )
)
PEOPLE = st.builds(
    Person,
    st.lists(CLICKS | CLICKS | VIEWS, max_size=24),
    st.lists(st.builds(order, st.just(""), TIMES_MS, SELLERS) | st.builds(order, st.just(""), TIMES_MS), max_size=4),
    st.sampled_from(["shop", "other", "third"]),
)


def named(people: Sequence[Person], random: Any) -> list[Person]:
    """The same people, with an id for each click and order, in no order."""
    ids = [f"{number:03}" for number in range(sum(len(person.touches) + len(person.orders) for person in people))]
    random.shuffle(ids)
    return [
        Person(
            [msgspec.structs.replace(each, id=ids.pop()) for each in person.touches],
            [Order(ids.pop(), each.placed_ms, each.sellers) for each in person.orders],
            person.client_id,
        )
        for person in people
    ]


@settings(max_examples=300, deadline=None)
@given(st.lists(PEOPLE, max_size=5), POLICIES, POLICIES, st.randoms(use_true_random=False))
def test_it_says_what_the_definitions_say(people: list[Person], default: Policy, other: Policy, random: Any) -> None:
    people, policies = named(people, random), Policies(default, {"other": other})
    assert walked(people, policies) == defined(people, policies)


def test_memory_is_bounded_by_looking_at_few_orders_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "PAIRS_MAX", 3)
    person = Person(
        [touch(str(hour), hour * HOUR_MS) for hour in range(5)], [order(str(n), n * HOUR_MS) for n in range(7)]
    )
    assert walked([person], Policies()) == defined([person], Policies())


@settings(max_examples=100, deadline=None)
@given(st.lists(PEOPLE, max_size=5), POLICIES, st.randoms(use_true_random=False))
def test_without_windows_views_change_nothing(people: list[Person], policy: Policy, random: Any) -> None:
    policies = Policies(policy.model_copy(update={"view_windows": ()}))
    people = named(people, random)
    clicked = [
        Person([each for each in person.touches if not each.is_view], person.orders, person.client_id)
        for person in people
    ]
    assert walked(people, policies) == walked(clicked, policies)

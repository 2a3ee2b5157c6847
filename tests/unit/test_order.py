"""What an order's amendments make of it: the same, in whatever order and however often they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from clickclock.attribution.clicks.click import AHEAD_MAX_MS
from clickclock.attribution.orders.amendment import Amendment, Item, Status
from clickclock.attribution.orders.order import fold

NOW = 1_800_000_000_000
PLACED = Amendment(
    client_id="c",
    order_id="7",
    event_time_ms=NOW,
    amount_minor=1000,
    currency="EUR",
    status=Status.COMPLETED,
    refunded_minor=0,
    cli_ubid="u",
    device_id=None,
    seller_id="s",
    items=(Item("sku", None, 500, 2),),
    received_ms=NOW + 10,
    entry_id="01",
)
REFUND = replace(
    PLACED,
    event_time_ms=NOW + 5000,
    status=Status.REFUNDED,
    refunded_minor=1000,
    cli_ubid=None,
    device_id="d",
    seller_id=None,
    items=(),
    received_ms=NOW + 5010,
    entry_id="02",
)


@st.composite
def amendments(draw: st.DrawFn) -> Amendment:
    # Few values of each, so that ties of every kind come up.
    amount = draw(st.integers(0, 2))
    status = draw(st.sampled_from(Status))
    refunded = {Status.COMPLETED: 0, Status.PARTIALLY_REFUNDED: draw(st.integers(0, amount))}.get(status, amount)
    received_ms = NOW + draw(st.integers(0, 3))
    return Amendment(
        client_id="c",
        order_id="7",
        event_time_ms=received_ms + draw(st.sampled_from([-2, -1, 0, AHEAD_MAX_MS, AHEAD_MAX_MS + 1])),
        amount_minor=amount,
        currency=draw(st.sampled_from(["EUR", "JPY"])),
        status=status,
        refunded_minor=refunded,
        cli_ubid=draw(st.sampled_from([None, "u", "v"])),
        device_id=draw(st.sampled_from([None, "d"])),
        seller_id=draw(st.sampled_from([None, "s", "t"])),
        items=draw(st.sampled_from([(), (Item("a"),), (Item("b", "s", 5, 2),)])),
        received_ms=received_ms,
        entry_id=draw(st.sampled_from(["", "01", "02"])),
        kind=draw(st.sampled_from([None, None, "purchase", "lead"])),
    )


@given(
    st.lists(amendments(), min_size=1, max_size=8).flatmap(lambda some: st.tuples(st.just(some), st.permutations(some)))
)
def test_the_order_of_arrival_changes_nothing(both: tuple[list[Amendment], list[Amendment]]) -> None:
    assert fold(both[0]) == fold(both[1])


@given(st.lists(amendments(), min_size=1, max_size=6), st.data())
def test_a_message_that_is_sent_again_changes_nothing(some: list[Amendment], data: st.DataObject) -> None:
    sent_again = data.draw(st.lists(st.sampled_from(some), max_size=6))
    latest_ms = max(each.received_ms for each in some)
    again = [replace(each, received_ms=latest_ms + 1 + place, entry_id="99") for place, each in enumerate(sent_again)]
    assert fold([*again, *some, *some]) == fold(some)


@given(st.lists(amendments(), min_size=1, max_size=6))
def test_an_order_is_placed_first_and_stands_as_the_latest_says(some: list[Amendment]) -> None:
    order = fold(some)
    assert order.placed_ms <= order.amended_ms
    assert 0 <= order.net_minor <= order.amount_minor
    assert 1 <= order.amendments <= len(some)
    assert any(
        (each.amount_minor, each.currency, each.status, each.refunded_minor)
        == (order.amount_minor, order.currency, order.status, order.refunded_minor)
        for each in some
    )


def test_a_refund_keeps_the_time_of_the_order_and_what_it_leaves_out() -> None:
    order = fold([REFUND, PLACED])
    assert (order.placed_ms, order.amended_ms) == (NOW, NOW + 5000)
    assert (order.status, order.amount_minor, order.net_minor) == (Status.REFUNDED, 1000, 0)
    assert (order.cli_ubid, order.device_id, order.seller_id) == ("u", "d", "s")
    assert order.items == PLACED.items
    assert order.amendments == 2


def test_what_leaves_the_kind_out_leaves_it_as_it_was() -> None:
    lead = replace(PLACED, kind="lead")
    refund = replace(PLACED, event_time_ms=NOW + 5, received_ms=NOW + 5)
    assert [fold(each).kind for each in ([PLACED], [lead], [lead, refund])] == ["purchase", "lead", "lead"]
    assert fold([lead, replace(refund, kind="purchase")]).kind == "purchase"


def test_a_refund_that_repeats_the_orders_own_time_is_still_a_refund_if_it_comes_first() -> None:
    refund = replace(REFUND, event_time_ms=NOW, received_ms=NOW + 1)
    assert fold([refund, PLACED]).status is Status.REFUNDED


def test_a_later_message_takes_a_cancellation_back() -> None:
    cancelled = replace(PLACED, event_time_ms=NOW + 1, status=Status.CANCELLED, refunded_minor=1000)
    restored = replace(PLACED, event_time_ms=NOW + 2)
    assert fold([restored, cancelled, PLACED]).status is Status.COMPLETED


def test_of_two_corrections_of_one_time_the_one_that_came_later_counts() -> None:
    corrected = replace(PLACED, amount_minor=900, received_ms=PLACED.received_ms + 1)
    again = replace(PLACED, received_ms=PLACED.received_ms + 2)
    assert fold([corrected, again, PLACED]).amount_minor == 900


def test_a_clock_that_is_far_ahead_does_not_win_for_ever() -> None:
    ahead = replace(PLACED, event_time_ms=NOW + 10 * 365 * 86_400_000, amount_minor=1)
    assert ahead.is_ahead
    order = fold([ahead, REFUND])
    assert order.status is Status.REFUNDED
    assert order.placed_ms == ahead.received_ms


def test_an_order_is_not_placed_after_it_was_received() -> None:
    ahead = replace(PLACED, event_time_ms=PLACED.received_ms + 120_000)
    late = replace(ahead, event_time_ms=ahead.event_time_ms - 9, amount_minor=1, received_ms=ahead.received_ms + 9)
    order = fold([late, ahead])
    # Each counts from its own receipt, so the one that came later is the later one, whatever their clocks say.
    assert (order.placed_ms, order.amended_ms, order.amount_minor) == (ahead.received_ms, late.received_ms, 1)


def test_a_correction_of_the_currency_adds_nothing_up() -> None:
    order = fold([PLACED, replace(PLACED, event_time_ms=NOW + 1, amount_minor=3, currency="JPY")])
    assert (order.amount_minor, order.currency) == (3, "JPY")


def test_amendments_of_several_orders_or_none_are_refused() -> None:
    with pytest.raises(ValueError, match="one order"):
        fold([PLACED, replace(PLACED, order_id="8")])
    with pytest.raises(ValueError, match="one order"):
        fold([])

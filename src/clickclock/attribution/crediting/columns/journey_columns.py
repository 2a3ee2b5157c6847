"""A walk along people's clicks and orders: the journeys of all orders, and the paths that no order followed.

Never does I/O, and never sees part of a person. Invariant: it says what `touchpoint.judge` and `journey.journey` say of
each person and order; those are the definition, and this is the same for a million rows at once, in columns.

Its memory is a few times that of its rows, beside the journeys themselves. Everything here can be sent to another
process.

>>> from clickclock.attribution.crediting.policy import Policies
>>> from clickclock.attribution.crediting.columns.terms import Ads, terms_of
>>> ads = Ads(np.array([7]), np.array([0]), np.array([0]), np.array([-1]), np.array([False]), ["shop"], ["google"], [])
>>> none, one, no = np.zeros(2, np.int64), np.ones(2, np.int64), np.zeros(2, np.bool_)
>>> rows = Columns(one, np.array([0, 5000]), np.array([False, True]), one, none, 7 * one, one, one, no, no, no, list)
>>> walked = walk(rows, Orders(none[:1], none[:1], none, none[:0]), terms_of(ads, Policies()))
>>> walked.journeys.number.tolist(), walked.journeys.place.tolist(), walked.journeys.row.tolist()
([0], [1], [0])
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.clicks.traffic import FLOOD_MS
from clickclock.attribution.crediting.columns.months import months
from clickclock.attribution.crediting.columns.rolling import (
    Marks,
    Places,
    changes,
    first_at_least,
    flooding,
    grouped,
    ranges,
    too_soon,
)
from clickclock.attribution.crediting.columns.terms import Indexes, Orders, Terms
from clickclock.attribution.crediting.columns.unconverted import paths_without_order
from clickclock.attribution.crediting.journey import Reason
from clickclock.attribution.crediting.touchpoint import REPEAT_MS, RETRY_MS, RETRY_US, repeated

PAIRS_MAX: Final = 4_000_000
"""Pairs of an order and a touchpoint at once: some 200 MB. A few people have thousands of both."""
REASONS: Final = tuple(Reason)
"""What a number in `JourneyRows.reason` stands for."""
TOUCHED: Final = -1
"""The reason of a row that needs none, because it has a touchpoint."""

Numbers: TypeAlias = NDArray[np.int64]


class Columns(msgspec.Struct, frozen=True, eq=False):
    """Clicks and orders of whole persons, sorted by (person, time_ms, is_order, strength, received_us, id)."""

    person: Numbers
    time_ms: Numbers
    is_order: Marks
    received_us: Numbers
    number: Numbers
    """For an order, its place in `Orders`; for a click, anything."""
    ad: Numbers
    """For a click, its ad's code; for an order, anything, and so for all that follow."""
    ad_key: Numbers
    parameters: Numbers
    is_spent: Marks
    is_bot: Marks
    """Whether a bot sent it, or any program before somebody clicked."""
    is_flood: Marks
    """Whether there were too many clicks on its ad from its network."""
    ids: Callable[[Places], Sequence[str]]
    """The ids of the clicks in some rows. Asked only for equal ones that were received in the same microsecond."""


class JourneyRows(msgspec.Struct, frozen=True, eq=False):
    """A row for each order and touchpoint, in time order; for an order without touchpoints, one of place 0.

    The rows of an order are together, and orders are in the order in which they came.
    """

    number: Numbers
    place: NDArray[np.int32]
    touches: NDArray[np.int32]
    """How many touchpoints the order has."""
    row: Places
    """The row of the click; -1 at place 0."""
    reason: NDArray[np.int8]
    """At place 0 the index in `REASONS`, else `TOUCHED`."""


class UnconvertedRows(msgspec.Struct, frozen=True, eq=False):
    """A row for each person and month in which it has touchpoints that are clicks, and no order."""

    client: Indexes
    month: Indexes
    person: Numbers
    path: Places
    """Index of the distinct path."""
    offsets: Places
    """Where each of these begins in `steps`, and at last where they all end."""
    steps: Indexes
    """Their channels in time order, in `Ads.channels`."""


class Walked(msgspec.Struct, frozen=True, eq=False):
    """What a walk has found."""

    journeys: JourneyRows
    unconverted: UnconvertedRows


class _Touchpoints(msgspec.Struct, frozen=True, eq=False):
    """The clicks and views that count, in the order of the rows."""

    row: Places
    person: Numbers
    """The number of the person among these rows, which rises with them."""
    time_ms: Numbers
    ad: Places
    """The place in `Ads`."""


class _Placed(msgspec.Struct, frozen=True, eq=False):
    """The orders, in the order of the rows."""

    person: Numbers
    """As in `_Touchpoints`."""
    placed_ms: Numbers
    number: Numbers
    client: Indexes
    has_click: Marks


def walk(columns: Columns, orders: Orders, terms: Terms) -> Walked:
    """The journeys of all orders in these rows, and the paths of the months without one."""
    person = np.cumsum(changes(columns.person), dtype=np.int64)
    is_order = columns.is_order
    row = np.flatnonzero(~is_order)
    ad = terms.ads.find(columns.ad[row])
    is_view = _are_views(ad, terms)
    if is_view is not None:  # those that no window lets count are as if they were not there
        is_there = ~is_view | (terms.window_ms[ad] > 0)
        row, ad = row[is_there], ad[is_there]
    number = columns.number[is_order]
    placed = _Placed(
        person=person[is_order],
        placed_ms=columns.time_ms[is_order],
        number=number,
        client=orders.client[number],
        has_click=np.bincount(person[row], minlength=len(person) + 1)[person[is_order]] > 0,
    )
    touchpoints = _touchpoints(columns, row, ad, person[row], terms)
    return Walked(
        journeys=_journeys(placed, touchpoints, orders, terms),
        unconverted=_unconverted(columns, placed, touchpoints, orders, terms),
    )


def _are_views(ad: Places, terms: Terms) -> Marks | None:
    """Which touches on these ads are views; None where no ad was only seen, which is nearly everywhere."""
    return terms.ads.is_view[ad] if terms.ads.is_view.any() else None


def _touchpoints(columns: Columns, row: Places, ad: Places, person: Numbers, terms: Terms) -> _Touchpoints:
    """Those of clicks and views in these rows, on these ads and of these persons."""
    time_ms = columns.time_ms[row]
    client = terms.ads.client[ad]
    is_out = _retries(columns, row, person)
    is_view = _are_views(ad, terms)
    once = np.flatnonzero(~is_out if is_view is None else ~(is_out | is_view))
    is_invalid = columns.is_flood[row] | columns.is_bot[row]
    is_invalid[once] |= flooding(person[once], time_ms[once], terms.clicks_per_person_max[client[once]], FLOOD_MS)
    is_out |= columns.is_spent[row] | (is_invalid & terms.excludes_invalid[client])
    left = np.flatnonzero(~is_out)
    places, is_first = grouped(person[left], columns.ad_key[row[left]])
    is_repeat = np.empty(len(left), np.bool_)
    is_repeat[places] = too_soon(time_ms[left[places]], is_first, REPEAT_MS)
    left = left[~is_repeat]
    return _Touchpoints(row[left], person[left], time_ms[left], ad[left])


def _retries(columns: Columns, row: Places, person: Numbers) -> Marks:
    """Which clicks are retries."""
    places, is_first = grouped(person, columns.parameters[row])
    # Most clicks are alone of their kind.
    is_several = ~is_first
    is_several[:-1] |= ~is_first[1:]
    places, is_first = places[is_several], is_first[is_several]
    received_us, kind = columns.received_us[row[places]], np.cumsum(is_first)
    in_order = np.lexsort((received_us, kind))
    is_tied = ~changes(received_us[in_order], kind[in_order])
    if np.any(is_tied):
        is_tied[:-1] |= is_tied[1:]
        tied = in_order[is_tied]
        by_id = np.zeros(len(places), np.intp)
        by_id[tied[np.argsort(np.asarray(columns.ids(row[places[tied]])))]] = np.arange(len(tied))
        in_order = np.lexsort((by_id, received_us, kind))
    is_retry = np.zeros(len(row), np.bool_)
    is_retry[places[in_order]] = _again(received_us[in_order], columns.time_ms[row[places[in_order]]], is_first)
    return is_retry


def _again(received_us: Numbers, time_ms: Numbers, is_first: Marks) -> Marks:
    """Which clicks are retries, of some in order of receipt; `is_first` marks where those of one kind begin."""
    is_again = too_soon(received_us, is_first, RETRY_US + 1)
    # Only those that came in one go are near enough. Nearly always their times are, too: clicks sent late are few.
    is_head = is_first.copy()
    is_head[1:] |= np.diff(received_us) > RETRY_US
    starts = np.flatnonzero(is_head)
    ends = np.append(starts[1:], len(received_us))
    if len(starts):
        spans = np.maximum.reduceat(time_ms, starts) - np.minimum.reduceat(time_ms, starts)
        for start, end in zip(starts[spans > RETRY_MS].tolist(), ends[spans > RETRY_MS].tolist(), strict=True):
            sent = repeated(received_us[start:end].tolist(), time_ms[start:end].tolist())
            is_again[start:end] = [each is not None for each in sent]
    return is_again


def _journeys(placed: _Placed, touchpoints: _Touchpoints, orders: Orders, terms: Terms) -> JourneyRows:
    starts, ends = (np.searchsorted(touchpoints.person, placed.person, side=side) for side in ("left", "right"))
    ends = first_at_least(touchpoints.time_ms, starts, ends, placed.placed_ms)
    order, place = _eligible(placed, starts, ends, touchpoints, orders, terms)
    touches = np.bincount(order, minlength=len(placed.number)).astype(np.int32)
    lines = np.maximum(touches, 1)
    is_touched = np.repeat(touches > 0, lines)
    row = np.full(len(is_touched), -1)
    row[is_touched] = touchpoints.row[place]
    why = np.where(placed.has_click, REASONS.index(Reason.NO_TOUCHPOINT), REASONS.index(Reason.NO_CLICK))
    why[ends > starts] = REASONS.index(Reason.NONE_ELIGIBLE)
    reason = np.full(len(is_touched), TOUCHED, np.int8)
    reason[~is_touched] = why[touches == 0]
    return JourneyRows(
        number=np.repeat(placed.number, lines),
        place=ranges(np.ones_like(lines), lines).astype(np.int32) * is_touched,
        touches=np.repeat(touches, lines),
        row=row,
        reason=reason,
    )


def _eligible(
    placed: _Placed, starts: Places, ends: Places, touchpoints: _Touchpoints, orders: Orders, terms: Terms
) -> tuple[Places, Places]:
    """Which order goes with which touchpoint, of those from its start to its end: two columns."""
    earliest_ms = placed.placed_ms - terms.window_ms_max[placed.client]
    latest_ms = placed.placed_ms - terms.order_after_click_ms_min[placed.client]
    starts = first_at_least(touchpoints.time_ms, starts, ends, earliest_ms)
    lengths = first_at_least(touchpoints.time_ms, starts, ends, latest_ms + 1) - starts
    expires_ms = touchpoints.time_ms + terms.window_ms[touchpoints.ad]
    # An order and a seller make one number; that of no seller is 0.
    sellers, seller = len(terms.ads.sellers) + 1, terms.ads.seller[touchpoints.ad].astype(np.int64) + 1
    names = np.diff(orders.seller_starts)[placed.number] * terms.is_same_seller[placed.client]
    named = np.repeat(np.arange(len(names)), names) * sellers
    named += orders.sellers[ranges(orders.seller_starts[placed.number], names)] + 1
    named.sort()
    found_orders, found_places = [], []
    for some in _shares(lengths):
        order = np.repeat(np.arange(some.start, some.stop), lengths[some])
        place = ranges(starts[some], lengths[some])
        is_in = expires_ms[place] >= np.repeat(placed.placed_ms[some], lengths[some])
        order, place = order[is_in], place[is_in]
        if len(named):
            asked = order * sellers + seller[place]
            found = named[np.minimum(np.searchsorted(named, asked), len(named) - 1)] == asked
            is_in = found | (names[order] == 0)
            order, place = order[is_in], place[is_in]
        found_orders.append(order)
        found_places.append(place)
    return _clicks_first(np.concatenate(found_orders), np.concatenate(found_places), touchpoints, terms)


def _clicks_first(order: Places, place: Places, touchpoints: _Touchpoints, terms: Terms) -> tuple[Places, Places]:
    """Without the views of orders that have a click."""
    seen = _are_views(touchpoints.ad, terms)
    if seen is None:
        return order, place
    is_view = seen[place]
    is_left = ~is_view | ~np.isin(order, order[~is_view])
    return order[is_left], place[is_left]


def _shares(lengths: Numbers) -> Iterator[slice]:
    """Stretches of orders that have about `PAIRS_MAX` touchpoints together; at least one."""
    starts = np.flatnonzero(changes(np.cumsum(lengths) // PAIRS_MAX)).tolist() or [0]
    yield from map(slice, starts, [*starts[1:], len(lengths)])


def _unconverted(
    columns: Columns, placed: _Placed, touchpoints: _Touchpoints, orders: Orders, terms: Terms
) -> UnconvertedRows:
    is_view = _are_views(touchpoints.ad, terms)
    if is_view is not None:
        touchpoints = _Touchpoints(*(getattr(touchpoints, each)[~is_view] for each in _Touchpoints.__struct_fields__))
    client = terms.ads.client[touchpoints.ad]
    zone = terms.zone[client]
    month = np.empty(len(zone), np.int32)
    for number, there in enumerate(terms.zones):
        places = np.flatnonzero(zone == number)
        month[places] = months(touchpoints.time_ms[places], there)
    channel = terms.ads.channel[touchpoints.ad]
    found = paths_without_order(touchpoints.person, month, channel, placed.person, orders.month[placed.number])
    person = columns.person[touchpoints.row[found.first]]
    return UnconvertedRows(client[found.first], month[found.first], person, found.path, found.offsets, found.steps)

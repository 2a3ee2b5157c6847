"""A proof of credit: why each of an order's touchpoints gets what it gets, from the clicks and amendments themselves.

Never looks anything up, and believes no result: what a run stored is compared with what is computed here anew, one
click at a time, by the nouns that define it. Invariants: every click of the person is in it, with its fate; each
model's credits sum to the amount; `differs` is empty, or something is wrong.

>>> [(str(part.exact), part.minor) for part in parts(100, [1, 2])]
[('100/3', 33), ('200/3', 67)]
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from math import isclose
from types import MappingProxyType
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks.absent import present
from clickclock.attribution.clicks.ad import told_apart
from clickclock.attribution.clicks.identifier import SPACES, STRENGTHS, code, folded
from clickclock.attribution.crediting.credit import split
from clickclock.attribution.crediting.journey import Considered, Reason, journey, reason
from clickclock.attribution.crediting.policy import Policy
from clickclock.attribution.crediting.touchpoint import REPEAT_MS, Fate, Judged, Touch, judge
from clickclock.attribution.models import Journey, JourneyModel
from clickclock.attribution.orders.amendment import IDENTIFYING, KIND, Amendment
from clickclock.attribution.orders.order import Order
from clickclock.foundation.instant import instant_of

WHERE: Final = ("click", "order", "identification")
SHARE_TOLERANCE: Final = 1e-12
"""Shares are floats, and sums of them depend on their order; amounts have no tolerance."""


class Identifier(msgspec.Struct, frozen=True):
    """An identifier as it came."""

    kind: str
    """One of `identifier.SPACES`."""
    value: str
    code: int

    @property
    def strength(self) -> int:
        """The greater, the more it says of who it is."""
        return STRENGTHS.get(self.kind, -1)


class Seen(msgspec.Struct, frozen=True):
    """Identifiers seen together, strongest first."""

    id: str
    where: str
    """One of `WHERE`, of which this is the `id`."""
    identifiers: tuple[Identifier, ...]


class Link(msgspec.Struct, frozen=True):
    """Two identifiers of one person, and all that they were seen together on."""

    one: Identifier
    other: Identifier
    clicks: tuple[str, ...]
    orders: tuple[str, ...]
    identifications: tuple[str, ...]


class Guards(msgspec.Struct, frozen=True):
    """The codes that link nobody."""

    shared: Mapping[int, int] = MappingProxyType({})
    """Those that are nobody's, with the number of their links; 0 for those that the policy names."""
    crowded: Mapping[int, int] = MappingProxyType({})
    """Those of devices, with the most visitors that each had within the client's longest window."""

    def __contains__(self, code: int) -> bool:
        return code in self.shared or code in self.crowded


class Person(msgspec.Struct, frozen=True):
    """Whose an order is, and why these identifiers are one person's."""

    code: int
    """The smallest of its identifiers' codes."""
    identifiers: tuple[Identifier, ...]
    links: tuple[Link, ...]


class Evidence(msgspec.Struct, frozen=True):
    """A click or a view of the person: what is judged, and what it said itself."""

    touch: Touch
    seen: Seen
    click_id: str | None = None
    """Its gclid, or else its uclid."""
    has_network: bool = True
    """Whether it is known from which network the visitor came."""
    said: Mapping[str, str] = MappingProxyType({})
    """All that it says about its ad, as `ad.says` gives it."""
    sent_ms: int | None = None
    """The time that the client named; None if it named none."""

    @property
    def is_time_sent(self) -> bool:
        """Whether the client's time counts, and not that of the receipt."""
        return self.sent_ms == self.touch.time_ms


class Apart(msgspec.Struct, frozen=True):
    """What tells a click from the last one that counted less than an hour before."""

    click: str
    """The id of that one."""
    by: tuple[str, ...]
    """The parameters by which their ads are two."""


class Part(msgspec.Struct, frozen=True):
    """What one touchpoint gets of an amount, in minor units: the exact share, and what it was rounded to."""

    exact: Fraction
    minor: int

    @property
    def is_rounded_up(self) -> bool:
        """Whether it got one of the units that were left when every share was rounded down."""
        return self.minor > self.exact


class Credit(msgspec.Struct, frozen=True):
    """What one model gives; a weight and two parts for each touchpoint."""

    name: str
    model: JourneyModel
    weights: tuple[float, ...]
    amount: tuple[Part, ...]
    refund: tuple[Part, ...]

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return sum(self.weights)


class Difference(msgspec.Struct, frozen=True):
    """Where a stored row is not what it should be."""

    place: int
    column: str
    stored: str
    computed: str


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """All that an order's credits come from."""

    order: Order
    month: str
    """In which it was placed, 'YYYY-MM' in the account's time zone: models that look at many paths look at this one."""
    amendments: tuple[Amendment, ...]
    policy: Policy
    person: Person | None
    """None if all its identifiers are shared."""
    shared: Mapping[Identifier, int]
    """Identifiers that are nobody's, with the number of their links; 0 for those that the policy names."""
    crowded: Mapping[Identifier, int]
    """Devices that link nobody, with the most visitors that each had within the client's longest window."""
    clicks: tuple[Considered, ...]
    evidence: Mapping[str, Evidence]
    """Of each click, by its id."""
    apart: Mapping[str, Apart]
    """Of each click, by its id, that counts though another one counted less than an hour before."""
    reason: Reason | None
    credits: tuple[Credit, ...]

    @property
    def touchpoints(self) -> list[Considered]:
        """The journey."""
        return [each for each in self.clicks if each.fate is Fate.IN_JOURNEY]


def identifiers(client_id: str, values: Mapping[str, str | None], policy: Policy) -> tuple[Identifier, ...]:
    """The identifiers among these values, strongest first; of two that are one, the stronger."""
    nobody = {folded(value) for value in policy.shared_identifiers}
    found: dict[int, Identifier] = {}
    for kind in SPACES:
        value = present(values, kind)
        if value is not None:
            each = Identifier(kind, value, code(client_id, kind, value, nobody))
            found.setdefault(each.code, each)
    return tuple(found.values())


def sellers(order: Order) -> frozenset[str]:
    """The sellers that an order names."""
    named = (order.seller_id, *(item.seller_id for item in order.items))
    return frozenset(seller_id for seller_id in named if seller_id is not None)


def identify(own: Sequence[Identifier], seen: Iterable[Seen], guards: Guards) -> Person | None:
    """The person of an order with these identifiers, by all that any of them was seen on."""
    start = next((each for each in own if each.code not in guards.shared), None)
    if start is None:
        return None
    known = {start.code: start}
    together: dict[tuple[int, int], list[Seen]] = {}
    for each in seen:
        codes = sorted(found.code for found in each.identifiers if found.code not in guards)
        for found in each.identifiers:
            if found.code not in known or found.strength > known[found.code].strength:
                known[found.code] = found
        for pair in combinations(codes, 2):
            together.setdefault(pair, []).append(each)
    reached = _reached(start.code, together)
    links = [
        Link(
            known[one],
            known[other],
            *(tuple(sorted(each.id for each in those if each.where == where)) for where in WHERE),
        )
        for (one, other), those in together.items()
        if one in reached
    ]
    every = sorted((known[each] for each in reached), key=_by_strength)
    links.sort(key=lambda link: (_by_strength(link.one), _by_strength(link.other)))
    return Person(min(reached), tuple(every), tuple(links))


def parts(amount_minor: int, weights: Sequence[float]) -> tuple[Part, ...]:
    """An amount as `credit.split` splits it, with what each part is rounded from. Raises `NoWeights`."""
    exact = [Fraction(weight) for weight in weights]
    minors = split(amount_minor, weights)
    total = sum(exact)
    return tuple(Part(amount_minor * each / total, minor) for each, minor in zip(exact, minors, strict=True))


def prove(
    amendments: Sequence[Amendment],
    order: Order,
    *,
    month: str,
    policy: Policy,
    models: Mapping[str, JourneyModel],
    evidence: Sequence[Evidence],
    orders: Sequence[Seen],
    guards: Guards,
) -> Proof:
    """The proof for `order`, which is what `amendments` say together.

    `evidence` is every click of its person, and every view that has a window; `orders` every order, itself among them,
    and every identification; `models` are fitted where they look at many paths.
    """
    own = identifiers(order.client_id, {kind: getattr(order, kind) for kind in IDENTIFYING}, policy)
    seen = [*orders, *(each.seen for each in evidence if not each.touch.is_view)]
    person = identify(own, seen, guards)
    judged = judge((each.touch for each in evidence), policy) if person is not None else []
    known = {each.touch.id: each for each in evidence}
    clicks = journey(order.placed_ms, sellers(order), judged, policy)
    touchpoints = [each.judged.touch for each in clicks if each.fate is Fate.IN_JOURNEY]
    by_code = {each.code: each for those in seen for each in those.identifiers}
    every = sorted(by_code.values(), key=_by_strength)
    return Proof(
        order=order,
        month=month,
        amendments=tuple(sorted(amendments, key=lambda each: (each.effective_ms, each.received_ms, each.entry_id))),
        policy=policy,
        person=person,
        shared={each: guards.shared[each.code] for each in every if each.code in guards.shared},
        crowded={each: guards.crowded[each.code] for each in every if each.code in guards.crowded},
        clicks=tuple(clicks),
        evidence=known,
        apart=_apart(judged, known),
        reason=reason(clicks, has_person=person is not None),
        credits=tuple(_credit(name, models[name], touchpoints, order) for name in models) if touchpoints else (),
    )


def differences(proof: Proof, stored: Iterable[Mapping[str, Any]]) -> list[Difference]:
    """Where the rows of the order in the table of credits are not what they should be."""
    found = []
    by_place, computed = ({row["place"]: row for row in told} for told in (stored, rows(proof)))
    for place in sorted(by_place.keys() | computed.keys()):
        if place not in by_place or place not in computed:
            found.append(
                Difference(place, "place", *(_shown(place if place in told else None) for told in (by_place, computed)))
            )
            continue
        found += [
            Difference(place, column, _shown(by_place[place].get(column)), _shown(value))
            for column, value in computed[place].items()
            if not _is_equal(by_place[place].get(column), value)
        ]
    return found


def rows(proof: Proof) -> list[dict[str, Any]]:
    """The rows of the order in the table of credits, by column."""
    order, touchpoints = proof.order, proof.touchpoints
    placed_at = instant_of(order.placed_ms)
    common = {
        "client_id": order.client_id,
        "order_id": order.order_id,
        "person": None if proof.person is None else proof.person.code,
        "placed_at": placed_at,
        "order_day": placed_at.astimezone(proof.policy.zone).date(),
        "order_month": proof.month,
        "currency": order.currency,
        "amount_minor": order.amount_minor,
        "refunded_minor": order.refunded_minor,
        "status": order.status.value,
        "seller_id": order.seller_id,
        KIND: order.kind,
        "reason": None if proof.reason is None else proof.reason.value,
        "touches": len(touchpoints),
    }
    if not touchpoints:
        return [{**common, "place": 0, "click_id": None}]
    return [
        {**common, "place": place, **_touchpoint(each.judged.touch), **_credited(proof.credits, place - 1)}
        for place, each in enumerate(touchpoints, 1)
    ]


def _apart(judged: Iterable[Judged], known: Mapping[str, Evidence]) -> dict[str, Apart]:
    counted = [each.touch for each in judged if each.fate is Fate.COUNTED]
    return {
        touch.id: Apart(before.id, tuple(told_apart(known[before.id].said, known[touch.id].said)))
        for before, touch in pairwise(counted)
        if touch.time_ms - before.time_ms < REPEAT_MS
    }


def _reached(start: int, together: Iterable[tuple[int, int]]) -> set[int]:
    neighbours: dict[int, list[int]] = {}
    for one, other in together:
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    reached, waiting = {start}, [start]
    while waiting:
        for each in neighbours.get(waiting.pop(), ()):
            if each not in reached:
                reached.add(each)
                waiting.append(each)
    return reached


def _by_strength(identifier: Identifier) -> tuple[int, str]:
    return -identifier.strength, identifier.value


def _credit(name: str, model: JourneyModel, touchpoints: Sequence[Touch], order: Order) -> Credit:
    weights = model.weights(
        Journey(
            tuple(touch.channel for touch in touchpoints),
            tuple(touch.time_ms for touch in touchpoints),
            order.placed_ms,
        )
    )
    amount = parts(order.amount_minor, weights)
    # Split by the credits, and not by the weights: rounded on its own, a refund could be a cent more than the credit.
    refund = parts(order.refunded_minor, [part.minor for part in amount] if order.amount_minor else weights)
    return Credit(name, model, tuple(weights), amount, refund)


def _touchpoint(touch: Touch) -> dict[str, Any]:
    return {
        "click_id": touch.id,
        "click_at": instant_of(touch.time_ms),
        "channel": touch.channel,
        "click_seller_id": touch.seller_id,
        "campaign": touch.campaign,
        "ad_set": touch.ad_set,
        "ad": touch.ad,
        "atag": touch.atag,
        "asvt": touch.asvt,
    }


def _credited(given: Sequence[Credit], nth: int) -> dict[str, Any]:
    return {
        f"{credit.name}_{column}": value
        for credit in given
        for column, value in (
            ("credit", credit.amount[nth].minor),
            ("refund", credit.refund[nth].minor),
            ("share", credit.weights[nth] / credit.total),
        )
    }


def _is_equal(stored: Any, computed: Any) -> bool:
    if isinstance(stored, float) and isinstance(computed, float):
        return isclose(stored, computed, rel_tol=SHARE_TOLERANCE, abs_tol=SHARE_TOLERANCE)
    return bool(stored == computed)


def _shown(value: Any) -> str:
    return "" if value is None else str(value)

"""A journey: which of a person's touchpoints an order is credited to, and why not to the others.

Never looks at the order's amount. This is the definition; `walk` does the same to millions of orders at once, and tests
hold the two equal.
Invariants: every click is considered, in time order; a touchpoint came before the order, within its window; an order
that is credited to nobody has a reason. A view is a
touchpoint only where no click is.

>>> from clickclock.attribution.crediting.touchpoint import judge
>>> from clickclock.foundation.instant import DAY_MS
>>> clicks = [Touch(name, time_ms, 0, 3, "meta", None, name, name, False, False, False) for name, time_ms in
...           (("old", 0), ("new", 8 * DAY_MS))]
>>> [each.fate.value for each in journey(9 * DAY_MS, (), judge(clicks, Policy()), Policy())]
['outside_window', 'in_journey']
"""

from collections.abc import Collection, Sequence
from enum import StrEnum

import msgspec

from clickclock.attribution.crediting.policy import Policy, SellerRule
from clickclock.attribution.crediting.touchpoint import Fate, Judged, Touch


class Reason(StrEnum):
    """Why an order is credited to nobody."""

    SHARED_IDENTIFIER = "shared_identifier"
    """All its identifiers are shared: it is no person's."""
    NO_CLICK = "no_click"
    """The person never clicked."""
    NO_TOUCHPOINT = "no_touchpoint"
    """None of the person's clicks counted, or none of those was before the order."""
    NONE_ELIGIBLE = "none_eligible"
    """No touchpoint before it was within its window, of its seller and early enough."""


class Considered(msgspec.Struct, frozen=True):
    """A click of the order's person, and what it is to the order."""

    judged: Judged
    fate: Fate
    flags: tuple[Fate, ...] = ()
    """Those of the click, and `too_soon`, whether or not they are left out."""


def journey(placed_ms: int, sellers: Collection[str], judged: Sequence[Judged], policy: Policy) -> list[Considered]:
    """Every click, in the same order; those that are `in_journey` are the touchpoints.

    `sellers` are those that the order names, none if it names none.
    """
    considered = [_considered(placed_ms, sellers, each, policy) for each in judged]
    if all(each.judged.touch.is_view for each in considered if each.fate is Fate.IN_JOURNEY):
        return considered
    return [_beside_a_click(each) for each in considered]


def reason(considered: Sequence[Considered], *, has_person: bool = True) -> Reason | None:
    """Why there is no touchpoint; None if there is one."""
    fates = {each.fate for each in considered}
    if not has_person:
        return Reason.SHARED_IDENTIFIER
    if Fate.IN_JOURNEY in fates:
        return None
    if fates & {Fate.OUTSIDE_WINDOW, Fate.OTHER_SELLER, Fate.TOO_SOON}:
        return Reason.NONE_ELIGIBLE
    return Reason.NO_TOUCHPOINT if fates else Reason.NO_CLICK


def _considered(placed_ms: int, sellers: Collection[str], judged: Judged, policy: Policy) -> Considered:
    if judged.fate is not Fate.COUNTED:
        return Considered(judged, judged.fate, judged.flags)
    touch = judged.touch
    before_ms = placed_ms - touch.time_ms
    is_too_soon = 0 < before_ms < policy.order_after_click_ms_min
    flags = judged.flags + (Fate.TOO_SOON,) * is_too_soon
    if before_ms <= 0:
        fate = Fate.NOT_BEFORE_ORDER
    elif before_ms > policy.window_ms(touch.channel, touch.seller_id, is_view=touch.is_view):
        fate = Fate.OUTSIDE_WINDOW
    elif _is_other_seller(touch, sellers, policy):
        fate = Fate.OTHER_SELLER
    elif is_too_soon and policy.excludes_invalid:
        fate = Fate.TOO_SOON
    else:
        fate = Fate.IN_JOURNEY
    return Considered(judged, fate, flags)


def _beside_a_click(considered: Considered) -> Considered:
    """Where a click counts, no view does."""
    is_it = considered.judged.touch.is_view and considered.fate is Fate.IN_JOURNEY
    return msgspec.structs.replace(considered, fate=Fate.GAVE_WAY) if is_it else considered


def _is_other_seller(touch: Touch, sellers: Collection[str], policy: Policy) -> bool:
    return policy.seller_rule is SellerRule.SAME_SELLER and bool(sellers) and touch.seller_id not in sellers

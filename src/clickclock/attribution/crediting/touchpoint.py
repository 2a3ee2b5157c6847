"""A touchpoint: a click, or a view, that counts. Why each other one of a person does not, and what it gave way to.

Never looks at an order, and never drops for good: a click that is left out keeps its reason. This is the definition;
`walk` does the same to millions of clicks at once, and tests hold the two equal.
Invariants: every click has one fate, the first in the order of `Fate` that applies; it does not depend on the order in
which the clicks are given.

A click that is sent again within seconds is a retry: the network's, not the person's. Clicks of other times that are
sent late, all at once, are none. One on the same ad within an
hour of the last one that counted is a repeat: kept, but no second touchpoint. Between the two, what must not count is
taken out, so that it makes no repeat of one that should.

>>> first = Touch("a", 0, 0, 3, "google", None, "ad", "parameters", False, False, False)
>>> again = msgspec.structs.replace(first, id="b", time_ms=3_599_999, parameters="others")
>>> [(each.touch.id, each.fate.value, each.cause) for each in judge([again, first], Policy())]
[('a', 'counted', None), ('b', 'repeat', 'a')]
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from operator import itemgetter
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks.traffic import FLOOD_MS
from clickclock.attribution.crediting.policy import Policy

RETRY_US: Final = 10_000_000
"""The same parameters, received again within this time, are one click, if their own times are as near."""
RETRY_MS: Final = RETRY_US // 1000
REPEAT_MS: Final = 3_600_000
"""Sooner than this after a click that counted, another one on its ad does not."""
NO_PERSON: Final = -1
"""The strength of a click whose identifiers are all shared, or of unknown people."""


class Fate(StrEnum):
    """What becomes of a click: of those that apply, the first counts. From `not_before_order` on, for one order."""

    SHARED_IDENTIFIER = "shared_identifier"
    RETRY = "retry"
    CLICK_ID_SPENT = "click_id_spent"
    BOT = "bot"
    PREFETCH = "prefetch"
    FLOOD = "flood"
    REPEAT = "repeat"
    COUNTED = "counted"
    NOT_BEFORE_ORDER = "not_before_order"
    OUTSIDE_WINDOW = "outside_window"
    OTHER_SELLER = "other_seller"
    TOO_SOON = "too_soon"
    GAVE_WAY = "gave_way"
    IN_JOURNEY = "in_journey"


class Touch(msgspec.Struct, frozen=True):
    """A click as attribution sees it."""

    id: str
    time_ms: int
    """The time that counts, in milliseconds since 1970."""
    received_us: int
    strength: int
    """Rank of the identifier that says whose it is: 3 to 0, or `NO_PERSON`."""
    channel: str
    seller_id: str | None
    ad_key: Hashable
    """Equal for clicks on one ad."""
    parameters: Hashable
    """Equal for clicks whose parameters are the same, but for the time."""
    is_spent: bool
    """Whether an earlier click had the same click id (gclid or uclid)."""
    is_bot: bool
    is_flood: bool
    """Whether there were too many clicks on its ad from its network."""
    is_prefetch: bool = False
    """Whether a program sent it before anybody clicked."""
    campaign: str | None = None
    ad_set: str | None = None
    ad: str | None = None
    atag: str | None = None
    asvt: str | None = None
    is_view: bool = False
    """Whether the ad was only seen."""
    spent_by: str | None = None
    """The earlier click, where it was looked up."""

    @property
    def place(self) -> tuple[int, int, int, str]:
        """Where it stands in a journey; no two clicks stand at one place, and the last one is the last touch."""
        return self.time_ms, self.strength, self.received_us, self.id


class Judged(msgspec.Struct, frozen=True):
    """A click and what became of it."""

    touch: Touch
    fate: Fate
    flags: tuple[Fate, ...] = ()
    """`bot`, `prefetch` and `flood`, whether or not they are left out."""
    cause: str | None = None
    """The click that made it a retry or a repeat, or spent its click id."""


def repeated(received_us: Sequence[int], time_ms: Sequence[int]) -> list[int | None]:
    """Of clicks with the same parameters, in order of receipt: the place of the click that each is a retry of, if any.

    Times are put into cells in which all are near each other. So of each cell, only the last that was no retry can be
    near enough by its receipt, and only neighbouring cells have others.

    >>> repeated([0, 1, 2], [0, 32 * 86_400_000, 5])
    [None, None, 0]
    """
    last: dict[int, int] = {}
    found: list[int | None] = []
    for place, (came_us, at_ms) in enumerate(zip(received_us, time_ms, strict=True)):
        cell = at_ms // (RETRY_MS + 1)
        near = (last[each] for each in (cell - 1, cell, cell + 1) if each in last)
        sent = next(
            (
                each
                for each in near
                if came_us - received_us[each] <= RETRY_US and abs(at_ms - time_ms[each]) <= RETRY_MS
            ),
            None,
        )
        if sent is None:
            last[cell] = place
        found.append(sent)
    return found


def first_use(uses: Iterable[Mapping[str, Any]]) -> str:
    """The id of the click that used its click id first, of rows of touches with one click id.

    One that was sent again uses nothing, whatever time the copy names.
    """
    stretches: list[list[Mapping[str, Any]]] = []
    for use in sorted(uses, key=itemgetter("parameters", "time_ms")):
        last = stretches[-1][-1] if stretches else None
        is_near = last is not None and use["time_ms"] - last["time_ms"] <= RETRY_MS
        if last is not None and last["parameters"] == use["parameters"] and is_near:
            stretches[-1].append(use)
        else:
            stretches.append([use])
    places: list[tuple[bool, int, int, str]] = []
    for stretch in stretches:
        sent_us = -RETRY_US - 1
        for use in sorted(stretch, key=itemgetter("received_us", "id")):
            is_copy = use["received_us"] - sent_us <= RETRY_US
            places.append((is_copy, use["time_ms"], use["received_us"], use["id"]))
            sent_us = use["received_us"]
    return min(places)[-1]


def judge(touches: Iterable[Touch], policy: Policy) -> list[Judged]:
    """The fates of all clicks of one person, in the order of a journey."""
    ordered = sorted(touches, key=lambda touch: touch.place)
    retries = _retries(ordered)
    once = [touch for touch in ordered if touch.id not in retries and not touch.is_view]
    flooding = _flooding(once, policy.clicks_per_person_max)
    last_counted: dict[Hashable, Touch] = {}
    judged = []
    for touch in ordered:
        cause = retries.get(touch.id)
        flags = _flags(touch, flooding)
        if touch.strength == NO_PERSON:
            fate = Fate.SHARED_IDENTIFIER
        elif cause is not None:
            fate = Fate.RETRY
        elif touch.is_spent:
            fate, cause = Fate.CLICK_ID_SPENT, touch.spent_by
        elif flags and policy.excludes_invalid:
            fate = flags[0]
        elif (last := last_counted.get(touch.ad_key)) is not None and touch.time_ms - last.time_ms < REPEAT_MS:
            fate, cause = Fate.REPEAT, last.id
        else:
            fate = Fate.COUNTED
            last_counted[touch.ad_key] = touch
        judged.append(Judged(touch, fate, flags, cause))
    return judged


def _retries(touches: Sequence[Touch]) -> dict[str, str]:
    """The ids of retries, each with that of the click which it repeats."""
    alike: dict[Hashable, list[Touch]] = {}
    for touch in sorted(touches, key=lambda touch: (touch.received_us, touch.id)):
        alike.setdefault(touch.parameters, []).append(touch)
    return {
        those[place].id: those[sent].id
        for those in alike.values()
        for place, sent in enumerate(repeated([each.received_us for each in those], [each.time_ms for each in those]))
        if sent is not None
    }


def _flooding(ordered: Sequence[Touch], clicks_max: int) -> set[str]:
    """The ids of those before which, within `FLOOD_MS`, and at whose time there are more than `clicks_max`."""
    times_ms = [touch.time_ms for touch in ordered]
    return {
        touch.id
        for touch in ordered
        if bisect_right(times_ms, touch.time_ms) - bisect_right(times_ms, touch.time_ms - FLOOD_MS) > clicks_max
    }


def _flags(touch: Touch, flooding: set[str]) -> tuple[Fate, ...]:
    is_flood = touch.is_flood or touch.id in flooding
    return (Fate.BOT,) * touch.is_bot + (Fate.PREFETCH,) * touch.is_prefetch + (Fate.FLOOD,) * is_flood

"""A difference: what one order's credits were in a version, what they are in another, and why.

Never reads the lake: it is given the rows. Invariants: an order that differs has a cause; what was said of the order,
of its person and of its clicks comes before what merely follows from it; amounts are whole minor units until they are
written.

>>> row = {"client_id": "shop", "order_id": "7", "order_month": "2026-11", "placed_at": 0, "seller_id": ""}
>>> row |= {"kind": "lead", "person": 5, "currency": "EUR", "refunded_minor": 0, "status": "completed", "reason": None}
>>> then, now = row | {"amount_minor": 1000, "click_id": None}, row | {"amount_minor": 800, "click_id": None}
>>> [each.what for each in explain([then], [now], Circumstances()).causes]
['amount 10.00 EUR, now 8.00 EUR']
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import msgspec

from clickclock.attribution.orders.amendment import KIND
from clickclock.attribution.orders.money import to_text
from clickclock.foundation.record import rfc3339

LIMIT: Final = 1000
"""Default number of orders in a report."""
LIMIT_MAX: Final = 10_000
"""More is not read by anybody, and the rows of all are in memory at once."""

Row = Mapping[str, Any]
"""A row of the table of credits."""


class Cause(StrEnum):
    """Why an order's credits are others."""

    NEW_ORDER = "new_order"
    """It is in the second version only."""
    ORDER_GONE = "order_gone"
    """It is in the first version only: it was erased, or its time is over."""
    AMENDED = "amended"
    """The shop said something else of it: a refund, a cancellation, a correction."""
    PERSON_MERGED = "person_merged"
    """Its person turned out to be another one, too."""
    PERSON_PARTED = "person_parted"
    """It is not that person's any more: what linked them is gone, or it names other identifiers."""
    PERSON_FOUND = "person_found"
    """It was nobody's, and is somebody's."""
    CLICK_CAME = "click_came"
    """A touchpoint whose click was not in the lake before."""
    CLICK_ADDED = "click_added"
    """A touchpoint whose click was there, and was none; or nobody knows any more whether it was there."""
    CLICK_LEFT_OUT = "click_left_out"
    """A click that was a touchpoint is none any more."""
    CLICK_CHANGED = "click_changed"
    """A touchpoint that stayed is of another channel, time or campaign, by the rules of the second version."""
    ORDER_CAPPED = "order_capped"
    """It is placed when it was received, and no later: the program of the first version believed a fast clock."""
    REASON_CHANGED = "reason_changed"
    """It has no touchpoint as before, for another reason."""
    SETTINGS_CHANGED = "settings_changed"
    """None of these, and the rules are others."""
    PROGRAM_CHANGED = "program_changed"
    """None of these, and the program or its engine is another."""
    MODEL_REFITTED = "model_refitted"
    """None of all these: a model learnt something else from the paths of others in its month."""


class Circumstances(msgspec.Struct, frozen=True):
    """Facts about two versions, and about the clicks and persons that their rows name."""

    models_before: tuple[str, ...] = ()
    models_after: tuple[str, ...] = ()
    has_other_settings: bool = False
    has_other_program: bool = False
    came: Collection[str] | None = None
    """The clicks of `added` that came since the first version; None if that is no longer known."""
    persons_now: Mapping[int, int] = MappingProxyType({})
    """For persons that `left` names: who they are in the second version, where that is another."""
    reversals: Mapping[str, str] = MappingProxyType({})
    """By click that counts in one of the versions alone: why, where it is known."""
    guards: Mapping[int, tuple[str, ...]] = MappingProxyType({})
    """By person of the first version, which of its identifiers link nobody in the second one, and why; and which of its
    identifications were withdrawn since."""
    identified: Mapping[int, tuple[str, ...]] = MappingProxyType({})
    """By person of the second version, the identifications since that name its identifiers."""


class Told(msgspec.Struct, frozen=True):
    """A cause, and what it was for this order, as people read it."""

    cause: Cause
    what: str


class Standing(msgspec.Struct, frozen=True):
    """How an order stands in a version."""

    month: str
    """In which it was placed, 'YYYY-MM' in the account's time zone."""
    currency: str
    amount_minor: int
    refunded_minor: int
    touchpoints: tuple[str, ...]
    """The ids of its clicks, first to last."""
    credits: Mapping[str, Mapping[str, int]]
    """What each model gives each channel of the amount, in minor units; for an order without touchpoints, nothing."""


class Difference(msgspec.Struct, frozen=True):
    """One order that differs; a standing is None where the order is not in that version."""

    client_id: str
    order_id: str
    causes: tuple[Told, ...]
    before: Standing | None
    after: Standing | None


class Setting(msgspec.Struct, frozen=True):
    """A setting that differs, by the path of its name; None where it is not set."""

    name: str
    before: Any
    after: Any


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The differences from version `before` to version `after`."""

    before: int
    after: int
    models_added: tuple[str, ...]
    """Models that the second version has and the first has not; no order differs by their credits alone."""
    models_removed: tuple[str, ...]
    settings: tuple[Setting, ...]
    differing: int
    """How many orders differ, told or not."""
    new: int
    """How many of them are in the second version only."""
    gone: int
    """How many of them are in the first version only."""
    orders: tuple[Difference, ...]
    """The first of them, by client and order."""

    @property
    def causes(self) -> dict[Cause, int]:
        """How many of the reported orders have each cause; an order can have several."""
        counts = Counter(cause for each in self.orders for cause in {told.cause for told in each.causes})
        return {cause: counts[cause] for cause in Cause if counts[cause]}


FACTS: Final[Mapping[str, Callable[[Row], str]]] = MappingProxyType(
    {
        "amount_minor": lambda row: _amount(row, "amount_minor"),
        "refunded_minor": lambda row: _amount(row, "refunded_minor"),
        "currency": lambda row: f"{row['currency']}",
        "status": lambda row: f"{row['status']}",
        "seller_id": lambda row: f"{row['seller_id'] or 'none'}",
        "placed_at": lambda row: rfc3339(row["placed_at"]),
        KIND: lambda row: f"{row[KIND]}",
    }
)
"""What a shop says of an order and may amend, each with how it is shown."""


def explain(before: Sequence[Row], after: Sequence[Row], known: Circumstances) -> Difference:
    """Why the rows of an order are others than before.

    `before` and `after` are all its rows in either version, by place; one of them may be empty.
    """
    row = (after or before)[0]
    causes = tuple(_causes(before, after, known)) or (_consequence(known),)
    standings = _standing(before, known.models_before), _standing(after, known.models_after)
    return Difference(row["client_id"], row["order_id"], causes, *standings)


def added(before: Sequence[Row], after: Sequence[Row]) -> list[Row]:
    """The rows of touchpoints that an order, which is in both versions, had not before."""
    known = set(_touchpoints(before))
    return [row for row in after if row["click_id"] is not None and row["click_id"] not in known] if before else []


def left(before: Sequence[Row], after: Sequence[Row]) -> int | None:
    """The person whose an order, which is in both versions, is no more; None if it is the same, or was nobody's."""
    is_same = not before or not after or before[0]["person"] == after[0]["person"]
    return None if is_same else before[0]["person"]


def settings_between(then: Any, now: Any, path: Sequence[str] = ()) -> Iterator[Setting]:
    """The differences of two documents."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in sorted(then.keys() | now.keys()):
            yield from settings_between(then.get(name), now.get(name), (*path, name))
    elif then != now:
        yield Setting(".".join(path), then, now)


def document(found: Comparison) -> dict[str, Any]:
    """A comparison as JSON."""
    return {
        "from": found.before,
        "to": found.after,
        "models": {"added": list(found.models_added), "removed": list(found.models_removed)},
        "settings": [msgspec.structs.asdict(each) for each in found.settings],
        "differing": found.differing,
        "new": found.new,
        "gone": found.gone,
        "causes": {str(cause): count for cause, count in found.causes.items()},
        "orders": [
            {
                "clientId": each.client_id,
                "orderId": each.order_id,
                "causes": [{"cause": str(told.cause), "what": told.what} for told in each.causes],
                "before": _written(each.before),
                "after": _written(each.after),
            }
            for each in found.orders
        ],
    }


def _causes(before: Sequence[Row], after: Sequence[Row], known: Circumstances) -> Iterator[Told]:
    if not before:
        yield Told(Cause.NEW_ORDER, f"{_amount(after[0], 'amount_minor')}, {after[0]['status']}")
        return
    if not after:
        yield Told(Cause.ORDER_GONE, f"{_amount(before[0], 'amount_minor')}, {before[0]['status']}")
        return
    then, now = before[0], after[0]
    said = [name for name in FACTS if then[name] != now[name]]
    if said == ["placed_at"] and known.has_other_program and now["placed_at"] < then["placed_at"]:
        yield Told(Cause.ORDER_CAPPED, f"placed {rfc3339(then['placed_at'])}, received {rfc3339(now['placed_at'])}")
        said = []
    for name, shown in FACTS.items():
        if name in said:
            field = name.removesuffix("_minor").removesuffix("_id").removesuffix("_at")
            yield Told(Cause.AMENDED, f"{field} {shown(then)}, now {shown(now)}")
    if then["person"] != now["person"]:
        yield _of_person(then["person"], now["person"], known)
    elif then["person"] in known.guards and added(after, before):
        # The person with the smallest code keeps its name when the others leave.
        yield _parted(f"{then['person']}", then["person"], known)
    for row in added(before, after):
        is_new = known.came is not None and row["click_id"] in known.came
        yield Told(Cause.CLICK_CAME if is_new else Cause.CLICK_ADDED, _click(row, known))
    for row in added(after, before):
        yield Told(Cause.CLICK_LEFT_OUT, _click(row, known))
    yield from _changed(before, after)
    if then["reason"] != now["reason"] and None not in (then["reason"], now["reason"]):
        yield Told(Cause.REASON_CHANGED, f"{then['reason']}, now {now['reason']}")


def _of_person(then: int | None, now: int | None, known: Circumstances) -> Told:
    if then is None:
        return Told(Cause.PERSON_FOUND, f"nobody, now {now}")
    if now is not None and known.persons_now.get(then) == now:
        return Told(Cause.PERSON_MERGED, "; ".join([f"{then} is {now} now", *known.identified.get(now, ())]))
    if now is None:
        why = "" if then in known.guards else ": all that the order names identifies nobody"
        return _parted(f"{then}, now nobody{why}", then, known)
    return _parted(f"{then}, now {now}", then, known)


def _parted(what: str, person: int, known: Circumstances) -> Told:
    return Told(Cause.PERSON_PARTED, "; ".join([what, *known.guards.get(person, ())]))


def guard(code: int, links: int | None, visitors: int | None) -> str:
    """Why an identifier links nobody, by what `identities` says of it.

    >>> guard(7, None, 12)
    'device 7 had 12 visitors at one time, too many for one person'
    """
    if visitors is not None:
        return f"device {code} had {visitors} visitors at one time, too many for one person"
    return f"identifier {code} has {links} links, too many for one person" if links else f"{code} identifies nobody"


class Message(msgspec.Struct, frozen=True):
    """An identification, or the withdrawal of one, as the lake's table of events has it."""

    id: str
    received_at: datetime
    event_time: datetime
    is_withdrawal: bool


def identification(customer: int, kind: str, code: int, message: Message) -> str:
    """What a message said of two identifiers, by their codes, and which message it was.

    >>> identification(7, "cli_ubid", 9, Message("018f-1", datetime.max, datetime(2026, 1, 2), True))[:76]
    'customer 7 and cli_ubid 9 were parted at 2026-01-02T00:00:00.000Z by 018f-1 '
    """
    verb = "parted" if message.is_withdrawal else "identified"
    which = f"{message.id} of the table events, received {rfc3339(message.received_at)}"
    return f"customer {customer} and {kind} {code} were {verb} at {rfc3339(message.event_time)} by {which}"


def _consequence(known: Circumstances) -> Told:
    """The reason where nothing about the order changed."""
    if known.has_other_settings:
        return Told(Cause.SETTINGS_CHANGED, "the rules are others")
    if known.has_other_program:
        return Told(Cause.PROGRAM_CHANGED, "the program is another")
    return Told(Cause.MODEL_REFITTED, "models learnt from the paths of others")


def _standing(rows: Sequence[Row], models: Sequence[str]) -> Standing | None:
    if not rows:
        return None
    credits_: dict[str, dict[str, int]] = {}
    for row in rows:
        if row["click_id"] is not None:
            for model in models:
                by_channel = credits_.setdefault(model, {})
                by_channel[row["channel"]] = by_channel.get(row["channel"], 0) + row[f"{model}_credit"]
    row = rows[0]
    return Standing(
        row["order_month"], row["currency"], row["amount_minor"], row["refunded_minor"], _touchpoints(rows), credits_
    )


def _written(standing: Standing | None) -> dict[str, Any] | None:
    if standing is None:
        return None
    currency = standing.currency
    return {
        "month": standing.month,
        "currency": currency,
        "amount": to_text(standing.amount_minor, currency),
        "refunded": to_text(standing.refunded_minor, currency),
        "touchpoints": list(standing.touchpoints),
        "credits": {
            model: {channel: to_text(minor, currency) for channel, minor in by_channel.items()}
            for model, by_channel in standing.credits.items()
        },
    }


def _touchpoints(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(row["click_id"] for row in rows if row["click_id"] is not None)


def _changed(before: Sequence[Row], after: Sequence[Row]) -> Iterator[Told]:
    known = {row["click_id"]: row for row in before if row["click_id"] is not None}
    for row in after:
        then = known.get(row["click_id"])
        if then is None:
            continue
        found = [
            f"{name.removeprefix('click_')} {_shown(then[name])}, now {_shown(row[name])}"
            for name in _OF_CLICKS
            if then[name] != row[name]
        ]
        if found:
            yield Told(Cause.CLICK_CHANGED, f"{row['click_id']}: {'; '.join(found)}")


_OF_CLICKS: Final = ("channel", "click_at", "click_seller_id", "campaign", "ad_set", "ad")
"""What a row says of its click."""


def _shown(value: str | datetime | None) -> str:
    return rfc3339(value) if isinstance(value, datetime) else value or "none"


def _click(row: Row, known: Circumstances) -> str:
    why = known.reversals.get(row["click_id"])
    return f"{row['click_id']} of {row['channel']} at {rfc3339(row['click_at'])}" + (f": {why}" if why else "")


def _amount(row: Row, name: str) -> str:
    return f"{to_text(row[name], row['currency'])} {row['currency']}"

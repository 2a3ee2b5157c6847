"""An upload: what an ad network gets to know of one order's credit to one click, and when.

Never does I/O and never forgets: earlier uploads are handed in. Invariants: a credit is sent once, as a conversion;
later changes are sent as adjustments of it, where the network takes such; a retracted conversion is never sent
again, for networks ignore it.

>>> credit = Credited("c", "A-1", "0" * 32, placed_ms=DAY_MS, click_ms=0, value_minor=990, currency="EUR")
>>> decide(credit, None, GOOGLE, now_ms=DAY_MS - 1).value, decide(credit, None, GOOGLE, now_ms=DAY_MS).kind.value
('held', 'conversion')
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from clickclock.attribution.orders.amendment import PURCHASE
from clickclock.foundation.instant import DAY_MS


class Network(StrEnum):
    """Where conversions are uploaded. Each gets those of the channel of its name."""

    GOOGLE = "google"
    META = "meta"


class Kind(StrEnum):
    """The kind of an upload."""

    CONVERSION = "conversion"
    RESTATE = "restate"
    """It is worth something else now."""
    RETRACT = "retract"
    """It is worth nothing any more."""


class Fate(StrEnum):
    """Why a credit is not uploaded."""

    TOLD = "told"
    """The network knows it as it is."""
    HELD = "held"
    """The network does not know its click yet; it is uploaded later."""
    NO_VALUE = "no_value"
    """The model gives the click nothing, or it was refunded before the upload."""
    NO_CLICK_ID = "no_click_id"
    """The click has no id that the network knows, or it is not in the lake any more."""
    BAD_CLICK_ID = "bad_click_id"
    """The click's id has not the network's form: somebody made it up, or it is a placeholder."""
    NOBODY = "nobody"
    """Nothing that is left of the click tells the network whose it was."""
    BAD_ORDER_ID = "bad_order_id"
    """The order's id is too long, is no line of text, or has a mail address in it."""
    BAD_CURRENCY = "bad_currency"
    """The currency was withdrawn, or is no money."""
    TOO_OLD = "too_old"
    """The network takes nothing about it any more."""
    NOT_ADJUSTABLE = "not_adjustable"
    """It changed, and the network takes no adjustments."""
    RETRACTED = "retracted"
    """It was retracted, and has a value again; the network takes no second conversion."""


class Rules(msgspec.Struct, frozen=True):
    """What a network takes, and when."""

    hold_ms: int
    """From the click to its conversion, at least."""
    click_age_ms_max: int
    conversion_age_ms_max: int
    adjustment_age_ms_max: int | None
    """From the conversion to an adjustment of it; None if the network takes none."""
    order_hold_ms: int = 0
    """From the order to its conversion, at least."""

    @property
    def order_age_ms_max(self) -> int:
        """Older orders are not reported any more."""
        return max(self.conversion_age_ms_max, self.adjustment_age_ms_max or 0)


GOOGLE: Final = Rules(DAY_MS, 90 * DAY_MS, 90 * DAY_MS, 54 * DAY_MS)
"""Google knows a click after some hours, and for 90 days; adjustments end after 54 days."""
META: Final = Rules(0, 365 * DAY_MS, 7 * DAY_MS, None)
"""One event that is older makes Meta refuse all that are sent with it. No click of a journey is older than a year."""


class Recipient(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver of conversions: an ad network, or a partner."""

    name: str
    rules: Rules
    channels: tuple[str, ...] = ()
    """The clicks of which channels; all if empty."""
    kinds: tuple[str, ...] = (PURCHASE,)
    """The orders of which kinds."""
    model: str | None = None
    """Whose credit; None is the model of the export."""
    client_id: str | None = None
    """The only client whose orders it gets; None is every client."""


class Conversion(Recipient, frozen=True, kw_only=True):
    """A kind of conversion at an ad network, which counts each kind by itself."""

    network: Network
    called: str
    """Meta's name of the event, or the name of the conversion action in Google Ads."""


def conversion(network: Network, called: str, kind: str = PURCHASE) -> Conversion:
    """The conversions of one kind of orders.

    >>> conversion(Network.META, "Purchase").name, conversion(Network.META, "Lead", "lead").name
    ('meta', 'meta.lead')
    """
    rules = GOOGLE if network is Network.GOOGLE else META
    name = str(network) if kind == PURCHASE else f"{network}.{kind}"
    return Conversion(name=name, rules=rules, channels=(network,), kinds=(kind,), network=network, called=called)


def network_of(name: str) -> str:
    """The network of a recipient with this name; of a partner, its name.

    >>> network_of("meta.lead"), network_of("affiliate")
    ('meta', 'affiliate')
    """
    return name.partition(".")[0]


def kind_of(name: str) -> str:
    """The kind of orders of a network's recipient with this name.

    >>> kind_of("meta.lead"), kind_of("meta")
    ('lead', 'purchase')
    """
    return name.partition(".")[2] or PURCHASE


Key = tuple[str, str]
"""An order and a click of one client."""


class Credited(msgspec.Struct, frozen=True):
    """What a model gives a click of an order, as the latest result has it."""

    client_id: str
    order_id: str
    click_id: str
    placed_ms: int
    click_ms: int
    value_minor: int
    """Without what was refunded."""
    currency: str
    is_free: bool = False
    """The order is worth nothing by itself, as many leads are, and the model credits the click with it."""

    @property
    def key(self) -> Key:
        return self.order_id, self.click_id


class Upload(msgspec.Struct, frozen=True):
    """One upload, past or to come."""

    kind: Kind
    client_id: str
    order_id: str
    click_id: str
    value_minor: int
    """0 of a retraction."""
    currency: str
    conversion_ms: int
    """When the order was placed, as the conversion said."""
    exported_ms: int = 0
    name: str = ""
    """What the network calls the conversion: see `name`."""

    @property
    def key(self) -> Key:
        return self.order_id, self.click_id


T = TypeVar("T", Credited, Upload)


def name(order_id: str, nth: int) -> str:
    """What a network calls the `nth` conversion (from 0) of an order: its order id, or event id.

    The first has the order's own, so that it meets the one of a tag on the shop's page. Further ones, of models that
    credit several clicks, need another: of two with one name, networks keep one. If another order's id is this name,
    `Memory` takes the next.

    >>> name("A-1", 0), name("A-1", 1)
    ('A-1', 'A-1#2')
    """
    return order_id if nth == 0 else f"{order_id}#{nth + 1}"


def decide(credit: Credited | None, told: Upload | None, rules: Rules, now_ms: int) -> Upload | Fate:
    """The next upload of a credit, given the last one; None for a credit that is not there (any more)."""
    value_minor = 0 if credit is None else credit.value_minor
    counts = credit is not None and (value_minor != 0 or credit.is_free)
    if told is None:
        if credit is None or not counts:
            return Fate.NO_VALUE
        if now_ms - credit.click_ms > rules.click_age_ms_max or now_ms - credit.placed_ms > rules.conversion_age_ms_max:
            return Fate.TOO_OLD
        if now_ms - credit.click_ms < rules.hold_ms or now_ms - credit.placed_ms < rules.order_hold_ms:
            return Fate.HELD
        return Upload(Kind.CONVERSION, credit.client_id, *credit.key, value_minor, credit.currency, credit.placed_ms)
    if told.kind is Kind.RETRACT:
        return Fate.RETRACTED if counts else Fate.TOLD
    currency = told.currency if credit is None or not counts else credit.currency
    if counts and (value_minor, currency) == (told.value_minor, told.currency):
        return Fate.TOLD
    if rules.adjustment_age_ms_max is None:
        return Fate.NOT_ADJUSTABLE
    if now_ms - told.conversion_ms > rules.adjustment_age_ms_max:
        return Fate.TOO_OLD
    kind = Kind.RESTATE if counts else Kind.RETRACT
    return Upload(kind, told.client_id, *told.key, value_minor, currency, told.conversion_ms, name=told.name)


class Memory:
    """A network's memory of one client's orders."""

    def __init__(self, uploads: Iterable[Upload] = ()) -> None:
        """`uploads` in any order, each with the time of its export; an adjustment without its conversion is no news."""
        self.last: dict[Key, Upload] = {}
        """The last upload of each credit."""
        self._conversions: Counter[str] = Counter()
        self._names: set[str] = set()
        for each in sorted(uploads, key=lambda upload: (upload.exported_ms, upload.click_id, upload.order_id)):
            if each.kind is Kind.CONVERSION:
                self._note(each)
            elif each.key in self.last:
                self.last[each.key] = replace(each, name=self.last[each.key].name)

    def named(self, conversions: Iterable[Upload]) -> list[Upload]:
        """New conversions with their names, in the order in which a memory of them would give the same."""
        return [self._note(each) for each in sorted(conversions, key=lambda upload: (upload.click_id, upload.order_id))]

    def _note(self, conversion: Upload) -> Upload:
        order_id = conversion.order_id
        nth = self._conversions[order_id]
        while (called := name(order_id, nth)) in self._names:
            nth += 1
        self._conversions[order_id] = nth + 1
        self._names.add(called)
        self.last[conversion.key] = replace(conversion, name=called)
        return self.last[conversion.key]


@dataclass(slots=True)
class Plan:
    """What a network is to be told of one client's orders."""

    conversions: list[Upload] = field(default_factory=list)
    """Without their names."""
    adjustments: list[Upload] = field(default_factory=list)
    fates: Counter[Fate] = field(default_factory=Counter)


def plan(
    credits: Iterable[Credited],  # noqa: A002 (there is no better word)
    memory: Memory,
    orders: Container[str],
    rules: Rules,
    now_ms: int,
) -> Plan:
    """The uploads to make. `credits` are all those of orders that `rules` still lets one speak of.

    `orders` are the ids of those that the result has, whatever they are credited to: of one that is not kept any more,
    nothing is known that a network should be told.
    """
    made = Plan()
    seen: set[Key] = set()

    def add(credit: Credited | None, told: Upload | None) -> None:
        decided = decide(credit, told, rules, now_ms)
        if isinstance(decided, Fate):
            made.fates[decided] += 1
        else:
            (made.conversions if decided.kind is Kind.CONVERSION else made.adjustments).append(decided)

    for credit in credits:
        seen.add(credit.key)
        add(credit, memory.last.get(credit.key))
    for key, told in memory.last.items():
        # Older ones were left out of the credits, too.
        if (
            key not in seen
            and told.order_id in orders
            and now_ms - told.conversion_ms <= (rules.adjustment_age_ms_max or rules.conversion_age_ms_max)
        ):
            add(None, told)
    return made


def by_client(each: Iterable[T]) -> dict[str, list[T]]:
    """Credits or uploads by their client."""
    found: dict[str, list[T]] = defaultdict(list)
    for one in each:
        found[one.client_id].append(one)
    return found

"""A cost: what was paid for an ad, or for a whole channel, on one day.

Never does I/O, never repairs, never uses a float. Invariants: a row is a `Cost` or has every fault told; money is in
minor units of its own currency; of one key (all but the amount and its currency) the cost that was imported last
counts, so one import has a key once.

>>> given = {"client_id": "c", "date": "2026-11-20", "channel": "google", "amount": "1,5", "currency": "EUR"}
>>> judge(given, date(2026, 11, 21))[0].message
'`1,5` is no amount; give digits, with at most one point: `123.00`.'
"""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

import msgspec

from clickclock.attribution.orders.amendment import Admit, everyone
from clickclock.attribution.orders.order_fields import Fault, Fields, Reason

FIELDS: Final = ("client_id", "day", "date", "channel", "campaign", "ad_set", "ad", "amount", "currency")
_CREDIT_NOTE: Final = "Subtract what a network paid back from the cost of its day, and import that."
DAY_MIN: Final = date(2001, 9, 9)
"""As far back as clicks and orders go."""
AHEAD_MAX: Final = timedelta(days=1)
"""Where it is tomorrow already."""


class Cost(msgspec.Struct, frozen=True):
    """One cost. None means all: without an ad, the cost is that of the whole ad set."""

    client_id: str
    day: date
    """In the account's time zone."""
    channel: str
    campaign: str | None
    ad_set: str | None
    ad: str | None
    amount_minor: int
    currency: str

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the cost: of several imports with one key, the last counts."""
        return self.client_id, self.day, self.channel, self.campaign, self.ad_set, self.ad


def judge(given: Mapping[str, Any], today: date, admit: Admit = everyone) -> Cost | tuple[Fault, ...]:
    """The cost that these fields say, or every reason why they say none. `today` is in UTC."""
    fields = Fields(given, FIELDS)
    client_id = fields.id("client_id", required=True)
    refusal = None if client_id is None else admit(client_id)
    if refusal is not None:
        fields.faults.append(refusal)
    day = _day(fields, today)
    channel = fields.text("channel", required=True)
    campaign, ad_set, ad = (fields.id(name, is_name=True) for name in ("campaign", "ad_set", "ad"))
    currency = fields.currency("currency")
    amount_minor = fields.minor("amount", currency, required=True, if_negative=_CREDIT_NOTE)
    fields.refuse_unknown()
    # A field that is None here has its fault; the type checker cannot know.
    if fields.faults or client_id is None or day is None or channel is None or currency is None or amount_minor is None:
        return tuple(fields.faults)
    return Cost(client_id, day, channel, campaign, ad_set, ad, amount_minor, currency)


def _day(fields: Fields, today: date) -> date | None:
    name = "day" if "day" in fields.given or "date" not in fields.given else "date"
    if {"day", "date"} <= fields.given.keys():
        fields.fault("date", "The day is there twice; leave this one out.", Reason.UNKNOWN_FIELD)
    text = fields.text(name, required=True)
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        fields.fault(name, "Give a day such as 2026-11-20.", Reason.BAD_EVENT_TIME)
        return None
    if not DAY_MIN <= day <= today + AHEAD_MAX:
        fields.fault(name, f"Give a day from {DAY_MIN} until today.", Reason.BAD_EVENT_TIME)
        return None
    return day

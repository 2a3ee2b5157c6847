"""Postbacks: the calls that tell a partner of the orders that its clicks earned.

Never does I/O, and holds no address: a file has the values, and the settings say what a call is made of. Invariants: a
postback has an id of its own, the same however often it is sent, and again after a restore; no call is made where a
value that the partner asks for is missing.

>>> partner = Partner(name="affiliate", rules=rules(), fields=("subid", "pub"), required=("subid",))
>>> click_values(partner, {"other": [("subid", "x")]}), click_values(partner, {"other": [("pub", "7")]})
({'subid': 'x'}, None)
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks.absent import present
from clickclock.attribution.orders.money import to_text
from clickclock.attribution.uploads.upload import Key, Recipient, Rules, Upload
from clickclock.foundation.instant import DAY_MS, HOUR_MS, instant_of, ms_of
from clickclock.foundation.record import rfc3339

POSTBACKS_MAX: Final = 10_000
"""Of one file."""
CHANGES_MS: Final = 120 * DAY_MS
"""From the order to a change that a partner is called about; longer than an order can be held."""
CLICK_AGE_MS_MAX: Final = 366 * DAY_MS
"""No click of a journey is older."""
MS_PER_S: Final = 1000


class Partner(Recipient, frozen=True, kw_only=True):
    """Somebody that is called for each order."""

    fields: tuple[str, ...] = ()
    """The parameters of the click that the templates name."""
    required: tuple[str, ...] = ()
    """Those without which no call is made."""


class Postback(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one call says."""

    id: str
    kind: str
    client_id: str
    order_id: str
    click_id: str
    credit: str
    """The amount that the model gives the click, without what was refunded, with the digits of its currency."""
    currency: str
    model: str
    ordered_ms: int
    clicked_ms: int
    exported_ms: int
    click: Mapping[str, str]
    """Parameters of the click, as far as the templates name them and the click has them."""

    def values(self) -> dict[str, str]:
        """The values by their names in templates."""
        return {
            "postback_id": self.id,
            "kind": self.kind,
            "client_id": self.client_id,
            "order_id": self.order_id,
            "click_id": self.click_id,
            "credit": self.credit,
            "currency": self.currency,
            "model": self.model,
            "ordered_at": rfc3339(instant_of(self.ordered_ms)),
            "ordered_s": str(self.ordered_ms // MS_PER_S),
            "clicked_at": rfc3339(instant_of(self.clicked_ms)),
            "clicked_s": str(self.clicked_ms // MS_PER_S),
            **{f"click.{name}": value for name, value in self.click.items()},
        }


class _File(msgspec.Struct):
    """A file of postbacks."""

    data: list[Postback]


def rules(hold_hours: int = 0, age_days: int = 7, *, with_changes: bool = False) -> Rules:
    """When a partner is called: so long after the order at least, and so many days later at most."""
    hold_ms = hold_hours * HOUR_MS
    adjustment_age_ms_max = CHANGES_MS if with_changes else None
    return Rules(0, CLICK_AGE_MS_MAX, hold_ms + age_days * DAY_MS, adjustment_age_ms_max, order_hold_ms=hold_ms)


def click_values(partner: Partner, row: Mapping[str, Any]) -> dict[str, str] | None:
    """The parameters of a click, a row of the lake, that the partner asks for; None if a required one is missing."""
    parameters = {**dict(row["other"] or ()), **{name: row[name] for name in partner.fields if name in row}}
    values = {name: value for name in partner.fields if (value := present(parameters, name)) is not None}
    return values if values.keys() >= set(partner.required) else None


def postbacks(
    partner: Partner,
    uploads: Iterable[Upload],
    clicks: Mapping[str, Mapping[str, Any]],
    model: str,
    exported_ms: int,
    before: Mapping[Key, Upload],
) -> bytes:
    """A file of calls. `clicks` are rows of the lake, by the ids of the clicks, each with what the partner asks for.

    `before` are the uploads that these change.
    """
    made = []
    for each in uploads:
        row = clicks[each.click_id]
        made.append(
            Postback(
                id=_id(partner, each, before.get(each.key)),
                kind=each.kind,
                client_id=each.client_id,
                order_id=each.order_id,
                click_id=each.click_id,
                credit=to_text(each.value_minor, each.currency),
                currency=each.currency,
                model=model,
                ordered_ms=each.conversion_ms,
                clicked_ms=ms_of(row["event_time"]),
                exported_ms=exported_ms,
                click=click_values(partner, row) or {},
            )
        )
    return msgspec.json.encode(_File(made))


def _id(partner: Partner, upload: Upload, before: Upload | None) -> str:
    """Nobody can guess what it was made of: a click's id is random."""
    since_ms = 0 if before is None else before.exported_ms
    facts = (partner.name, upload.client_id, *upload.key, upload.kind, str(upload.value_minor), str(since_ms))
    return blake2b("\x1f".join(facts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def read(content: bytes) -> Sequence[Postback]:
    """The calls of a file."""
    return msgspec.json.decode(content, type=_File).data

"""A list of orders of a result version, page by page, and the paths that led to them: what is asked and answered.

Never reads the lake. Invariants: pages that follow each other are of one version and of the same filters; a path's
orders, a row's orders in a report and the orders of a list with the same filters are the same orders.

>>> asked = read_orders({"clientId": ["shop-1"], "campaign": [""], "limit": ["2"]})
>>> asked.filters.client_id, asked.filters.campaign, asked.limit, asked.after
('shop-1', '', 2, None)
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

import msgspec

from clickclock.attribution.crediting.journey import Reason
from clickclock.attribution.orders.amendment import KIND
from clickclock.attribution.orders.money import to_text
from clickclock.attribution.orders.order_fields import word_of
from clickclock.attribution.reporting.parameters import (
    TEXT_CHARS_MAX,
    Parameters,
    currency_of,
    day_of,
    flag_of,
    member_of,
    number_of,
    text_of,
    version_of,
)
from clickclock.foundation.errors import Fault
from clickclock.foundation.record import rfc3339

LIMIT: Final = 50
LIMIT_MAX: Final = 200
PATHS: Final = 20
PATHS_MAX: Final = 1000
STEPS_SHOWN_MAX: Final = 50
"""Channels of an order's path that are listed; `touchpoints` counts all."""
STEPS_MAX: Final = 10
"""Orders with more touchpoints than that are counted together."""
LAGS_HOURS: Final = (1, 6, 24, 72, 168, 336, 720)
"""Upper ends of the times from the first touchpoint to the order; later ones are counted together."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CURSOR_CHARS_MAX: Final = 4096
_OF_TOUCHPOINT: Final = {"channel": "channel", "campaign": "campaign", "ad_set": "adSet", "ad": "ad"}
_OF_ORDER: Final = {"client_id": "clientId", "seller_id": "sellerId"}

Row = Mapping[str, Any]


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Which orders. An empty text is what has no name: orders without a touchpoint, touchpoints without a campaign."""

    client_id: str | None = None
    within: tuple[str, ...] | None = None
    """The clients whose orders may be seen, None for all."""
    seller_id: str | None = None
    channel: str | None = None
    campaign: str | None = None
    ad_set: str | None = None
    ad: str | None = None
    currency: str | None = None
    since: date | None = None
    until: date | None = None
    """The last day."""
    is_credited: bool | None = None
    kind: str | None = None
    """What the customer did."""
    reason: Reason | None = None
    """Why an order is credited to nobody."""

    @property
    def of_order(self) -> dict[str, str]:
        """What an order has to have, by column."""
        given = {"client_id": self.client_id, "seller_id": self.seller_id, "currency": self.currency}
        given[KIND] = self.kind
        given["reason"] = None if self.reason is None else self.reason.value
        return {name: value for name, value in given.items() if value is not None}

    @property
    def of_touchpoint(self) -> dict[str, str]:
        """What one of its touchpoints has to have, by column."""
        given = {name: getattr(self, name) for name in _OF_TOUCHPOINT}
        return {name: value for name, value in given.items() if value is not None}


class After(msgspec.Struct, frozen=True, array_like=True):
    """The last order of the page before, and of which list it was."""

    version: int
    placed_us: int
    client_id: str
    order_id: str
    filters: str

    @property
    def placed_at(self) -> datetime:
        """When that order was placed."""
        return _EPOCH + timedelta(microseconds=self.placed_us)


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """A page of orders, latest first."""

    filters: Filters
    models: tuple[str, ...] = ()
    version: int | None = None
    limit: int = LIMIT
    after: After | None = None

    def cursor(self, version: int, last: Row) -> str:
        """Where the page behind `last` begins."""
        placed_us = (last["placed_at"] - _EPOCH) // timedelta(microseconds=1)
        after = After(version, placed_us, last["client_id"], last["order_id"], _digest(self))
        return urlsafe_b64encode(msgspec.json.encode(after)).decode().rstrip("=")


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """The commonest paths."""

    filters: Filters
    version: int | None = None
    limit: int = PATHS


def read_orders(given: Mapping[str, Sequence[str]]) -> Orders:
    """The question in the parameters. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    asked = Orders(
        filters=_filters(parameters),
        models=parameters.names("model"),
        version=parameters.one("version", version_of),
        limit=parameters.one("limit", number_of(1, LIMIT_MAX)) or LIMIT,
    )
    after = parameters.one("cursor", _after_of)
    is_other = after is not None and (after.filters != _digest(asked) or asked.version not in {None, after.version})
    if is_other and not parameters.faults:
        parameters.faults.append(Fault("cursor", _FOREIGN))
    parameters.finish()
    return asked if after is None else msgspec.structs.replace(asked, after=after, version=after.version)


def read_paths(given: Mapping[str, Sequence[str]]) -> Paths:
    """The question in the parameters. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    asked = Paths(
        filters=_filters(parameters),
        version=parameters.one("version", version_of),
        limit=parameters.one("limit", number_of(1, PATHS_MAX)) or PATHS,
    )
    parameters.finish()
    return asked


def order_wire(rows: Sequence[Row], models: Sequence[str]) -> dict[str, Any]:
    """An order of a list, from its rows of credits, in the order of their places."""
    first = rows[0]
    currency = first["currency"]
    steps = [row["channel"] for row in rows if row["place"]]
    return {
        "clientId": first["client_id"],
        "orderId": first["order_id"],
        "placedAt": rfc3339(first["placed_at"]),
        "day": first["order_day"].isoformat(),
        "currency": currency,
        "amount": to_text(first["amount_minor"], currency),
        "refunded": to_text(first["refunded_minor"], currency),
        "status": first["status"],
        "sellerId": first["seller_id"],
        "kind": first[KIND],
        "reason": first["reason"],
        "touchpoints": len(steps),
        "path": steps[:STEPS_SHOWN_MAX],
        "credits": {model: _by_channel(rows, model, currency) for model in models},
    }


def paths_wire(paths: Iterable[Row]) -> list[dict[str, Any]]:
    """Paths with their orders, and what was paid for these."""
    return [
        {
            "path": list(row["path"]),
            "currency": row["currency"],
            "orders": row["orders"],
            "revenue": to_text(int(row["revenue"]), row["currency"]),
            "hours": None if row["hours"] is None else round(row["hours"], 2),
        }
        for row in paths
    ]


def counted(found: Iterable[Row], bounds: Sequence[int]) -> list[dict[str, int | None]]:
    """How many orders fall at or below each bound and above the one before; None is the bound of all others."""
    counts = {row["bucket"]: row["orders"] for row in found}
    return [{"upTo": bound, "orders": counts.get(place, 0)} for place, bound in enumerate((*bounds, None))]


def _by_channel(rows: Sequence[Row], model: str, currency: str) -> dict[str, str]:
    parts: dict[str, int] = {}
    for row in rows:
        if row["place"]:
            parts[row["channel"]] = parts.get(row["channel"], 0) + row[f"{model}_credit"]
    return {channel: to_text(minor, currency) for channel, minor in parts.items()}


def _filters(parameters: Parameters) -> Filters:
    told: dict[str, Any] = {name: parameters.one(wire, text_of) for name, wire in _OF_ORDER.items()}
    told |= {name: parameters.one(wire, _name_of) for name, wire in _OF_TOUCHPOINT.items()}
    filters = Filters(
        **told,
        kind=parameters.one("kind", word_of),
        currency=parameters.one("currency", currency_of),
        since=parameters.one("from", day_of),
        until=parameters.one("to", day_of),
        is_credited=parameters.one("credited", flag_of),
        reason=parameters.one("reason", member_of(Reason)),
    )
    if filters.since and filters.until and filters.since > filters.until:
        parameters.faults.append(Fault("from", f"This is after the last day, {filters.until}; give an earlier day."))
    return filters


_FOREIGN: Final = "The cursor is not from this list with these filters; begin again without a cursor."


def _after_of(text: str) -> After:
    try:
        raw = urlsafe_b64decode(text[:_CURSOR_CHARS_MAX].encode() + b"==")
        return msgspec.json.decode(raw, type=After)
    except (ValueError, msgspec.MsgspecError):
        raise ValueError(_FOREIGN) from None


def _digest(asked: Orders) -> str:
    """A digest of all that makes the list another one; whoever asks, it is the same."""
    told = msgspec.json.encode([msgspec.structs.replace(asked.filters, within=None), asked.models])
    return blake2b(told, digest_size=8).hexdigest()


def _name_of(given: str) -> str:
    if len(given) > TEXT_CHARS_MAX:
        raise ValueError(f"Give at most {TEXT_CHARS_MAX} characters; nothing is what has no name.")
    return given

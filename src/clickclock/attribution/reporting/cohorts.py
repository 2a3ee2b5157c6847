"""Cohorts: customers by the month and first channel of their first order, and what they ordered in each month since.

Never reads the lake. Invariants: a customer is in one cohort of a client; month 0 is that of the first order;
amounts of two currencies are never added.

>>> read({"clientId": ["shop-1"]}).filters.client_id
'shop-1'
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from clickclock.attribution.orders.money import to_text
from clickclock.attribution.reporting.listing import Filters
from clickclock.attribution.reporting.parameters import Parameters, currency_of, text_of, version_of

MONTHS_OF_YEAR = 12


class Cohorts(msgspec.Struct, frozen=True, kw_only=True):
    """Which cohorts."""

    filters: Filters
    currency: str | None = None
    """The one to show; the first order of a customer may be in another."""
    version: int | None = None


def read(given: Mapping[str, Sequence[str]]) -> Cohorts:
    """The question in the parameters. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    asked = Cohorts(
        filters=Filters(client_id=parameters.one("clientId", text_of)),
        currency=parameters.one("currency", currency_of),
        version=parameters.one("version", version_of),
    )
    parameters.finish()
    return asked


def wire(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows as JSON, by first month, channel, currency and month."""
    told = [
        {
            "firstMonth": row["first_month"],
            "channel": row["first_channel"],
            "currency": row["currency"],
            "month": row["month"],
            "customers": row["customers"],
            "orders": row["orders"],
            "revenue": to_text(int(row["revenue"]), row["currency"]),
            "refunds": to_text(int(row["refunds"]), row["currency"]),
        }
        for row in rows
    ]
    return sorted(
        told,
        key=lambda row: (row["firstMonth"], row["channel"] is None, row["channel"], row["currency"], row["month"]),
    )

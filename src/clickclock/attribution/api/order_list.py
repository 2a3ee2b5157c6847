"""`GET /attribution/orders`, `/attribution/paths` and `/attribution/cohorts`: orders, what led to them, what followed.

Parse, call, render. Never counts anything. Invariant: a page says in which version the next one is.

>>> read_orders({"limit": ["5"]}).limit
5
"""

from typing import TYPE_CHECKING

from clickclock.attribution.reporting.cohorts import Cohorts
from clickclock.attribution.reporting.cohorts import read as read_cohorts
from clickclock.attribution.reporting.listing import Orders, Paths, read_orders, read_paths

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply

__all__ = ["answer_cohorts", "answer_orders", "answer_paths", "read_cohorts", "read_orders", "read_paths"]


def answer_orders(desk: "Desk", asked: Orders) -> "Reply":
    """A page of orders."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.lister import Lister  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)

    return reply({"status": "success", **Lister(desk.lake, desk.engine).orders(asked)})


def answer_paths(desk: "Desk", asked: Paths) -> "Reply":
    """The commonest paths."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.lister import Lister  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)

    return reply({"status": "success", **Lister(desk.lake, desk.engine).paths(asked)})


def answer_cohorts(desk: "Desk", asked: Cohorts) -> "Reply":
    """What customers ordered in each month since their first order."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.lister import Lister  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)

    return reply({"status": "success", **Lister(desk.lake, desk.engine).cohorts(asked)})

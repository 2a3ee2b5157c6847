"""`GET /attribution/orders` and `/attribution/paths`: the orders of a result version, and the paths that led to them.

Parse, call, render. Never counts anything. Invariant: a page says in which version the next one is.

>>> read_orders({"limit": ["5"]}).limit
5
"""

from typing import TYPE_CHECKING

from clickclock.attribution.reporting.listing import Orders, Paths, read_orders, read_paths

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply

__all__ = ["answer_orders", "answer_paths", "read_orders", "read_paths"]


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

"""`GET /attribution/funnel`: what came in a span of time, minute by minute, and how much of it earned credit.

Parse, call, render. Never counts anything. Invariant: the buckets sum up to what is received.

>>> read({"bucket": ["hour"]}).width.value
'hour'
"""

from typing import TYPE_CHECKING

from clickclock.attribution.reporting.funnel import Asked, read

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply

__all__ = ["answer", "read"]


def answer(desk: "Desk", asked: Asked) -> "Reply":
    """The funnel."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.tallier import Tallier  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)

    counted, window = Tallier(desk.lake, desk.journals).funnel(asked, desk.clock.now())
    return reply({"status": "success", "funnel": counted.wire(asked, window)})

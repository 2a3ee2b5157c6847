"""`GET /attribution/clicks`: the last clicks, rejections and orders at once, as the stream would have shown them.

Parse, call, render. Never judges. Invariant: newest first, each once.

>>> read({"limit": ["5"], "kind": ["click"]}).limit
5
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from clickclock.attribution.registering.recent import LIMIT, LIMIT_MAX, Last
from clickclock.attribution.registering.sighting import Seen
from clickclock.attribution.reporting.parameters import Parameters, number_of, text_of

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply


def read(given: Mapping[str, Sequence[str]]) -> Last:
    """The question in the parameters. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    asked = Last(
        limit=parameters.one("limit", number_of(1, LIMIT_MAX)) or LIMIT,
        kinds=parameters.several("kind", Seen, "kind", tuple(Seen)),
        client_id=parameters.one("clientId", text_of),
    )
    parameters.finish()
    return asked


def answer(desk: "Desk", asked: Last) -> "Reply":
    """The newest."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.recaller import Recaller  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)

    found = Recaller(desk.lake, desk.journals).last(asked, desk.clock.now())
    return reply({"status": "success", "clicks": found})

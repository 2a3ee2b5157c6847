"""`GET /attribution/versions`: the result versions that there are, latest first.

Parse, call, render. Never reads a credit. Invariant: what is told of a version never changes.

>>> read({"limit": ["5"]})
5
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from clickclock.attribution.reporting.parameters import Parameters, number_of
from clickclock.attribution.reporting.result import told

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply

LIMIT: Final = 100
LIMIT_MAX: Final = 1000


def read(given: Mapping[str, Sequence[str]]) -> int:
    """How many to tell. Raises `Malformed`."""
    parameters = Parameters(given)
    limit = parameters.one("limit", number_of(1, LIMIT_MAX))
    parameters.finish()
    return limit or LIMIT


def answer(desk: "Desk", limit: int) -> "Reply":
    """The latest versions."""
    # Only the process that answers gets here; the service has no use for what this loads.
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)

    results = desk.lake.results()
    return reply({"status": "success", "versions": [told(result) for result in reversed(results[-limit:])]})

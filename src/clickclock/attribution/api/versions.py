"""`GET /attribution/versions`: the result versions that there are, latest first.

Parse, call, render. Never reads a credit. Invariant: the facts of a version never change.

>>> read({"limit": ["5"]}).limit
5
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from clickclock.attribution.reporting.parameters import Parameters, number_of
from clickclock.attribution.reporting.result import told

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply

LIMIT: Final = 100
LIMIT_MAX: Final = 1000


class Wanted(msgspec.Struct, frozen=True):
    """How many to tell, and the clients whose settings may be seen, None for all."""

    limit: int
    within: tuple[str, ...] | None = None


def read(given: Mapping[str, Sequence[str]]) -> Wanted:
    """Read the question. Raises `Malformed`."""
    parameters = Parameters(given)
    limit = parameters.one("limit", number_of(1, LIMIT_MAX))
    parameters.finish()
    return Wanted(limit or LIMIT)


def answer(desk: "Desk", wanted: Wanted) -> "Reply":
    """The latest versions."""
    # Only the process that answers gets here; the service has no use for what this loads.
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)

    latest = reversed(desk.lake.results()[-wanted.limit :])
    versions = [told(result, wanted.within) for result in latest]
    return reply({"status": "success", "versions": versions})

"""`GET /attribution/diff`: every order that differs between two result versions, and why.

Parse, call, render. Never compares anything. Invariant: it is the same comparison as the command line's.

>>> read({"from": ["3"], "to": ["4"]})
Wanted(before=3, after=4, client_id=None, limit=1000, within=None)
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from clickclock.attribution.reporting.difference import LIMIT, LIMIT_MAX, document
from clickclock.attribution.reporting.parameters import Parameters, number_of, text_of, version_of

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply


class Wanted(msgspec.Struct, frozen=True):
    """Which versions, of which client if of one alone, and of how many orders to tell why they differ."""

    before: int
    after: int
    client_id: str | None
    limit: int
    within: tuple[str, ...] | None = None
    """The clients that may be seen, None for all."""


def read(given: Mapping[str, Sequence[str]]) -> Wanted:
    """Read the question. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    before = parameters.one("from", version_of, required=True)
    after = parameters.one("to", version_of, required=True)
    client_id = parameters.one("clientId", text_of)
    limit = parameters.one("limit", number_of(1, LIMIT_MAX))
    parameters.finish()
    assert before is not None
    assert after is not None
    return Wanted(before, after, client_id, limit or LIMIT)


def answer(desk: "Desk", wanted: Wanted) -> "Reply":
    """The comparison."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.comparer import Comparer  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)

    found = Comparer(desk.lake).compare(wanted.before, wanted.after, wanted.client_id, wanted.limit, wanted.within)
    return reply({"status": "success", "diff": document(found)})

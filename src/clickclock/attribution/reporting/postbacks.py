"""Which postbacks somebody asks about.

Never reads any. Invariant: a question is bounded, and refused with all its faults.

>>> read({"orderId": ["A-1"]}).order_id, read({}).limit
('A-1', 100)
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from clickclock.attribution.clicks.whose import Whose
from clickclock.attribution.reporting.parameters import Parameters, member_of, number_of, text_of

LIMIT: Final = 100
LIMIT_MAX: Final = 1000


class State(StrEnum):
    """What became of a postback."""

    WAITING = "waiting"
    """It was not sent yet, or failed and is sent again."""
    TAKEN = "taken"
    """The partner took it."""
    REFUSED = "refused"
    """The partner took others and refused this one."""
    GAVE_UP = "gave_up"
    """It failed for too long."""


class Calls(Whose, frozen=True, kw_only=True):
    """Which postbacks."""

    partner: str | None = None
    order_id: str | None = None
    state: State | None = None
    limit: int = LIMIT


def read(given: Mapping[str, Sequence[str]]) -> Calls:
    """The question in the parameters. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    asked = Calls(
        partner=parameters.one("partner", text_of),
        client_id=parameters.one("clientId", text_of),
        order_id=parameters.one("orderId", text_of),
        state=parameters.one("state", member_of(State)),
        limit=parameters.one("limit", number_of(1, LIMIT_MAX)) or LIMIT,
    )
    parameters.finish()
    return asked

"""`GET /attribution/order`: the proof of one order's credit.

Parse, call, render. Never proves anything. Invariant: it is the same proof as the command line's.

>>> read({"clientId": ["shop"], "orderId": ["7"]})
Wanted(client_id='shop', order_id='7', version=None)
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from clickclock.attribution.reporting.parameters import Parameters, text_of, version_of

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply


class Wanted(msgspec.Struct, frozen=True):
    """Which order, and of which version: the latest if none is given."""

    client_id: str
    order_id: str
    version: int | None


def read(given: Mapping[str, Sequence[str]]) -> Wanted:
    """Read the question. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    client_id = parameters.one("clientId", text_of, required=True)
    order_id = parameters.one("orderId", text_of, required=True)
    version = parameters.one("version", version_of)
    parameters.finish()
    assert client_id is not None
    assert order_id is not None
    return Wanted(client_id, order_id, version)


def answer(desk: "Desk", wanted: Wanted) -> "Reply":
    """The proof."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.prover import Prover  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import reply  # noqa: PLC0415 (see the line above)

    proof = Prover(desk.lake, desk.models).prove(wanted.client_id, wanted.order_id, wanted.version)
    return reply({"status": "success", "proof": proof})

"""Proofs of credit from the lake of a configuration.

Never changes the lake. Invariant: what is proven is what is stored, or the proof says where it is not.

>>> prove(load(None, {}, {}), "shop", "7")["differs"]   # doctest: +SKIP
[]
"""

from typing import Any

from clickclock.app.lake import docket_of, found_lake
from clickclock.app.models import known_models
from clickclock.attribution.agents.prover import Prover
from clickclock.foundation.config import Config


def prove(config: Config, client_id: str, order_id: str, version: int | None = None) -> dict[str, Any]:
    """The proof of one order, as JSON; see `Prover.prove`."""
    with docket_of(config).explaining():
        return Prover(found_lake(config), known_models()).prove(client_id, order_id, version)

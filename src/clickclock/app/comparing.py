"""Comparisons of result versions in the lake of a configuration.

Never changes the lake. Invariant: the command line tells what the service tells.

>>> compare(load(None, {}, {}), 1, 2, None, 100)["differing"]   # doctest: +SKIP
12
"""

from typing import Any

from clickclock.app.lake import docket_of, found_lake
from clickclock.attribution.agents.comparer import Comparer
from clickclock.attribution.reporting.difference import document
from clickclock.foundation.config import Config


def compare(config: Config, before: int, after: int, client_id: str | None, limit: int) -> dict[str, Any]:
    """What differs between two versions, as JSON; see `Comparer.compare`."""
    with docket_of(config).explaining():
        return document(Comparer(found_lake(config)).compare(before, after, client_id, limit))

"""Which of the files for ad networks somebody asks about.

Never reads any. Invariant: a question is bounded, and refused with all its faults.

>>> read({"clientId": ["shop-1"]}).limit
100
"""

from collections.abc import Mapping, Sequence
from typing import Final

from clickclock.attribution.clicks.whose import Whose
from clickclock.attribution.reporting.parameters import Parameters, number_of, text_of
from clickclock.attribution.uploads.upload import Network

LIMIT: Final = 100
LIMIT_MAX: Final = 1000


class Files(Whose, frozen=True, kw_only=True):
    """Which files."""

    networks: tuple[Network, ...] = tuple(Network)
    limit: int = LIMIT


def read(given: Mapping[str, Sequence[str]]) -> Files:
    """The question in the parameters. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    asked = Files(
        networks=parameters.several("network", Network, "network", tuple(Network)),
        client_id=parameters.one("clientId", text_of),
        limit=parameters.one("limit", number_of(1, LIMIT_MAX)) or LIMIT,
    )
    parameters.finish()
    return asked

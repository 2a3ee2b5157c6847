"""The desk at which questions over HTTP are answered: opened in a process of its own, from the configuration.

Never opened by the service itself, which only says where to find this. Invariant: to know of it loads nothing.

>>> open_desk(load(None, {}, {})).lake.url   # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from clickclock.foundation.config import Config

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk


def open_desk(config: Config) -> "Desk":
    """What questions are answered from."""
    # The service hands this function over, and has no use for what it loads.
    from clickclock.app.reporting import desk_of  # noqa: PLC0415 (see the line above)

    return desk_of(config)

"""`clickclock doctor`: what is wrong with an installation, whether its service runs or not, and what to do about it.

Never changes anything. Invariant: what is asked of the service alone loads nothing of what it works with.

>>> [each.check for each in doctor(config, "http://127.0.0.1:8080", {})][:2]   # doctest: +SKIP
['configuration', 'service']
"""

import asyncio
from collections.abc import Mapping

from clickclock.app.doctor.check import Check, Result, unusable
from clickclock.app.doctor.service import Terms, service
from clickclock.foundation.config import Config

__all__ = ["Check", "Result", "Terms", "doctor", "of_service", "unusable"]


def of_service(url: str, terms: Terms | None = None) -> list[Check]:
    """What the service says, and nothing of this machine."""
    return service(url, None, terms).checks


def doctor(config: Config, url: str, environment: Mapping[str, str], terms: Terms | None = None) -> list[Check]:
    """Look at everything."""
    # Here and not at the top: store and lake take long to load, and who asks the service alone has no use for them.
    from clickclock.app.doctor.whole import look  # noqa: PLC0415 (see the line above)

    return asyncio.run(look(config, url, environment, terms))

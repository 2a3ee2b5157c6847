"""Which of the last clicks, rejections and orders somebody asks for.

Never reads any. Invariant: a question is bounded.

>>> Last(limit=5).kinds[0].value
'click'
"""

from typing import Final

from clickclock.attribution.clicks.whose import Whose
from clickclock.attribution.registering.sighting import Seen

LIMIT: Final = 50
LIMIT_MAX: Final = 200


class Last(Whose, frozen=True, kw_only=True):
    """Which of them, and how many at most."""

    limit: int = LIMIT
    kinds: tuple[Seen, ...] = tuple(Seen)

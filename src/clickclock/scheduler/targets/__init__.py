"""The door to those who are told: webhooks and mail.

Never decides what is told or when it is tried again (`notifier.py`). Invariants: where they are and by which secret
they know us comes from the configuration alone, never from a job; `send` ends within `SEND_MAX_S`; whoever got it may
get it again, under the same id, and never another body.

>>> await target.send("0199…", '{"specversion": "1.0", …}', now)     # doctest: +SKIP
"""

from datetime import datetime
from typing import Protocol

from clickclock.foundation.errors import Transient

SEND_MAX_S = 30.0


class Undelivered(Transient):
    """The target was not told; it is tried again."""

    def __init__(self, message: str, *, for_good: bool = False) -> None:
        super().__init__(message)
        self.for_good = for_good
        """It need not be tried again."""


class Target(Protocol):
    """Somebody who can be told."""

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        """Tell the CloudEvent `body`. Raises `Undelivered`, saying why."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...

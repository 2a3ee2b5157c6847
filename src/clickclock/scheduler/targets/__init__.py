"""The door to those who are notified: one contract, any number of kinds.

Never decides who is notified or when it is tried again (`notifier.py`). Invariants: where a target is, and by which
secret it knows us, comes from the configuration alone, never from a job; `send` ends within `SEND_MAX_S`; a target may
get a notification again, under the same id, and never with another body; no error repeats a secret.

>>> await target.send("0199…", '{"specversion": "1.0", …}', now)     # doctest: +SKIP
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from clickclock.foundation.errors import Transient

SEND_MAX_S = 30.0


class Undelivered(Transient):
    """The target was not notified; it is tried again."""

    def __init__(self, message: str, *, for_good: bool = False, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.for_good = for_good
        """It need not be tried again."""
        self.retry_after_s = retry_after_s
        """It is not to be tried again earlier than this, as the target itself says."""


class Target(Protocol):
    """Somebody who can be notified."""

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        """Deliver the CloudEvent `body`, a JSON text; `now` is aware. Raises `Undelivered`, saying why."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class MailServer(msgspec.Struct, frozen=True):
    """Where mail is handed in, and who it is from: the table `[smtp]`."""

    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    username: str | None
    password: str | None
    ca_file: Path | None
    sender: str


class Maker(Protocol):
    """What makes the targets of one kind. A third party names its own in an entry point of its package:

    ```toml
    [project.entry-points."clickclock.targets"]
    matrix = "acme_clickclock:make"
    ```

    ```python
    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")
        room_url: str

    class Room:
        async def send(self, notification_id: str, body: str, now: datetime) -> None: ...
        async def close(self) -> None: ...

    def make(*, name: str, options: Mapping[str, Any], mail_server: MailServer | None) -> Room:
        return Room(Options.model_validate(options).room_url)
    ```

    Then `kind = "matrix"` in a table `[notifications.NAME]` makes one.
    """  # noqa: D415 (the sentence goes on in the example)

    def __call__(self, *, name: str, options: Mapping[str, Any], mail_server: MailServer | None) -> Target:
        """A target. `name` is that of its table, and `options` is all that the table holds beside `kind`.

        `mail_server` is None where the configuration has none. Raises pydantic's `ValidationError`, or `ValueError`
        about the table as a whole, in words that repeat no secret.
        """
        ...

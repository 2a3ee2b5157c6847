"""Webhooks: a CloudEvent by POST, signed as Standard Webhooks has it (standardwebhooks.com).

Never sends another body than the event. Invariant: the signature is over id, time and body, so that what is altered, or
sent again much later, is not believed.

>>> Webhook("https://hooks.example.com", b"k" * 24)   # doctest: +SKIP
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field, SecretStr, field_validator

from clickclock.foundation.record import Settings
from clickclock.foundation.webhook_signature import secret_of, signature
from clickclock.scheduler.targets import MailServer
from clickclock.scheduler.targets.options import HookAddress, SecretFile
from clickclock.scheduler.targets.posting import Poster


class Options(Settings):
    """The table of a webhook."""

    url: HookAddress = Field(repr=False, description="Where to post.")
    secret: SecretFile = Field(alias="secret_file", description="File with the secret: `whsec_` and base64.")

    @field_validator("secret")
    @classmethod
    def _is_a_key(cls, secret: SecretStr) -> SecretStr:
        try:
            secret_of(secret.get_secret_value())
        except ValueError as error:
            raise ValueError(f"the file holds no secret: {error}") from None
        return secret


def make(*, name: str, options: Mapping[str, Any], mail_server: MailServer | None) -> "Webhook":
    """The door's `Maker`."""
    read = Options.model_validate(options)
    return Webhook(read.url, secret_of(read.secret.get_secret_value()))


class Webhook:
    """One address."""

    def __init__(self, url: str, key: bytes) -> None:
        self._key = key
        # A receiver of somebody's own may refuse what it takes a minute later; only 410 is for good.
        self._poster = Poster(url, is_strict=False)

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        timestamp_s = int(now.timestamp())
        headers = {
            "content-type": "application/cloudevents+json; charset=utf-8",
            "webhook-id": notification_id,
            "webhook-timestamp": str(timestamp_s),
            "webhook-signature": signature(self._key, notification_id, timestamp_s, body),
        }
        await self._poster.post(body, headers, now)

    async def close(self) -> None:
        await self._poster.close()

"""Webhooks: a CloudEvent by POST, signed as Standard Webhooks has it (standardwebhooks.com).

Never sends another body than the event. Invariant: the signature is over id, time and body, so that what is altered, or
sent again much later, is not believed.

>>> signature(b"secret", "msg_1", 1674087231, "{}")
'v1,299AHAFlDdA/rU0aTOq+IJEc1vm5uzOXtMuTIv0RYbo='
"""

import base64
import binascii
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field, SecretStr, field_validator

from clickclock.foundation.record import Settings
from clickclock.scheduler.targets import MailServer
from clickclock.scheduler.targets.options import HookAddress, SecretFile
from clickclock.scheduler.targets.posting import Poster

SECRET_PREFIX = "whsec_"  # noqa: S105 (how every secret begins, and none itself)
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64


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


def secret_of(text: str) -> bytes:
    """The key in `whsec_` and base64. Raises `ValueError` with what to do."""
    try:
        key = base64.b64decode(text.strip().removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"it is not {SECRET_PREFIX} and base64") from error
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(
            f"the length of its key is {len(key)}; give {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes, at random"
        )
    return key


def signature(key: bytes, notification_id: str, timestamp_s: int, body: str) -> str:
    """The header `webhook-signature`."""
    digest = hmac.digest(key, f"{notification_id}.{timestamp_s}.{body}".encode(), "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"


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

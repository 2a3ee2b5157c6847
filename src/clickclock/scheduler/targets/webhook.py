"""Webhooks: a CloudEvent by POST, signed as Standard Webhooks has it (standardwebhooks.com).

Never follows a redirect, and never reads more of an answer than it tells of. Invariants: the signature is over id, time
and body, so that what is altered, or sent again much later, is not believed; only 2xx means that it arrived.

>>> signature(b"secret", "msg_1", 1674087231, "{}")
'v1,299AHAFlDdA/rU0aTOq+IJEc1vm5uzOXtMuTIv0RYbo='
"""

import base64
import binascii
import hmac
from datetime import datetime
from urllib.parse import urlsplit

import httpx

from clickclock.scheduler.targets import Undelivered

CONNECT_S, ANSWER_S = 5.0, 15.0
SECRET_PREFIX = "whsec_"  # noqa: S105 (how every secret begins, and none itself)
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64
TOLD_CHARACTERS_MAX = 200
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


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
        self._url = url
        self._key = key
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            follow_redirects=False,
            # A proxy of the company has no way to this machine.
            trust_env=urlsplit(url).hostname not in LOOPBACK,
        )

    async def send(self, notification_id: str, body: str, now: datetime) -> None:
        timestamp_s = int(now.timestamp())
        headers = {
            "content-type": "application/cloudevents+json; charset=utf-8",
            "user-agent": "clickclock",
            "webhook-id": notification_id,
            "webhook-timestamp": str(timestamp_s),
            "webhook-signature": signature(self._key, notification_id, timestamp_s, body),
        }
        try:
            async with self._http.stream("POST", self._url, content=body.encode(), headers=headers) as answer:
                if answer.is_success:
                    return
                said = await _beginning(answer)
        except httpx.TimeoutException as error:
            raise Undelivered(f"The server did not answer in time ({type(error).__name__}).") from error
        except httpx.HTTPError as error:
            raise Undelivered(f"The server cannot be reached: {str(error) or type(error).__name__}.") from error
        if answer.is_redirect:
            raise Undelivered(
                "The server answered with a redirect, which is not followed; configure where it leads to."
            )
        # 410: Standard Webhooks' word for "never again".
        for_good = answer.status_code == httpx.codes.GONE
        raise Undelivered(f"The server answered with status {answer.status_code}{said}.", for_good=for_good)

    async def close(self) -> None:
        await self._http.aclose()


async def _beginning(answer: httpx.Response) -> str:
    """What it says about it, in a few words: the rest is not read."""
    async for piece in answer.aiter_bytes(TOLD_CHARACTERS_MAX):
        words = " ".join(piece.decode("utf-8", "replace").split())[:TOLD_CHARACTERS_MAX]
        return f": {words}" if words.isprintable() and words else ""
    return ""

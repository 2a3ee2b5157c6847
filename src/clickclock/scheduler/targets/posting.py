"""One POST to a server that is notified, and what its answer means.

Never follows a redirect, and never reads more of an answer than it tells of. Invariants: only 2xx means that it
arrived; no sentence repeats a secret, even if the answer does; the time of the next attempt is the server's.

>>> retry_after_s("30", datetime(2026, 11, 20, tzinfo=UTC))
30.0
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isnan
from urllib.parse import urlsplit

import httpx

from clickclock.foundation.reach import is_loopback
from clickclock.scheduler.targets import Undelivered

CONNECT_S, ANSWER_S = 5.0, 15.0
TOLD_CHARACTERS_MAX, READ_BYTES_MAX = 200, 16_384
RETRY_AFTER_S_MAX = 86_400.0
"""A server that asks for longer is asked tomorrow."""
SECRET_CHARACTERS_MIN = 6
"""Shorter parts of an address are words such as `api`, and are no secrets."""
_RETRIED = frozenset({httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_EARLY, httpx.codes.TOO_MANY_REQUESTS})
"""Refusals that say nothing against the request itself."""


class Poster:
    """Posts to one server. `secrets` are never repeated; the address's path is one of them.

    With `is_strict`, a refusal of the request (4xx) is for good: the same request would be refused again.
    """

    def __init__(self, url: str, *, secrets: Sequence[str] = (), is_strict: bool = True) -> None:
        self._url = url
        self._is_strict = is_strict
        parts = urlsplit(url)
        hidden = {*secrets, *re.split(r"[/&=?]", f"{parts.path}?{parts.query}"), parts.path, parts.query}
        self._hidden = sorted((each for each in hidden if len(each) >= SECRET_CHARACTERS_MIN), key=len, reverse=True)
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            follow_redirects=False,
            # A proxy of the company has no way to this machine.
            trust_env=not is_loopback(parts.hostname or ""),
        )

    async def post(self, content: str, headers: Mapping[str, str], now: datetime, *, path: str = "") -> None:
        """Post it, to `path` below the address if given. Raises `Undelivered`."""
        given = {"user-agent": "clickclock", **headers}
        try:
            async with self._http.stream("POST", self._url + path, content=content.encode(), headers=given) as answer:
                if answer.is_success:
                    return
                said = await _beginning(answer)
        except httpx.TimeoutException as error:
            raise Undelivered(f"The server did not answer in time ({type(error).__name__}).") from None
        except httpx.HTTPError as error:
            raise Undelivered(
                f"The server cannot be reached: {self._safe(str(error)) or type(error).__name__}."
            ) from None
        if answer.is_redirect:
            raise Undelivered(
                "The server answered with a redirect, which is not followed; configure where it leads to."
            )
        status = answer.status_code
        # 410: Standard Webhooks' word for "never again".
        is_refusal = self._is_strict and answer.is_client_error and status not in _RETRIED
        raise Undelivered(
            f"The server answered with status {status}{self._words(said)}.",
            for_good=is_refusal or status == httpx.codes.GONE,
            retry_after_s=retry_after_s(answer.headers.get("retry-after"), now),
        )

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()

    def _words(self, said: str) -> str:
        """What the server says about it, in a few words."""
        words = " ".join(self._safe(said).split())[:TOLD_CHARACTERS_MAX]
        return f": {words}" if words.isprintable() and words else ""

    def _safe(self, text: str) -> str:
        for each in self._hidden:
            text = text.replace(each, "…")
        return text


def retry_after_s(header: str | None, now: datetime) -> float:
    """What `Retry-After` says in seconds or as a date, at most `RETRY_AFTER_S_MAX`; 0 if it cannot be read."""
    if header is None:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except ValueError:
            return 0.0
        seconds = ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds()
    return 0.0 if isnan(seconds) else min(max(seconds, 0.0), RETRY_AFTER_S_MAX)


async def _beginning(answer: httpx.Response) -> str:
    """The beginning of an answer: more than is shown, so that no secret in it is cut in half and missed."""
    async for piece in answer.aiter_bytes(READ_BYTES_MAX):
        return piece.decode("utf-8", "replace")
    return ""

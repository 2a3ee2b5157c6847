"""The APIs of ad networks: one request at a time, over HTTPS.

Never retries, never follows a redirect, and never puts a secret into an address, a log or an error. Invariant: whatever
happens on the way is a `Delivery`; a fault of the connection means that the same is sent again.

>>> network = Meta(config)   # doctest: +SKIP
"""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self

import httpx
import msgspec

from clickclock.attribution.uploads import google_request, meta_request
from clickclock.attribution.uploads.delivery import (
    HTTP_OK_MAX,
    Answer,
    Delivery,
    Outcome,
    Request,
    error_of,
    later,
    read,
)
from clickclock.foundation.secret_file import secret
from clickclock.foundation.send_config import GoogleConfig, MetaConfig

CONNECT_S: Final = 5.0
ANSWER_S: Final = 60.0
REFRESH_BEFORE_S: Final = 60.0


class AdNetwork(Protocol):
    """What a sender needs of a network."""

    def requests(self, content: bytes, now_ms: int) -> tuple[Sequence[Request], int]:
        """The requests of a file of ours, and how many of its conversions the network would refuse as too old."""

    def send(self, request: Request) -> Delivery:
        """Send one request."""


class _Api:
    """A connection to one API."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(
            base_url=url, timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S), follow_redirects=False
        )

    def post(self, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
        """Raises `httpx.HTTPError`."""
        content = msgspec.json.encode(body)
        answer = self._http.post(path, content=content, headers={"content-type": "application/json", **(headers or {})})
        return Answer(answer.status_code, answer.headers.get("retry-after"), answer.content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()


class Meta(_Api):
    """The Conversions API, with one dataset."""

    def __init__(self, config: MetaConfig) -> None:
        """Raises `Invalid` if the token cannot be read."""
        self._config = config
        self._token = secret(config.token_file)
        super().__init__(config.api_url)

    def requests(self, content: bytes, now_ms: int) -> tuple[Sequence[Request], int]:
        config = self._config
        return meta_request.requests(content, config.dataset_id, config.api_version, config.test_event_code, now_ms)

    def send(self, request: Request) -> Delivery:
        try:
            answer = self.post(request.path, {**request.body, "access_token": self._token})
        except httpx.HTTPError as error:
            return later(f"Meta cannot be reached: {type(error).__name__}")
        return meta_request.delivery(answer, request.count)


class Google(_Api):
    """The Google Ads API, with one conversion action."""

    def __init__(self, config: GoogleConfig) -> None:
        """Raises `Invalid` if a secret cannot be read."""
        self._config = config
        self._developer_token = secret(config.developer_token_file)
        self._client_secret = secret(config.oauth_client_secret_file)
        self._refresh_token = secret(config.refresh_token_file)
        self._access: tuple[str, float] | None = None
        super().__init__(config.api_url)

    def requests(self, content: bytes, now_ms: int) -> tuple[Sequence[Request], int]:
        config = self._config
        account = (config.customer_id, config.conversion_action_id, config.api_version, config.conversion_action_ids)
        return google_request.requests(content, *account), 0

    def send(self, request: Request) -> Delivery:
        try:
            access = self._access_token()
            if isinstance(access, Delivery):
                return access
            headers = {"authorization": f"Bearer {access}", "developer-token": self._developer_token}
            if self._config.login_customer_id is not None:
                headers["login-customer-id"] = self._config.login_customer_id
            answer = self.post(request.path, dict(request.body), headers)
        except httpx.HTTPError as error:
            return later(f"Google cannot be reached: {type(error).__name__}")
        return google_request.delivery(answer, request.count)

    def _access_token(self) -> str | Delivery:
        """A token that is valid for a while; or why there is none."""
        if self._access is not None and time.monotonic() < self._access[1]:
            return self._access[0]
        given = self._http.post(
            self._config.token_url,
            data={
                "grant_type": "refresh_token",
                "client_id": self._config.oauth_client_id,
                "client_secret": self._client_secret,
                "refresh_token": self._refresh_token,
            },
        )
        said = read(Answer(given.status_code, None, given.content))
        if given.status_code > HTTP_OK_MAX or not isinstance(said.get("access_token"), str):
            sentence = (
                f"Google gives no access token: status {given.status_code}, {said.get('error') or error_of(said)}"
            )
            is_passing = given.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
            return later(sentence) if is_passing else Delivery(Outcome.REFUSED, sentence=sentence)
        until_s = time.monotonic() + float(said.get("expires_in", 3600)) - REFRESH_BEFORE_S
        self._access = said["access_token"], until_s
        return self._access[0]

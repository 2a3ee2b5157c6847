"""A partner's server, called for one postback at a time.

Never retries, never follows a redirect, and never puts an address or a secret into a log or an error: an address may
have a token in it. Invariants: whatever happens on the way is a `Delivery`; only 2xx means that the partner took it.

>>> PartnerServer(config).call(postback, now)   # doctest: +SKIP
Delivery(outcome=<Outcome.TAKEN: 'taken'>, taken=1, refused={}, sentence='', wait_s=0.0)
"""

import contextlib
from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol
from urllib.parse import urlsplit

import httpx

from clickclock.attribution.uploads.delivery import Answer, Delivery, Outcome, later
from clickclock.attribution.uploads.postback import Postback
from clickclock.foundation.call_template import fill, in_address, in_form, in_json
from clickclock.foundation.errors import Invalid
from clickclock.foundation.postback_config import JSON, PostbackConfig
from clickclock.foundation.reach import is_loopback
from clickclock.foundation.secret_file import secret
from clickclock.foundation.webhook_signature import secret_of, signature

CONNECT_S: Final = 5.0
ANSWER_S: Final = 15.0
READ_BYTES: Final = 4096
READS_MAX: Final = 4
"""The rest of a longer answer is not read."""
_OF_SETTINGS: Final = frozenset(
    (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.PROXY_AUTHENTICATION_REQUIRED)
)
"""The partner would answer any other call alike."""
_PASSING: Final = frozenset((httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_EARLY))


class Callee(Protocol):
    """What a sender of postbacks needs of a partner."""

    @property
    def retry_ms(self) -> int:
        """A call that fails is made again for so long."""

    def call(self, postback: Postback, now: datetime) -> Delivery:
        """Call once. A wait in the answer means that nothing else is taken before."""

    def close(self) -> None:
        """Let go of connections."""


class PartnerServer:
    """One partner's server, by a table of the configuration."""

    def __init__(self, config: PostbackConfig) -> None:
        """Raises `Invalid` if a secret cannot be read."""
        self._config = config
        self._token = None if config.token_file is None else secret(config.token_file)
        self._key = None if config.secret_file is None else _key(config)
        self._is_token_named = any(each.name == "token" for each in config.names)
        host = urlsplit(config.url.partition("{")[0]).hostname or ""
        self._http = httpx.Client(
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            follow_redirects=False,
            # A proxy of the company has no way to this machine.
            trust_env=not is_loopback(host),
        )

    @property
    def retry_ms(self) -> int:
        return self._config.retry_hours * 3_600_000

    def call(self, postback: Postback, now: datetime) -> Delivery:
        name = self._config.name
        request = self._request(postback, now)
        try:
            with contextlib.closing(self._http.send(request, stream=True)) as answer:
                status, retry_after = answer.status_code, answer.headers.get("retry-after")
                # Nothing is made of the body. A connection whose answer was read to its end takes the next call.
                for _ in zip(answer.iter_raw(READ_BYTES), range(READS_MAX), strict=False):
                    pass
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Delivery(Outcome.LATER, sentence=f"{name} cannot be reached: {type(error).__name__}")
        sentence = f"{name} answers with status {status}"
        if httpx.codes.is_success(status):
            return Delivery(Outcome.TAKEN, taken=1)
        if status == httpx.codes.TOO_MANY_REQUESTS or retry_after is not None:
            return later(sentence, Answer(status, retry_after, b""))
        if httpx.codes.is_redirect(status):
            return Delivery(Outcome.REFUSED, sentence=f"{sentence}, a redirect; configure the address it leads to")
        if status in _OF_SETTINGS:
            return Delivery(Outcome.REFUSED, sentence=f"{sentence}; check the token")
        if httpx.codes.is_client_error(status) and status not in _PASSING:
            return Delivery(Outcome.BAD_CONVERSION, refused={f"http_{status}": 1}, sentence=sentence)
        return Delivery(Outcome.LATER, sentence=sentence)

    def close(self) -> None:
        self._http.close()

    def _request(self, postback: Postback, now: datetime) -> httpx.Request:
        config, timestamp_s = self._config, int(now.timestamp())
        values = postback.values() | ({} if self._token is None else {"token": self._token})
        url, body = fill(config.url, values, in_address), ""
        headers = {"user-agent": "clickclock", "webhook-id": postback.id, "webhook-timestamp": str(timestamp_s)}
        if config.body is not None:
            quoted: Callable[[str], str] = in_json if config.content_type == JSON else in_form
            body = fill(config.body, values, quoted)
            headers["content-type"] = config.content_type
        if self._token is not None and not self._is_token_named:
            headers["authorization"] = f"Bearer {self._token}"
        if self._key is not None:
            # A call without a body says all that it says in its address.
            signed = body if config.body is not None else httpx.URL(url).raw_path.decode()
            headers["webhook-signature"] = signature(self._key, postback.id, timestamp_s, signed)
        return self._http.build_request(config.method, url, content=body.encode() or None, headers=headers)


def _key(config: PostbackConfig) -> bytes:
    try:
        return secret_of(secret(config.secret_file))  # type: ignore[arg-type] # asked for only where there is a file
    except ValueError as error:
        raise Invalid(f"The secret {config.secret_file} of the postback {config.name} is no key: {error}.") from None

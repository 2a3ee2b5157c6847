"""HTTP as the service speaks it: answers as dictionaries, refusals and silence as errors.

Tries again only what cannot be done twice by it: what never arrived, and what may be repeated as it is. Never waits
longer than `RETRY_PAUSES_S` between. Invariant: whatever goes wrong is a `Refused`, which carries all that the service
said, or an `Unreachable`.

>>> Connection(Context("http://127.0.0.1:8080/")).base_url
'http://127.0.0.1:8080/schedulerService'
"""

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

import httpx

from clickclock.client.event_stream import Event, EventParser
from clickclock.client.site import Site, is_of_this_machine
from clickclock.client.trust import advice, trust_of
from clickclock.foundation.contexts import Context
from clickclock.foundation.errors import ClickclockError, Fault, Transient
from clickclock.foundation.redaction import redacted

BASE_PATH = "/schedulerService"
STREAM_SILENCE_MAX_S = 60.0
"""A stream that says nothing for this long is opened anew: the connection may have died unseen."""
OPENED = "open"
"""The event that says, as a browser's EventSource does, that the connection stands."""
RETRIES = 2
RETRY_PAUSES_S = (0.1, 0.5)
"""Long enough for a connection that was just being closed; a service that is down is not waited for."""
WANTS_TO_KNOW_WHO_CALLS = frozenset({401, 403, 407, 511})

Payload = dict[str, Any]


class Refused(ClickclockError):
    """The service refused the call."""

    def __init__(
        self, status: int, code: str, message: str, faults: list[Fault] | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message, faults)
        self.status = status
        self.code = code
        self.request_id = request_id


class NotFound(Refused):
    """The named thing is not there (404)."""


class Conflict(Refused):
    """It does not fit what is there now (409): it exists, is in use, or has changed since it was read."""


class Invalid(Refused):
    """The request is wrong (400, 413, 415, 422); `faults` name every place."""


class Unavailable(Refused):
    """The service cannot do it now (503), and may later."""


_KINDS: Mapping[int, type[Refused]] = {
    400: Invalid,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    503: Unavailable,
}


class Unreachable(Transient):
    """The service does not answer; check its address, or start it with: clickclock serve."""

    code = "unreachable"


class Untrusted(Unreachable):
    """Something answers there, and its certificate is not believed, or it does not speak TLS as the address says."""

    code = "untrusted"


class Terms(TypedDict, total=False):
    """How a call is made: `query` without what is None; `if_match` is a version."""

    query: Mapping[str, object] | None
    if_match: int | None
    headers: Mapping[str, str]
    is_repeatable: bool
    timeout_s: float | None


class Connection:
    """A connection to the service at a place, whose address may end in `/schedulerService` or not.

    `headers` and the place's token are sent to that origin only.
    """

    def __init__(
        self,
        place: Context,
        timeout_s: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        retries: int = RETRIES,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        root = place.url.rstrip("/").removesuffix(BASE_PATH)
        self._sites = [self._site(root, headers, place.token)]
        self.root_url = self._sites[0].url
        self.base_url = self.root_url + BASE_PATH
        self._pauses_s = tuple(RETRY_PAUSES_S[min(each, len(RETRY_PAUSES_S) - 1)] for each in range(retries))
        parts = self._sites[0].parts
        is_here = is_of_this_machine(root)
        is_plain_here = is_here and parts.scheme == "http"
        ca_file = None if place.ca_file is None else Path(place.ca_file)
        try:
            self._http = httpx.Client(
                base_url=self.base_url,
                timeout=timeout_s,
                transport=transport,
                # A proxy of the company has no way to this machine.
                trust_env=not is_here,
                # Loading all certificates takes 50 ms, and HTTP has no use for them.
                verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain_here else trust_of(ca_file, is_here=is_here),
            )
        except (ValueError, ImportError, httpx.InvalidURL):
            # The error is not told, nor kept as the cause: it may quote a part of the proxy's password.
            raise Unreachable(
                "The environment names a proxy that cannot be used. Look at HTTP_PROXY, HTTPS_PROXY and ALL_PROXY: "
                "give http://HOST:PORT, and write / and @ of a password as %2F and %40."
            ) from None

    def also_at(self, url: str) -> str:
        """Know the address of a further service: its password is sent there, and is not in what is returned."""
        self._sites.append(self._site(url))
        return self._sites[-1].url

    def close(self) -> None:
        """Let go of it."""
        self._http.close()

    def call(self, method: str, path: str, body: Payload | list[Any] | None = None, **terms: Unpack[Terms]) -> Payload:
        """The body of the answer; see `send`."""
        response = self.send(method, path, body, **terms)
        payload = _payload(response)
        if payload is None:
            raise _not_ours(response)
        return payload

    def send(
        self, method: str, path: str, body: Payload | list[Any] | None = None, **terms: Unpack[Terms]
    ) -> httpx.Response:
        """The answer itself, once it is a success.

        A call that may be repeated (a GET, a PUT without a version, or what says so) is, if its connection breaks.
        """
        if_match, timeout_s = terms.get("if_match"), terms.get("timeout_s")
        headers = self._sent(path) | {name.lower(): value for name, value in terms.get("headers", {}).items()}
        headers |= {} if if_match is None else {"if-match": f'"{if_match}"'}
        timeout = self._http.timeout if timeout_s is None else httpx.Timeout(timeout_s)
        query = _query(terms.get("query"))
        content = None
        if body is not None:
            # With what is no number in JSON, too: the service refuses it with a sentence.
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
            headers["content-type"] = "application/json"
        repeatable = terms.get("is_repeatable", False) or method == "GET" or (method == "PUT" and if_match is None)
        for pause_s in (*self._pauses_s, None):
            try:
                response = self._http.request(
                    method, path, content=content, params=query, headers=headers, timeout=timeout
                )
            except httpx.TransportError as error:
                never_arrived = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                broke = repeatable and not isinstance(error, httpx.TimeoutException)
                if pause_s is None or not (never_arrived or broke):
                    raise self._unreachable(error, path) from error
                time.sleep(pause_s)
            else:
                break
        if not response.is_success:
            raise _refusal(response)
        return response

    def stream(self, path: str, query: Mapping[str, object], last_id: str | None = None) -> Iterator[Event]:
        """The events of one connection, after that with `last_id` if it is given, until the service closes it.

        `path` may also be a whole address.
        """
        headers = self._sent(path) | {"accept": "text/event-stream"}
        headers |= {} if last_id is None else {"last-event-id": last_id}
        timeout = httpx.Timeout(self._http.timeout.connect, read=STREAM_SILENCE_MAX_S)
        parser = EventParser()
        try:
            with self._http.stream("GET", path, params=_query(query), headers=headers, timeout=timeout) as response:
                if not response.is_success:
                    response.read()
                    raise _refusal(response)
                yield Event(OPENED, "", "")
                for chunk in response.iter_bytes():
                    yield from parser.feed(chunk)
        except httpx.TransportError as error:
            raise self._unreachable(error, path) from error

    def _site(self, url: str, headers: Mapping[str, str] | None = None, token: str | None = None) -> Site:
        try:
            site = Site.of(url, headers, token)
            httpx.URL(site.url)
        except (ValueError, httpx.InvalidURL) as error:  # this is no address
            raise _unreachable(f"The scheduler service at {redacted(url)}", error) from None
        return site

    def _sent(self, path: str) -> dict[str, str]:
        """The headers for a path of the service, or for a whole address."""
        url = path if "://" in path else self.base_url
        return {
            name: value for site in reversed(self._sites) if site.is_at(url) for name, value in site.headers.items()
        }

    def _unreachable(self, error: Exception, path: str = "") -> Unreachable:
        url = path if "://" in path else self.base_url
        who = f"The service at {path}" if "://" in path else f"The scheduler service at {self.base_url}"
        if (remedy := advice(error, url)) is not None:
            return Untrusted(f"{who} cannot be talked to. {remedy}")
        return _unreachable(who, error)


def _unreachable(who: str, error: Exception) -> Unreachable:
    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
        return Unreachable(
            f"{who} was reached, and did not answer in time. It is busy, or has much to do for this; try again in a "
            "moment, or ask for less."
        )
    return Unreachable(
        f"{who} does not answer ({str(error) or type(error).__name__}). "
        "Check the address, or start the service with: clickclock serve"
    )


def _query(fields: Mapping[str, object] | None) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (fields or {}).items()
        if value is not None
    }


def _payload(response: httpx.Response) -> Payload | None:
    try:
        payload = response.json()
    except ValueError:
        return None
    return payload if isinstance(payload, dict) and "status" in payload else None


def _refusal(response: httpx.Response) -> Refused:
    payload = _payload(response)
    if payload is None:
        return _not_ours(response)
    return _KINDS.get(response.status_code, Refused)(
        response.status_code,
        payload.get("code", "unknown"),
        payload.get("message", f"The service answered with status {response.status_code}."),
        [Fault(fault.get("field", ""), fault.get("message", "")) for fault in payload.get("errors") or []],
        payload.get("requestId"),
    )


def _not_ours(response: httpx.Response) -> Refused:
    advice = "check the address."
    if response.status_code in WANTS_TO_KNOW_WHO_CALLS:
        advice = (
            "something in front of it wants to know who calls: give its token as CLICKCLOCK_TOKEN, or the header that "
            "it asks for with --header (in the client, `token` and `headers`)."
        )
    elif response.is_redirect:
        advice = (
            f"it leads to {redacted(response.headers['Location'])}; give that address, or the header that it asks for."
        )
    return Refused(
        response.status_code,
        "notTheScheduler",
        f"{response.url.copy_with(query=None)} answered with status {response.status_code}, but not as the scheduler "
        f"service does; {advice}",
    )


def given(fields: Mapping[str, object]) -> Payload:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value is not None}


def only(key: str, payload: Payload, code: str, *names: str | None) -> Payload:
    """A list that has the one thing that was asked for. Raises `NotFound`.

    Without a name it was not asked for: a filter that is None is not sent, and what came first would be taken for it.
    """
    if None in names or not payload[key]:
        name = "/".join(map(str, names))
        raise NotFound(httpx.codes.NOT_FOUND, code, f"There is no {key.removesuffix('s')} {name}; check the name.")
    return payload


def changed(thing: Payload, changes: Payload, *keys: str) -> Payload:
    """The thing as it is to be. Raises `Invalid` where the changes name another one: that would be written instead."""
    others = [key for key in keys if key in changes and changes[key] != thing.get(key)]
    if others:
        sentence = "This is what it is known by, and stays; leave it out, or create another under that name."
        raise Invalid(
            httpx.codes.UNPROCESSABLE_ENTITY,
            "invalid",
            "The change names something else than what is to be changed.",
            [Fault(key, sentence) for key in others],
        )
    return thing | changes

"""The Kubernetes API as this executor uses it: a few verbs on a few kinds, in one namespace.

Never decides what an object means. Invariants: every call has a time limit; a passing fault (429, 5xx, no answer) is
`Unreachable` and says when to come back; whatever the API server refuses for good is `Refused` in its own words.

>>> api = Api(access)                                     # doctest: +SKIP
>>> await api.create("jobs", {"apiVersion": "batch/v1"})  # doctest: +SKIP
"""

import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx

from clickclock.foundation.errors import ExecutorUnreachable, Permanent
from clickclock.foundation.redaction import redacted
from clickclock.scheduler.executors.kubernetes.access import Access

ANSWER_S_MAX = 15.0
WATCH_S = 240
"""How long one watch lasts before the server ends it; then it goes on with the next."""
SILENCE_S_MAX = 300.0
"""A watch that says nothing for longer than it may last is dead."""
PAGE = 500
"""Objects in one answer, as kubectl asks for them."""
CONNECTIONS_MAX = 1000
OPENED = "OPENED"
PROBE = "clickclock-probe"
"""The name of a missing Job: asking for it costs the API server one look, however many Jobs there are."""
NAMES_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""All other fields of a node are some ten kilobytes."""
PATHS = {"jobs": "/apis/batch/v1", "pods": "/api/v1", "secrets": "/api/v1", "events": "/api/v1"}
EXCUSES = (
    b"unable to retrieve container logs for ", b"rpc error: code = ", b"failed to create fsnotify watcher: ",
    b'failed to watch directory "', b'failed to watch file "', b'failed to try resolving symlinks in path "',
    b'failed to open log file "', b'failed to read log file "',
)  # fmt: skip
"""How a node begins to say that it cannot read an output on: as the output's last line, which does not end, after a
status of 200."""
REMOVED = (
    b'rpc error: code = NotFound desc = an error occurred when try to find container "',
    b'rpc error: code = NotFound desc = could not find container "',
)
"""How it says that a container was removed, once all of its output has come: that of a pod that was deleted is at once,
when it has ended."""
RUNTIME_DOWN = b"rpc error: code = Unavailable"
"""How it says that nothing runs its containers at the moment."""
EXCUSE_BYTES_MAX = 4096
_GONE, _TOO_MANY, _TIMED_OUT = 410, 429, 408
# A host that vanishes says nothing: the kernel asks it, and gives up after half a minute.
_KEEP_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
]

Object = dict[str, Any]


class Unreachable(ExecutorUnreachable):
    """The API server does not answer, or says to come back later; `status` is what it answered, if it did."""

    def __init__(self, message: str, retry_after_s: float | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.status = status


class Refused(Permanent):
    """The API server refused the request; `reason` tells apart what has one status."""

    def __init__(self, message: str, status: int, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Removed(Permanent):
    """The container was removed after all of its output had come."""


class RuntimeDown(Unreachable):
    """The node's container runtime does not answer: what commands write meanwhile may be lost."""


class Gone(Permanent):
    """The resource version is too old: list anew."""


class Api:
    """One namespace of one API server."""

    def __init__(self, access: Access) -> None:
        self.namespace = access.namespace
        self._extensions = {"sni_hostname": access.tls_server_name} if access.tls_server_name else {}
        limits = httpx.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=32)
        # With its own transport httpx reads no proxy from the environment; the kubeconfig says what there is to say.
        self._client = httpx.AsyncClient(
            base_url=access.server,
            auth=access.authentication,
            timeout=ANSWER_S_MAX,
            headers={"User-Agent": "clickclock", "Accept": "application/json"},
            transport=httpx.AsyncHTTPTransport(
                verify=access.tls, limits=limits, proxy=access.proxy, socket_options=_KEEP_ALIVE
            ),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def create(self, kind: str, thing: Object) -> Object:
        """POST one object. A field that the API server does not know is refused; by itself it would be left out."""
        return await self._call("POST", kind, parameters={"fieldValidation": "Strict"}, body=thing)

    async def get(self, kind: str, name: str) -> Object:
        """GET one object by its name."""
        return await self._call("GET", kind, name)

    async def patch(self, kind: str, name: str, change: Object) -> Object:
        """PATCH one object, as a JSON merge patch."""
        return await self._call("PATCH", kind, name, body=change, media="application/merge-patch+json")

    async def delete(self, kind: str, name: str, *, uid: str, **options: Any) -> None:
        """DELETE one object, if it is still the one with that uid; that it is gone already is no fault."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}, **options}
        try:
            await self._call("DELETE", kind, name, body=body)
        except Refused as refused:
            # 409: there is another of that name, and ours is gone.
            if refused.status not in {httpx.codes.NOT_FOUND, httpx.codes.CONFLICT}:
                raise

    async def find(self, kind: str, **parameters: str) -> tuple[list[Object], str]:
        """All objects, page by page, and the resource version to watch from. Raises `Gone` when it took too long."""
        found: list[Object] = []
        following = ""
        while True:
            asked = {**parameters, "limit": str(PAGE), **({"continue": following} if following else {})}
            answer = await self._call("GET", kind, parameters=asked)
            found += answer.get("items") or []
            following = answer["metadata"].get("continue") or ""
            if not following:
                return found, answer["metadata"]["resourceVersion"]

    async def version(self, kind: str) -> str:
        """The newest resource version that there is."""
        answer = await self._call("GET", kind, parameters={"limit": "1"})
        return str(answer["metadata"]["resourceVersion"])

    async def answers(self) -> None:
        """Return if the API server answers, its store is there, and we may read Jobs."""
        try:
            await self._call("GET", "jobs", PROBE)
        except Refused as refused:
            if refused.status != httpx.codes.NOT_FOUND:
                raise

    async def has_namespace(self) -> None:
        """Raise `Refused` if the namespace is not there, or is being removed; where we may not look, nobody knows."""
        sentence = "The namespace {} {}; create it, or name another in the cluster's options."
        try:
            found = await self._request("GET", f"/api/v1/namespaces/{self.namespace}")
        except Refused as refused:
            if refused.status == httpx.codes.NOT_FOUND:
                raise Refused(
                    sentence.format(self.namespace, "does not exist"), refused.status, "NotFound"
                ) from refused
            if refused.status != httpx.codes.FORBIDDEN:
                raise
        else:
            if (found.get("status") or {}).get("phase") == "Terminating":
                raise Refused(sentence.format(self.namespace, "is being deleted"), httpx.codes.CONFLICT)

    async def nodes(self) -> list[str]:
        """The names of the cluster's nodes."""
        answer = await self._request("GET", "/api/v1/nodes", parameters={"limit": "5000"}, accept=NAMES_ONLY)
        return [each["metadata"]["name"] for each in answer.get("items") or []]

    async def watch(self, kind: str, version: str, **parameters: str) -> AsyncGenerator[Object, None]:
        """That it is `OPENED`, then events after `version`, bookmarks among them, until the server ends it.

        Raises `Gone`.
        """
        asked = {
            **parameters,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_S),
        }
        async with self._stream(self._path(kind), asked, SILENCE_S_MAX) as response:
            yield {"type": OPENED}
            rest = b""
            # Lines by hand: text would also be split at signs that JSON does not escape, such as U+0085.
            async for piece in response.aiter_bytes():
                *lines, rest = (rest + piece).split(b"\n")
                for line in filter(None, lines):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise _fault(event["object"].get("code", 500), event["object"], {})
                    yield event

    async def log(self, pod: str, container: str, *, follow: bool) -> AsyncGenerator[bytes, None]:
        """The output of a pod's container from its first byte, as it comes, without what a node says in its stead."""
        asked = {"container": container, **({"follow": "true"} if follow else {})}
        async with self._stream(f"{self._path('pods', pod)}/log", asked, None if follow else ANSWER_S_MAX) as response:
            async for piece in without_excuses(response.aiter_bytes()):
                yield piece

    def _path(self, kind: str, name: str = "") -> str:
        return f"{PATHS[kind]}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    async def _call(
        self,
        method: str,
        kind: str,
        name: str = "",
        *,
        parameters: Mapping[str, str] | None = None,
        body: Object | None = None,
        media: str = "application/json",
    ) -> Object:
        return await self._request(method, self._path(kind, name), parameters=parameters, body=body, media=media)

    async def _request(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        body: Object | None = None,
        media: str = "application/json",
        accept: str = "application/json",
    ) -> Object:
        with _told_apart():
            response = await self._client.request(
                method,
                path,
                params=parameters,
                content=None if body is None else json.dumps(body).encode(),
                headers={"Accept": accept, **({} if body is None else {"Content-Type": media})},
                extensions=self._extensions,
            )
            _raise_for(response)
            answer: Object = response.json()
            return answer

    @asynccontextmanager
    async def _stream(
        self, path: str, parameters: Mapping[str, str], silence_s_max: float | None
    ) -> AsyncIterator[httpx.Response]:
        timeout = httpx.Timeout(ANSWER_S_MAX, read=silence_s_max)
        with _told_apart():
            async with self._client.stream(
                "GET", path, params=parameters, timeout=timeout, extensions=self._extensions
            ) as response:
                if response.is_error:
                    await response.aread()
                    _raise_for(response)
                yield response


async def without_excuses(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """An output, but for a last line that says that it could not be read on: raises `Unreachable` or `Removed`."""
    held, is_at_start = b"", True
    async for piece in pieces:
        fresh = held + piece
        _, newline, line = fresh.rpartition(b"\n")
        held = line if (newline or is_at_start) and _may_be_excuse(line) else b""
        is_at_start = bool(held) or not line
        if fresh := fresh.removesuffix(held):
            yield fresh
    if held.startswith(REMOVED):
        raise Removed(held.decode(errors="replace"))
    if held.startswith(EXCUSES):
        fault = RuntimeDown if held.startswith(RUNTIME_DOWN) else Unreachable
        raise fault(f"The node cannot read the output: {held.decode(errors='replace')}.")
    if held:
        yield held


def _may_be_excuse(line: bytes) -> bool:
    known = line.startswith(EXCUSES) or any(each.startswith(line) for each in EXCUSES)
    return known and len(line) <= EXCUSE_BYTES_MAX


@contextmanager
def _told_apart() -> Iterator[None]:
    """What httpx raises, as `Unreachable`; and that there is no credential just now, which passes as well."""
    try:
        yield
    except Unreachable:
        raise
    except ExecutorUnreachable as error:
        raise Unreachable(str(error)) from error
    except httpx.TimeoutException as error:
        raise Unreachable(f"The API server does not answer in time ({type(error).__name__}).") from error
    except (httpx.HTTPError, httpx.InvalidURL, json.JSONDecodeError, OSError) as error:
        said = redacted(f"{error}".strip()) or type(error).__name__
        raise Unreachable(f"The API server cannot be reached: {said}.") from error


def _raise_for(response: httpx.Response) -> None:
    if not response.is_success:
        try:
            status = response.json()
        except (json.JSONDecodeError, UnicodeDecodeError):
            status = {"message": response.text[:500]}
        raise _fault(response.status_code, status if isinstance(status, dict) else {}, response.headers)


def _fault(code: int, status: Object, headers: Mapping[str, str]) -> Exception:
    message = str(status.get("message") or f"The API server answered {code}.")
    if code == _GONE:
        return Gone(message)
    if code in {_TOO_MANY, _TIMED_OUT, httpx.codes.UNAUTHORIZED} or code >= httpx.codes.INTERNAL_SERVER_ERROR:
        after = headers.get("retry-after") or (status.get("details") or {}).get("retryAfterSeconds")
        return Unreachable(f"The API server answered {code}: {message}", _seconds(after), code)
    return Refused(message, code, str(status.get("reason") or ""))


def _seconds(text: object) -> float | None:
    try:
        return min(60.0, max(0.0, float(str(text))))
    except ValueError:
        return None

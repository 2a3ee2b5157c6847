"""The engine's API: the few calls that running containers needs, over a Unix socket or TCP.

Never decides what an answer means for an attempt. Invariants: what got no answer is `EngineUnreachable` and may have
been done; what was refused is `Refused`, with the engine's own sentence.

>>> Engine(ContainerOptions()).trouble
'The container engine has not been asked yet.'
"""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import httpx

from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.ids import new_id
from clickclock.foundation.redaction import redacted
from clickclock.scheduler.executors.container.options import ContainerOptions

_API_NEWEST = (1, 47)
"""The newest version of the API that this is written for; an older engine is spoken to in its own."""
_ANSWER_S_MAX = 60.0
"""Starting a container on a busy disk takes seconds; an engine that is silent for longer hangs."""
_PULL_SILENCE_S_MAX = 600.0
_WAIT_INTERVAL = "100ms"
"""How often Podman looks whether a container has ended (its default is 250 ms); Docker needs not look."""
_FOLLOW_PAUSE_S = 0.1
"""A container that writes all the time is asked for its state at most ten times a second."""
_PIECES_HELD_MAX = 10_000
"""Pieces that wait until the container was seen running: each is a line, or a part of one."""
_ALIVE = frozenset({"running", "paused", "stopping"})
_FRAME = struct.Struct(">BxxxI")
_NO_PROGRAM = "/clickclock/no-such-program"
_NO_INIT = (
    "The engine has no program for `init`, so that no attempt could start ({}). Install catatonit for Podman, or "
    "docker-init for Docker, or set init = false for this cluster."
)
_FAILED = 400
NOT_FOUND = 404
# A host that vanishes says nothing, and an end or output is waited for without a limit: the kernel asks that host, and
# gives up after half a minute.
_KEEP_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
]


class EngineUnreachable(ExecutorUnreachable):
    """The container engine does not answer; what was asked of it will be tried again."""


class Refused(Exception):
    """The engine said no: `status` and its own message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Engine:
    """One engine. `trouble` is why it does not answer, or None while it does."""

    def __init__(self, options: ContainerOptions) -> None:
        self._options = options
        self._client: httpx.AsyncClient | None = None
        self._version = ""
        self.trouble: str | None = "The container engine has not been asked yet."

    async def ping(self) -> None:
        """Ask whether it is there, and agree on a version of the API."""
        async with self._ask("GET", "/_ping") as answer:
            told = answer.headers.get("api-version", "")
        theirs = tuple(int(part) for part in told.split(".")) if told.replace(".", "").isdecimal() else _API_NEWEST
        self._version = "/v" + ".".join(map(str, min(theirs, _API_NEWEST)))

    async def create(self, container: str, body: Mapping[str, Any]) -> str:
        """Make a container; its id. Raises `Refused`: 404 where the engine does not have the image."""
        made = await self._done("POST", "/containers/create", params={"name": container}, json=body)
        return str(json.loads(made)["Id"])

    async def start(self, container: str) -> None:
        """Start it; one that runs already is left alone."""
        await self._done("POST", f"/containers/{container}/start")

    async def inspect(self, container: str) -> Any | None:
        """All that the engine knows of it; None when there is none."""
        try:
            return json.loads(await self._done("GET", f"/containers/{container}/json"))
        except Refused as refused:
            if refused.status == NOT_FOUND:
                return None
            raise

    async def list(self, labels: Mapping[str, str]) -> Any:
        """All containers with these labels, whether they run or not."""
        filters = {"label": [f"{name}={value}" for name, value in labels.items()]}
        params = {"all": "true", "filters": json.dumps(filters)}
        try:
            return json.loads(await self._done("GET", "/containers/json", params=params))
        except Refused as refused:
            if refused.status != httpx.codes.INTERNAL_SERVER_ERROR:
                raise
            # A Podman that died while it removed one tells of none any more, but in its own API.
            with suppress(Refused):
                return json.loads(await self._done("GET", "/libpod/containers/json", params=params))
            raise

    async def wait(self, container: str) -> None:
        """Until it has ended."""
        params = {"condition": "not-running", "interval": _WAIT_INTERVAL}
        await self._done("POST", f"/containers/{container}/wait", silence_s_max=None, params=params)

    async def kill(self, container: str, signal: str) -> None:
        """Send a signal to its first process."""
        await self._done("POST", f"/containers/{container}/kill", params={"signal": signal})

    async def remove(self, container: str) -> None:
        """Delete it with its anonymous volumes; raises `Refused` while it runs."""
        await self._done("DELETE", f"/containers/{container}", params={"v": "true"})

    async def lacks_init(self) -> str | None:
        """Why no container with an init can run here; None if one can, or if there is no image to try it with.

        It is tried with a container that ends at once, and is removed.
        """
        images = json.loads(await self._done("GET", "/images/json"))
        if not images:
            return None
        host = {"Init": True, "NetworkMode": self._options.network or "none"}
        body = {"Image": images[0]["Id"], "Entrypoint": [_NO_PROGRAM], "HostConfig": host}
        made = None
        try:
            made = await self.create(f"clickclock-looks-for-an-init-{new_id()}", body)
            await self.start(made)
        except Refused as refused:
            # The program is not there, on purpose: an engine without an init says that of the init.
            return _NO_INIT.format(refused) if "init" in str(refused).replace(_NO_PROGRAM, "") else None
        finally:
            if made is not None:
                with suppress(Refused):
                    await self._done("DELETE", f"/containers/{made}", params={"v": "true", "force": "true"})
        return None

    async def logs(self, container: str, *, follow: bool = False) -> AsyncGenerator[bytes, None]:
        """Its output from the beginning to now; with `follow` also what comes, until it ends."""
        params = {"stdout": "true", "stderr": "true", "follow": str(follow).lower()}
        path = f"/containers/{container}/logs"
        silence_s_max = None if follow else _ANSWER_S_MAX
        async with self._ask("GET", path, silence_s_max=silence_s_max, params=params) as answer:
            rest = b""
            async for data in answer.aiter_raw():
                rest += data
                while len(rest) >= _FRAME.size:
                    _, length = _FRAME.unpack_from(rest)
                    if len(rest) < _FRAME.size + length:
                        break
                    yield rest[_FRAME.size : _FRAME.size + length]
                    rest = rest[_FRAME.size + length :]

    async def follow(self, container: str) -> AsyncGenerator[bytes, None]:
        """Its output from the beginning, and as it comes, while the container runs; `logs` has the last of it.

        After a container's end, Podman leaves out lines of what it still sends. So a piece is handed on only if the
        container was seen running after the piece had come.
        """
        came: asyncio.Queue[bytes | None] = asyncio.Queue()
        listener = asyncio.create_task(self._listen(container, came))
        listener.add_done_callback(lambda _: came.put_nowait(None))
        try:
            while (piece := await came.get()) is not None:
                pieces = [piece, *_at_hand(came)]
                there = await self.inspect(container)
                if there is None or there["State"]["Status"] not in _ALIVE:
                    return
                yield b"".join(pieces)
                for _ in pieces:
                    came.task_done()
                await asyncio.sleep(_FOLLOW_PAUSE_S)
            await listener
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    async def _listen(self, container: str, came: asyncio.Queue[bytes | None]) -> None:
        async with aclosing(self.logs(container, follow=True)) as pieces:
            async for piece in pieces:
                came.put_nowait(piece)
                if came.qsize() >= _PIECES_HELD_MAX:
                    await came.join()

    async def pull(self, image: str) -> None:
        """Get an image from its registry. Raises `Refused` with the engine's reason."""
        try:
            credentials = self._options.registry_auth(image)
        except ValueError as error:
            raise Refused(_FAILED, str(error)) from error
        headers = {"x-registry-auth": credentials} if credentials else {}
        params = {"fromImage": image if _is_exact(image) else f"{image}:latest"}
        path = "/images/create"
        async with self._ask("POST", path, silence_s_max=_PULL_SILENCE_S_MAX, params=params, headers=headers) as answer:
            async for line in answer.aiter_lines():
                if line and (fault := json.loads(line).get("error")):
                    raise Refused(_FAILED, fault)

    async def close(self) -> None:
        """Hang up."""
        self.trouble = "The executor is closed."
        if self._client is not None:
            await self._client.aclose()

    async def _done(
        self, method: str, path: str, *, silence_s_max: float | None = _ANSWER_S_MAX, **request: Any
    ) -> bytes:
        async with self._ask(method, path, silence_s_max=silence_s_max, **request) as answer:
            return await answer.aread()

    @asynccontextmanager
    async def _ask(
        self, method: str, path: str, *, silence_s_max: float | None = _ANSWER_S_MAX, **request: Any
    ) -> AsyncIterator[httpx.Response]:
        """An answer that is being read; the connection is closed with the block."""
        timeout = httpx.Timeout(_ANSWER_S_MAX, read=silence_s_max)
        try:
            client = self._connected()
            async with client.stream(method, self._version + path, timeout=timeout, **request) as answer:
                self.trouble = None
                if answer.status_code >= _FAILED:
                    raise Refused(answer.status_code, _message(await answer.aread()))
                yield answer
        except (httpx.RequestError, OSError) as error:
            self.trouble = f"The container engine at {redacted(self._options.engine)} does not answer: {_reason(error)}"
            raise EngineUnreachable(self.trouble) from error

    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            transport = httpx.AsyncHTTPTransport(
                uds=self._options.socket,
                verify=self._options.tls(),
                socket_options=_KEEP_ALIVE if self._options.socket is None else None,
                # Each running container has two requests open: for its end, and for its output.
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            )
            self._client = httpx.AsyncClient(transport=transport, base_url=self._options.base_url)
        return self._client


def _at_hand(came: asyncio.Queue[bytes | None]) -> list[bytes]:
    """All pieces that need not be waited for. The end stays in the queue."""
    pieces = []
    while not came.empty():
        piece = came.get_nowait()
        if piece is None:
            came.put_nowait(None)
            break
        pieces.append(piece)
    return pieces


def _is_exact(image: str) -> bool:
    """Whether a name says which image it means: by a tag or a digest. Without one, an engine may pull all of them."""
    return ":" in image.rpartition("/")[2]


def _message(body: bytes) -> str:
    """The engine's own sentence."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()[:1000] or "it gave no reason"


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None or (error.__context__ is not None and not str(error)):
        error = error.__cause__ or error.__context__  # type: ignore[assignment]  # one of them is there
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text.rstrip(".") + "."

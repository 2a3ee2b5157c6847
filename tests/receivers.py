"""Those who are told, for real: a web server that a webhook is posted to, and a mail server.

Never on a port that is known before. Invariant: what was received is kept as it came.

>>> async with hook() as receiver: ...                    # doctest: +SKIP
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

DEADLINE_S = 60


@dataclass
class Post:
    """One request."""

    headers: dict[str, str]
    body: str
    path: str = ""


@dataclass
class Hook:
    """A web server. It answers with `answers`, one after the other, and with the last of them for ever."""

    answers: list[bytes]
    got: list[Post] = field(default_factory=list)
    url: str = ""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    judge: Callable[[Post], bytes] | None = None
    """What answers each request, instead of `answers`."""
    on_request: Callable[[], None] | None = None
    """Done when a request is here, instead of answering it."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request, answer, hang up."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            pairs = (line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            body = (await reader.readexactly(int(headers["content-length"]))).decode()
            self.got.append(Post(headers, body, head.split(" ", 2)[1]))
            self.news.set()
            if self.on_request is not None:
                self.on_request()
                return
            if self.judge is not None:
                writer.write(self.judge(self.got[-1]))
            else:
                writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
            await writer.drain()
        finally:
            writer.close()

    async def has(self, count: int) -> list[Post]:
        """What it got, once it is so many."""
        async with asyncio.timeout(DEADLINE_S):
            while len(self.got) < count:
                self.news.clear()
                await self.news.wait()
        return self.got


def answer(status: int, body: str = "", **headers: str) -> bytes:
    """An HTTP answer."""
    lines = [f"HTTP/1.1 {status} So", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "connection: close", "", body]).encode()


@contextlib.asynccontextmanager
async def hook(*answers: bytes, judge: Callable[[Post], bytes] | None = None) -> AsyncIterator[Hook]:
    """A web server on a free port; 204 is its answer if no other is given, and no `judge`."""
    receiver = Hook(list(answers) or [answer(204)], judge=judge)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    async with server:
        yield receiver


class Letterbox:
    """What a mail server took."""

    def __init__(self, refuses: str | None = None) -> None:
        self.envelopes: list[Envelope] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.was_encrypted: list[bool] = []
        self.port = 0
        self._refuses = refuses

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 (aiosmtpd's)
        self.envelopes.append(envelope)
        self.was_encrypted.append(session.ssl is not None)
        return self._refuses or "250 OK"

    def authenticate(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"secret", handled=False)


class _OnAnyPort(Controller):
    """A controller whose port the system chose."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call] # as aiosmtpd has it


@contextlib.contextmanager
def letterbox(tls: ssl.SSLContext | None = None, refuses: str | None = None) -> Iterator[Letterbox]:
    """A mail server on a free port; with `tls` it wants STARTTLS and a login."""
    box = Letterbox(refuses)
    more: dict[str, Any] = {}
    if tls is not None:
        more = {
            "tls_context": tls,
            "require_starttls": True,
            "auth_required": True,
            "authenticator": box.authenticate,
        }
    controller = _OnAnyPort(box, hostname="127.0.0.1", port=0, **more)
    controller.start()
    try:
        box.port = controller.port
        yield box
    finally:
        controller.stop()

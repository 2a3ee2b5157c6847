"""The dashboard: static files of the package, served at `/`. It runs in the browser, on the public interface alone.

Never asks a service anything, and never fetches anything from elsewhere. Invariants: every file is read once, at the
start, and compressed once, when somebody asks for it; the address of a file names the content of all files, so that a
browser may keep it for ever and never mixes two versions; every address of a page answers with the one page, so that
each can be reloaded and shared.

>>> "/" in Dashboard().pages
True
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from clickclock.foundation.compression import takes_gzip
from clickclock.foundation.problem import UnknownPath, refuse_changes

_FOLDER = Path(__file__).parent / "static"
_PAGE = "index.html"
_PLACE = b"{static}"
"""Where the page names the folder of its files."""
_CLICK_PORT = b"{click_port}"
"""Where it names the collectors' port."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types lit-html clickclock-worker"
)
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class _File:
    """A file as it is sent."""

    body: bytes
    headers: dict[str, str]

    @cached_property
    def packed(self) -> bytes:
        """Its content, compressed."""
        return gzip.compress(self.body, 9, mtime=0)

    def answer(self, asked: Headers) -> Response:
        """The file, compressed if the caller takes that; nothing if the caller has it."""
        if asked.get("if-none-match") == self.headers["etag"]:
            return Response(status_code=304, headers=self.headers)
        if takes_gzip(asked.get("accept-encoding", "")):
            return Response(self.packed, headers=self.headers | {"content-encoding": "gzip"})
        return Response(self.body, headers=self.headers)


class Dashboard:
    """An ASGI application for every address that no service has."""

    def __init__(self, click_port: int | None = None) -> None:
        """`click_port` is that of the collectors; None if no clicks are taken."""
        found = {
            path.relative_to(_FOLDER).as_posix(): path.read_bytes() for path in _FOLDER.rglob("*") if path.is_file()
        }
        version = hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]
        self._base = f"/static/{version}/"
        page = found.pop(_PAGE).replace(_PLACE, self._base.rstrip("/").encode())
        self._page = _file(_PAGE, page.replace(_CLICK_PORT, str(click_port or "").encode()), "no-cache")
        self._files = {
            self._base + name: _file(name, body, "public, max-age=31536000, immutable") for name, body in found.items()
        }

    @property
    def pages(self) -> tuple[str, ...]:
        """Addresses that answer whoever asks. All others are pages only to who takes HTML, as browsers do."""
        return ("/", *self._files)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or raise `UnknownPath`."""
        path, headers = scope["path"], Headers(scope=scope)
        file = self._files.get(path)
        if (
            file is None
            and not path.startswith("/static/")
            and (path == "/" or "text/html" in headers.get("accept", ""))
        ):
            file = self._page
        if file is None:
            raise UnknownPath
        refuse_changes(scope["method"])
        await file.answer(headers)(scope, receive, send)


def _file(name: str, body: bytes, caching: str) -> _File:
    kind = _TYPES.get(Path(name).suffix, "text/plain")
    headers = {
        "content-type": f"{kind}; charset=utf-8",
        "etag": f'"{hashlib.sha256(body).hexdigest()[:16]}"',
        "cache-control": caching,
        "vary": "Accept-Encoding",
        "content-security-policy": _POLICY,
        "referrer-policy": "same-origin",
    }
    return _File(body, headers)

"""A shop's web site for the tests of the tag, and an ear that stands in for a collector where HTTP itself is looked at.

Never judges a click. Invariant: every request that the ear got is in `heard` before its answer is sent.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HEARD_WITHIN_S = 60.0


@dataclass
class Request:
    """One request as it came."""

    method: str
    path: str
    query: str
    body: bytes
    headers: dict[str, str]


@dataclass
class Ear:
    """Serves one file and answers everything else with 204."""

    url: str
    heard: list[Request] = field(default_factory=list)
    _more: threading.Condition = field(default_factory=threading.Condition)

    def note(self, request: Request) -> None:
        """Remember a request."""
        with self._more:
            self.heard.append(request)
            self._more.notify_all()

    def wait_for(self, count: int) -> list[Request]:
        """The requests, once there are so many."""
        with self._more:
            assert self._more.wait_for(lambda: len(self.heard) >= count, HEARD_WITHIN_S), self.heard
            return list(self.heard)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that has gone elsewhere meanwhile is no fault."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type] # as it came


@contextlib.contextmanager
def listening(tag: bytes) -> Iterator[Ear]:
    """An ear that serves the tag at `/clickclock.js`."""

    class Listener(BaseHTTPRequestHandler):
        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if path == "/clickclock.js":
                _send(self, tag, "text/javascript")
                return
            ear.note(Request(self.command, path, query, body, dict(self.headers)))
            self.send_response(204)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        do_GET = do_POST = do_OPTIONS = answer  # noqa: N815 (the server's names)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with _serving(Listener) as url:
        ear = Ear(url)
        yield ear


@contextlib.contextmanager
def shop(pages: dict[str, str]) -> Iterator[str]:
    """A site with these pages by path, whatever their query; its URL. Pages may be changed while it stands."""

    class Shop(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _send(self, f"<!doctype html>{pages.get(self.path.partition('?')[0], '')}".encode(), "text/html")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with _serving(Shop) as url:
        yield url


@contextlib.contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _send(handler: BaseHTTPRequestHandler, content: bytes, media_type: str) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", media_type)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)

"""A partner's server, for real: it keeps each call as it came, and answers as a test says.

Never on a port that is known before. Invariant: what was received is kept as it came, whatever was answered.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Call:
    """One request."""

    method: str
    target: str
    headers: dict[str, str]
    body: str

    @property
    def order(self) -> str:
        """The order that it is about, where the address says it as `order=…`."""
        return self.target.partition("order=")[2].partition("&")[0]


@dataclass
class Server:
    """The server. `judge` gives the status of each call, and the answer's headers."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)
    judge: Callable[[Call], int | tuple[int, dict[str, str]]] = lambda _: 200
    after: Callable[[Call], None] = lambda _: None
    """Done when a call was kept, before it is answered."""

    @property
    def orders(self) -> list[str]:
        return [each.order for each in self.calls]


@contextlib.contextmanager
def partner() -> Iterator[Server]:
    """Listen on a free port of this machine."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer in one packet

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = Call(self.command, self.path, headers, body)
            server.calls.append(call)
            server.after(call)
            judged = server.judge(call)
            status, extra = judged if isinstance(judged, tuple) else (judged, {})
            with contextlib.suppress(ConnectionError):  # whoever called may be dead
                self.send_response(status)
                for name, value in {"content-length": "2", **extra}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"ok")

        do_GET = do_POST = _answer  # noqa: N815 (the library's names)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server.url = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()

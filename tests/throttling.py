"""A way to an object store that is too busy: some requests are refused, and the answers to some are lost.

It is a process of its own, `python -m tests.throttling STORE REFUSE_EACH LOSE_EACH`: delta-rs keeps the interpreter to
itself while it waits for a store. Never looks at what it carries, and changes nothing of it, so signatures hold.
Invariant: a request that is refused never reaches the store; one whose answer is lost was carried out.

>>> with throttled(options, refuse_each=3) as way:   # doctest: +SKIP
...     Lake("s3://clickclock-test/lake", way.options)
"""

import itertools
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
COUNTS = "/what-became-of-them"
SLOW_DOWN: Final = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
IMPATIENT: Final = {"backoff_config.init_backoff": "5ms", "backoff_config.max_backoff": "50ms"}
"""So that tests need not wait as long as users would."""
_OF_THE_CONNECTION: Final = frozenset({"connection", "date", "server", "transfer-encoding"})


@dataclass(frozen=True)
class Way:
    """One way, by the storage options that lead over it."""

    options: dict[str, str]

    def counts(self) -> dict[str, int]:
        """How many requests were `refused`, and how many answers were `lost`."""
        with urllib.request.urlopen(self.options["AWS_ENDPOINT_URL"] + COUNTS) as told:  # noqa: S310 (it is http)
            counts: dict[str, int] = json.load(told)
        return counts


@contextmanager
def throttled(options: Mapping[str, str], *, refuse_each: int = 0, lose_each: int = 0) -> Iterator[Way]:
    """A way to the store that these options lead to: one in so many is refused, and one in so many is not answered."""
    store = urlsplit(options["AWS_ENDPOINT_URL"]).netloc
    command = [sys.executable, "-m", "tests.throttling", store, str(refuse_each), str(lose_each)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield Way({**options, **IMPATIENT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"})
        finally:
            process.kill()


def serve(store: str, refuse_each: int, lose_each: int) -> None:
    """Carry requests to `store`, until killed. Prints the port."""
    arrivals = itertools.count(1)
    counts = {"refused": 0, "lost": 0}

    class Asking(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def carry(self) -> None:
            if self.path == COUNTS:
                self.answer(200, {}, json.dumps(counts).encode())
                return
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            number = next(arrivals)
            if refuse_each and number % refuse_each == 0:
                counts["refused"] += 1
                self.answer(503, {"Content-Type": "application/xml"}, SLOW_DOWN)
                return
            with closing(HTTPConnection(store, timeout=60)) as there:
                there.request(self.command, self.path, body, dict(self.headers))
                told = there.getresponse()
                found = told.read()
            if lose_each and number % lose_each == 0:
                counts["lost"] += 1
                self.close_connection = True
                return
            headers = {name: value for name, value in told.headers.items() if name.lower() not in _OF_THE_CONNECTION}
            self.answer(told.status, headers, found)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = carry  # noqa: N815 (so it calls them)

        def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: there are thousands."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Asking) as server:
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

"""A receiver of OTLP over HTTP: what a collector of OpenTelemetry takes, taken apart by its own protocol's classes.

Never keeps anything beyond a test. Invariant: a body that is no export of traces is a failure of the test's request.

>>> with receiving() as receiver: receiver.spans
[]
"""

import contextlib
import gzip
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Receiver:
    """Where it listens, and what came: spans, and the headers of each request."""

    url: str = ""
    spans: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    came: threading.Condition = field(default_factory=threading.Condition)

    def named(self, name: str, trace_id: str | None = None, *, within_s: float = 30.0) -> Any:
        """The first span of this name, in this trace if one is given, as soon as it has come."""
        with self.came:
            assert self.came.wait_for(lambda: self._find(name, trace_id) is not None, within_s), [
                (each.name, each.trace_id.hex()) for each in self.spans
            ]
        return self._find(name, trace_id)

    def _find(self, name: str, trace_id: str | None) -> Any:
        its = (each for each in self.spans if trace_id in {None, each.trace_id.hex()})
        return next((each for each in its if each.name == name), None)


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on a free port of the loopback."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            request = ExportTraceServiceRequest.FromString(body)
            with receiver.came:
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                receiver.spans += [
                    span for of in request.resource_spans for scope in of.scope_spans for span in scope.spans
                ]
                receiver.came.notify_all()
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name of the base class)
            """Nothing: the test's own output stays readable."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

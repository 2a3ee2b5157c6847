"""Doubles of ad networks' APIs, by their documentation: what they take, what they count, and how they refuse.

Never on a port that is known before. Invariants: a conversion counts once, by its event id (Meta) or order id (Google);
one bad event makes Meta refuse a whole request, one bad conversion only itself at Google.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs

from clickclock.foundation.clock import SystemClock

TOKEN: Final = "meta-token-1"
DEVELOPER, SECRET, REFRESH, ACCESS = "developer-1", "client-secret-1", "refresh-1", "access-1"
DATASET, ACCOUNT, ACTION, LEADS = "77", "1234567890", "9", "10"


@dataclass
class Networks:
    """Both APIs on one port."""

    url: str = ""
    meta: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What counts, by event id."""
    google: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What counts, by order id."""
    adjusted: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Every request that was counted or refused: path and JSON."""
    paths: list[str] = field(default_factory=list)
    answers: list[tuple[int, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    """Given first, one after the other, instead of an answer of its own."""
    after: Callable[[], None] = lambda: None
    """Done when a request was counted, before it is answered."""

    def answer(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, Any], dict[str, str]]:
        self.paths.append(path)
        if path == "/token":
            return self._token({name: values[0] for name, values in parse_qs(body.decode()).items()})
        said = json.loads(body)
        self.requests.append((path, said))
        if self.answers:
            return self.answers.pop(0)
        answer = self._meta(path, said) if path.endswith("/events") else self._google(path, said, headers)
        self.after()
        return answer

    def _token(self, said: dict[str, str]) -> tuple[int, dict[str, Any], dict[str, str]]:
        wanted = {
            "grant_type": "refresh_token",
            "client_id": "oauth-1",
            "client_secret": SECRET,
            "refresh_token": REFRESH,
        }
        if said != wanted:
            return 400, {"error": "invalid_grant", "error_description": "Bad Request"}, {}
        return 200, {"access_token": ACCESS, "expires_in": 3599, "token_type": "Bearer"}, {}

    def _meta(self, path: str, said: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
        def refused(message: str, code: int, subcode: int | None = None) -> tuple[int, dict[str, Any], dict[str, str]]:
            error = {"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "A1"}
            return 400, {"error": error | ({"error_subcode": subcode} if subcode else {})}, {}

        if said.get("access_token") != TOKEN:
            return refused("Invalid OAuth access token.", 190)
        if path != f"/v25.0/{DATASET}/events":
            return refused("Unsupported post request.", 100, 33)
        events = said["data"]
        if not 0 < len(events) <= 1000:
            return refused("Too many events.", 100)
        now_s = SystemClock().now().timestamp()
        if any(each["event_time"] < now_s - 7 * 86_400 for each in events):
            return refused("The timestamp for this event is too far in the past.", 100, 2804003)
        if any("bad" in each["event_id"] for each in events):
            return refused("Invalid parameter", 100, 2804019)
        for each in events:
            self.meta.setdefault(each["event_id"], each)
        return 200, {"events_received": len(events), "messages": [], "fbtrace_id": "A1"}, {}

    def _google(
        self, path: str, said: dict[str, Any], headers: dict[str, str]
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        if headers.get("authorization") != f"Bearer {ACCESS}":
            return 401, {"error": {"code": 401, "message": "Invalid credentials.", "status": "UNAUTHENTICATED"}}, {}
        if headers.get("developer-token") != DEVELOPER or headers.get("login-customer-id") not in {None, "5" * 10}:
            return 403, {"error": {"code": 403, "message": "Denied.", "status": "PERMISSION_DENIED"}}, {}
        name = path.partition(":")[2]
        if path.partition(":")[0] != f"/v24/customers/{ACCOUNT}" or said.get("partialFailure") is not True:
            return 404, {"error": {"code": 404, "message": "Not found.", "status": "NOT_FOUND"}}, {}
        adjusts = name == "uploadConversionAdjustments"
        items = said["conversionAdjustments" if adjusts else "conversions"]
        faults = {place: fault for place, each in enumerate(items) if (fault := self._fault(each, adjusts=adjusts))}
        if len(items) > 2000:
            return 400, {"error": {"code": 400, "message": "Too many.", "status": "INVALID_ARGUMENT"}}, {}
        for place, each in enumerate(items):
            if place not in faults:
                if adjusts:
                    self.adjusted.append(each)
                else:
                    self.google[each["orderId"]] = each
        answer: dict[str, Any] = {"results": [{} if place in faults else each for place, each in enumerate(items)]}
        if faults:
            kind = "conversionAdjustmentUploadError" if adjusts else "conversionUploadError"
            errors = [
                {"errorCode": {kind: code}, "message": code, "location": {"fieldPathElements": [
                    {"fieldName": "conversions", "index": place}]}}
                for place, code in faults.items()
            ]  # fmt: skip
            details = [
                {"@type": "type.googleapis.com/google.ads.googleads.v24.errors.GoogleAdsFailure", "errors": errors}
            ]
            answer["partialFailureError"] = {"code": 3, "message": "Some failed.", "details": details}
        return 200, answer, {}

    def _fault(self, each: dict[str, Any], *, adjusts: bool) -> str | None:
        if each["conversionAction"] not in {f"customers/{ACCOUNT}/conversionActions/{id_}" for id_ in (ACTION, LEADS)}:
            return "INVALID_CONVERSION_ACTION"
        if adjusts:
            return None if each["orderId"] in self.google else "CONVERSION_NOT_FOUND"
        if each["orderId"] in self.google:
            return "CLICK_CONVERSION_ALREADY_EXISTS"
        return "CLICK_NOT_FOUND" if each.get("gclid") == "unknown" else None


@contextlib.contextmanager
def networks() -> Iterator[Networks]:
    """Both doubles, listening."""
    double = Networks()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, said, headers = double.answer(
                self.path, body, {name.lower(): value for name, value in self.headers.items()}
            )
            content = json.dumps(said).encode()
            with contextlib.suppress(ConnectionError):  # whoever asked may be dead
                self.send_response(status)
                for name, value in {**headers, "Content-Type": "application/json"}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    double.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield double
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

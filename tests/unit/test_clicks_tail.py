"""What is seen of clicks, as lines for a person, and the client's way through broken streams."""

import json

import httpx
import pytest
from click.testing import CliRunner, Result

from clickclock.cli.clicks_tail import line_of, tail
from clickclock.client import Client, Refused, Sighting, Unreachable

CLICK = {
    "id": "0",
    "receivedAt": "2026-11-20T10:00:00.123Z",
    "clientId": "shop-1",
    "sellerId": "s-9",
    "identifierName": "cli_ubid",
    "identifier": "u-1",
    "flags": ["stale"],
    "parameters": {"gclid": "g" * 50, "utm_source": "google", "atag": "", "other": "x"},
}
REJECTION = {
    **CLICK,
    "clientId": None,
    "flags": [],
    "faults": [{"field": "atag", "message": "atag is required.", "code": "missing"}, {"field": "", "message": "No."}],
}
WATCHING = b"id: 0:1:4096:0\nevent: watching\ndata: {}\n\n"


def _event(name: str, fields: object, position: str) -> bytes:
    return f"id: {position}\nevent: {name}\ndata: {json.dumps(fields)}\n\n".encode()


class _Broken(httpx.SyncByteStream):
    """Sends what it has and then breaks, as a connection to a service that was killed."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __iter__(self):  # type: ignore[no-untyped-def]
        yield self._content
        raise httpx.ReadError("connection reset")


def _client(*answers: httpx.Response | Exception, asked: list[httpx.Request] | None = None) -> Client:
    """A client that gets these answers, one after the other."""
    waiting = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        if asked is not None:
            asked.append(request)
        following = waiting.pop(0)
        if isinstance(following, Exception):
            raise following
        return following

    return Client("http://service.test/schedulerService", transport=httpx.MockTransport(answer))


def test_a_broken_stream_goes_on_behind_the_last_position() -> None:
    asked: list[httpx.Request] = []
    client = _client(
        httpx.Response(200, stream=_Broken(WATCHING + _event("click", CLICK, "0:1:4096:1"))),
        httpx.Response(200, stream=_Broken(b"")),
        httpx.ConnectError("refused"),
        httpx.Response(200, content=WATCHING + _event("rejection", REJECTION, "0:1:4096:2")),
        # The one that broke may still be counted.
        httpx.Response(503, json={"status": "error", "code": "tooManyViewers", "message": "Wait."}),
        httpx.Response(200, content=WATCHING + _event("click", CLICK, "0:1:4096:3")),
        httpx.Response(403, json={"status": "error", "code": "forbidden", "message": "You may not."}),
        asked=asked,
    )
    seen: list[Sighting] = []

    def watch() -> None:
        for each in client.follow_clicks(clientId="shop-1"):
            seen.append(each)  # noqa: PERF402 (what came before the end is kept)

    with pytest.raises(Refused, match="You may not"):
        watch()
    assert [each.seen for each in seen] == ["watching", "click", "watching", "rejection", "watching", "click"]
    assert seen[1].fields == CLICK
    assert str(asked[0].url) == "http://service.test/attribution/clicks/stream?clientId=shop-1"
    told = [request.headers.get("last-event-id") for request in asked]
    assert told == [None, *["0:1:4096:1"] * 3, *["0:1:4096:2"] * 2, "0:1:4096:3"]


def test_nobody_there_at_the_beginning_is_said_at_once() -> None:
    with pytest.raises(Unreachable, match="clickclock serve"):
        next(_client(httpx.ConnectError("refused")).follow_clicks())


def test_a_click_is_one_line_with_what_says_where_it_comes_from() -> None:
    line = line_of("click", CLICK).plain
    assert line.partition("  ")[2] == (
        f"click      shop-1  seller=s-9  cli_ubid=u-1  gclid={'g' * 39}…  utm_source=google  stale"
    )


def test_a_rejection_has_a_line_for_every_fault() -> None:
    first, *faults = line_of("rejection", REJECTION).plain.split("\n")
    assert "refused    -  seller=s-9" in first
    assert faults == ["    atag: atag is required.", "    request: No."]


def test_what_a_client_sent_cannot_move_the_cursor() -> None:
    evil = {**CLICK, "clientId": "a\x1b[2Jb\nc", "parameters": {"gclid": "\r\x1b]0;x\x07"}, "flags": []}
    line = line_of("click", evil).plain
    assert line.isprintable()


def test_an_order_shows_its_number_and_amount() -> None:
    order = {
        **CLICK,
        "flags": None,
        "order": {"order_id": "7", "amount": "9.90", "currency": "EUR", "status": "refunded"},
    }
    del order["parameters"]
    assert line_of("order", order).plain.endswith("order=7  9.90 EUR  refunded")


def _run(monkeypatch: pytest.MonkeyPatch, content: bytes, *options: str) -> Result:
    """The command, with a service that sends this and then has enough viewers."""
    over = {"status": "error", "code": "tooManyViewers", "message": "Wait."}
    answers = [httpx.Response(200, content=content), httpx.Response(503, json=over)]
    transport = httpx.MockTransport(lambda _: answers.pop(0))
    real = httpx.Client
    monkeypatch.setattr(httpx, "Client", lambda **options: real(**{**options, "transport": transport}))
    return CliRunner().invoke(tail, options, obj="http://service.test")


def test_the_command_tells_people_lines_and_what_it_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    missed = _event("missed", {"entries": 3, "message": "Too fast."}, "0:1:4096:0")
    result = _run(monkeypatch, WATCHING + missed + _event("click", CLICK, "0:1:4096:1"))
    assert result.exit_code == 1
    assert "u-1" in result.stdout
    assert result.stdout.count("\n") == 1
    assert "Watching" in result.stderr
    assert "3 entries are left out here: Too fast." in result.stderr


def test_the_command_tells_programs_one_object_on_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    content = WATCHING + _event("click", CLICK, "0:1:4096:1") + _event("rejection", REJECTION, "0:1:4096:2")
    result = _run(monkeypatch, content, "--json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first == {"seen": "click", **CLICK, "position": "0:1:4096:1"}
    assert (second["seen"], second["position"]) == ("rejection", "0:1:4096:2")

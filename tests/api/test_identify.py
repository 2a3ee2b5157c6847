"""Identifications over HTTP: what is kept of each, and what is replied."""

import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from clickclock.attribution.api import orders
from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.files.order_tokens import OrderToken, write_order_tokens
from clickclock.attribution.registering.identification import Identification, of_query
from tests.api.port import PATIENCE_S, Port, get, post
from tests.api.test_orders import ACCOUNTS, NOW, TOKEN

SAID = {"client_id": "acme", "customer_id": "c-7", "cli_ubid": "u"}


def judged(body: bytes, authorization: str | None = None) -> list[orders.Judged]:
    admit = orders.doorkeeper(ACCOUNTS.get, authorization)
    return [orders.judge_identification(piece, NOW, admit) for piece in orders.pieces(body)]


def replied(body: bytes, authorization: str | None = None) -> tuple[int, dict[str, Any]]:
    found = judged(body, authorization)
    results = orders.Results(len(found), orders.IDENTIFICATIONS)
    for place, each in enumerate(found):
        results.add(each, f"id{place}")
    reply = results.reply()
    assert reply.body is not None
    return reply.status, json.loads(reply.body)


def test_what_is_kept_of_an_identification_says_all_of_it() -> None:
    (one,) = judged(json.dumps(SAID).encode())
    assert (one.draft.kind, one.draft.detail) == (EntryKind.OTHER, b"identify")
    assert of_query(one.draft.raw, NOW) == one.verdict
    assert isinstance(one.verdict, Identification)


def test_each_identification_has_a_result_and_a_refused_one_takes_none_down() -> None:
    body = b"\n".join(json.dumps(each).encode() for each in (SAID, SAID | {"customer_id": ""}))
    status, told = replied(body)
    assert (status, told["status"], told["accepted"], told["rejected"]) == (202, "partial", 1, 1)
    assert [each["result"] for each in told["identifications"]] == ["accepted", "invalid"]
    assert told["identifications"][0]["customer_id"] == "c-7"
    assert [each["field"] for each in told["errors"]] == ["identifications[1].customer_id"]


def test_a_refused_identification_is_422_and_kept_as_it_came() -> None:
    body = json.dumps(SAID | {"cli_ubid": None}).encode()
    status, told = replied(body)
    assert (status, told["status"], told["requestId"]) == (422, "refused", "id0")
    assert told["message"].startswith("The identification is refused")
    (one,) = judged(body)
    assert (one.draft.kind, one.draft.raw, json.loads(one.draft.detail)["was"]) == (
        EntryKind.REJECTION,
        body,
        "identification",
    )


def test_an_account_with_a_token_asks_for_it() -> None:
    body = json.dumps(SAID | {"client_id": "vault"}).encode()
    assert replied(body)[0] == 401
    assert replied(body, f"Bearer {TOKEN}")[0] == 202


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    with Port(tmp_path_factory.mktemp("identify")) as standing:
        yield standing


FORM = "client_id=acme&customer_id=c%207&cli_ubid=u"
BEACON = "Content-Type: text/plain;charset=UTF-8\r\nOrigin: https://shop.example\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        get(f"/identify?{FORM}"),
        get(f"/identify?{FORM}", method="POST"),
        get(f"/identify/?{FORM}", method="HEAD"),
        post("/identify", FORM.encode(), "Content-Type: application/x-www-form-urlencoded\r\n"),
        post("/identify", FORM.encode(), BEACON),
        post("/identify?client_id=acme&cli_ubid=u", b"customer_id=c+7", BEACON),
        post("/identify", b'{"client_id": "acme", "customer_id": "c 7", "cli_ubid": "u"}', BEACON),
        post("/identify", b'[{"client_id": "acme", "customer_id": "c 7", "cli_ubid": "u"}]', BEACON),
    ],
)
def test_an_identification_is_taken_however_a_page_or_a_program_sends_it(port: Port, request_: bytes) -> None:
    before = len(port.entries())
    with port.connect() as client:
        client.send(request_)
        heard = client.answer(to_head=request_.startswith(b"HEAD"))
    assert (heard.status, heard.fields["access-control-allow-origin"]) == (202, "*")
    (entry,) = port.entries()[before:]
    said = of_query(entry.raw, entry.received_ms)
    assert isinstance(said, Identification)
    assert (said.client_id, said.customer_id, said.cli_ubid) == ("acme", "c 7", "u")


def test_a_page_of_another_origin_may_ask_and_send_json(port: Port) -> None:
    fields = "Origin: https://shop.example\r\nAccess-Control-Request-Method: POST\r\n"
    with port.connect() as client:
        client.send(get("/identify", fields + "Access-Control-Request-Headers: content-type\r\n", "OPTIONS"))
        heard = client.answer()
    assert (heard.status, heard.fields["access-control-allow-origin"]) == (204, "*")
    assert "POST" in heard.fields["access-control-allow-methods"]
    assert heard.fields["access-control-allow-headers"] == "*"


@pytest.mark.parametrize(
    ("request_", "status", "kept"),
    [
        (get("/identify?client_id=acme&cli_ubid=u"), 422, b"client_id=acme&cli_ubid=u"),
        (get("/identify?client_id=acme&customer_id=%E9&cli_ubid=u"), 422, b"client_id=acme&customer_id=%E9&cli_ubid=u"),
        (post("/identify", b"client_id=acme&customer_id=guest&cli_ubid=u"), 422, None),
        (post("/identify", b"neither", BEACON), 400, b"neither"),
        (post("/identify", FORM.encode(), "Content-Encoding: gzip\r\n"), 415, FORM.encode()),
        (get(f"/identify?{FORM}", method="PUT"), 405, FORM.encode()),
    ],
)
def test_whatever_is_refused_is_kept_as_an_identification(
    port: Port, request_: bytes, status: int, kept: bytes | None
) -> None:
    before, counted = len(port.entries()), _counted(port)
    with port.connect() as client:
        client.send(request_)
        heard = client.answer()
    (entry,) = port.entries()[before:]
    assert (heard.status, json.loads(heard.body)["requestId"]) == (status, entry.id)
    assert (entry.kind, json.loads(entry.detail)["was"]) == (EntryKind.REJECTION, "identification")
    assert kept is None or entry.raw == kept
    assert _counted(port) == (counted[0], counted[1] + 1)


def test_identifications_have_a_number_of_their_own(port: Port) -> None:
    before = _counted(port)
    with port.connect() as client:
        client.send(get(f"/identify?{FORM}"))
        assert client.answer().status == 202
    assert _counted(port) == (before[0] + 1, before[1])


def _counted(port: Port) -> tuple[int, int]:
    """How many were taken and how many were refused, by the metrics."""
    names = "clickclock_identifications_total", 'clickclock_rejections_total{what="identification"}'
    taken, refused = map(port.number, names)
    return int(taken), int(refused)


def test_a_running_collector_learns_of_new_and_revoked_order_tokens(port: Port) -> None:
    file = port.folder / "order-tokens.json"
    body = json.dumps({**SAID, "client_id": "c"}).encode()

    def until(status: int, token: str) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while port.ask(post("/identify", body, f"Authorization: Bearer {token}\r\n")).status != status:
            assert time.monotonic() < deadline_s, status

    until(202, "nobody asks for one")
    write_order_tokens(file, {"c": [OrderToken(hashlib.sha256(b"shop").hexdigest())]})
    until(401, "another")
    until(202, "shop")
    write_order_tokens(file, {"c": []})
    until(401, "shop")

"""Identifications over HTTP: what is kept of each, and what is replied."""

import json
from typing import Any

from clickclock.attribution.api import orders
from clickclock.attribution.entry import EntryKind
from clickclock.attribution.identification import Identification, of_query
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

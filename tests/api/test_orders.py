"""Bodies of orders, what is kept of each, and what is replied."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.app.order_tokens import by_client
from clickclock.attribution.api import orders
from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.files.order_tokens import OrderToken, OrderTokens, write_order_tokens
from clickclock.attribution.orders.amendment import FIELDS, ITEM_FIELDS, Amendment, Kind, Status, judge
from clickclock.attribution.orders.appsflyer import OTHER_EVENTS, SALE_PARAMETERS
from clickclock.attribution.orders.money import DIGITS
from clickclock.attribution.orders.order_fields import Reason
from clickclock.foundation.errors import Malformed
from clickclock.foundation.permission import Role
from clickclock.foundation.problem import TooLarge
from clickclock.scheduler.access.access_token import Token, TokenGrant

NOW = 1_800_000_000_000
ORDER: dict[str, Any] = {
    "client_id": "acme",
    "order_id": "A-7",
    "cli_ubid": "u",
    "event_time": NOW,
    "amount": "12.30",
    "currency": "EUR",
}
TOKEN = "s3cret"


@dataclass(frozen=True)
class Account:
    orders_token_sha256: str | None = None


ACCOUNTS = {"acme": Account(), "vault": Account(hashlib.sha256(TOKEN.encode()).hexdigest().upper())}


def raw(**changes: Any) -> bytes:
    return json.dumps({**ORDER, **changes}).encode()


def judged(body: bytes, authorization: str | None = None) -> list[orders.Judged]:
    admit = orders.doorkeeper(ACCOUNTS.get, authorization)
    return [orders.judge(piece, NOW, admit) for piece in orders.pieces(body)]


def reply_to(found: list[orders.Judged]) -> orders.Reply:
    results = orders.Results(len(found))
    for place, each in enumerate(found):
        results.add(each, f"id{place}")
    return results.reply()


def replied(body: bytes, authorization: str | None = None) -> tuple[int, dict[str, Any]]:
    reply = reply_to(judged(body, authorization))
    assert reply.body is not None
    assert b"Content-Type: application/json\r\n" in reply.fields
    return reply.status, json.loads(reply.body)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (raw(), [raw()]),
        (b"\xef\xbb\xbf \r\n" + raw() + b"\n", [raw()]),
        (json.dumps(ORDER, indent=2).encode(), [json.dumps(ORDER, indent=2).encode()]),
        (b"[" + raw() + b" ,\n" + raw(order_id="8") + b"]", [raw(), raw(order_id="8")]),
        (b"[5, null, " + raw() + b"]", [b"5", b"null", raw()]),
        (raw() + b"\n" + raw(order_id="8"), [raw(), raw(order_id="8")]),
        (raw() + b"\r\n\r\n" + raw() + b"\r\n", [raw(), raw()]),
        (b"{broken\n" + raw() + b"\n\xff\n", [b"{broken", raw(), b"\xff"]),
    ],
)
def test_a_body_is_one_order_or_an_array_or_one_a_line(body: bytes, found: list[bytes]) -> None:
    assert orders.pieces(body) == found


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (b"", Malformed, "no body"),
        (b" \n", Malformed, "no body"),
        (b"[]", Malformed, "There are 0 orders; send between 1 and 10,000"),
        (b"hello", Malformed, "cannot be read"),
        (b"[" + raw(), Malformed, "cannot be read"),
        (json.dumps(ORDER, indent=2).encode()[:-1], Malformed, "cannot be read"),
        (b"[" * 200_000, Malformed, "cannot be read"),
        (b"[" + b"{}," * 10_000 + b"{}]", TooLarge, "There are 10,001 orders"),
        (b"{}\n" * 10_001, TooLarge, "There are 10,001 orders"),
        (b"{}\n" * 101, TooLarge, "The body has 101 pieces, too short to be orders"),
        (b"[" + b"{}," * 100 + b"{}]", TooLarge, "The body has 101 pieces, too short to be orders"),
        (b"{}" + b"\n" * 20_001 + b"{}", TooLarge, "There are more than 20,000 lines"),
        (b"[" + b"1," * 100_000 + b"1]", TooLarge, "more values than orders can have"),
        (b" " * (8 * 1024 * 1024 + 1), TooLarge, "send at most 8,388,608"),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_and_kept(body: bytes, error: type[Malformed], says: str) -> None:
    with pytest.raises(error, match=says) as refusal:
        orders.pieces(body)
    kept = orders.refuse(body, refusal.value)
    assert (kept.draft.kind, kept.draft.raw) == (EntryKind.REJECTION, body)
    assert json.loads(kept.draft.detail)["was"] == "order"
    reply = orders.reply_refused(refusal.value, "id0")
    assert reply.status == (413 if error is TooLarge else 400)
    assert reply.body is not None
    assert json.loads(reply.body)["requestId"] == "id0"


def test_the_shortest_orders_are_long_enough_in_any_number() -> None:
    shortest = b'{"order_id":"7","amount":"1","currency":"EUR","client_id":"c","cli_ubid":"u","event_time":%d}' % NOW
    assert isinstance(judge(shortest, NOW), Amendment)
    assert len(shortest) > orders.ORDER_BYTES_MIN
    assert len(orders.pieces(b"\n".join([shortest] * orders.ORDERS_MAX))) == orders.ORDERS_MAX


def test_what_is_kept_of_a_request_of_faults_is_no_multitude_of_it() -> None:
    for piece in (
        b"{%b}" % (b" " * orders.ORDER_BYTES_MIN),
        b"{%b}" % b",".join(b'"field%02d":1' % n for n in range(51)),
    ):
        body = b"\n".join([piece] * 200)
        kept = sum(len(each.draft.raw) + len(each.draft.detail) for each in judged(body))
        assert kept < 20 * len(body)


@given(st.binary(max_size=200))
def test_any_body_is_taken_apart_or_refused(body: bytes) -> None:
    try:
        found = judged(body)
    except Malformed:
        return
    assert reply_to(found).status == 422


def test_a_bad_order_takes_no_good_one_down() -> None:
    body = b"[" + b",".join([raw(), raw(order_id="8", amount=5), raw(order_id="9", client_id="who")]) + b"]"
    status, told = replied(body)
    assert status == 202
    assert (told["status"], told["accepted"], told["rejected"]) == ("partial", 1, 2)
    assert [(each["index"], each["id"], each["order_id"], each["result"]) for each in told["orders"]] == [
        (0, "id0", "A-7", "accepted"),
        (1, "id1", "8", "invalid"),
        (2, "id2", "9", "unknownClient"),
    ]
    assert told["orders"][0]["flags"] == []
    (fault,) = told["orders"][1]["errors"]
    assert (fault["field"], fault["code"]) == ("amount", "badAmount")
    assert [each["field"] for each in told["errors"]] == ["orders[1].amount", "orders[2].client_id"]
    assert (told["code"], told["requestId"]) == ("invalid", "id1")


@pytest.mark.parametrize(
    ("body", "code", "fields"),
    [
        (raw(amount=5), "invalid", ["amount"]),
        (b"[" + raw(amount=5, currency="eur") + b"]", "invalid", ["currency", "amount"]),
        (raw(client_id="who"), "unknownClient", ["client_id"]),
        (raw(amount=5) + b"\n" + raw(order_id=None), "invalid", ["orders[0].amount", "orders[1].order_id"]),
        (
            raw(client_id="who") + b"\n" + raw(client_id="else"),
            "unknownClient",
            ["orders[0].client_id", "orders[1].client_id"],
        ),
        (b'{"amount": 24.9}', "invalid", ["client_id", "order_id", "cli_ubid", "event_time", "currency", "amount"]),
        (raw() + b"}\n{broken", "invalid", ["orders[0]", "orders[1]"]),
    ],
)
def test_where_nothing_is_taken_it_is_422_and_all_is_kept(body: bytes, code: str, fields: list[str]) -> None:
    assert {each.draft.kind for each in judged(body)} == {EntryKind.REJECTION}
    status, told = replied(body)
    assert (status, told["status"], told["code"], told["accepted"]) == (422, "refused", code, 0)
    assert [each["field"] for each in told["errors"]] == fields
    assert told["requestId"] == "id0"
    assert told["rejected"] == len(told["orders"])


@given(st.lists(st.booleans(), min_size=1, max_size=5))
def test_success_is_never_said_of_what_is_refused(goods: list[bool]) -> None:
    status, told = replied(b"\n".join(raw() if good else raw(amount=5) for good in goods))
    said = "success" if all(goods) else "partial" if any(goods) else "refused"
    assert (status, told["status"]) == (202 if any(goods) else 422, said)
    assert ("errors" in told) == (said != "success")


def test_each_order_is_kept_as_it_came() -> None:
    good, bad = raw() + b" ", raw(amount="x")
    accepted, rejected = (each.draft for each in judged(b"[ " + good + b"," + bad + b"]"))
    assert (accepted.kind, accepted.detail, accepted.raw) == (EntryKind.ORDER, b"", raw())
    assert (rejected.kind, rejected.raw) == (EntryKind.REJECTION, bad)
    detail = json.loads(rejected.detail)
    assert (detail["was"], detail["kind"], detail["faults"][0]["field"]) == ("order", "invalid", "amount")


def test_an_order_from_the_future_is_flagged() -> None:
    _, told = replied(raw(event_time=NOW + 3_600_000))
    assert told["orders"][0]["flags"] == ["eventTimeAhead"]


def test_with_no_account_configured_everyone_may_order() -> None:
    admit = orders.doorkeeper(lambda _: Account(), None)
    assert isinstance(orders.judge(raw(client_id="anybody"), NOW, admit).verdict, Amendment)


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}", f"bearer  {TOKEN} "])
def test_the_token_of_an_account_opens_it(authorization: str) -> None:
    assert replied(raw(client_id="vault"), authorization)[0] == 202


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer \udcff"]
)
def test_without_the_token_nothing_is_taken_and_all_is_kept(authorization: str | None) -> None:
    found = judged(raw(client_id="vault"), authorization)
    assert found[0].draft.kind is EntryKind.REJECTION
    reply = reply_to(found)
    assert (reply.status, b"WWW-Authenticate: Bearer\r\n" in reply.fields) == (401, True)
    assert reply.body is not None
    assert json.loads(reply.body)["code"] == "unauthorized"


def test_a_token_may_be_any_utf8() -> None:
    account = Account(hashlib.sha256("schlüssel".encode()).hexdigest())
    admit = orders.doorkeeper(lambda _: account, b"Bearer schl\xc3\xbcssel".decode("latin-1"))
    assert isinstance(orders.judge(raw(), NOW, admit).verdict, Amendment)


def test_orders_of_another_account_are_taken_without_the_token() -> None:
    status, told = replied(raw(client_id="vault") + b"\n" + raw())
    assert status == 202
    assert [each["result"] for each in told["orders"]] == ["unauthorized", "accepted"]


def test_what_is_told_is_bounded() -> None:
    reply = reply_to(judged(b"{%b}\n" % (b" " * orders.ORDER_BYTES_MIN) * orders.ORDERS_MAX))
    assert reply.body is not None
    assert len(reply.body) < 3 * 1024 * 1024
    told = json.loads(reply.body)["orders"]
    assert len(told[0]["errors"]) > 1
    assert [each["code"] for each in told[-1]["errors"]] == ["missing"]


SALE = (
    b"event_name=funnel_salecomplete&client_id=acme&device_id=d&item_identifier=A-7&sales=12.30&currency=EUR"
    b"&sku_id=a%7Cb&event_time=1800000000000"
)


def test_a_sale_is_kept_as_an_order_with_its_query() -> None:
    found = orders.judge_appsflyer(SALE, NOW, orders.doorkeeper(ACCOUNTS.get, None))
    assert (found.draft.kind, found.draft.detail) == (EntryKind.ORDER, SALE)
    assert judge(found.draft.raw, NOW) == found.verdict
    assert orders.reply_appsflyer(found) == orders.Reply(204)


def test_another_event_is_kept_as_it_came() -> None:
    query = b"event_name=viewproduct&client_id=acme&x=%7C"
    found = orders.judge_appsflyer(query, NOW, orders.doorkeeper(ACCOUNTS.get, None))
    assert (found.draft.kind, found.draft.detail, found.draft.raw) == (EntryKind.OTHER, b"viewproduct", query)
    assert orders.reply_appsflyer(found).status == 204


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        (b"event_name=purchase&client_id=acme", 400, "invalid"),
        (SALE.replace(b"12.30", b"much"), 422, "invalid"),
        (SALE.replace(b"12.30", b"%zz"), 422, "invalid"),
        (SALE.replace(b"acme", b"who"), 403, "unknownClient"),
        (SALE.replace(b"acme", b"vault"), 401, "unauthorized"),
    ],
)
def test_a_call_that_is_refused_is_kept_and_told_why(query: bytes, status: int, code: str) -> None:
    found = orders.judge_appsflyer(query, NOW, orders.doorkeeper(ACCOUNTS.get, None))
    assert (found.draft.kind, found.draft.raw) == (EntryKind.REJECTION, query)
    assert json.loads(found.draft.detail)["was"] == "appsflyer"
    reply = orders.reply_appsflyer(found, "id0")
    assert reply.status == status
    assert reply.body is not None
    told = json.loads(reply.body)
    assert (told["code"], told["requestId"]) == (code, "id0")
    assert told["errors"]


REFERENCE = (Path(__file__).parents[2] / "docs" / "reference" / "orders.md").read_text()


def test_the_reference_names_every_field_code_and_parameter() -> None:
    for name in (*FIELDS, *ITEM_FIELDS, *Status, *Kind, *Reason, *OTHER_EVENTS, *SALE_PARAMETERS):
        assert f"`{name}`" in REFERENCE, name


@pytest.mark.parametrize("digits", [0, 3, 4])
def test_the_reference_names_the_currencies_that_have_not_two_digits(digits: int) -> None:
    currencies = ", ".join(sorted(code for code, each in DIGITS.items() if each == digits))
    assert f"| {digits} | {currencies} |" in REFERENCE


def test_the_reference_shows_orders_that_are_accepted() -> None:
    lines = [line.rstrip("'") for line in REFERENCE.splitlines() if line.startswith('{"client_id"')]
    assert len(lines) > 1
    assert all(isinstance(each.verdict, Amendment) for each in judged_by_anyone("\n".join(lines).encode()))


def judged_by_anyone(body: bytes) -> list[orders.Judged]:
    admit = orders.doorkeeper(lambda _: Account(), None)
    return [orders.judge(piece, NOW, admit) for piece in orders.pieces(body)]


def test_a_refusal_of_which_nothing_was_kept_has_a_request_id_all_the_same() -> None:
    ids = [json.loads(orders.reply_refused(TooLarge()).body or b"")["requestId"] for _ in range(2)]
    assert len(set(filter(None, ids))) == 2


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.mark.parametrize("token", [None, "shop", "any"])
def test_where_orders_need_a_token_an_account_that_never_had_one_needs_it(tmp_path: Path, token: str | None) -> None:
    file = tmp_path / "order-tokens.json"
    write_order_tokens(file, {"*": [OrderToken(digest("any"))], "other": [OrderToken(digest("shop"))]})
    tokens = OrderTokens(file, are_needed=True)
    tokens.refresh()
    admit = orders.doorkeeper(lambda _: Account(), token and f"Bearer {token}", tokens, NOW)
    fault = admit("new")
    assert (fault is None) == (token == "any")
    assert OrderTokens(None, are_needed=True).needs("new")


def known(folder: Path, **by_client: list[OrderToken]) -> OrderTokens:
    file = folder / "order-tokens.json"
    write_order_tokens(file, {name.replace("every", "*"): those for name, those in by_client.items()})
    tokens = OrderTokens(file)
    tokens.refresh()
    return tokens


@pytest.mark.parametrize(
    ("client_id", "token", "is_taken"),
    [
        ("acme", "shop", True),
        ("acme", None, False),
        ("acme", "over", False),
        ("acme", "any", True),
        ("acme", TOKEN, False),
        ("closed", "shop", False),
        ("closed", "any", True),
        ("vault", TOKEN, True),
        ("vault", "any", True),
        ("vault", "shop", False),
        ("open", None, True),
    ],
)
def test_order_tokens_open_their_accounts_beside_the_settings(
    tmp_path: Path, client_id: str, token: str | None, is_taken: bool
) -> None:
    shop, over = OrderToken(digest("shop"), NOW + 1), OrderToken(digest("over"), NOW)
    tokens = known(tmp_path, acme=[shop, over], closed=[], every=[OrderToken(digest("any"))])
    accounts = {**ACCOUNTS, "closed": Account(), "open": Account()}
    admit = orders.doorkeeper(accounts.get, token and f"Bearer {token}", tokens, NOW)
    assert (admit(client_id) is None) is is_taken


def test_a_file_of_order_tokens_that_cannot_be_read_leaves_what_was_known(tmp_path: Path) -> None:
    tokens = known(tmp_path, acme=[OrderToken(digest("shop"))])
    file = tmp_path / "order-tokens.json"
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("[")
    tokens.refresh()
    assert tokens.takes("acme", digest("shop"), NOW)
    file.unlink()
    tokens.refresh()
    assert tokens.takes("acme", digest("shop"), NOW)
    assert not write_order_tokens(file, {}) or not write_order_tokens(file, {})
    tokens.refresh()
    assert not tokens.needs("acme")


def test_tokens_of_the_store_become_those_of_their_clients() -> None:
    def made(role: Role, revoked: bool = False, **grant: Any) -> Token:
        grants = [TokenGrant(role=role, applications=[], **grant)]
        at = datetime(2026, 11, 20, tzinfo=UTC)
        ended = {"revoked_at": at} if revoked else {}
        return Token(name="n", grants=grants, token_id="t", created_at=at, created_by="x", **ended)

    found = by_client(
        [
            (made(Role.INGEST, clients=["a", "b"]), "1"),
            (made(Role.INGEST, True, clients=["b", "c"]), "2"),
            (made(Role.ANALYST, clients=["d"]), "3"),
        ]
    )
    assert found == {"a": [OrderToken("1")], "b": [OrderToken("1")], "c": []}

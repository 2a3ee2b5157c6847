"""The fast way of a click into the lake and the slow one make the same row, and the query comes back from it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickclock.attribution.api import orders
from clickclock.attribution.clicks import click
from clickclock.attribution.clicks.account import Accounts, Profile
from clickclock.attribution.clicks.entry import EntryKind, connection, decode, encode, encode_plain
from clickclock.attribution.clicks.query import split
from clickclock.attribution.clicks.shape import cut
from clickclock.attribution.lake import CLICKS, with_query
from clickclock.attribution.lake.plain import plain_rows
from clickclock.attribution.lake.renewal import renewed
from clickclock.attribution.lake.rows import row_of
from clickclock.attribution.lake.tables import CLICK_PARAMETERS
from clickclock.attribution.orders.amendment import everyone
from clickclock.foundation.errors import ClickclockError
from tests.unit.test_query import MUTATIONS, PIECES, QUERIES

RECEIVED_MS = 1_800_000_000_500
ACCOUNTS = (Accounts(), Accounts((), Profile.OBSERVED), Accounts((), Profile.OPEN))
STRICT = b"client_id=acme&cli_ubid=u-1&seller_id=s&asvt=v&atag=t&event_time=1800000000000"
Mutation = Callable[[bytes, int, bytes], bytes]


def _line(query: bytes, number: int, accounts: Accounts, agent: bytes = b"curl") -> bytes | None:
    """Of a click, and every third time of a view."""
    judged = click.judge(query, RECEIVED_MS, accounts)
    origin, entry_id = connection("ab", agent, b""), f"{number:032x}"
    if isinstance(judged, click.Rejection):
        return None
    if judged.plain:
        return encode_plain(entry_id, RECEIVED_MS, origin, judged.profile, query, is_view=number % 3 == 0)
    return encode(EntryKind.CLICK, entry_id, RECEIVED_MS, origin, judged.profile.encode(), query)


def _rows(lines: list[bytes]) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Those of clicks and views together."""
    batches, others = plain_rows(b"".join(lines), "j" * 32, 7)
    for name, batch in batches.items():
        batch.validate(full=True)
        assert {int(row["id"], 16) % 3 == 0 for row in batch.to_pylist()} <= {name == "views"}
    return [row for batch in batches.values() for row in batch.to_pylist()], others


def _slowly(lines: list[bytes]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = CLICKS.batch([row_of(decode(line), "j" * 32, 7)[1] for line in lines]).to_pylist()
    return rows


def _agree(queries: list[bytes], accounts: Accounts, agent: bytes = b"curl") -> int:
    found = [(query, _line(query, number, accounts, agent)) for number, query in enumerate(queries)]
    clicks = {f"{number:032x}": query for number, (query, line) in enumerate(found) if line is not None}
    lines = [line for _, line in found if line is not None]
    fast, others = _rows(lines)
    slow = {row["id"]: row for row in _slowly(lines)}
    assert len(fast) + len(others) == len(lines)
    for row in fast:
        assert row == slow[row["id"]]
    for name, row in slow.items():
        assert with_query(dict(row))["query"] == clicks[name]
    return len(fast)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*QUERIES, STRICT]),
            st.lists(st.tuples(st.sampled_from(MUTATIONS), st.integers(0, 300), PIECES), max_size=3),
        ),
        max_size=12,
    ),
    st.sampled_from(ACCOUNTS),
    st.sampled_from([b"", b"curl/8.0", b"a\tb\\n\r", b"\xff\xfe", b"Mozilla/5.0 (x; &y=z)"]),
)
@example([], ACCOUNTS[0], b"")
def test_both_ways_make_the_same_rows_of_mutated_queries(
    recipes: list[tuple[bytes, list[tuple[Mutation, int, bytes]]]], accounts: Accounts, agent: bytes
) -> None:
    queries = []
    for query, changes in recipes:
        for mutate, at, piece in changes:
            query = mutate(query, at % (len(query) + 1), piece)  # noqa: PLW2901 (one change after the other)
        queries.append(query)
    _agree(queries, accounts, agent)


VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters='&=+%"\\'), min_size=1)
ESCAPED = st.sampled_from(["%20", "+", "%7C", "%7c", "%41", "%2B", "%26", "%3D", "a", "|", "~", "*", "'", "%27"])
LONG_NAMES = ("utm_creative_format", "utm_source_platform", "utm_source_platforn", "of_more_than_thirty_two_bytes_____")
NAMES = st.sampled_from(["gclid", "uclid", "utm_source", "gad_source", "x", *LONG_NAMES])


@given(st.lists(st.dictionaries(NAMES, st.one_of(VALUES, st.lists(ESCAPED, min_size=1).map("".join))), min_size=1))
def test_both_ways_make_the_same_rows_of_plain_clicks_with_other_parameters(parameters: list[dict[str, str]]) -> None:
    queries = [STRICT + "".join(f"&{name}={value}" for name, value in each.items()).encode() for each in parameters]
    _agree(queries, ACCOUNTS[1])


def test_plain_clicks_go_the_fast_way() -> None:
    queries = [
        STRICT + f"&utm_campaign=c%20{number}&gclid=g{number}&device_model=a+b&z{number % 3}={number}".encode()
        for number in range(500)
    ]
    assert _agree(queries, ACCOUNTS[0]) == 500


def test_no_click_is_later_than_its_receipt_and_what_was_sent_is_kept_on_the_fast_way() -> None:
    queries = [STRICT.replace(b"1800000000000", b"%d" % (RECEIVED_MS + late)) for late in (-1, 0, 1, 240_000, 300_000)]
    assert _agree(queries, ACCOUNTS[0]) == len(queries)
    lines = [line for number, query in enumerate(queries) if (line := _line(query, number, ACCOUNTS[0]))]
    rows = sorted(_rows(lines)[0], key=lambda row: str(row["id"]))
    found = [(_ms(row["event_time"]), _ms(row["event_time_sent"])) for row in rows]
    assert found == [(-1, None), (0, None), (0, 1), (0, 240_000), (0, 300_000)]


def _ms(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000) - RECEIVED_MS


def test_a_line_that_only_seems_plain_is_handed_back() -> None:
    good = b"c\t%032x\t1800000000500\t\t\t\tstrict\t" % 1 + STRICT + b"\n"
    strange = [
        b"client_id=c&cli_ubid",
        b"client_id=c=d&event_time=1800000000000",
        b"client_id=c&client_id=d&event_time=1800000000000",
        b"client_id=%4&event_time=1800000000000",
        b"client_id=%zz&event_time=1800000000000",
        b"client_id=%00&event_time=1800000000000",
        b"client%5Fid=c&event_time=1800000000000",
        b"client_id=c&event_time=18000000000x0",
        b"client_id=c&event_time=0800000000000",
        b"client_id=c&event_time=%3180000000000",
        b"client_id=c",
    ]
    for query in strange:
        bad = b"c\t%032x\t1800000000500\t\t\t\tstrict\t" % 2 + query + b"\n"
        rows, others = _rows([good, bad])
        assert bad.removesuffix(b"\n") in others, query
        assert {row["id"] for row in rows} <= {f"{1:032x}"}


def test_a_click_that_would_be_refused_today_is_a_row_with_what_can_be_read() -> None:
    line = encode(EntryKind.CLICK, "0" * 32, RECEIVED_MS, connection("", b"", b""), b"strict", b"client_id=c&x=%zz")
    _, row = row_of(decode(line), "j", 1)
    assert row["client_id"] == "c"
    assert row["query"] == b"client_id=c&x=%zz"
    assert row["event_time"] == datetime.fromtimestamp(RECEIVED_MS / 1000, UTC)


ORDER = b'{"client_id": "c", "order_id": "1", "cli_ubid": "u", "event_time": 1800000000000, "amount": "1", "x": "y"}'
MARKS = st.sampled_from(
    [b"\\ud800", b"\\u0000", b"\xff", b"\0", b"\xed\xa0\x80", b'"', b"{", b"[", b"\n", b"9" * 5000, b"[" * 2000]
)


@given(st.lists(st.tuples(MARKS | st.binary(max_size=4), st.integers(0, len(ORDER))), min_size=1, max_size=3))
def test_whatever_is_sent_as_orders_becomes_rows(changes: list[tuple[bytes, int]]) -> None:
    body = ORDER
    for piece, at in changes:
        body = body[:at] + piece + body[at:]
    try:
        judged = [orders.judge(piece, RECEIVED_MS, everyone) for piece in orders.pieces(body)]
    except ClickclockError as error:
        judged = [orders.refuse(body, error)]
    for draft in (each.draft for each in judged):
        line = encode(draft.kind, "0" * 32, RECEIVED_MS, connection("", b"", b""), draft.detail, draft.raw)
        table, row = row_of(decode(line), "j", 7)
        assert table.batch([row]).to_pylist()[0]["raw"] == draft.raw


@pytest.mark.parametrize(
    ("raw", "client_id"),
    [
        (b'{"client_id": "\xff"}', None),
        (b'{"client_id": "c", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
        (b'{"client_id": "c", "x": "\xff"}', "c"),
        (b'{"client_id": 7}', None),
        (b"\xff\xfe", None),
    ],
)
def test_a_refused_order_is_a_row_however_broken_it_is(raw: bytes, client_id: str | None) -> None:
    detail = b'{"was": "order", "kind": "invalid", "faults": []}'
    line = encode(EntryKind.REJECTION, "0" * 32, RECEIVED_MS, connection("", b"", b""), detail, raw)
    table, row = row_of(decode(line), "j", 7)
    assert (table.name, row["client_id"], row["raw"]) == ("rejections", client_id, raw)


ABSENT_IN = [
    *((name, "{" + name + "}") for name in ("gclid", "utm_campaign", "device_id", "ttclid", "fb_ad_id")),
    *((name, value) for name in ("twclid", "irclickid", "ob_click_id") for value in ("@@X@@", "%25%25X%25%25", "null")),
    *((name, value) for name in ("my_own", "placement") for value in ("{{x}}", "[click_id]", "(not set)", "__X__")),
    *(("cli_ubid", value) for value in ("guest", "0000-0000", "N%2FA")),
    *(("utm_source", "guest"), ("utm_term", "red shoes"), ("other", "a%20b"), ("atag", "{a|b}")),
]
"""Parameters and values that an earlier release took for values. The last ones still are."""


@pytest.mark.parametrize("with_shape", [False, True])
def test_a_click_of_an_earlier_release_becomes_what_it_would_be_today_and_keeps_its_query(*, with_shape: bool) -> None:
    usual = {
        "client_id": "acme",
        "event_time": "1800000000000",
        "cli_ubid": "u-1",
        "device_id": "d-1",
        "utm_medium": "email",
    }
    said = [usual | {name: value} for name, value in ABSENT_IN]
    queries = ["&".join(f"{name}={value}" for name, value in each.items()).encode() for each in said]
    lines = [
        encode(EntryKind.CLICK, f"{number:032x}", RECEIVED_MS, connection("ab", b"curl", b""), b"open", query)
        for number, query in enumerate(queries)
    ]
    today = _slowly(lines)
    before = CLICKS.batch([_of_before(row, query, with_shape) for row, query in zip(today, queries, strict=True)])
    after = renewed(before)
    after.validate(full=True)
    assert [with_query(dict(row)) for row in after.to_pylist()] == [with_query(dict(row)) for row in today]
    assert [with_query(row)["query"] for row in after.to_pylist()] == queries
    assert sum(row["other"] != was["other"] for row, was in zip(after.to_pylist(), before.to_pylist(), strict=True)) > 9
    assert renewed(after).equals(after)


def _of_before(row: dict[str, Any], query: bytes, with_shape: bool) -> dict[str, Any]:
    """What a release made of it that knew no absent values."""
    parameters = split(query)
    columns = {name: parameters.get(name) for name in CLICK_PARAMETERS}
    other = {name: value for name, value in parameters.items() if name not in columns and name != "event_time"}
    shape = cut(query) if with_shape else None
    return row | columns | {
        "other": other or None, "shape": shape, "query": None if shape else query, "revision": None, "flags": [],
    }  # fmt: skip

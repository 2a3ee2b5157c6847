"""What was refused is judged again by the accounts of today."""

from hashlib import sha256

import pytest

from clickclock.attribution.clicks import click
from clickclock.attribution.clicks.account import Account, Accounts, Profile
from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.orders import amendment
from clickclock.attribution.registering.refusal import Code
from clickclock.attribution.registering.retrial import Accepted, Rejected, judge, no_client

NOW_MS = 1_800_000_000_000
CLICK = b"client_id=c&seller_id=s&cli_ubid=u"
ORDER = b'{"client_id":"c","order_id":"7","cli_ubid":"u","event_time":1800000000000,"amount":"9.99","currency":"EUR"}'
SALE = (
    b"event_name=funnel_salecomplete&client_id=c&item_identifier=7&cli_ubid=u&event_time=1800000000000"
    b"&sales=9.99&currency=EUR"
)
OPEN = Accounts([Account(client_id="c", profile=Profile.OBSERVED)])
GUARDED = Accounts([Account(client_id="c", orders_token_sha256=sha256(b"token").hexdigest())])


def rejected(what: str, raw: bytes, kind: str = "invalid", *codes: str, client_id: str | None = "c") -> Rejected:
    return Rejected(what, kind, client_id, frozenset(codes or ("missing",)), NOW_MS, raw)


def test_a_click_is_accepted_by_the_profile_of_today_at_the_time_when_it_came() -> None:
    flags = (click.Flag.ASVT_ABSENT, click.Flag.ATAG_ABSENT, click.Flag.EVENT_TIME_ABSENT)
    assert judge(rejected("click", CLICK), OPEN) == Accepted(EntryKind.CLICK, b"observed", CLICK, flags)
    strict = judge(rejected("click", CLICK), Accounts())
    assert isinstance(strict, click.Rejection)
    assert [fault.field for fault in strict.faults] == ["asvt", "atag", "event_time"]


def test_a_click_that_needed_no_excuse_is_plain() -> None:
    query = CLICK + b"&asvt=v&atag=a&event_time=1800000000000"
    assert judge(rejected("click", query, "unknownClient"), OPEN) == Accepted(EntryKind.PLAIN_CLICK, b"observed", query)


@pytest.mark.parametrize("code", Code)
def test_a_click_that_nobody_judged_becomes_one_unless_only_a_part_of_it_is_kept(code: Code) -> None:
    query = CLICK + b"&asvt=v&atag=a&event_time=1800000000000&utm_campaign=a b"
    assert isinstance(judge(rejected("click", query, "invalid", code), OPEN), Accepted)
    for what in ("click", "order", "appsflyer"):
        cut = judge(rejected(what, query, "invalid", code, "cut"), OPEN)
        assert isinstance(cut, click.Rejection)
        assert [fault.code for fault in cut.faults] == ["cut"]


def test_an_order_and_a_sale_become_what_they_would_have_been() -> None:
    assert judge(rejected("order", ORDER), OPEN) == Accepted(EntryKind.ORDER, b"", ORDER)
    sale = judge(rejected("appsflyer", SALE, "unknownClient"), OPEN)
    assert isinstance(sale, Accepted)
    assert (sale.kind, sale.detail) == (EntryKind.ORDER, SALE)
    assert isinstance(amendment.judge(sale.raw, NOW_MS), amendment.Amendment)
    other = b"event_name=viewproduct&client_id=c"
    assert judge(rejected("appsflyer", other, "unknownClient"), OPEN) == Accepted(
        EntryKind.OTHER, b"viewproduct", other
    )


@pytest.mark.parametrize(("what", "raw"), [("order", ORDER), ("appsflyer", SALE)])
def test_an_order_whose_token_nobody_has_looked_at_is_not_taken_for_an_account_that_needs_one(
    what: str, raw: bytes
) -> None:
    unseen = [
        rejected(what, raw, "unknownClient", "unknownClient"),
        rejected(what, raw, "invalid", "notJson"),
        rejected(what, raw, "invalid", "tooManyParameters"),
        rejected(what, raw, "invalid", "missing", client_id=None),
        *(rejected(what, raw, "invalid", code) for code in Code),
    ]
    for each in unseen:
        for judged in (judge(each, GUARDED), judge(each, OPEN, lambda client_id: client_id == "c")):
            assert isinstance(judged, amendment.Rejection)
            assert judged.kind is amendment.Kind.UNAUTHORIZED
        assert isinstance(judge(each, OPEN), Accepted)
    for accounts, needs_token in ((GUARDED, no_client), (OPEN, lambda _: True)):
        assert isinstance(judge(rejected(what, raw, "invalid", "badAmount"), accounts, needs_token), Accepted)


def test_what_nobody_knows_is_still_refused() -> None:
    judged = judge(rejected("order", ORDER), Accounts([Account(client_id="other")]))
    assert isinstance(judged, amendment.Rejection)
    assert judged.kind is amendment.Kind.UNKNOWN_CLIENT

"""Clicks: what is accepted, with which flags, and every fault of what is not."""

from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.attribution.clicks.absent import is_absent
from clickclock.attribution.clicks.account import Account, Accounts, ChannelRule, Profile
from clickclock.attribution.clicks.click import Click, Flag, Kind, Rejection, judge, judge_fully
from clickclock.attribution.clicks.query import Reason
from tests.unit.test_query import mutated_queries

NOW = 1_800_000_000_500
MINUTE = 60_000
DAY = 86_400_000
STRICT = Accounts()
OBSERVED = Accounts(default_profile=Profile.OBSERVED)
OPEN = Accounts(default_profile=Profile.OPEN)
BOTH = pytest.mark.parametrize("accounts", [STRICT, OBSERVED, OPEN], ids=list(Profile))
FIELDS = {
    "client_id": "acme",
    "cli_ubid": "u-1",
    "seller_id": "os_62e8d1",
    "asvt": "2|r9sga|0.004",
    "atag": "BRAND_AD",
    "event_time": "1800000000000",
}


def query(**changes: str | None) -> bytes:
    """The parameters of a good click, with changes; None leaves one out."""
    return urlencode({name: value for name, value in {**FIELDS, **changes}.items() if value is not None}).encode()


def accepted(judged: Click | Rejection) -> Click:
    assert isinstance(judged, Click), judged
    return judged


def values(click: Click, *names: str) -> tuple[str | None, ...]:
    return tuple(click.value(name) for name in names)


def flags(accounts: Accounts, raw: bytes) -> list[Flag]:
    return list(accepted(judge(raw, NOW, accounts)).flags)


def refused(accounts: Accounts, raw: bytes, kind: Kind = Kind.INVALID) -> list[tuple[str, Reason]]:
    judged = judge(raw, NOW, accounts)
    assert isinstance(judged, Rejection), judged
    assert judged.kind is kind
    assert all(fault.message.endswith(".") for fault in judged.faults)
    return [(fault.field, fault.code) for fault in judged.faults]


HOUR = 3_600_000


@BOTH
@pytest.mark.parametrize("off", [2 * HOUR, -2 * HOUR, 40 * DAY, -MINUTE])
def test_a_clock_that_is_off_is_put_right_by_when_it_said_that_it_sent(accounts: Accounts, off: int) -> None:
    happened = NOW - 20 * MINUTE
    click = accepted(judge(query(event_time=str(happened + off), sent_at=str(NOW + off)), NOW, accounts))
    assert (click.event_time_ms, click.effective_ms) == (happened + off, happened)
    assert (click.flags, click.plain) == ((Flag.CLOCK_CORRECTED,), False)


@BOTH
@pytest.mark.parametrize(
    "sent_at", [str(NOW + MINUTE - 1), str(NOW), "", "yesterday", "1800000000", "{sent_at}", "²" * 13, "9" * 13]
)
def test_a_clock_that_is_right_or_says_nothing_of_use_is_believed(accounts: Accounts, sent_at: str) -> None:
    happened = NOW - 20 * MINUTE
    click = accepted(judge(query(event_time=str(happened), sent_at=sent_at), NOW, accounts))
    assert click.effective_ms == happened
    assert Flag.CLOCK_CORRECTED not in click.flags


def test_nothing_is_later_than_its_receipt_and_what_has_no_receipt_of_its_own_is_not_corrected() -> None:
    late = accepted(judge(query(event_time=str(NOW - DAY + MINUTE), sent_at=str(NOW - DAY)), NOW, STRICT))
    assert late.effective_ms == NOW
    of_a_file = accepted(judge(query(event_time=str(NOW), sent_at=str(NOW + HOUR)), NOW, STRICT))
    assert (of_a_file.effective_ms, of_a_file.flags) == (NOW, ())


def test_what_is_old_by_our_clock_is_stale_and_not_what_is_old_by_its_own() -> None:
    off = 400 * DAY
    fresh = query(event_time=str(NOW - off - MINUTE), sent_at=str(NOW - off))
    old = query(event_time=str(NOW - off - 31 * DAY), sent_at=str(NOW - off))
    assert (flags(STRICT, fresh), flags(STRICT, old)) == (
        [Flag.CLOCK_CORRECTED],
        [Flag.CLOCK_CORRECTED, Flag.STALE],
    )


def lacks_gclid(accounts: Accounts, raw: bytes) -> bool:
    """Whether a Google click without a click id is treated as its profile wants: `open` flags it, others refuse it."""
    if accounts is OPEN:
        return Flag.NO_GCLID in flags(accounts, raw)
    return refused(accounts, raw) == missing("gclid")


def missing(*names: str) -> list[tuple[str, Reason]]:
    return [(name, Reason.MISSING) for name in names]


# The usual click


@BOTH
def test_a_click_of_the_interface_is_plain_and_says_everything(accounts: Accounts) -> None:
    raw = query(device_id="d-1", gclid="g", gaid="a", idfa="i", device_brand="samsung", fb_ad_id="7", utm_x="y")
    click = accepted(judge(raw, NOW, accounts))
    assert (click.plain, click.flags, click.query, click.received_ms) == (True, (), raw, NOW)
    assert click.client_id == "acme"
    assert values(click, "seller_id", "asvt", "atag") == ("os_62e8d1", "2|r9sga|0.004", "BRAND_AD")
    assert (click.event_time_ms, click.effective_ms) == (1_800_000_000_000, 1_800_000_000_000)
    assert values(click, "gclid", "gaid", "idfa", "device_brand", "fb_ad_id") == ("g", "a", "i", "samsung", "7")
    assert values(click, "device_model", "uclid", "fb_account_id", "utm_x") == (None, None, None, "y")
    assert click.profile is accounts.default.profile


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"device_id": "d-1"}, "cli_ubid", "u-1"),
        ({"device_id": "d-1", "cli_ubid": None}, "device_id", "d-1"),
        ({"device_id": "d-1", "cli_ubid": "null"}, "device_id", "d-1"),
        ({"device_id": "d-1", "cli_ubid": ""}, "device_id", "d-1"),
        ({"device_id": "null"}, "cli_ubid", "u-1"),
    ],
)
def test_cli_ubid_wins_over_device_id(changes: dict[str, str | None], name: str, value: str) -> None:
    click = accepted(judge(query(**changes), NOW, STRICT))
    assert (click.identifier_name, click.identifier) == (name, value)
    assert click.value(name) == value


@BOTH
@given(st.text(min_size=1).filter(lambda text: "\0" not in text and not is_absent("atag", text)), st.booleans())
def test_asvt_and_atag_are_opaque(accounts: Accounts, value: str, pluses: bool) -> None:
    encoded = (quote_plus if pluses else quote)(value, safe="").encode()
    raw = query(asvt=None, atag=None) + b"&asvt=" + encoded + b"&atag=" + encoded
    click = accepted(judge(raw, NOW, accounts))
    assert (*values(click, "asvt", "atag"), click.query) == (value, value, raw)


@BOTH
@settings(max_examples=400)
@given(mutated_queries())
def test_the_short_way_and_the_long_way_judge_alike(accounts: Accounts, raw: bytes) -> None:
    judged, fully = judge(raw, NOW, accounts), judge_fully(raw, NOW, accounts)
    if isinstance(judged, Click) and judged.plain:
        assert judged.flags == ()
        assert judged.effective_ms == judged.event_time_ms
        assert not any(byte < 0x20 or byte in b"\\\x7f" for byte in raw)
        judged = msgspec.structs.replace(judged, plain=False)
    assert judged == fully


@pytest.mark.parametrize("name", ["amp;x", "%61mp;x", "a%6Dp%3Bx", "amp;amp;x", "amp%3bx"])
def test_an_escaped_ampersand_is_seen_however_it_is_spelled(name: str) -> None:
    for raw in (f"{query().decode()}&{name}=1", f"{name}=1&{query().decode()}"):
        click = accepted(judge(raw.encode(), NOW, STRICT))
        assert (click.flags, click.parameters["x"], click.plain) == ((Flag.ESCAPED_AMPERSAND,), "1", False)
    assert accepted(judge(query() + b"&x=amp;1&y=1%26amp;2", NOW, STRICT)).plain


@pytest.mark.parametrize("byte", [*range(0x20), 0x7F, ord("\\")])
def test_a_plain_clicks_query_never_needs_an_escape(byte: int) -> None:
    raw = query()
    assert accepted(judge(raw, NOW, STRICT)).plain
    for at in range(len(raw) + 1):
        judged = judge(raw[:at] + bytes([byte]) + raw[at:], NOW, STRICT)
        assert isinstance(judged, Rejection) or not judged.plain


# What is absent


PLACEHOLDERS = ["null", "NULL", "(null)", "undefined", "None", "NaN", "n/a", "not set", "{{x.y}}", "__X__", "${X}"]


@pytest.mark.parametrize("value", [None, "", *PLACEHOLDERS], ids=repr)
@pytest.mark.parametrize("name", ["client_id", "cli_ubid", "seller_id", "asvt", "atag", "event_time"])
def test_a_required_parameter_that_is_absent_or_a_placeholder_is_named(name: str, value: str | None) -> None:
    assert refused(STRICT, query(**{name: value})) == missing(name)


def test_a_placeholder_is_one_however_it_is_encoded() -> None:
    assert refused(STRICT, query(atag=None) + b"&atag=%6eu%6C%6C") == missing("atag")


@pytest.mark.parametrize("value", ["none", "nullable", "-", "0", "guest", "2|r9|{x}", "[DE]"])
def test_what_only_resembles_a_placeholder_is_a_value(value: str) -> None:
    assert accepted(judge(query(atag=value), NOW, STRICT)).value("atag") == value


def test_every_fault_is_told_at_once() -> None:
    expected = missing("client_id", "seller_id", "asvt", "atag", "cli_ubid", "gclid", "event_time")
    assert refused(STRICT, b"utm_source=google") == expected
    expected = [("event_time", Reason.BAD_EVENT_TIME)]
    assert (
        refused(STRICT, b"event_time=now") == missing("client_id", "seller_id", "asvt", "atag", "cli_ubid") + expected
    )
    assert refused(OBSERVED, b"") == missing("client_id", "seller_id", "cli_ubid")


def test_the_first_value_of_a_repeated_parameter_counts_whatever_it_is() -> None:
    click = accepted(judge(query() + b"&atag=other&seller_id=null", NOW, STRICT))
    assert (*values(click, "atag", "seller_id"), click.plain) == ("BRAND_AD", "os_62e8d1", False)
    assert refused(STRICT, b"atag=null&" + query()) == missing("atag")


def test_optional_parameters_may_be_placeholders() -> None:
    click = accepted(
        judge(query(gaid="00000000-0000-0000-0000-000000000000", idfa="", fb_ad_id="undefined"), NOW, STRICT)
    )
    assert (*values(click, "gaid", "idfa", "fb_ad_id"), click.plain) == (None, None, None, False)
    assert click.remarks == ["placeholder:gaid", "placeholder:fb_ad_id"]


@BOTH
@pytest.mark.parametrize("value", ["guest", "UNKNOWN", "0", "f" * 32, "d41d8cd98f00b204e9800998ecf8427e", "{gclid}"])
def test_what_names_nobody_is_no_identifier(accounts: Accounts, value: str) -> None:
    assert refused(accounts, query(cli_ubid=value)) == missing("cli_ubid")
    click = accepted(judge(query(device_id=value, gclid=value, seller_id="guest"), NOW, accounts))
    assert values(click, "cli_ubid", "device_id", "gclid", "seller_id") == ("u-1", None, None, "guest")
    assert click.remarks == ["placeholder:device_id", "placeholder:gclid"]
    assert lacks_gclid(accounts, query(utm_source="google", gclid=value))


# Google


@BOTH
@pytest.mark.parametrize(
    "sign", [{"source": "google"}, {"utm_source": "google"}, {"utm_source": "GOOGLE "}, {"gad_source": "1"}]
)
def test_a_google_click_needs_its_gclid(accounts: Accounts, sign: dict[str, str]) -> None:
    for absent in (None, "", "undefined"):
        assert lacks_gclid(accounts, query(**sign, gclid=absent))
    assert accepted(judge(query(**sign, gclid="EAIt"), NOW, accounts)).plain


@pytest.mark.parametrize("sign", ["gbraid", "wbraid"])
def test_a_google_click_on_ios_needs_no_gclid_but_in_strict(sign: str) -> None:
    raw = query(utm_source="google", **{sign: "0AAAAA"})
    for accounts in (OBSERVED, OPEN):
        assert flags(accounts, raw) == [Flag.NO_GCLID]
        assert flags(accounts, raw + b"&gclid=null") == [Flag.NO_GCLID, Flag.PLACEHOLDER]
    assert refused(STRICT, raw) == missing("gclid")
    assert refused(OBSERVED, query(utm_source="google", **{sign: "{gbraid}"})) == missing("gclid")
    assert Flag.NO_GCLID in flags(OPEN, query(utm_source="google", **{sign: "{gbraid}"}))


def test_a_paid_google_click_needs_no_click_id_where_a_client_an_identifier_and_a_time_are_enough() -> None:
    raw = query(utm_source=" Google ", utm_medium="cpc")
    assert flags(OPEN, raw) == [Flag.NO_GCLID]
    assert refused(OBSERVED, raw) == refused(STRICT, raw) == missing("gclid")


def test_an_organic_visit_needs_no_gclid_but_in_strict() -> None:
    raw = query(utm_source="google", utm_medium="Organic")
    assert accepted(judge(raw, NOW, OPEN)).plain
    assert flags(OBSERVED, raw) == []
    assert refused(STRICT, raw) == missing("gclid")


def test_the_accounts_rules_say_which_click_is_googles() -> None:
    rule = ChannelRule(channel="google", parameter="network", values=("g",))
    accounts = Accounts([Account(client_id="acme", channel_rules=(rule,))])
    assert flags(accounts, query(utm_source="google")) == []
    assert refused(accounts, query(network="g")) == missing("gclid")


# Accounts


def test_an_unknown_client_is_told_that_and_everything_else() -> None:
    accounts = Accounts([Account(client_id="other")])
    assert refused(accounts, query(), Kind.UNKNOWN_CLIENT) == [("client_id", Reason.UNKNOWN_CLIENT)]
    expected = [("client_id", Reason.UNKNOWN_CLIENT), *missing("atag")]
    assert refused(accounts, query(atag=None), Kind.UNKNOWN_CLIENT) == expected
    assert refused(accounts, query(client_id=None)) == missing("client_id")


def test_each_account_has_its_own_profile() -> None:
    accounts = Accounts([Account(client_id="acme"), Account(client_id="tool", profile=Profile.OBSERVED)])
    assert refused(accounts, query(atag=None)) == missing("atag")
    click = accepted(judge(query(client_id="tool", atag=None), NOW, accounts))
    assert (click.profile, click.flags) == (Profile.OBSERVED, (Flag.ATAG_ABSENT,))


def test_a_rejection_says_whose_it_is() -> None:
    judged = judge(query(atag=None), NOW, STRICT)
    assert isinstance(judged, Rejection)
    assert judged.client_id == "acme"


# The time


@BOTH
@pytest.mark.parametrize(
    ("offset_ms", "effective_ms", "flag"),
    [
        (0, NOW, None),
        (1, NOW, None),
        (5 * MINUTE, NOW, None),
        (5 * MINUTE + 1, NOW, Flag.EVENT_TIME_AHEAD),
        (9_000_000 * MINUTE, NOW, Flag.EVENT_TIME_AHEAD),
        (-30 * DAY, NOW - 30 * DAY, None),
        (-30 * DAY - 1, NOW - 30 * DAY - 1, Flag.STALE),
        (-NOW, 0, Flag.STALE),
    ],
)
def test_a_time_ahead_is_capped_at_the_receipt_and_one_long_past_is_stale(
    accounts: Accounts, offset_ms: int, effective_ms: int, flag: Flag | None
) -> None:
    click = accepted(judge(query(event_time=f"{NOW + offset_ms:013}"), NOW, accounts))
    assert (click.event_time_ms, click.effective_ms) == (NOW + offset_ms, effective_ms)
    assert click.flags == (() if flag is None else (flag,))
    assert click.plain is (flag is None)


@BOTH
@pytest.mark.parametrize(
    "said",
    [
        "now",
        "-1800000000000",
        "1800000000000.0",
        "1.8e12",
        "1_800_000_000_000",
        "0x1a3185c5000",
        " 1800000000000",
        "1800000000000 ",
        "0",
        "180000000000",
        "18000000000",
        "18000000000000",
        "١٨٠٠٠٠٠٠٠٠٠٠٠",
        "²²²²²²²²²²²²²",
        pytest.param("9" * 5000, id="5000 digits"),
    ],
)
def test_anything_but_thirteen_digits_is_no_event_time(accounts: Accounts, said: str) -> None:
    assert refused(accounts, query(event_time=said)) == [("event_time", Reason.BAD_EVENT_TIME)]


def test_seconds_are_taken_in_observed_alone() -> None:
    raw = query(event_time="1800000000")
    assert refused(STRICT, raw) == [("event_time", Reason.BAD_EVENT_TIME)]
    click = accepted(judge(raw, NOW, OBSERVED))
    assert (click.event_time_ms, click.effective_ms) == (1_800_000_000_000, 1_800_000_000_000)
    assert click.flags == (Flag.EVENT_TIME_SECONDS,)
    assert flags(OBSERVED, query(event_time="1900000000")) == [Flag.EVENT_TIME_SECONDS, Flag.EVENT_TIME_AHEAD]
    assert flags(OBSERVED, query(event_time="1700000000")) == [Flag.EVENT_TIME_SECONDS, Flag.STALE]


# What `observed` lets pass


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"asvt": None}, [Flag.ASVT_ABSENT]),
        ({"atag": "null"}, [Flag.ATAG_ABSENT, Flag.PLACEHOLDER]),
        ({"atag": "{atag}", "asvt": "${ASVT}"}, [Flag.ASVT_ABSENT, Flag.ATAG_ABSENT, Flag.PLACEHOLDER]),
        ({"asvt": "", "atag": None}, [Flag.ASVT_ABSENT, Flag.ATAG_ABSENT]),
        ({"event_time": "undefined"}, [Flag.EVENT_TIME_ABSENT, Flag.PLACEHOLDER]),
        ({"event_time": None, "atag": None}, [Flag.ATAG_ABSENT, Flag.EVENT_TIME_ABSENT]),
        ({"uclid": "2|r9", "seller_id": None, "asvt": None, "atag": None}, [Flag.SPONSORED]),
        ({"uclid": "2|r9", "seller_id": None}, [Flag.SPONSORED]),
        ({"uclid": "2|r9", "atag": None}, [Flag.ATAG_ABSENT]),
        ({"uclid": "2|r9"}, []),
    ],
)
def test_each_deviation_has_its_own_flag_in_observed_and_is_a_fault_in_strict(
    changes: dict[str, str | None], expected: list[Flag]
) -> None:
    assert flags(OBSERVED, query(**changes)) == expected
    absent = [name for name in ("seller_id", "asvt", "atag", "event_time") if name in changes]
    if absent:
        assert refused(STRICT, query(**changes)) == missing(*absent)
    else:
        assert flags(STRICT, query(**changes)) == []


def test_without_a_time_the_receive_time_counts() -> None:
    click = accepted(judge(query(event_time=None), NOW, OBSERVED))
    assert (click.event_time_ms, click.effective_ms) == (None, NOW)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"client_id": None}, ["client_id"]),
        ({"cli_ubid": None}, ["cli_ubid"]),
        ({"seller_id": None}, ["seller_id"]),
        ({"seller_id": None, "uclid": "undefined"}, ["seller_id"]),
        ({"seller_id": None, "uclid": "2|r9", "client_id": None}, ["client_id"]),
    ],
)
def test_what_even_observed_requires(changes: dict[str, str | None], expected: list[str]) -> None:
    assert refused(OBSERVED, query(**changes)) == missing(*expected)


# What `open` needs


def test_in_open_a_client_an_identifier_and_a_time_are_enough() -> None:
    raw = b"client_id=acme&cli_ubid=u-1&utm_source=mail&utm_campaign=autumn&fbclid=IwAR0&event_time=1800000000000"
    click = accepted(judge(raw, NOW, OPEN))
    assert (click.plain, click.flags, click.value("utm_campaign")) == (True, (), "autumn")
    assert refused(OBSERVED, raw) == missing("seller_id")
    assert flags(OPEN, b"client_id=acme&device_id=d") == [Flag.EVENT_TIME_ABSENT]
    assert flags(OPEN, b"client_id=acme&device_id=d&uclid=2|r9&event_time=1800000000") == [Flag.EVENT_TIME_SECONDS]
    assert refused(OPEN, b"") == missing("client_id", "cli_ubid")


# What cannot be read


BROKEN = [
    (b"utm_x=100%", Reason.BROKEN_ENCODING),
    (b"utm_x=%zz", Reason.BROKEN_ENCODING),
    (b"utm_x=%u0645", Reason.BROKEN_ENCODING),
    (b"utm_x=\xff", Reason.NOT_UTF8),
    (b"utm_x=%e9", Reason.NOT_UTF8),
    (b"utm_x=%ed%a0%80", Reason.NOT_UTF8),
    (b"utm_x=\0", Reason.NUL),
    (b"utm_x=%00", Reason.NUL),
]


@pytest.mark.parametrize(("raw", "code"), BROKEN)
def test_bytes_that_are_no_text_are_refused_by_the_interface_even_in_an_unknown_parameter(
    raw: bytes, code: Reason
) -> None:
    assert refused(STRICT, query() + b"&" + raw) == [("utm_x", code)]


@pytest.mark.parametrize("accounts", [OBSERVED, OPEN])
@pytest.mark.parametrize("raw", [raw for raw, _ in BROKEN])
def test_elsewhere_a_value_that_cannot_be_read_is_lost_alone(accounts: Accounts, raw: bytes) -> None:
    click = accepted(judge(query(utm_y="z") + b"&" + raw + b"&utm_x=later", NOW, accounts))
    assert (click.flags, click.remarks) == ((Flag.BROKEN_VALUE,), ["brokenValue:utm_x"])
    assert values(click, "utm_x", "utm_y") == (None, "z")
    assert flags(accounts, query() + b"&" + raw.replace(b"utm_x=", b"") + b"=name") == [Flag.BROKEN_VALUE]


@pytest.mark.parametrize("accounts", [OBSERVED, OPEN])
def test_a_required_value_that_cannot_be_read_is_a_fault_in_every_profile(accounts: Accounts) -> None:
    raw = query(client_id=None, cli_ubid=None) + b"&client_id=%ff&cli_ubid=%&utm_x=%"
    assert refused(accounts, raw) == [("client_id", Reason.NOT_UTF8), ("cli_ubid", Reason.BROKEN_ENCODING)]
    lost = [("gclid", Reason.BROKEN_ENCODING)]
    assert accounts is OPEN or refused(accounts, query() + b"&gad_source=1&gclid=%") == lost
    # Who has another identifier keeps the click.
    click = accepted(judge(query(cli_ubid=None, device_id="d-1") + b"&cli_ubid=%", NOW, accounts))
    assert (click.identifier, click.flags) == ("d-1", (Flag.BROKEN_VALUE,))
    click = accepted(judge(query(utm_term="{keyword}") + b"&utm_x=%&utm_y=%ff&utm_x=%00", NOW, accounts))
    assert click.remarks == ["brokenValue:utm_x", "brokenValue:utm_y", "placeholder:utm_term"]


@BOTH
@pytest.mark.parametrize("amp", [b"amp;", b"amp%3B", b"amp%3b", b"amp;amp;"])
def test_an_ampersand_that_was_escaped_for_html_is_one(accounts: Accounts, amp: bytes) -> None:
    raw = query().replace(b"&", b"&" + amp) + b"&" + amp + b"utm_source=nl&utm_source=late"
    click = accepted(judge(raw, NOW, accounts))
    assert (click.flags, click.plain) == ((Flag.ESCAPED_AMPERSAND,), False)
    assert values(click, *FIELDS, "utm_source") == (*FIELDS.values(), "nl")
    assert flags(accounts, query(utm_campaign="amp;lifier")) == []


def test_what_cannot_be_read_is_not_called_missing_as_well() -> None:
    raw = query(seller_id=None, client_id=None, asvt=None) + b"&seller_id=%zz&client_id=%ff&a%73vt=%00"
    expected = [("seller_id", Reason.BROKEN_ENCODING), ("client_id", Reason.NOT_UTF8), ("asvt", Reason.NUL)]
    assert refused(STRICT, raw) == expected
    assert refused(STRICT, query(atag=None, event_time="1") + b"&cli_ubid=%") == [
        ("cli_ubid", Reason.BROKEN_ENCODING),
        ("atag", Reason.MISSING),
        ("event_time", Reason.BAD_EVENT_TIME),
    ]


@BOTH
def test_too_many_parameters_are_refused_unread(accounts: Accounts) -> None:
    most = query() + b"".join(b"&p%d=1" % number for number in range(94))
    assert accepted(judge(most, NOW, accounts)).plain
    assert refused(accounts, most + b"&one=more") == [("query", Reason.TOO_MANY_PARAMETERS)]
    assert refused(accounts, b"x=1&" * 10_000) == [("query", Reason.TOO_MANY_PARAMETERS)]


# Requests that real clients send

UCLID = (
    "2|r9sga6ewt7p9ps59stvm59gotyii6qht|0.0040838|1664429063646|12027|BRAND_AD_TAG|os_62e8d149a52d65.11278952|CPM|"
    "b_Samsung|387071|187752|197248|197248||3246|4408|"
)
GCLID = "EAItIQoxChMIiYfIzLff6AIVPSsrCh0hqwA2EAYEKCPAEgJ09vD_IwE"
DEEP_LINK = (
    b"device_id=own-1&seller_id=s1&asvt=2|r9|{x}&client_id=acme&name=Fish & Chips&formula=a=b&device_id={gaid}"
    b"&utm_source=push&utm_medium=app"
)


def test_an_android_deep_link_appended_as_it_is() -> None:
    click = accepted(judge(DEEP_LINK, NOW, OBSERVED))
    assert click.flags == (Flag.ATAG_ABSENT, Flag.EVENT_TIME_ABSENT)
    assert (click.identifier_name, click.effective_ms) == ("device_id", NOW)
    assert values(click, "device_id", "asvt", "atag", "name", "formula") == ("own-1", "2|r9|{x}", None, "Fish ", "a=b")
    assert refused(STRICT, DEEP_LINK) == missing("atag", "event_time")
    # The second screen of the app: the same click, milliseconds later.
    assert accepted(judge(DEEP_LINK, NOW + 3, OBSERVED)).parameters == click.parameters


def test_an_android_deep_link_with_an_atag_and_no_asvt() -> None:
    raw = b"device_id=own-1&client_id=acme&seller_id=s1&atag=a|b"
    assert flags(OBSERVED, raw) == [Flag.ASVT_ABSENT, Flag.EVENT_TIME_ABSENT]
    assert refused(STRICT, raw) == missing("asvt", "event_time")


@pytest.mark.parametrize(
    ("event_time", "expected"),
    [
        (b"", [Flag.SPONSORED, Flag.EVENT_TIME_ABSENT]),
        (b"&event_time=undefined", [Flag.SPONSORED, Flag.EVENT_TIME_ABSENT]),
        (b"&event_time=1800000000000", [Flag.SPONSORED]),
        (b"&event_time=1800000000", [Flag.SPONSORED, Flag.EVENT_TIME_SECONDS]),
    ],
)
def test_a_node_tool_with_a_uclid(event_time: bytes, expected: list[Flag]) -> None:
    raw = (
        b"uclid="
        + UCLID.replace("|", "%7C").encode()
        + b"&client_id=acme&cli_ubid=a+user&device_id=undefined"
        + event_time
    )
    click = accepted(judge(raw, NOW, OBSERVED))
    assert list(click.flags) == [*expected, Flag.PLACEHOLDER]
    assert (*values(click, "uclid", "device_id"), click.identifier, click.query) == (UCLID, None, "a user", raw)
    assert [name for name, _ in refused(STRICT, raw)][:3] == ["seller_id", "asvt", "atag"]


@BOTH
@pytest.mark.parametrize("encode", [str, quote], ids=["raw", "encoded"])
def test_a_real_uclid_is_opaque(accounts: Accounts, encode: Any) -> None:
    click = accepted(judge(query() + b"&uclid=" + encode(UCLID).encode(), NOW, accounts))
    assert (click.value("uclid"), click.plain, click.flags) == (UCLID, True, ())


@BOTH
def test_a_real_gclid(accounts: Accounts) -> None:
    raw = query(gclid=GCLID, utm_source="google", gad_source="1")
    click = accepted(judge(raw, NOW, accounts))
    assert (click.value("gclid"), click.plain, click.flags) == (GCLID, True, ())
    assert lacks_gclid(accounts, query(utm_source="google"))

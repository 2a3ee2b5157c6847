"""Templates: what one takes is a plain click by the rules, and what a client sends again and again is taken by one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.attribution import template
from clickclock.attribution.account import PLACEHOLDERS, Account, Accounts, ChannelRule, Profile
from clickclock.attribution.click import AHEAD_MAX_MS, STALE_AFTER_MS, Click, judge, judge_fully
from clickclock.attribution.template import SEEN_MIN, TEMPLATES_MAX, Template, Templates, template_of, times
from tests.unit.test_query import mutated_queries

NOW = 1_800_000_000_500
STRICT = Accounts()
OBSERVED = Accounts(default_profile=Profile.OBSERVED)
BOTH = pytest.mark.parametrize("accounts", [STRICT, OBSERVED], ids=list(Profile))
QUERY = b"client_id=acme&cli_ubid=u-1&seller_id=s&asvt=2%7Cr9|0.004&atag=a+b&event_time=1800000000000&device_brand=Q"
GOOGLES = QUERY + b"&gclid=EAIt_x&utm_source=google"


def plain(query: bytes, accounts: Accounts = STRICT) -> Click:
    judged = judge(query, NOW, accounts)
    assert isinstance(judged, Click), judged
    assert judged.plain
    return judged


def of(query: bytes, accounts: Accounts = STRICT) -> Template:
    click = plain(query, accounts)
    account = accounts.find(click.client_id)
    assert account is not None
    made = template_of(click, account)
    assert made is not None
    return made


@BOTH
@settings(max_examples=600)
@given(st.sampled_from([QUERY, GOOGLES]), mutated_queries(base=st.sampled_from([QUERY, GOOGLES])))
def test_what_a_template_takes_is_plain_by_the_rules_alone(accounts: Accounts, like: bytes, query: bytes) -> None:
    if of(like, accounts).takes(query, times(NOW)):
        judged = judge_fully(query, NOW, accounts)
        assert isinstance(judged, Click)
        assert (judged.profile, judged.flags) == (accounts.default.profile, ())
        assert judge(query, NOW, accounts) == plain(query, accounts)
        assert b" " not in query


@pytest.mark.parametrize(
    "value", [b"x", b"%7C", b"%2F%3a%40", b"+", b"nullable", b"None+", b"NaN%20", b"~!*'()", b"2|a", b"0" * 36]
)
def test_a_template_takes_other_values(value: bytes) -> None:
    assert of(QUERY).takes(QUERY.replace(b"atag=a+b", b"atag=" + value), times(NOW))
    plain(QUERY.replace(b"atag=a+b", b"atag=" + value))


@pytest.mark.parametrize("name", [b"seller_id", b"asvt", b"atag", b"cli_ubid", b"device_brand"])
@pytest.mark.parametrize("value", sorted(PLACEHOLDERS), ids=repr)
def test_a_template_takes_no_placeholder_however_it_is_encoded(name: bytes, value: str) -> None:
    for at in range(len(value) + 1):
        spelled = value[:at].encode() + b"".join(b"%%%02x" % ord(letter) for letter in value[at:])
        parts = [name + b"=" + spelled if part.startswith(name + b"=") else part for part in QUERY.split(b"&")]
        assert not of(QUERY).takes(b"&".join(parts), times(NOW))


@pytest.mark.parametrize("byte", [byte for byte in range(256) if not 0x20 < byte < 0x7F or byte in b'"\\&='])
def test_a_template_takes_no_byte_that_needs_another_look(byte: int) -> None:
    assert not of(QUERY).takes(QUERY.replace(b"a+b", b"a%bb" % bytes([byte])), times(NOW))


def test_a_template_takes_nobody_elses_clicks_and_no_other_names_or_order() -> None:
    made = of(QUERY)
    assert not made.takes(QUERY.replace(b"acme", b"emca"), times(NOW))
    assert not made.takes(QUERY + b"&gaid=1", times(NOW))
    assert not made.takes(QUERY.removesuffix(b"&device_brand=Q"), times(NOW))
    assert not made.takes(b"&".join(reversed(QUERY.split(b"&"))), times(NOW))
    assert not made.takes(QUERY + b"\n", times(NOW))


@pytest.mark.parametrize("late_ms", [STALE_AFTER_MS, 0, -AHEAD_MAX_MS])
def test_a_template_knows_when_a_click_is_too_old_or_too_early(late_ms: int) -> None:
    made, said_ms = of(QUERY), 1_800_000_000_000
    beyond = 1 if late_ms > 0 else -1
    assert made.takes(QUERY, times(said_ms + late_ms))
    assert made.takes(QUERY, times(said_ms + late_ms + beyond)) is (late_ms == 0)


def test_what_an_accounts_rules_might_call_googles_has_no_template_without_a_gclid() -> None:
    accounts = Accounts([Account(client_id="acme", channel_rules=(ChannelRule(channel="google", parameter="from"),))])
    account = accounts.find("acme")
    assert account is not None
    assert template_of(plain(QUERY, accounts), account) is not None
    other = QUERY + b"&utm_source=newsletter"
    assert template_of(plain(other), STRICT.default) is None
    assert template_of(plain(other, accounts), account) is not None
    assert template_of(plain(GOOGLES), STRICT.default) is not None


@pytest.mark.parametrize("query", [QUERY.replace(b"device_brand", b"device%5fbrand"), QUERY + b"&a+b=1"])
def test_names_that_are_written_in_a_strange_way_have_no_template(query: bytes) -> None:
    assert template_of(plain(query), STRICT.default) is None


def test_a_template_is_made_when_enough_clicks_were_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    templates = Templates(STRICT)
    made = [templates.of(plain(QUERY)) for _ in range(SEEN_MIN + 1)]
    assert made[: SEEN_MIN - 1] == [None] * (SEEN_MIN - 1)
    assert made[-2] is made[-1] is not None
    assert made[-1].takes(QUERY, times(NOW))


def test_there_are_only_so_many_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "SEEN_MIN", 1)
    templates = Templates(STRICT)
    clicks = [plain(QUERY.replace(b"acme", b"c%d" % number)) for number in range(TEMPLATES_MAX + 1)]
    made = [templates.of(click) for click in clicks]
    assert [each is not None for each in made] == [True] * TEMPLATES_MAX + [False]
    assert templates.of(clicks[0]) is made[0]

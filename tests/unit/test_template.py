"""Templates: what one takes is a plain click by the rules, and what a client sends again and again is taken by one."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickclock.attribution.clicks import template
from clickclock.attribution.clicks.absent import DIGESTS
from clickclock.attribution.clicks.account import Account, Accounts, ChannelRule, Profile
from clickclock.attribution.clicks.click import AHEAD_MAX_MS, STALE_AFTER_MS, Click, judge, judge_fully
from clickclock.attribution.clicks.template import (
    NOTHING,
    SEEN_MIN,
    TEMPLATES_MAX,
    Template,
    Templates,
    template_of,
    times,
)
from tests.unit.test_query import mutated_queries

NOW = 1_800_000_000_500
START, REST = b"GET /aclick?", b" HTTP/1.1\r\n\r\n"
STRICT = Accounts()
OBSERVED = Accounts(default_profile=Profile.OBSERVED)
OPEN = Accounts(default_profile=Profile.OPEN)
BOTH = pytest.mark.parametrize("accounts", [STRICT, OBSERVED, OPEN], ids=list(Profile))
QUERY = b"client_id=acme&cli_ubid=u-1&seller_id=s&asvt=2%7Cr9|0.004&atag=a+b&event_time=1800000000000&device_brand=Q"
NEWS = QUERY + b"&utm_source=newsletter&utm_medium=email"
GOOGLES = QUERY + b"&gclid=EAIt_x&utm_source=google"


def plain(query: bytes, accounts: Accounts = STRICT) -> Click:
    judged = judge(query, NOW, accounts)
    assert isinstance(judged, Click), judged
    assert judged.plain
    return judged


def of(query: bytes, accounts: Accounts = STRICT, escaped: frozenset[bytes] | None = None) -> Template:
    click = plain(query, accounts)
    account = accounts.find(click.client_id)
    assert account is not None
    made = template_of(click, account, START, escaped)
    assert made is not NOTHING
    return made


def takes(template: Template, query: bytes, now_ms: int = NOW, start: bytes = START) -> bool:
    """As those do who take clicks in: of a whole request."""
    found = template(start + query + REST, 0, len(start + query))
    first, last = times(now_ms)
    return found is not None and first <= found[1] <= last


@BOTH
@settings(max_examples=600)
@given(
    st.sampled_from([QUERY, GOOGLES, NEWS]),
    st.sampled_from([None, frozenset([b"asvt", b"atag"])]),
    mutated_queries(base=st.sampled_from([QUERY, GOOGLES, NEWS, NEWS.replace(b"newsletter", b"google")])),
)
@example(QUERY, None, QUERY.replace(b"atag=a+b", b"atag=amp;a+b"))
def test_what_a_template_takes_is_plain_by_the_rules_alone(
    accounts: Accounts, like: bytes, escaped: frozenset[bytes] | None, query: bytes
) -> None:
    if takes(of(like, accounts, escaped), query):
        judged = judge_fully(query, NOW, accounts)
        assert isinstance(judged, Click)
        assert (judged.profile, judged.flags) == (accounts.default.profile, ())
        assert judge(query, NOW, accounts) == plain(query, accounts)
        assert b" " not in query


@pytest.mark.parametrize(
    "value", [b"x", b"x%7C", b"a%2F%3a%40", b"a+", b"nature", b"~!'()", b"2|a", b"0" * 36, b"-", b"guest"]
)
def test_a_template_takes_other_values(value: bytes) -> None:
    assert takes(of(QUERY), QUERY.replace(b"atag=a+b", b"atag=" + value))
    plain(QUERY.replace(b"atag=a+b", b"atag=" + value))


@pytest.mark.parametrize("name", [b"seller_id", b"asvt", b"atag", b"cli_ubid", b"device_brand"])
@pytest.mark.parametrize("value", ["null", "NIL", "None", "nan", "n/a", "not set", "undefined", "{x}", "__X__"])
def test_a_template_takes_no_placeholder_however_it_is_encoded(name: bytes, value: str) -> None:
    for at in range(len(value) + 1):
        spelled = value[:at].encode() + b"".join(b"%%%02x" % ord(letter) for letter in value[at:])
        parts = [name + b"=" + spelled if part.startswith(name + b"=") else part for part in QUERY.split(b"&")]
        assert not takes(of(QUERY), b"&".join(parts))
        assert not takes(of(QUERY, escaped=frozenset()), b"&".join(parts))


@pytest.mark.parametrize("value", ["guest", "Test", "0", "0-0", "f" * 32, "FF-FF", "x", "a{b}c", "guest%20", *DIGESTS])
def test_a_template_takes_no_value_that_may_name_nobody(value: str) -> None:
    query = QUERY.replace(b"cli_ubid=u-1", b"cli_ubid=" + value.encode())
    assert query != QUERY
    for escaped in (None, frozenset[bytes]()):
        assert not takes(of(QUERY, escaped=escaped), query)


@pytest.mark.parametrize("byte", [byte for byte in range(256) if not 0x20 < byte < 0x7F or byte in b'"\\&='])
def test_a_template_takes_no_byte_that_needs_another_look(byte: int) -> None:
    assert not takes(of(QUERY), QUERY.replace(b"a+b", b"a%bb" % bytes([byte])))
    assert not takes(of(QUERY, escaped=frozenset([b"asvt"])), QUERY.replace(b"a+b", b"a%bb" % bytes([byte])))


def test_a_template_takes_nobody_elses_clicks_and_no_other_names_or_order() -> None:
    made = of(QUERY)
    assert not takes(made, QUERY.replace(b"acme", b"emca"))
    assert not takes(made, QUERY + b"&gaid=1")
    assert not takes(made, QUERY.removesuffix(b"&device_brand=Q"))
    assert not takes(made, b"&".join(reversed(QUERY.split(b"&"))))
    assert not takes(made, QUERY + b"\n")


@pytest.mark.parametrize("start", [b"", b"POST /aclick?", b"GET /aclicks?", b"GET /aclick?a=b&", b"GET\t/aclick?"])
def test_a_template_takes_no_request_that_begins_in_another_way(start: bytes) -> None:
    assert not takes(of(QUERY), QUERY, start=start)


@pytest.mark.parametrize("late_ms", [STALE_AFTER_MS, 0, -AHEAD_MAX_MS])
def test_a_template_knows_when_a_click_is_too_old_or_too_early(late_ms: int) -> None:
    made, said_ms = of(QUERY), 1_800_000_000_000
    beyond = 1 if late_ms > 0 else -1
    assert takes(made, QUERY, said_ms + late_ms)
    assert takes(made, QUERY, said_ms + late_ms + beyond) is (late_ms == 0)


@pytest.mark.parametrize("value", [b"newsletter", b"googles", b"my-google", b"google.com", b"google+ads", b"go+ogle"])
def test_a_template_without_a_gclid_takes_what_is_not_of_google(value: bytes) -> None:
    made, query = of(NEWS), NEWS.replace(b"newsletter", value)
    assert takes(made, query)
    plain(query)


@BOTH
@pytest.mark.parametrize("escaped", [None, frozenset([b"asvt", b"atag"])])
@pytest.mark.parametrize("parameter", [b"source", b"utm_source"])
@pytest.mark.parametrize(
    "value", [b"google", b"Google", b"GOOGLE", b"g%6fogle", b"google+", b"google%20+", b"google%09", b"+google"]
)
def test_a_template_without_a_gclid_takes_nothing_of_google(
    accounts: Accounts, escaped: frozenset[bytes] | None, parameter: bytes, value: bytes
) -> None:
    query = NEWS.replace(b"utm_source", parameter).replace(b"&utm_medium=email", b"")
    made, google = of(query, accounts, escaped), query.replace(b"newsletter", value)
    assert takes(made, query)
    assert not takes(made, google)
    assert not takes(of(query + b"&utm_medium=email", accounts, escaped), google + b"&utm_medium=email")


@pytest.mark.parametrize("values", [(), ("",), ("search",), ("g o",), ("mail", "news.letter"), ("g|x",)])
def test_an_account_has_a_template_where_its_own_rules_can_be_told_by_bytes(values: tuple[str, ...]) -> None:
    other = ChannelRule(channel="mail", parameter="utm_source")
    rule = ChannelRule(channel="google", parameter="utm_source", values=values)
    account = Account(client_id="acme", channel_rules=(other, rule))
    made = template_of(plain(NEWS, Accounts([account])), account, START, None)
    assert (made is NOTHING) is (values != ("search",))
    assert template_of(plain(QUERY, Accounts([account])), account, START, None) is not NOTHING
    assert template_of(plain(GOOGLES, Accounts([account])), account, START, None) is not NOTHING


@pytest.mark.parametrize("query", [QUERY.replace(b"device_brand", b"device%5fbrand"), QUERY + b"&a+b=1"])
def test_names_that_are_written_in_a_strange_way_have_no_template(query: bytes) -> None:
    assert template_of(plain(query), STRICT.default, START, None) is NOTHING


def test_a_template_is_made_when_enough_clicks_were_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    templates = Templates(STRICT, START)
    made = [templates.of(plain(QUERY)) for _ in range(SEEN_MIN + 1)]
    assert made[: SEEN_MIN - 1] == [NOTHING] * (SEEN_MIN - 1)
    assert made[-2] is made[-1] is not NOTHING
    assert takes(made[-1], QUERY)


def test_when_a_value_is_escaped_for_the_first_time_escapes_are_taken_everywhere_from_then_on() -> None:
    templates = Templates(STRICT, START)
    made = [templates.of(plain(QUERY)) for _ in range(SEEN_MIN)][-1]
    brand, seller = QUERY.replace(b"brand=Q", b"brand=Q+7"), QUERY.replace(b"seller_id=s", b"seller_id=a%40s")
    assert [takes(made, query) for query in (QUERY, brand, seller)] == [True, False, False]
    wider = templates.of(plain(brand))
    assert [takes(wider, query) for query in (QUERY, brand, seller)] == [True, True, True]
    assert templates.of(plain(QUERY)) is templates.of(plain(seller)) is wider


def test_names_in_a_strange_spelling_have_no_template_made_for_them_again_and_again() -> None:
    templates = Templates(STRICT, START)
    made = {templates.of(plain(QUERY)) for _ in range(SEEN_MIN)}
    strange = [QUERY.replace(name, b"%%%02x%b" % (name[0], name[1:])) for name in (b"asvt", b"atag", b"device")]
    assert len(made | {templates.of(plain(query)) for query in strange}) <= 3  # none, one, and a wider one


def test_there_are_only_so_many_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "SEEN_MIN", 1)
    templates = Templates(STRICT, START)
    clicks = [plain(QUERY.replace(b"acme", b"c%d" % number)) for number in range(TEMPLATES_MAX + 1)]
    made = [templates.of(click) for click in clicks]
    assert [each is not NOTHING for each in made] == [True] * TEMPLATES_MAX + [False]
    assert templates.of(clicks[0]) is made[0]

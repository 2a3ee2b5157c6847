"""Clicks without consent: they are clicks, and nothing that is kept of them says who clicked."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Set
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.absent import CLICK_IDS, IDENTIFIERS
from clickclock.attribution.clicks.account import Account, Accounts, Consent, Profile
from clickclock.attribution.clicks.click import Click, Flag, Rejection, judge
from clickclock.attribution.clicks.consent import KEPT, PURPOSES, anonymous
from clickclock.attribution.clicks.entry import EntryKind, connection, decode
from clickclock.attribution.clicks.tc_string import BY_INTEREST, purposes_of
from clickclock.attribution.clicks.template import template_of
from clickclock.attribution.lake.rows import row_of
from clickclock.attribution.registering.registration import line_of
from clickclock.attribution.registering.retrial import Accepted, Rejected
from clickclock.attribution.registering.retrial import judge as judge_again

NOW = 1_800_000_000_500
ID = "0" * 32
ORIGIN = connection("6fd1", b"curl/8", b"https://shop.example/?mail=ada@example.com")
BARE = b"client_id=c&seller_id=s&asvt=v&atag=a&event_time=1800000000000"
WHO = b"cli_ubid=u-1&device_id=d-1&gclid=EAI1x&fbclid=IwAR1&session=s-1"
CLICK = BARE + b"&" + WHO
ASKS = {profile: Accounts([Account(client_id="c", profile=profile)]) for profile in Profile}
REQUIRES = {
    profile: Accounts([Account(client_id="c", profile=profile, consent=Consent.REQUIRED)]) for profile in Profile
}
EVERY = pytest.mark.parametrize("profile", list(Profile))


def tc_string(consented: Set[int], by_interest: Set[int] = frozenset(), version: int = 2) -> str:
    """A string of the IAB's framework, whose other bits are all set."""
    bits = (1 << 232) - 1
    for place in range(6):
        bits &= ~(1 << 231 - place)
    bits |= version << 226
    for at, allowed in ((152, consented), (176, by_interest)):
        for number in set(range(1, 25)) - allowed:
            bits &= ~(1 << 231 - (at + number - 1))
    return urlsafe_b64encode(bits.to_bytes(29)).decode().rstrip("=")


BOTH, NONE = tc_string({1, 7}), tc_string({2, 3})


def click(query: bytes, accounts: Accounts) -> Click:
    judged = judge(query, NOW, accounts)
    assert isinstance(judged, Click), judged
    return judged


@EVERY
@pytest.mark.parametrize("word", ["no", "Denied", "0", "false", " REFUSED ", "opt-out"])
def test_what_denies_is_a_click_of_nobody(profile: Profile, word: str) -> None:
    judged = click(CLICK + b"&consent=" + quote_plus(word).encode(), ASKS[profile])
    assert judged.query == BARE + b"&consent=denied"
    assert judged.flags == (Flag.NO_CONSENT,)
    assert not judged.plain
    assert judged.identifier is None


@EVERY
@pytest.mark.parametrize("word", ["yes", "Granted", "1", "true", "opt-in"])
def test_what_grants_is_a_plain_click(profile: Profile, word: str) -> None:
    for accounts in (ASKS[profile], REQUIRES[profile]):
        judged = click(CLICK + b"&consent=" + word.encode(), accounts)
        assert (judged.plain, judged.identifier) == (True, "u-1")


@EVERY
@pytest.mark.parametrize(
    "said", ["", "&consent=", "&consent=%7Bconsent%7D", "&consent=CPXxRfAPXxRfA", "&consent=maybe"]
)
def test_of_what_says_neither_the_account_decides(profile: Profile, said: str) -> None:
    query = CLICK + said.encode()
    assert click(query, ASKS[profile]).identifier == "u-1"
    asked = click(query, REQUIRES[profile])
    assert (asked.identifier, asked.query) == (None, BARE + b"&consent=denied")


def test_the_first_word_counts_and_one_that_was_written_for_html() -> None:
    assert click(CLICK + b"&consent=no&consent=yes", ASKS[Profile.OPEN]).identifier is None
    assert click(CLICK + b"&consent=yes&consent=no", ASKS[Profile.OPEN]).identifier == "u-1"
    assert click(CLICK + b"&amp;consent=no", ASKS[Profile.OPEN]).identifier is None
    assert click(CLICK + b"&c%6Fnsent=no", ASKS[Profile.OPEN]).identifier is None


def test_where_no_account_is_the_rule_for_all_counts() -> None:
    everybody = Accounts(default_consent=Consent.REQUIRED)
    assert click(CLICK, everybody).identifier is None
    assert click(CLICK + b"&consent=yes", everybody).identifier == "u-1"


@EVERY
def test_it_needs_neither_an_identifier_nor_a_click_id_and_all_else_that_its_profile_wants(profile: Profile) -> None:
    google = BARE + b"&utm_source=google&consent=no"
    assert click(google, ASKS[profile]).flags == (Flag.NO_CONSENT,)
    refused = judge(b"client_id=c&utm_source=google&event_time=x&consent=no", NOW, ASKS[profile])
    assert isinstance(refused, Rejection)
    assert refused.flags == (Flag.NO_CONSENT,)
    wanted = [] if profile is Profile.OPEN else ["seller_id"]
    wanted += ["asvt", "atag"] if profile is Profile.STRICT else []
    assert [fault.field for fault in refused.faults] == [*wanted, "event_time"]


SECRET = "ada-lovelace"


def secrets() -> Iterator[str]:
    yield from (*IDENTIFIERS, *CLICK_IDS, "session", "email", "amp;cli_ubid", "utm_id", "customer_id", "x" * 99)


@EVERY
@given(
    st.lists(st.sampled_from([*secrets()]), min_size=1, max_size=8),
    st.integers(0, 8),
    st.sampled_from(["", "&event_time=%"]),
)
def test_no_line_of_the_journal_names_anybody(profile: Profile, names: list[str], at: int, more: str) -> None:
    parts = [f"{quote_plus(name)}={SECRET}" for name in names]
    parts.insert(at, "consent=no")
    query = f"client_id=c&{'&'.join(parts)}{more}".encode()
    origin = connection("6fd1", b"curl/8", f"https://shop.example/?mail={SECRET}".encode())
    for accounts in (ASKS[profile], Accounts([Account(client_id="another")])):  # accepted or refused
        line = line_of(judge(query, NOW, accounts), ID, NOW, origin, query)
        assert SECRET.encode() not in line
        entry = decode(line)
        assert (entry.address, entry.agent, entry.referer) == ("", b"curl/8", b"")
        assert entry.raw.endswith(b"&consent=denied")


@pytest.mark.parametrize("said", ["gdpr=1", f"gdpr_consent={NONE}"])
def test_the_string_counts_in_a_query_with_too_many_parameters(said: str) -> None:
    judged = judge(CLICK + b"&x=1" * 100 + b"&" + said.encode(), NOW, ASKS[Profile.STRICT])
    assert isinstance(judged, Rejection)
    assert Flag.NO_CONSENT in judged.flags


def test_a_query_with_too_many_parameters_is_refused_without_its_visitor() -> None:
    query = CLICK + b"&x=1" * 100 + b"&consent=no"
    judged = judge(query, NOW, ASKS[Profile.OPEN])
    assert isinstance(judged, Rejection)
    entry = decode(line_of(judged, ID, NOW, ORIGIN, query))
    assert (entry.kind, entry.raw) == (EntryKind.REJECTION, BARE + b"&consent=denied")


@EVERY
def test_the_row_of_the_lake_says_why_nobody_is_in_it(profile: Profile) -> None:
    query = CLICK + b"&landing_page=shop.example%2Fa&country=DE"
    entry = decode(line_of(judge(query, NOW, REQUIRES[profile]), ID, NOW, ORIGIN, query))
    _, row = row_of(entry, "j", 1)
    assert row["flags"] == ["noConsent"]
    assert [row[name] for name in ("cli_ubid", "device_id", "gclid", "address", "referer")] == [None] * 5
    assert row["other"] == {"landing_page": "shop.example/a", "country": "DE", "consent": "denied"}
    assert (row["seller_id"], row["user_agent"], row["profile"]) == ("s", "curl/8", profile)


def test_to_take_a_visitor_out_twice_is_to_do_it_once() -> None:
    once = anonymous(CLICK + b"&consent=0")
    assert anonymous(once) == once
    assert KEPT.isdisjoint((*IDENTIFIERS, *CLICK_IDS))


def test_a_template_takes_no_other_word_than_its_own() -> None:
    accounts = REQUIRES[Profile.STRICT]
    granted = CLICK + b"&consent=granted"
    account = accounts.find("c")
    assert account is not None
    template = template_of(click(granted, accounts), account, b"GET /aclick?", None)
    for word, takes in (("granted", True), ("denied", False), ("yes", False)):
        request = b"GET /aclick?" + granted.replace(b"=granted", b"=" + word.encode())
        assert (template(request, 0, len(request)) is not None) is takes


def test_a_refused_click_that_is_taken_later_obeys_the_rule_of_that_day() -> None:
    rejected = Rejected("click", "unknownClient", "c", frozenset({"unknownClient"}), NOW, CLICK)
    retried = judge_again(rejected, REQUIRES[Profile.OPEN])
    assert isinstance(retried, Accepted)
    assert (retried.kind, retried.raw) == (EntryKind.CLICK, BARE + b"&consent=denied")


@given(st.sets(st.integers(1, 24)), st.sets(st.integers(1, 24)), st.sampled_from(["", ".IFoEUQQgAIQw", " "]))
def test_a_strings_purposes_are_those_that_were_set(consented: set[int], interest: set[int], behind: str) -> None:
    assert purposes_of(tc_string(consented, interest) + behind) == frozenset(consented | (interest & BY_INTEREST))


@given(st.text() | st.from_regex(r"[A-Za-z0-9_.-]{30,60}", fullmatch=True))
def test_any_text_is_a_string_or_none(text: str) -> None:
    found = purposes_of(text)
    assert found is None or found <= set(range(1, 25))


def test_a_string_of_the_first_version_says_nothing() -> None:
    assert purposes_of(tc_string(PURPOSES, version=1)) is None


@EVERY
@pytest.mark.parametrize(
    ("said", "is_asked", "is_required"),
    [
        (f"gdpr=1&gdpr_consent={BOTH}", True, True),
        (f"gdpr_consent={BOTH}", True, True),
        (f"gdpr=1&gdpr_consent={tc_string({1}, {7})}", True, True),
        (f"gdpr=1&gdpr_consent={tc_string({7}, {1})}", False, False),
        (f"gdpr=1&gdpr_consent={NONE}", False, False),
        (f"gdpr=1&gdpr_consent={tc_string({1, 2, 3, 4})}", False, False),
        (f"gdpr=1&gdpr_consent={tc_string({2, 3, 7})}", False, False),
        (f"gdpr_consent={NONE}", False, False),
        ("gdpr=1", False, False),
        ("gdpr=1&gdpr_consent=", False, False),
        ("gdpr=1&gdpr_consent=%24%7BGDPR_CONSENT_755%7D", False, False),
        ("gdpr=%24%7BGDPR%7D&gdpr_consent=%24%7BGDPR_CONSENT_755%7D", True, False),
        ("gdpr=0", True, False),
        (f"gdpr=0&gdpr_consent={NONE}", True, False),
        (f"gdpr=1&gdpr_consent={NONE}&consent=granted", True, True),
        (f"gdpr=1&gdpr_consent={BOTH}&consent=denied", False, False),
        (f"gdpr=1&gdpr_consent={BOTH}&consent=", True, True),
    ],
)
def test_the_string_of_a_banner_says_it_where_nothing_else_does(
    profile: Profile, said: str, is_asked: bool, is_required: bool
) -> None:
    for accounts, is_given in ((ASKS[profile], is_asked), (REQUIRES[profile], is_required)):
        judged = click(CLICK + b"&" + said.encode(), accounts)
        assert (Flag.NO_CONSENT not in judged.flags) == is_given
        assert (judged.identifier is not None) == is_given
        if not is_given:
            assert judged.query == BARE + b"&consent=denied"


@pytest.mark.parametrize("name", ["gdpr", "gdpr_consent"])
def test_a_template_takes_no_other_word_of_a_banner(name: str) -> None:
    query = CLICK + f"&gdpr=1&gdpr_consent={BOTH}".encode()
    account = Account(client_id="c", profile=Profile.STRICT)
    judged = click(query, ASKS[Profile.STRICT])
    assert judged.plain
    takes = template_of(judged, account, b"", None)
    assert takes(query, 0, len(query)) is not None
    other = query.replace(b"gdpr=1", b"gdpr=2") if name == "gdpr" else query.replace(BOTH.encode(), NONE.encode())
    assert takes(other, 0, len(other)) is None
